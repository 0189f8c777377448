"""Figures for print: matplotlib, one style, colours that colour-blind readers tell apart.

Every function takes a dataset and a path whose ending chooses the format (``.pdf``, ``.png``, ``.svg``), and states on
the figure how its bands were made. ``draw`` makes all that a dataset allows.
"""

import itertools
import math
import pathlib
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm, Normalize

from jaxbandit import bounds, growth, statistics, study, style
from jaxbandit.engine import is_stationary
from jaxbandit.results import product, summary

PARTS = {"div": "Div", "shift": "Shift", "skip_error": "|SkipErr|"}
RESAMPLES = 500  # of the intervals on a figure


def draw(
    ds: xr.Dataset,
    directory: str | pathlib.Path,
    *,
    formats: Sequence[str] = ("pdf", "png"),
    worlds: Mapping[str, Any] | None = None,
    method: str = "normal",
    simultaneous: bool = False,
) -> list[pathlib.Path]:
    """Every figure the dataset allows.

    Args:
      ds: What ``simulate`` returned or ``run`` left.
      directory: Where to write ``regret``, ``growth``, ``heat-<policy>-<world>`` and ``decomposition``.
      formats: File endings.
      worlds: The worlds by label, for the lower bounds; without them none are drawn.
      method: Of the bands: ``"normal"`` or ``"bootstrap"``.
      simultaneous: Whether a band covers its whole curve at once.
    """
    if not formats:
        raise ValueError("formats is empty; give at least one file ending such as 'pdf'")
    directory, title = pathlib.Path(directory), str(ds.attrs.get("title", ""))
    directory.mkdir(parents=True, exist_ok=True)
    first, *also = formats

    def path(name: str) -> pathlib.Path:
        return directory / f"{name}.{first}"

    made = [regret_curves(ds, path("regret"), title, method=method, simultaneous=simultaneous, also=also)]
    made.append(growth_curves(ds, path("growth"), title, worlds=worlds or {}, also=also))
    made += [heat_map(grid, path(f"heat{name}"), title, also=also) for name, grid in _sweeps(ds)]
    if all(part in ds for part in PARTS):
        made.append(decomposition(ds, path("decomposition"), title, also=also))
    return [one.with_suffix(f".{ending}") for one in made for ending in formats]


def regret_curves(
    ds: xr.Dataset,
    path: str | pathlib.Path,
    title: str = "",
    *,
    method: str = "normal",
    simultaneous: bool = False,
    level: float = 0.95,
    also: Sequence[str] = (),
) -> pathlib.Path:
    """Mean regret over rounds with its band, one panel per environment.

    Args:
      ds: What ``simulate`` returned; without dimensions ``policy`` and ``environment`` every swept point is a curve.
      path: Where to write; the ending chooses the format.
      title: Heads the figure.
      method: ``"normal"``, or ``"bootstrap"`` over seeds.
      simultaneous: Whether the band covers its whole curve at once.
      level: Its coverage.
      also: Further endings to write it with.
    """
    ds = labelled(ds)
    stats = summary(ds, level=level)
    if "regret" in ds and (method != "normal" or simultaneous):
        found = statistics.band(
            ds.regret, level=level, method=method, simultaneous=simultaneous, num_resamples=RESAMPLES
        )
        stats = stats.assign(regret_low=found.low, regret_high=found.high).assign_attrs(band=found.attrs["band"])
    titles = [str(world) for world in ds.environment.values]
    with style.panels(titles, title, common_lines=ds.sizes["policy"] // len(titles)) as (figure, panels):
        for panel, world in zip(panels, ds.environment.values, strict=True):
            for n, policy in enumerate(stats.policy.values):
                at = stats.sel(policy=policy, environment=world)
                look = style.look(n)
                mean = at.regret_mean
                panel.plot(
                    at["round"], mean.where(mean != 0), label=str(policy), **look
                )  # 0 has no place on a log axis
                panel.fill_between(
                    at["round"], at.regret_low, at.regret_high, color=look["color"], alpha=0.2, linewidth=0
                )
            panel.set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
            _scale_regret(panel, stats.regret_low.sel(environment=world).values)
        style.legend(figure, panels[0], f"bands: {stats.attrs['band']}, {ds.attrs.get('num_seeds', '?')} seeds")
        return style.save(figure, path, also)


def growth_curves(
    ds: xr.Dataset,
    path: str | pathlib.Path,
    title: str = "",
    *,
    worlds: Mapping[str, Any] | None = None,
    last_doublings: int = 4,
    level: float = 0.95,
    also: Sequence[str] = (),
) -> pathlib.Path:
    """Mean regret on doubly logarithmic axes with fitted exponents, and the lower bounds that apply as orders.

    Args:
      ds: What ``simulate`` returned.
      path: Where to write.
      title: Heads the figure.
      worlds: The worlds by label. A stationary one gets the instance-dependent bound, a changing one the minimax one.
      last_doublings: The exponent is fitted over this many, up to the end.
      level: Of the intervals of the exponents.
      also: Further endings to write it with.
    """
    ds = labelled(ds)
    stats, titles = summary(ds), [str(world) for world in ds.environment.values]
    first = int(ds["round"].values[-1] / 2**last_doublings)
    fits = growth.slope(ds.regret, first=first, level=level, num_resamples=RESAMPLES) if _can_fit(ds, first) else None
    with style.panels(titles, title, lines=ds.sizes["policy"] + 1) as (figure, panels):
        for panel, world in zip(panels, ds.environment.values, strict=True):
            for n, policy in enumerate(stats.policy.values):
                mean = stats.regret_mean.sel(policy=policy, environment=world)
                text = str(policy)
                if fits is not None:
                    fit = fits.sel(policy=policy, environment=world)
                    text += _exponent_text(fit)
                    window = mean.where(mean["round"] >= first, drop=True)
                    _draw_fit(panel, window["round"].values, window.values, float(fit.slope))
                panel.plot(mean["round"], mean.where(mean > 0), label=text, **style.look(n))
            panel.set(xscale="log", yscale="log", xlabel="round", ylabel="mean pseudo-regret")
            _draw_bound(panel, (worlds or {}).get(str(world)), ds["round"].values)
            panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17))
        how = f"T^slope over the last {last_doublings} doublings (grey), {fits.attrs['band']}" if fits else "no fits"
        figure.supxlabel(f"{how}; lower bounds are orders: their height means nothing", fontsize=7)
        return style.save(figure, path, also)


def heat_map(
    ds: xr.Dataset, path: str | pathlib.Path, title: str = "", *, x: str = "", y: str = "", also: Sequence[str] = ()
) -> pathlib.Path:
    """Mean final regret over two swept axes; a third one gives panels.

    Args:
      ds: With a dimension per swept field (``product`` makes one of a labelled dataset).
      path: Where to write.
      title: Heads the figure.
      x: The axis to the right; default the longest.
      y: The axis upwards; default the next.
      also: Further endings to write it with.
    """
    value = summary(ds).regret_mean.isel(round=-1)
    axes = sorted((str(dim) for dim in value.dims if value.sizes[dim] > 1), key=lambda dim: -value.sizes[dim])
    for name in filter(None, (x, y)):
        if name not in axes:
            raise ValueError(f"no swept axis {name!r} to draw; there are {', '.join(axes) or 'none'}")
    free = [name for name in axes if name not in (x, y)]
    x, y = x or free.pop(0), y or (free.pop(0) if free else "")
    if not y or len(free) > 1:
        raise ValueError(f"a heat map takes two swept axes and a third for panels, got {axes}; select the others first")
    value = value.squeeze([dim for dim in value.dims if value.sizes[dim] == 1], drop=True)
    slices = [value.sel({free[0]: point}) for point in value[free[0]].values] if free else [value]
    smallest, largest = float(value.min()), float(value.max())
    norm = LogNorm if smallest > 0 and largest > 10 * smallest else Normalize
    titles = [f"{free[0]} = {part[free[0]].item()}" if free else "" for part in slices]
    with style.panels(titles, title) as (figure, panels):
        for panel, part in zip(panels, slices, strict=True):
            table = part.transpose(y, x).values
            image = panel.imshow(table, origin="lower", aspect="auto", cmap=style.HEAT, norm=norm(smallest, largest))
            panel.set(xlabel=x, ylabel=y)
            panel.set_xticks(range(part.sizes[x]), [style.tick(point) for point in part[x].values])
            panel.set_yticks(range(part.sizes[y]), [style.tick(point) for point in part[y].values])
            panel.grid(False)
            _write_cells(panel, table, image)
        figure.colorbar(image, ax=panels, label=f"mean pseudo-regret after {int(ds['round'][-1]):,} rounds")
        return style.save(figure, path, also)


def decomposition(
    ds: xr.Dataset, path: str | pathlib.Path, title: str = "", *, also: Sequence[str] = ()
) -> pathlib.Path:
    """The terms that bound uniINF's regret, stacked over rounds, beside the regret itself.

    Args:
      ds: Recorded with ``measures=("div", "shift", "skip_error")``.
      path: Where to write.
      title: Heads the figure.
      also: Further endings to write it with.
    """
    missing = [part for part in PARTS if part not in ds]
    if missing:
        raise ValueError(f"no {', '.join(missing)} in the dataset; run with measures = {list(PARTS)}")
    ds = labelled(ds)
    means = {name: ds[name].mean("seed") if "seed" in ds[name].dims else ds[name] for name in PARTS}
    regret = summary(ds).regret_mean
    cells = list(itertools.product(ds.policy.values, ds.environment.values))
    titles = [f"{policy} in {world}" for policy, world in cells]
    with style.panels(titles, title, columns=min(ds.sizes["environment"], 4)) as (figure, panels):
        for panel, (policy, world) in zip(panels, cells, strict=True):
            where = {"policy": policy, "environment": world}
            stack = [means[name].sel(where).values for name in PARTS]
            colours = [style.COLOURS[4], style.COLOURS[5], style.COLOURS[3]]
            panel.stackplot(ds["round"].values, *stack, labels=PARTS.values(), colors=colours, alpha=0.85)
            panel.plot(ds["round"], regret.sel(where), color="black", label="pseudo-regret")
            panel.set(xscale="log", xlabel="round", ylabel="mean over seeds")
        note = "the bound adds 2σ(K − 1); |SkipErr| is that of all arms, the best one included"
        style.legend(figure, panels[0], note)
        return style.save(figure, path, also)


def labelled(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with dimensions ``policy`` and ``environment``; swept axes of one class become labelled points."""
    if {"policy", "environment"} <= set(ds.dims):
        return ds
    variable = ds["regret" if "regret" in ds else "regret_mean"]
    axes = [str(dim) for dim in variable.dims if dim not in ("seed", "round", "quantile", "environment")]
    if axes:
        points = itertools.product(*(ds[axis].values for axis in axes))
        names = [", ".join(f"{axis}={style.tick(v)}" for axis, v in zip(axes, point, strict=True)) for point in points]
        ds = ds.stack(policy=axes).drop_vars(["policy", *axes]).assign_coords(policy=names)
    else:
        ds = ds.expand_dims(policy=[str(ds.attrs.get("policy", "policy")).split("(")[0]])
    world = str(ds.attrs.get("environment", "world")).split("(")[0]
    return ds if "environment" in ds.dims else ds.expand_dims(environment=[world])


def worlds_of(ds: xr.Dataset) -> dict[str, Any]:
    """The worlds of a dataset by label, rebuilt from the study file it carries; none if it carries none."""
    try:
        grids = study.parse(tomllib.loads(ds.attrs["study"])).environment_grids() if "study" in ds.attrs else []
    except ValueError as error:  # a file that it names is not found from here
        warnings.warn(f"the worlds cannot be rebuilt, so no lower bounds are drawn: {error}", stacklevel=2)
        return {}
    points = [point for grid in grids for point in grid.points]
    labels = [str(label) for label in np.atleast_1d(ds.environment.values)] if points else []
    return dict(zip(labels, points, strict=True)) if len(labels) == len(points) else {}


def _sweeps(ds: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """The class pairs of a dataset with two or three swept axes, and a name for each."""
    if not {"policy", "environment"} <= set(ds.dims):
        pairs = [("", ds)]
    else:
        labels = (ds.policy.values, ds.environment.values)
        classes = [list(dict.fromkeys(str(label).split("[")[0] for label in side)) for side in labels]
        pairs = [(f"-{p}-{e}", product(ds, p, e)) for p, e in itertools.product(*classes)]
    for name, grid in pairs:
        swept = [d for d in grid.dims if d not in ("seed", "round", "arm", "quantile", "policy", "environment")]
        whole = not grid["regret" if "regret" in grid else "regret_mean"].isnull().any()  # no cell was left out
        if whole and 2 <= sum(grid.sizes[dim] > 1 for dim in swept) <= 3:
            yield name, grid


def _can_fit(ds: xr.Dataset, first: int) -> bool:
    return "regret" in ds and ds.sizes["seed"] > 1 and int((ds["round"] >= first).sum()) > 1


def _exponent_text(fit: xr.Dataset) -> str:
    value, low, high = (float(fit[name]) for name in ("slope", "low", "high"))
    return " (regret not positive)" if math.isnan(value) else f": T^{value:.2f} [{low:.2f}, {high:.2f}]"


def _draw_fit(panel, rounds: np.ndarray, mean: np.ndarray, slope: float) -> None:
    if not math.isnan(slope):
        log_t = np.log(rounds)
        line = np.exp(np.mean(np.log(mean)) + slope * (log_t - log_t.mean()))
        panel.plot(rounds, line, color="#888888", linewidth=4, alpha=0.35, zorder=1)


def _draw_bound(panel, world: Any, rounds: np.ndarray) -> None:
    """The order of the lower bound that applies to a world; the frame stays that of the curves."""
    if world is None or getattr(world, "moment", None) is None:
        return
    alpha = world.moment_order
    sigma = world.moment(alpha)
    if is_stationary(world):
        means = np.asarray(world.means(1), np.float64)
        kind, order = "instance", bounds.instance(rounds, means - means.min(), alpha, sigma)
    else:
        kind, order = "minimax", bounds.minimax(rounds, world.num_arms, alpha, sigma)
    bottom, top = panel.get_ylim()
    seen = (order > bottom / 10) & (order < top * 10)
    outside = "" if seen.any() else " (outside the frame)"
    panel.plot(rounds[seen], order[seen], color="black", linestyle=(0, (1, 2)), label=bounds.LABELS[kind] + outside)


def _write_cells(panel, table: np.ndarray, image) -> None:
    if table.size > 120:
        return
    for (row, column), number in np.ndenumerate(table):
        dark = image.norm(number) < 0.5
        text = f"{number:.3g}" if abs(number) < 1e3 else f"{number:,.0f}" if abs(number) < 1e6 else f"{number:.1e}"
        panel.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")


def _scale_regret(panel, low: np.ndarray) -> None:
    """Logarithmic, or linear around 0 where a policy beats every fixed arm."""
    if np.nanmin(low) > -1:
        panel.set_yscale("log")
        panel.set_ylim(bottom=max(np.nanmin(low[low > 0], initial=1.0) / 2, 1e-2))
        return
    panel.set_yscale("symlog", linthresh=10, linscale=0.5)
    panel.axhline(0, color="black", linewidth=0.6)
    panel.annotate("below 0: better than every fixed arm", (0.02, 0.02), xycoords="axes fraction", fontsize=7)

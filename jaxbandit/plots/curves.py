"""Mean regret over rounds: with bands, and on doubly logarithmic axes with exponents and lower bounds."""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit import bounds, growth, statistics, style
from jaxbandit.game import is_stationary
from jaxbandit.plots.common import RESAMPLES, labelled, scale_regret
from jaxbandit.results import summary


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
    looks = style.looks(stats.policy.values)
    with style.panels(titles, title, common_lines=ds.sizes["policy"] // len(titles)) as (figure, panels):
        for panel, world in zip(panels, ds.environment.values, strict=True):
            for policy, look in zip(stats.policy.values, looks, strict=True):
                at = stats.sel(policy=policy, environment=world)
                mean = at.regret_mean
                panel.plot(
                    at["round"], mean.where(mean != 0), label=str(policy), **look
                )  # 0 has no place on a log axis
                panel.fill_between(
                    at["round"], at.regret_low, at.regret_high, color=look["color"], alpha=0.2, linewidth=0
                )
            panel.set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
            scale_regret(panel, stats.regret_low.sel(environment=world).values)
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
    looks = style.looks(stats.policy.values)
    first = int(ds["round"].values[-1] / 2**last_doublings)
    fits = growth.slope(ds.regret, first=first, level=level, num_resamples=RESAMPLES) if _can_fit(ds, first) else None
    with style.panels(titles, title, lines=ds.sizes["policy"] + 1) as (figure, panels):
        for panel, world in zip(panels, ds.environment.values, strict=True):
            for policy, look in zip(stats.policy.values, looks, strict=True):
                mean = stats.regret_mean.sel(policy=policy, environment=world)
                text = str(policy)
                if fits is not None:
                    fit = fits.sel(policy=policy, environment=world)
                    text += _exponent_text(fit)
                    window = mean.where(mean["round"] >= first, drop=True)
                    _draw_fit(panel, window["round"].values, window.values, float(fit.slope))
                panel.plot(mean["round"], mean.where(mean > 0), label=text, **look)
            panel.set(xscale="log", yscale="log", xlabel="round", ylabel="mean pseudo-regret")
            _draw_bound(panel, (worlds or {}).get(str(world)), ds["round"].values)
            panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17))
        how = f"T^slope over the last {last_doublings} doublings (grey), {fits.attrs['band']}" if fits else "no fits"
        figure.supxlabel(f"{how}; lower bounds are orders: their height means nothing", fontsize=7)
        return style.save(figure, path, also)


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


def lower_bound(world: Any, rounds: np.ndarray) -> tuple[str, np.ndarray] | None:
    """The lower bound that applies to a world, as an order: its kind in ``bounds.LABELS`` and its values.

    That of the instance for a stationary world, the minimax one for one that changes; None for a world that declares
    no moment.
    """
    alpha = getattr(world, "moment_order", None)
    if alpha is None or getattr(world, "moment", None) is None or world.num_arms < 2:
        return None
    sigma = world.moment(alpha)
    if not is_stationary(world):
        return "minimax", bounds.minimax(rounds, world.num_arms, alpha, sigma)
    means = np.asarray(world.means(1), np.float64)
    return "instance", bounds.instance(rounds, means - means.min(), alpha, sigma)


def _draw_bound(panel, world: Any, rounds: np.ndarray) -> None:
    """The order of the lower bound that applies to a world; the frame stays that of the curves."""
    found = lower_bound(world, rounds)
    if found is None:
        return
    kind, order = found
    bottom, top = panel.get_ylim()
    seen = (order > bottom / 10) & (order < top * 10)
    outside = "" if seen.any() else " (outside the frame)"
    panel.plot(rounds[seen], order[seen], color="black", linestyle=(0, (1, 2)), label=bounds.LABELS[kind] + outside)

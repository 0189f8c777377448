"""One game, round by round: the probabilities of the arms, the losses and their threshold, the scale, and regret."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.checks import check_whole
from jaxbandit.dataset.labels import labels
from jaxbandit.dataset.pairs import checked_pair
from jaxbandit.engine import measure_names
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.game import as_arrays
from jaxbandit.grid import as_grid, registry_name
from jaxbandit.plots import style
from jaxbandit.plots.common import environment_name, pretty
from jaxbandit.policies import POLICIES
from jaxbandit.simulation import simulate
from jaxbandit.theory.assumptions import as_attribute, is_outside, remark

MOST = 20_000_000  # numbers that a trace may hold
KEPT, SKIPPED, LIMIT = "#4A96E8", "#BC3200", "#6B6B6B"  # colours of kept losses, skipped losses and the threshold


def trace_game(
    policies: Any, environment: Any, *, horizon: int, game: int = 0, seed: int = 0, dtype: str = "float32"
) -> xr.Dataset:
    """Plays one game of each policy and keeps every round; it is the game that a study plays at this seed.

    Args:
      policies: A policy, a list of them, or policies by name.
      environment: The environment.
      horizon: Rounds to play.
      game: The number of the game, that is, its seed within a study.
      seed: The study seed.
      dtype: ``"float32"`` or ``"float64"``.

    Returns:
      A dataset by ``policy`` and ``t`` with ``x`` (also by ``arm``), ``played`` (the arm), ``loss``, ``regret``,
      ``skipped`` (whether
      the loss was skipped), and ``threshold`` and ``scale`` (S_t), which are NaN if the policy has none.

    Example:
      >>> import jaxbandit as jb
      >>> ds = trace_game(jb.UniINF(horizon=100), jb.Pareto(means=[0.5, 1.0], tail_index=1.6), horizon=100)
      >>> ds.x.dims, bool((abs(ds.loss) >= ds.threshold).sum() == ds.skipped.sum())
      (('policy', 't', 'arm'), True)
    """
    check_whole("game", game, 0)
    named = _named(policies)
    if (game + 1) * horizon * environment.num_arms > MOST:
        raise ValueError(
            f"the traces of {game + 1} games of {horizon:,} rounds and {environment.num_arms} arms are too long; "
            "watch an earlier game, or fewer rounds"
        )
    options = {"horizon": horizon, "num_seeds": game + 1, "seed": seed, "trace": game + 1, "dtype": dtype}
    parts = []
    for policy in named.values():
        known = measure_names(policy, environment.num_arms)
        fields = _fields(policy, environment.num_arms) if hasattr(policy, "keeps_below") else ()
        recorded = [name for name in ("scale", "skipped") if name in known]
        ds = simulate(
            policy,
            environment,
            record=list(range(1, horizon + 1)),
            measures=tuple(dict.fromkeys([*fields, *recorded])),
            **options,
        )
        with jax.enable_x64(dtype == "float64"):
            parts.append(_rounds(ds.isel(seed=game, traced_seed=game), policy, environment.num_arms, fields))
    out = xr.concat(parts, "policy").assign_coords(policy=list(named))
    where = repr(environment)
    outside = [(name, where) for name, policy in named.items() if is_outside(checked_pair(policy, environment))]
    attrs = {"seed": seed, "game": game, "horizon": horizon, "environment": where, "outside": as_attribute(outside)}
    return out.assign_attrs(attrs)


def shown_name(ds: xr.Dataset, policy: Any) -> str:
    """Returns the name of a policy whose game ``trace_game`` returned, with words if it is outside its assumptions."""
    words = remark(ds.attrs, policy, [ds.attrs.get("environment")])
    return pretty(policy) + (f" ({words})" if words else "")


def _named(policies: Any) -> dict[str, Any]:
    if isinstance(policies, Mapping):
        return {str(name): policy for name, policy in policies.items()}
    listed = list(policies) if isinstance(policies, list | tuple) else [policies]
    names = labels([(registry_name(type(policy), POLICIES), as_grid(policy)) for policy in listed])
    return dict(zip(names, listed, strict=True))


def _fields(policy: Any, num_arms: int) -> tuple[str, ...]:
    return getattr(jax.eval_shape(lambda: policy.init(num_arms)), "_fields", ())


def _rounds(ds: xr.Dataset, policy: Any, num_arms: int, fields: Sequence[str]) -> xr.Dataset:
    """Returns the rounds of one game; the state before a round is the state recorded after the round before."""
    rounds = ds["t"].values
    x, arm, loss = (ds[f"trace_{name}"].values for name in ("x", "arm", "loss"))
    nothing = np.full(rounds.size, np.nan)
    scale, threshold, skipped = nothing, nothing, np.zeros(rounds.size, bool)
    policy = as_arrays(policy)
    first = policy.init(num_arms)
    if "scale" in ds:
        scale = np.concatenate([[float(first.scale)], ds["scale"].values[:-1]])
    if fields:

        def before(name: str) -> Any:
            start = np.asarray(getattr(first, name))
            return jnp.asarray(np.concatenate([start[None], ds[name].values[:-1].astype(start.dtype)]))

        states = type(first)(**{name: before(name) for name in fields})
        t = jnp.asarray(rounds, jnp.int32)
        limit = jax.vmap(lambda *one: policy.keeps_below(*one))(states, t, jnp.asarray(x), jnp.asarray(arm))
        threshold = np.asarray(limit, np.float64)
    if "skipped" in ds:
        skipped = np.diff(ds["skipped"].values, prepend=0) > 0.5
    variables = {
        "x": (("t", "arm"), x),
        "played": ("t", arm),
        "loss": ("t", loss),
        "regret": ("t", ds.regret.values),
        "scale": ("t", scale),
        "threshold": ("t", threshold),
        "skipped": ("t", skipped),
    }
    return xr.Dataset(variables, coords={"t": rounds, "arm": ds["arm"].values})


def game(
    policies: Any,
    environment: Any,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    horizon: int,
    number: int = 0,
    seed: int = 0,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws one game of each policy, in a column of panels.

    The rows are the probabilities x_t by arm, the losses with the threshold (skipped losses are crosses), the scale S_t
    if a policy has one, and regret. All policies play the same seed.

    Args:
      policies: A policy, a list of them, or policies by name.
      environment: The environment.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      horizon: Rounds to play.
      number: The number of the game, that is, its seed within a study.
      seed: The study seed.
      ax: The axes to draw on, row by row; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    ds = trace_game(policies, environment, horizon=horizon, game=number, seed=seed)
    rows = [_draw_x, _draw_losses, *([_draw_scale] if bool(ds.scale.notnull().any()) else []), _draw_regret]
    names = [shown_name(ds, policy) for policy in ds.policy.values]
    titles = names + [""] * (len(rows) - 1) * len(names)
    options = {"columns": len(names), "width": 5.6, "height": 2.0, "ax": ax, "venue": venue}
    with style.panels(titles, title, **options) as (figure, panels):
        grid = np.asarray(panels, object).reshape(len(rows), len(names))
        for row, draw in zip(grid, rows, strict=True):
            for panel, policy in zip(row, ds.policy.values, strict=True):
                draw(panel, ds.sel(policy=policy))
                panel.set_xlim(0.5, horizon + 0.5)
            limits = np.array([panel.get_ylim() for panel in row if panel.has_data()])
            for panel in row if limits.size else ():
                panel.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        for panel in grid[-1]:
            panel.set_xlabel("round")
        handles = dict(sorted(style.handles_of(grid[0]).items())) | style.handles_of(grid[1])
        kind = registry_name(type(environment), ENVIRONMENTS)
        where = environment_name(kind, {kind: environment})
        style.legend(figure, panels[0], f"{where}; game {number} of study seed {seed}, {horizon:,} rounds", handles)
        return style.save(figure, path, also)


def arm_look(arm: int) -> dict[str, Any]:
    """Returns the look of an arm; arms after the seventh are grey."""
    return style.look(arm) if arm < len(style.COLOURS) else {"color": "#8A8A8A", "linestyle": "-"}


def _draw_x(panel: Any, ds: xr.Dataset) -> None:
    for arm in reversed(range(ds.sizes["arm"])):
        label = f"arm {arm}" if arm < len(style.COLOURS) else "further arms"
        panel.plot(ds["t"], ds.x.isel(arm=arm), label=label, **arm_look(arm) | {"linewidth": 1.0})
    panel.set(ylabel="probability $x_t$", ylim=(0, 1.02))


def _draw_losses(panel: Any, ds: xr.Dataset) -> None:
    size = np.abs(ds.loss.values)
    skipped = ds.skipped.values
    shown = np.isfinite(size) & (size > 0)
    t = ds["t"].values
    panel.plot(t, ds.threshold, "_", color=LIMIT, markersize=2, label="threshold of the arm played", zorder=1)
    keep, skip = shown & ~skipped, shown & skipped
    panel.plot(t[keep], size[keep], ".", color=KEPT, markersize=2.5, label="kept loss")
    panel.plot(t[skip], size[skip], "x", color=SKIPPED, markersize=4.5, label="skipped loss")
    panel.set_ylabel("|loss|")
    if shown.any():
        panel.set_yscale("log")
        panel.set_ylim(bottom=0.5 * np.min(size[shown]))


def _draw_scale(panel: Any, ds: xr.Dataset) -> None:
    panel.set_ylabel("scale $S_t$")
    if bool(ds.scale.notnull().any()):
        panel.plot(ds["t"], ds.scale, color="black")
    else:
        place = {"transform": panel.transAxes, "ha": "center", "va": "center", "fontsize": style.letters()}
        panel.text(0.5, 0.5, "this policy has no scale", **place)


def _draw_regret(panel: Any, ds: xr.Dataset) -> None:
    panel.plot(ds["t"], ds.regret, color="black", drawstyle="steps-post")
    panel.set_ylabel("regret")

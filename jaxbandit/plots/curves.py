"""Curves of mean regret over rounds: with bands, and on doubly logarithmic axes with exponents and slope guides."""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.analysis import comparison, growth
from jaxbandit.analysis.multiples import NOTE, multiple_text, multiples
from jaxbandit.dataset.results import played, summary
from jaxbandit.game import is_stationary
from jaxbandit.plots import style
from jaxbandit.plots.bands import band_note, banded, draw_curve, lowest
from jaxbandit.plots.common import dagger_note, environment_names, labelled, named, scale_regret
from jaxbandit.theory import bounds

GUIDE = 3  # doublings of T that a slope guide covers


def regret_curves(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    method: str = "normal",
    simultaneous: bool = False,
    level: float = 0.95,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws mean regret over rounds with its band, one panel per environment.

    Args:
      ds: The dataset that ``simulate`` returned. If it has no dimensions ``policy`` and ``environment``, every swept
        point is a curve.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label, for their names.
      method: ``"normal"``, or ``"bootstrap"`` over seeds.
      simultaneous: Whether the band covers its whole curve at once.
      level: The coverage of the band.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    ds = labelled(ds)
    stats = banded(ds, level=level, method=method, simultaneous=simultaneous)
    titles = environment_names(ds.environment.values, environments)
    looks = style.looks(stats.policy.values)
    names = [named(ds, policy) for policy in stats.policy.values]
    with style.panels(titles, title, names=names, ax=ax, venue=venue) as (figure, panels):
        each = getattr(figure, "direct", False)  # a name at a curve speaks of its panel, one in the legend of all
        for panel, environment in zip(panels, ds.environment.values, strict=True):
            for policy, look in zip(stats.policy.values, looks, strict=True):
                at = stats.sel(policy=policy, environment=environment)
                draw_curve(panel, at["round"], at, look, named(ds, policy, [environment] if each else None))
            panel.set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
            scale_regret(panel, lowest(stats.sel(environment=environment)))
        style.name_curves(figure, panels, band_note(stats, ds, panels) + dagger_note(ds, each))
        return style.save(figure, path, also)


def growth_curves(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    guides: bool = False,
    level: float = 0.95,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws mean regret on doubly logarithmic axes with fitted exponents and multiples of asymptotic lower bounds.

    Args:
      ds: The dataset that ``simulate`` returned.
      path: The file to write. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label. The legend has the final regret of a policy as a multiple of the
        asymptotic lower bound, if one binds the policy.
      guides: Whether a short segment above the highest curve shows the slope of the lower bound for the class: that of
        log T if the environment is stationary, else T^(1/α).
      level: The coverage of the intervals of the exponents.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    ds = labelled(ds)
    stats = summary(ds)
    titles = environment_names(ds.environment.values, environments)
    looks = style.looks(stats.policy.values)
    how = "no exponents are fitted"
    times = multiples(stats, environments or {})
    columns = 2 if venue and len(titles) > 1 else 0  # an entry of a legend needs the width of half a page
    with style.panels(titles, title, columns=columns, ax=ax, venue=venue) as (figure, panels):
        size = style.letters(1)
        room = round(144 * figure.get_figwidth() / _columns(panels) / style.letters()) - 6  # letters of an entry
        below = (2.7 * size + 12) / style.letters()  # the numbers and the name of the axis, in letters of the legend
        for panel, environment in zip(panels, ds.environment.values, strict=True):
            log = bool((stats.regret_mean.sel(environment=environment) > 0).any())
            for policy, look in zip(stats.policy.values, looks, strict=True):
                where = {"policy": policy, "environment": environment}
                mean = stats.regret_mean.sel(where).dropna("round")
                fit = _fit(ds.regret.sel(where), level) if "regret" in ds else None
                if fit is not None:
                    how = f"T^slope over the last {growth.LAST_DOUBLINGS} doublings (grey), {fit.attrs['band']}"
                    window = mean.where(mean["round"] >= fit.attrs["first"], drop=True)
                    _draw_fit(panel, window["round"].values, window.values, float(fit.slope))
                multiple = times.get((str(policy), str(environment)))
                text = named(ds, policy, [environment]) + _exponent_text(fit, mean) + _stop_text(mean, ds)
                text += "" if multiple is None else f", {multiple_text(multiple)} × bound"
                text = style.folded(text, room)
                panel.plot(mean["round"], mean.where(mean > 0) if log else mean, label=text, **look)
            panel.set(xscale="log", yscale="log" if log else "linear", xlabel="round", ylabel="mean pseudo-regret")
            bottom, top = panel.get_ylim()
            panel.set_ylim(bottom=max(bottom, 1e-5 * top) if log else bottom)  # hides rounding errors
            if log and guides:
                mean = stats.regret_mean.sel(environment=environment)
                _draw_guide(panel, (environments or {}).get(str(environment)), ds["round"].values, float(mean.max()))
            panel.legend(fontsize=style.letters(), loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=below)
        style.note(figure, how + (f"\n{NOTE}" if times else "") + dagger_note(ds, each=True))
        return style.save(figure, path, also)


def _columns(panels: Sequence[Any]) -> int:
    """Returns the number of panels in a row."""
    place = panels[0].get_subplotspec()
    return 1 if place is None else place.get_gridspec().ncols


def _fit(games: xr.DataArray, level: float) -> xr.Dataset | None:
    """Fits the exponent of the end of the run; returns None for a single game or fewer than two rounds."""
    games = played(games.load())
    rounds = games["round"].values
    first = rounds[-1] / 2**growth.LAST_DOUBLINGS if rounds.size else 0
    if games.sizes["seed"] < 2 or (rounds >= first).sum() < 2:
        return None
    return growth.exponent(games, level=level, num_resamples=comparison.RESAMPLES)


def _exponent_text(fit: xr.Dataset | None, mean: xr.DataArray) -> str:
    if fit is None:
        return ""
    text = growth.exponent_text(*(float(fit[name]) for name in ("slope", "low", "high", "model_error")))
    return f": {text}" if text else " (regret falls)" if bool(fit.falls) and mean[-1] > 0 else " (regret not positive)"


def _stop_text(mean: xr.DataArray, ds: xr.Dataset) -> str:
    """Returns the last round of a policy in words if the policy stopped before the others."""
    if not mean.size:
        return ", not played"
    last = int(mean["round"][-1])
    return "" if last == int(ds["round"][-1]) else f", to round {last:,}"


def _draw_fit(panel, rounds: np.ndarray, mean: np.ndarray, slope: float) -> None:
    if not math.isnan(slope):
        log_t = np.log(rounds)
        line = np.exp(np.mean(np.log(mean)) + slope * (log_t - log_t.mean()))
        wide = 2.5 * matplotlib.rcParams["lines.linewidth"]  # seen on both sides of the curve
        panel.plot(rounds, line, color="#888888", linewidth=wide, alpha=0.35, zorder=1)


def slope_guide(environment: Any, rounds: np.ndarray) -> tuple[str, np.ndarray] | None:
    """Returns the order of the lower bound for an environment's class: its kind in ``bounds.LABELS`` and its values.

    If the environment is stationary, the class has its gaps. If it changes, the class has any gaps. In both, some
    environments are easier than others, so regret may be below the order. None if the environment declares no moment.
    """
    alpha = getattr(environment, "moment_order", None)
    if alpha is None or getattr(environment, "moment", None) is None or environment.num_arms < 2:
        return None
    sigma = environment.moment(alpha)
    if not is_stationary(environment):
        return "minimax", bounds.minimax(rounds, environment.num_arms, alpha, sigma)
    means = np.asarray(environment.means(1), np.float64)
    return "instance", bounds.instance(rounds, means - means.min(), alpha, sigma)


def _draw_guide(panel, environment: Any, rounds: np.ndarray, top: float) -> None:
    """Draws the slope of an order over the last doublings, a little above the highest curve's end."""
    found = slope_guide(environment, rounds)
    if found is None or not found[1][-1] > 0:
        return
    kind, order = found
    late = rounds >= rounds[-1] / 2**GUIDE
    panel.plot(rounds[late], 1.3 * top * order[late] / order[-1], label=bounds.LABELS[kind], **style.BOUND)

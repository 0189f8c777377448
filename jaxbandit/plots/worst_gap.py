"""The worst gap at every T: the largest mean regret over environments that differ in their gap alone."""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.analysis import gaps, growth
from jaxbandit.plots import style
from jaxbandit.plots.bands import draw_curve, narrow
from jaxbandit.plots.common import (
    dagger_note,
    environments_of,
    labelled,
    named,
    seeds_note,
)

GUIDE = 3  # doublings of T that the guide covers
SLOPE = "slope"  # the mark of the text at a guide
EXPONENT = ("slope", "low", "high", "model_error")


def worst_gaps(
    ds: xr.Dataset | Sequence[xr.Dataset], *, environments: Mapping[str, Any] | None = None, level: float = 0.95
) -> xr.Dataset:
    """Finds the largest mean regret over gaps, at every round, for each family of ``analysis.gaps``.

    Args:
      ds: A dataset whose environments are swept over the gap; every round counts as T. Or a dataset for each horizon,
        of which the last round counts: policies that are given T then have the right one.
      environments: The environments by label; default those of the study that a dataset carries.
      level: The coverage of the intervals.

    Returns:
      A dataset by ``family``, ``policy`` and ``round`` with ``regret_mean``, ``regret_low``, ``regret_high``,
      ``gap`` (the worst) and
      ``edge`` (whether it is the smallest or the largest of the sweep, so that a worse one may be outside). By
      ``family`` and ``policy``: ``slope``, ``low``, ``high`` and ``model_error`` of the exponent. By ``family``:
      ``moment_order``, NaN if it is unknown, and ``example``, the label of an environment.
    """
    several = [labelled(ds)] if isinstance(ds, xr.Dataset) else [labelled(one).isel(round=[-1]) for one in ds]
    several.sort(key=lambda one: int(one["round"][-1]))
    first = several[0]
    if "regret" not in first:
        raise ValueError('the worst gap needs every game, and a summary has none; run the study with keep = "seeds"')
    games: Any = xr.concat([one.regret for one in several], "round", join="inner") if len(several) > 1 else first.regret
    known = environments if environments is not None else environments_of(first)
    there = {str(label): known[str(label)] for label in first.environment.values if str(label) in known}
    parts = [_family(games.sel(environment=list(one.labels)), one, level) for one in gaps.families(there)]
    if not parts:
        raise ValueError("no environments differ in their gap; sweep it, e.g. hard_pair with gap = [0.01, 0.03, 0.1]")
    text = f"bootstrap of the maximum, {100 * level:g} %, {seeds_note(first)}"
    return xr.concat(parts, "family", join="outer", coords="minimal").assign_attrs(first.attrs | {"band": text})


def _family(games: xr.DataArray, family: gaps.Family, level: float) -> xr.Dataset:
    """Returns the worst gaps of one family, by policy."""
    found = []
    for policy in games.policy.values:
        own = games.sel(policy=policy).dropna("round", how="all").dropna("seed")
        one = gaps.worst_gap(own, family.gaps, level=level)
        found.append(
            one.rename(regret="regret_mean", low="regret_low", high="regret_high").rename(
                exponent="slope", exponent_low="low", exponent_high="high"
            )
        )
    part = xr.concat(
        found, xr.DataArray(games.policy.values, dims="policy", name="policy"), join="outer", coords="minimal"
    )
    part["edge"] = part.edge.fillna(False).astype(bool)
    order = np.nan if family.moment_order is None else family.moment_order
    return part.assign(moment_order=order, example=family.labels[0]).expand_dims(family=[family.label])


def worst_gap(
    ds: xr.Dataset | Sequence[xr.Dataset],
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    level: float = 0.95,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws the largest mean regret over gaps against T, with exponents and the slope T^(1/α) as a short guide.

    Args:
      ds: A dataset whose environments are swept over the gap, or one for each horizon; see ``worst_gaps``.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label; default those of the study that a dataset carries.
      level: The coverage of the intervals.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    found = worst_gaps(ds, environments=environments, level=level)
    first = labelled(ds if isinstance(ds, xr.Dataset) else ds[0])
    titles = [str(family) for family in found.family.values]
    looks = dict(zip(found.policy.values, style.looks(found.policy.values), strict=True))
    short = len(titles) > 2  # intervals need the room of two panels in a row
    names = [f"{named(first, policy)} T^0.00{'' if short else ' [0.00, 0.00]'}" for policy in looks]
    options = {"names": names, "width": 5.0, "height": 3.6, "ax": ax, "venue": venue}
    with style.panels(titles, title, **options) as (figure, panels):
        for panel, family in zip(panels, found.family.values, strict=True):
            part = found.sel(family=family)
            shown = {policy: named(first, policy) + exponent_text(part.sel(policy=policy), short) for policy in looks}
            draw_worst(panel, part, first, looks, shown)
        note = f"bands: {found.attrs['band']}{narrow(panels)}{edge_note(found)}; exponents of the last "
        note += f"{growth.LAST_DOUBLINGS} doublings{dagger_note(first)}"
        style.name_curves(figure, panels, note)
        shorten_slopes(figure, panels)
        return style.save(figure, path, also)


def draw_worst(
    panel: Any,
    found: xr.Dataset,
    ds: xr.Dataset,
    looks: Mapping[Any, Mapping[str, Any]],
    names: Mapping[Any, str] | None = None,
) -> None:
    """Draws one family of ``worst_gaps``; a curve is thin if its worst gap is at the edge of the sweep.

    Args:
      panel: The panel.
      found: One family of ``worst_gaps``.
      ds: The dataset, for the names of the policies.
      looks: Colour and line of every policy.
      names: Names of the curves; by default a policy's name and exponent.
    """
    for policy in found.policy.values:
        at = found.sel(policy=policy)
        at = at.isel(round=np.flatnonzero(at.regret_mean.notnull().values))
        label = named(ds, policy) + exponent_text(at) if names is None else names[policy]
        draw_curve(panel, at["round"], at, looks[policy], label, linewidth=0.6)
        inside = at.regret_mean.where(~at.edge.astype(bool))
        panel.plot(at["round"], inside, label="_inside", **looks[policy])
    panel.set(xscale="log", yscale="log", xlabel="T", ylabel="largest mean regret\nover the gaps")
    alpha, rounds = float(found.moment_order), found["round"].values
    if np.isfinite(alpha) and rounds.size > 1:
        late = rounds >= rounds[-1] / 2**GUIDE
        top = float(found.regret_mean.max())
        guide = 1.4 * top * (rounds[late] / rounds[-1]) ** (1 / alpha)
        panel.plot(rounds[late], guide, label="_guide", **style.BOUND | {"linewidth": 0.9})
        place = {"textcoords": "offset points", "ha": "right", "va": "bottom", "color": style.BOUND["color"]}
        text = f"slope $T^{{1/α}}$, 1/α = {1 / alpha:.2f}"
        panel.annotate(text, (rounds[-1], guide[-1]), (0, 3), fontsize=style.letters(), gid=SLOPE, **place)
        low, share = np.log(panel.get_ylim()[0]), (6 + 1.4 * style.letters()) / style.panel_height(panel)
        panel.set_ylim(top=np.exp((np.log(guide[-1]) - share * low) / (1 - share)))  # the text is inside


def shorten_slopes(figure: Any, panels: Sequence[Any]) -> None:
    """Shortens the text of a slope that is wider than its panel, so that it does not reach into other text."""
    if isinstance(figure, style.Sheet):
        figure.fit()
        figure.draw_without_rendering()  # with the names at the ends of curves, which narrow the panels
    for panel in panels:
        for text in panel.texts:
            if text.get_gid() == SLOPE and text.get_window_extent().x0 < panel.get_window_extent().x0:
                text.set_text(f"slope {text.get_text().rpartition(' ')[2]}")


def exponent_text(at: xr.Dataset, short: bool = False) -> str:
    """Returns the exponent of one policy behind its name, with its interval unless it is to be short."""
    text = growth.exponent_text(*(float(at[name]) for name in EXPONENT))
    text = re.sub(r"T\^([\d.]+)", r"$T^{\1}$", text)
    return f" {text.split(' ')[0].rstrip(',') if short else text}" if text else ""


def edge_note(found: xr.Dataset) -> str:
    """Explains thin parts of curves, if there are any."""
    if not bool(found.edge.any()):
        return ""
    return "; thin: the worst gap is at the edge of the sweep"

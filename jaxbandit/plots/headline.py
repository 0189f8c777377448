"""The headline: a stochastic environment, an adversarial one, and the worst gap over T, side by side."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.game import is_stationary
from jaxbandit.plots import style
from jaxbandit.plots.bands import banded, draw_curve, lowest, narrow
from jaxbandit.plots.common import (
    axis_values,
    environment_name,
    environments_of,
    labelled,
    named,
    pretty,
    scale_regret,
    seeds_note,
)
from jaxbandit.plots.worst_gap import draw_worst, edge_note, exponent_text, shorten_slopes, worst_gaps
from jaxbandit.store.assemble import opened

Source = xr.Dataset | str | os.PathLike


def headline(
    left: Source,
    middle: Source,
    right: Source | Sequence[Source],
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    method: str = "normal",
    simultaneous: bool = False,
    level: float = 0.95,
    decades: float = 3,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws mean regret in two environments and the largest regret over gaps, with names at the ends of the curves.

    A policy has the same colour in all panels.

    Args:
      left: A dataset with one environment, e.g. a stochastic one; or the directory that ``jaxbandit run`` wrote.
      middle: A dataset with another environment, e.g. ``shifting`` with a small gap.
      right: A dataset whose environments are swept over the gap, or one for each horizon; see ``worst_gaps``.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label; default those of the studies that the datasets carry.
      method: The method of the bands of the first two panels, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Whether such a band covers its whole curve at once.
      level: The coverage of the bands.
      decades: The number of powers of ten of rounds to show, counted back from the last round.
      ax: Three axes to draw on; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    sides = [labelled(_dataset(one)) for one in (left, middle)]
    several = right if isinstance(right, Sequence) and not isinstance(right, str) else [right]
    last = [_dataset(one) for one in several]
    found = worst_gaps(last if len(last) > 1 else last[0], environments=environments, level=level)
    if found.sizes["family"] > 1:
        names = ", ".join(map(str, found.family.values))
        raise ValueError(f"the right panel shows one family of environments, got {names}; choose with ds.sel")
    found, games = found.isel(family=0), labelled(last[0])
    titles = [_title(ds, environments) for ds in sides] + [f"worst gap: {found.family.item()}"]
    labels = list(dict.fromkeys(str(policy) for ds in (*sides, games) for policy in ds.policy.values))
    looks = dict(zip(labels, style.looks(labels), strict=True))
    names = [f"{named(games, policy)} T^0.00" for policy in labels]
    options = {"columns": 3, "names": names, "width": 4.4, "height": 3.4, "ax": ax, "venue": venue}
    with style.panels(titles, title, **options) as (figure, panels):
        direct = getattr(figure, "direct", False)  # if not, one legend names the policies of all panels
        outside = {policy for ds in (*sides, games) for policy in labels if _is_marked(ds, policy)}
        common = {policy: pretty(policy) + ("†" if policy in outside else "") for policy in labels}
        for panel, ds in zip(panels, sides, strict=False):
            stats = banded(ds, level=level, method=method, simultaneous=simultaneous).isel(environment=0)
            stats = _late(stats, decades)
            for policy in stats.policy.values:
                at = stats.sel(policy=policy)
                draw_curve(panel, at["round"], at, looks[str(policy)], named(ds, policy) if direct else common[policy])
            panel.set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
            scale_regret(panel, lowest(stats))
        with_exponents = {
            policy: named(games, policy) + exponent_text(found.sel(policy=policy), short=True)
            for policy in found.policy.values
        }
        draw_worst(panels[2], _late(found, decades), games, looks, with_exponents if direct else common)
        bands = [f"bands: {100 * level:g} %, {seeds_note(sides[0])}", f"right: {found.attrs['band']}"]
        note = "; ".join(bands) + narrow(panels) + edge_note(_late(found, decades))
        where = "" if direct else " in one panel or more"
        style.name_curves(figure, panels, note + (f"\n† outside its assumptions{where}" if outside else ""))
        shorten_slopes(figure, panels)
        return style.save(figure, path, also)


def _dataset(source: Source) -> xr.Dataset:
    return source if isinstance(source, xr.Dataset) else opened(pathlib.Path(source))


def _is_marked(ds: xr.Dataset, policy: str) -> bool:
    return policy in map(str, ds.policy.values) and named(ds, policy).endswith("†")


def _late(stats: xr.Dataset, decades: float) -> xr.Dataset:
    rounds = stats["round"].values
    return stats.isel(round=np.flatnonzero(rounds >= rounds[-1] / 10**decades))


def _title(ds: xr.Dataset, environments: Mapping[str, Any] | None) -> str:
    """Names the one environment of a panel: its kind, its gap, and whether it changes."""
    if ds.sizes["environment"] != 1:
        names = ", ".join(map(str, ds.environment.values))
        raise ValueError(f"a panel shows one environment, got {names}; choose one with ds.sel(environment=[...])")
    known = environments if environments is not None else environments_of(ds)
    label = str(ds.environment.values[0])
    if label not in known:
        return pretty(label)
    kind = "stochastic" if is_stationary(known[label]) else "adversarial"
    gap = float(axis_values(ds, "gap", known)[0])
    return f"{kind}: {environment_name(label, known)}, gap {gap:g}"

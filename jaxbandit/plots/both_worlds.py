"""The figure of both worlds: stochastic environments on the left, adversarial ones on the right."""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.dataset.labels import environment_labels
from jaxbandit.game import is_stationary
from jaxbandit.plots import style
from jaxbandit.plots.bands import band_note, banded, draw_curve, lowest
from jaxbandit.plots.common import dagger_note, environment_name, labelled, named, scale_regret


def both_worlds(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any],
    method: str = "normal",
    simultaneous: bool = False,
    level: float = 0.95,
    decades: float = 4,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws mean regret over rounds with bands and names each curve at its end.

    Args:
      ds: The dataset that ``simulate`` returned or ``run`` wrote.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label. Those whose means do not change are drawn left, the others right.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Whether a band covers its whole curve at once.
      level: The coverage of the bands.
      decades: The number of powers of ten of rounds to show, counted back from the last round.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    ds = labelled(ds)
    stats = banded(ds, level=level, method=method, simultaneous=simultaneous)
    stats = stats.isel(round=np.flatnonzero(stats["round"].values >= stats["round"].values[-1] / 10**decades))
    labels = environment_labels(ds, environments)
    left = [label for label in labels if is_stationary(environments[label])]
    right = [label for label in labels if label not in left]
    sides = {"stochastic": left, "adversarial": right}
    sides = {name: listed for name, listed in sides.items() if listed}
    rows = max(map(len, sides.values()))
    places = [(name, listed[row] if row < len(listed) else "") for row in range(rows) for name, listed in sides.items()]
    titles = [f"{name}: {environment_name(label, environments)}" if label else "" for name, label in places]
    names = [named(ds, policy) for policy in stats.policy.values]
    options = {"columns": len(sides), "names": names, "width": 5.0, "height": 3.8, "ax": ax, "venue": venue}
    with style.panels(titles, title, **options) as (figure, panels):
        for panel, (_, label) in zip(panels, places, strict=True):
            if label:
                _draw(panel, ds, stats.sel(environment=label), label)
            else:
                panel.set_visible(False)
        drawn = [panel for panel, (_, label) in zip(panels, places, strict=True) if label]
        style.name_curves(figure, drawn, band_note(stats, ds, drawn) + dagger_note(ds, each=True))
        return style.save(figure, path, also)


def _draw(panel: Any, ds: xr.Dataset, stats: xr.Dataset, label: str) -> None:
    last = int(stats["round"][-1])
    for policy, look in zip(stats.policy.values, style.looks(stats.policy.values), strict=True):
        at = stats.sel(policy=policy)
        played = at["round"].values[at.regret_mean.notnull().values]
        stop = int(played[-1]) if played.size else last
        text = named(ds, policy, [label]) + ("" if stop == last else f" (to $10^{{{math.log10(stop):.2g}}}$)")
        draw_curve(panel, at["round"], at, look, text)
    panel.set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
    panel.set_xlim(right=float(last))
    scale_regret(panel, lowest(stats))

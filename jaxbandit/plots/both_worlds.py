"""The figure of both worlds: stochastic environments on the left, adversarial ones on the right."""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.dataset.labels import environment_labels
from jaxbandit.game import is_stationary
from jaxbandit.plots import style
from jaxbandit.plots.bands import above_zero, band_note, banded, lowest
from jaxbandit.plots.common import environment_name, labelled, named, pretty, scale_regret


def both_worlds(
    ds: xr.Dataset,
    path: str | pathlib.Path,
    title: str = "",
    *,
    environments: Mapping[str, Any],
    method: str = "normal",
    simultaneous: bool = False,
    level: float = 0.95,
    decades: float = 4,
    also: Sequence[str] = (),
) -> pathlib.Path:
    """Draws mean regret over rounds with bands and names each curve at its end.

    Args:
      ds: The dataset that ``simulate`` returned or ``run`` wrote.
      path: The file to write; its ending chooses the format.
      title: Heads the figure.
      environments: The environments by label. Those whose means do not change are drawn left, the others right.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Whether a band covers its whole curve at once.
      level: The coverage of the bands.
      decades: The number of powers of ten of rounds to show, counted back from the last round.
      also: Further endings to write it with.
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
    with style.panels(titles, title, columns=len(sides), width=5.0, height=3.8) as (figure, panels):
        for panel, (_, label) in zip(panels, places, strict=True):
            if label:
                _draw(panel, stats.sel(environment=label))
            else:
                panel.set_visible(False)
        figure.canvas.draw()  # fixes the layout, so that the height of a panel is known to its labels
        for panel, (_, label) in zip(panels, places, strict=True):
            if label:
                style.end_labels(panel, _ends(stats.sel(environment=label)))
        style.note(figure, band_note(stats, ds))
        return style.save(figure, path, also)


def _draw(panel: Any, stats: xr.Dataset) -> None:
    for policy, look in zip(stats.policy.values, style.looks(stats.policy.values), strict=True):
        at = stats.sel(policy=policy)
        panel.plot(at["round"], above_zero(at.regret_mean), **look)
        panel.fill_between(at["round"], at.regret_low, at.regret_high, color=look["color"], alpha=0.2, linewidth=0)
    panel.set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
    panel.set_xlim(right=float(stats["round"][-1]))
    scale_regret(panel, lowest(stats))


def _ends(stats: xr.Dataset) -> list[tuple[float, float, str, str]]:
    ends, last = [], int(stats["round"][-1])
    for policy, look in zip(stats.policy.values, style.looks(stats.policy.values), strict=True):
        mean = stats.regret_mean.sel(policy=policy).dropna("round")
        if mean.size:
            stop = int(mean["round"][-1])
            text = named(stats, policy, pretty(policy)) + (
                "" if stop == last else f" (to $10^{{{math.log10(stop):.2g}}}$)"
            )
            ends.append((float(stop), float(mean[-1]), text, look["color"]))
    return ends if ends else [(float(last), np.nan, "", "black")]

"""The figure of an ablation: recorded measures of the variants of a policy beside their regret."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.plots import style
from jaxbandit.plots.bands import band_note, banded, draw_curve, lowest
from jaxbandit.plots.common import dagger_note, environment_names, labelled, named, scale_regret

# How each measure is drawn: (label, whether it is divided by the round, whether the axis is logarithmic).
MEASURES = {"scale": ("scale S", False, True), "skipped": ("share of rounds skipped so far", True, False)}


def ablation(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    measures: Sequence[str] = ("scale", "skipped"),
    method: str = "normal",
    simultaneous: bool = False,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws a row of panels for each environment: recorded measures over rounds, then regret with bands.

    Args:
      ds: A dataset that was recorded with the measures.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label, for their names.
      measures: The measures to draw beside regret.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Whether a band covers its whole curve at once.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    missing = [name for name in measures if name not in ds]
    if missing:
        raise ValueError(f"no {', '.join(missing)} in the dataset; run the study with measures = {list(measures)}")
    ds = labelled(ds)
    stats = banded(ds, method=method, simultaneous=simultaneous)
    means = {name: ds[name].mean("seed") if "seed" in ds[name].dims else ds[name] for name in measures}
    names = environment_names(ds.environment.values, environments)
    titles = [name for name in names for _ in range(len(measures) + 1)]
    looks = style.looks(ds.policy.values)
    rounds = ds["round"].values
    options = {"columns": len(measures) + 1, "ax": ax, "venue": venue}
    with style.panels(titles, title, **options) as (figure, panels):
        grid = np.asarray(panels).reshape(len(names), -1)
        for row, environment in zip(grid, ds.environment.values, strict=True):
            for panel, name in zip(row, measures, strict=False):
                text, per_round, log = MEASURES.get(name, (name.replace("_", " "), False, False))
                for policy, look in zip(ds.policy.values, looks, strict=True):
                    curve = means[name].sel(policy=policy, environment=environment).values
                    panel.plot(rounds, curve / rounds if per_round else curve, **look)
                panel.set(xscale="log", yscale="log" if log else "linear", xlabel="round", ylabel=text)
            for policy, look in zip(ds.policy.values, looks, strict=True):
                at = stats.sel(policy=policy, environment=environment)
                draw_curve(row[-1], rounds, at, look, named(ds, policy))
            row[-1].set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
            scale_regret(row[-1], lowest(stats.sel(environment=environment)))
        note = f"means over seeds; {band_note(stats, ds, list(grid[:, -1]))}{dagger_note(ds)}"
        style.legend(figure, grid[0, -1], note)
        return style.save(figure, path, also)

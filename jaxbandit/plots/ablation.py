"""The figure of an ablation: recorded measures of the variants of a policy beside their regret."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.plots import style
from jaxbandit.plots.bands import above_zero, band_note, banded, lowest
from jaxbandit.plots.common import environment_name, labelled, pretty, scale_regret

# How each measure is drawn: (label, whether it is divided by the round, whether the axis is logarithmic).
MEASURES = {"scale": ("scale S", False, True), "skipped": ("share of rounds skipped so far", True, False)}


def ablation(
    ds: xr.Dataset,
    path: str | pathlib.Path,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    measures: Sequence[str] = ("scale", "skipped"),
    method: str = "normal",
    simultaneous: bool = False,
    also: Sequence[str] = (),
) -> pathlib.Path:
    """Draws a row of panels for each environment: recorded measures over rounds, then regret with bands.

    Args:
      ds: A dataset that was recorded with the measures.
      path: The file to write; its ending chooses the format.
      title: Heads the figure.
      environments: The environments by label, for their names.
      measures: The measures to draw beside regret.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Whether a band covers its whole curve at once.
      also: Further endings to write it with.
    """
    missing = [name for name in measures if name not in ds]
    if missing:
        raise ValueError(f"no {', '.join(missing)} in the dataset; run the study with measures = {list(measures)}")
    ds = labelled(ds)
    stats = banded(ds, method=method, simultaneous=simultaneous)
    means = {name: ds[name].mean("seed") if "seed" in ds[name].dims else ds[name] for name in measures}
    names = [environment_name(str(label), environments) for label in ds.environment.values]
    titles = [name for name in names for _ in range(len(measures) + 1)]
    looks = style.looks(ds.policy.values)
    rounds = ds["round"].values
    with style.panels(titles, title, columns=len(measures) + 1) as (figure, panels):
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
                row[-1].plot(rounds, above_zero(at.regret_mean), label=pretty(policy), **look)
                row[-1].fill_between(rounds, at.regret_low, at.regret_high, color=look["color"], alpha=0.2, linewidth=0)
            row[-1].set(xscale="log", xlabel="round", ylabel="mean pseudo-regret")
            scale_regret(row[-1], lowest(stats.sel(environment=environment)))
        style.legend(figure, grid[0, -1], f"means over seeds; {band_note(stats, ds)}")
        return style.save(figure, path, also)

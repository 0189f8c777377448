"""Figures of searches: the trace of a search, and worst-case regret over T beside the lower bound."""

import pathlib
from collections.abc import Mapping

import numpy as np
import xarray as xr

from jaxbandit.plots import style
from jaxbandit.theory import bounds


def search_curves(ds: xr.Dataset, path: str | pathlib.Path, title: str = "") -> pathlib.Path:
    """Draws the trace of one search: every parameter over the steps, and the objective.

    Args:
      ds: The dataset that ``jb.tune`` or ``jb.worst`` (at one horizon) returned.
      path: The file to write.
      title: Heads the figure.
    """
    tuned = "tuned" in ds
    names = [str(name) for name in ds.parameter.values]
    found = ds.tuned if tuned else ds.worst
    step = ds["step"].values
    with style.panels([*names, "objective"], title) as (figure, panels):
        for panel, name in zip(panels, names, strict=False):
            at = ds.sel(parameter=name)
            if "point" in ds:
                every = np.repeat(step, ds.sizes["point_number"])
                panel.plot(every, at.point.values.ravel(), ".", color="#BBBBBB", markersize=3)
            panel.plot(step, at.value.values, **style.look(0))
            panel.axhline(float(found.sel(parameter=name)), color=style.COLOURS[1], linewidth=1)
            if tuned:
                panel.axhline(float(at.default), color="black", linestyle=":", linewidth=1)
            panel.set(xlabel="step", yscale="log", ylim=(float(at.low) / 1.1, float(at.high) * 1.1))
        last = panels[-1]
        last.set(xlabel="step")
        if tuned:
            last.plot(step, ds.objective.values, label="at the points of the step", **style.look(0))
            looked = np.isfinite(ds.held_out.values)
            last.plot(
                step[looked], ds.held_out.values[looked], "o", color=style.COLOURS[2], label="held-out environments"
            )
            low, high = ds.regret_low.sel(candidate="tuned"), ds.regret_high.sel(candidate="tuned")
            label = "tuned value, unseen environments and seeds"
        else:
            estimates = ds.estimate.values.reshape(step.size, -1)
            last.plot(step, estimates.max(axis=1), label="largest estimate of the step", **style.look(0))
            unit = float(ds.bound) if ds.attrs.get("objective") == "ratio" else 1.0
            low, high, label = ds.regret_low / unit, ds.regret_high / unit, "value found, fresh seeds"
        last.axhspan(float(low), float(high), color=style.COLOURS[1], alpha=0.4, label=label)
        note = f"{ds.attrs['band']}\norange: the value found" + ("; dotted: the default" if tuned else "")
        style.legend(figure, last, note)
        style.save(figure, path)
        return pathlib.Path(path)


def worst_curves(found: Mapping[str, xr.Dataset], path: str | pathlib.Path, title: str = "") -> pathlib.Path:
    """Draws the worst regret found over T, policy by policy, beside the order of the minimax lower bound.

    Args:
      found: The datasets that ``jb.worst`` returned at several horizons, by policy.
      path: The file to write.
      title: Heads the figure.
    """
    with style.panels([""], title) as (figure, (panel,)):
        for (policy, ds), look in zip(found.items(), style.looks(found), strict=True):
            T = ds.horizon.values
            text = f"{policy}: T^{float(ds.slope):.2f}" if "slope" in ds else policy
            panel.plot(T, ds.regret.values, marker="o", markersize=3, label=text, **look)
            panel.fill_between(
                T, ds.regret_low.values, ds.regret_high.values, color=look["color"], alpha=0.3, linewidth=0
            )
            # The bound is that of the instance found: if alpha or sigma is searched, each instance has its own.
            bound = ds.bound.values
            if np.isfinite(bound).all():
                panel.plot(T, bound, color=look["color"], linestyle=(0, (1, 2)), linewidth=1)
        panel.plot([], [], color="black", linestyle=(0, (1, 2)), label=bounds.LABELS["minimax"])
        panel.set(xscale="log", yscale="log", xlabel="T", ylabel="largest mean pseudo-regret found")
        band = next(iter(found.values())).attrs.get("band", "")
        style.legend(figure, panel, f"{band}\nthe search may have missed a worse instance")
        style.save(figure, path)
        return pathlib.Path(path)

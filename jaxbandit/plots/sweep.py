"""The figure of a sweep: final regret as a function of one swept value, a curve for each policy."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.plots import style
from jaxbandit.plots.bands import band_note, banded, draw_curve, lowest
from jaxbandit.plots.common import (
    axis_name,
    axis_values,
    dagger,
    environment_name,
    head,
    labelled,
    last_played,
    pretty,
    scale_regret,
    side_of,
)


def sweep(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    x: str | Sequence[str],
    environments: Mapping[str, Any] | None = None,
    relative: bool = False,
    method: str = "normal",
    simultaneous: bool = False,
    level: float = 0.95,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws final regret with bands over a value that policies or environments are swept over.

    If a policy does not sweep the value, it is not given the value and is drawn as a horizontal line with its band.

    Args:
      ds: The dataset that ``simulate`` returned or ``run`` wrote.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      x: Swept values, each with a column of panels: coordinates of the policies (``moment_bound_factor``) or of the
        environments (``tail_index``), fields of an environment or its law, ``gap`` or ``unit``.
      environments: The environments by label, for values that are not coordinates.
      relative: Whether regret is divided by the value, as for the unit of the losses.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Has no effect along a swept value; the figure notes that each point is covered by itself.
      level: The coverage of the bands.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    ds = labelled(ds)
    stats = last_played(banded(ds, level=level, method=method))
    names = [x] if isinstance(x, str) else list(x)
    kinds = [(name, group) for group in _groups(ds, names) for name in names]
    titles = [
        environment_name(group[0], environments) if len(group) == 1 else pretty(head(group[0])) for _, group in kinds
    ]
    width = 4.6 if len(kinds) > 1 else 6.5
    shown = [f"{pretty(policy)} (not given)" for policy in dict.fromkeys(head(label) for label in ds.policy.values)]
    options = {"columns": len(names) if len(names) > 1 else 0, "names": shown, "width": width}
    with style.panels(titles, title, **options, ax=ax, venue=venue) as (figure, panels):
        handles: dict[str, Any] = {}
        for panel, (name, group) in zip(panels, kinds, strict=True):
            part = stats.sel(environment=group)
            curves = _along_policies(part, name) if side_of(ds, name) == "policy" else None
            values = None if curves is not None else axis_values(part, name, environments or {})
            curves = curves if curves is not None else _along_environments(part, values, name)
            _draw(panel, curves, relative)
            swept = np.concatenate([at for at, _ in curves.values() if at is not None])
            wide = swept.min() > 0 and swept.max() > 10 * swept.min()
            panel.set(xscale="log" if wide else "linear", xlabel=axis_name(name))
            _scale(panel, curves, relative)
            panel.set_ylabel(f"mean regret / {axis_name(name)}" if relative else "mean pseudo-regret")
            if name.endswith("_factor"):
                handles["given the true value"] = panel.axvline(1, color="black", linewidth=0.7, linestyle=":")
        aside = ", each point by itself" if simultaneous else ""
        note = f"after {int(ds['round'][-1]):,} rounds; {band_note(stats, ds, panels, aside)}"
        outside = "\n† outside its assumptions at one of its points or more" if dagger(stats) else ""
        style.name_curves(figure, panels, note + outside, handles)
        return style.save(figure, path, also)


Curves = dict[str, tuple[np.ndarray | None, xr.Dataset]]  # name -> the values (None if not swept), regrets along them


def _groups(ds: xr.Dataset, names: Sequence[str]) -> list[list[str]]:
    """Groups environments into rows of panels: one environment a row, or all of a kind if environments are swept."""
    labels = [str(label) for label in ds.environment.values]
    if all(side_of(ds, name) == "policy" for name in names):
        return [[label] for label in labels]
    return [[label for label in labels if head(label) == kind] for kind in dict.fromkeys(map(head, labels))]


def _along_policies(stats: xr.Dataset, name: str) -> Curves:
    stats = stats.isel(environment=0)
    heads = [head(label) for label in stats.policy.values]
    curves: Curves = {}
    for kind in dict.fromkeys(heads):
        rows = np.flatnonzero([other == kind for other in heads])
        at = np.asarray(stats[name].values[rows], np.float64)
        swept = ~np.isnan(at)
        if swept.any():
            order = np.argsort(at[swept])
            curves[kind] = (at[swept][order], stats.isel(policy=rows[swept][order]))
        else:
            curves |= {str(stats.policy.values[row]): (None, stats.isel(policy=[row])) for row in rows}
    return curves


def _along_environments(stats: xr.Dataset, values: np.ndarray | None, name: str) -> Curves:
    assert values is not None
    if len(set(values.tolist())) < len(values):
        raise ValueError(
            f"environments differ in more than {name!r}; choose those to draw with ds.sel(...), or in a study file "
            "with environments = [...]"
        )
    order = np.argsort(values)
    return {
        str(policy): (values[order], stats.sel(policy=policy).isel(environment=order)) for policy in stats.policy.values
    }


def _draw(panel: Any, curves: Curves, relative: bool) -> None:
    swept = np.concatenate([values for values, _ in curves.values() if values is not None])
    ends = [swept.min(), swept.max()]
    for (label, (values, at)), look in zip(curves.items(), style.looks(curves), strict=True):
        if values is None:  # the policy is not given the value, so its regret is the same along it
            flat = at.isel(policy=[0, 0])
            draw_curve(
                panel,
                ends,
                flat,
                look,
                f"{pretty(label)}{dagger(at)} (not given)",
                np.asarray(ends) if relative else 1.0,
            )
        else:
            name = pretty(label) + dagger(at)
            draw_curve(panel, values, at, look, name, values if relative else 1.0, marker="o", markersize=3)


def _scale(panel: Any, curves: Curves, relative: bool) -> None:
    """Scales the axis: logarithmic if all regrets are positive, else as ``scale_regret``, in units of x if relative."""
    low = np.concatenate(
        [lowest(at) / (values if relative and values is not None else 1) for values, at in curves.values()]
    )
    if np.min(low[np.isfinite(low)], initial=np.inf) > 0:
        panel.set_yscale("log")
    else:
        scale_regret(panel, low)

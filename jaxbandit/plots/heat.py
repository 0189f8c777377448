"""The heat map of final regret over two swept values."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from jaxbandit.checks import safe_name
from jaxbandit.dataset.results import product, summary
from jaxbandit.plots import style
from jaxbandit.plots.common import axis_name


def heat_map(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    x: str = "",
    y: str = "",
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws mean final regret over two swept axes; a third axis gives panels.

    Args:
      ds: A dataset with a dimension per swept field (``product`` makes it from a labelled dataset).
      path: The file to write. Without it, nothing is written.
      title: Heads the figure.
      x: The horizontal axis; default the longest.
      y: The vertical axis; default the next.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    value = summary(ds).regret_mean.isel(round=-1)
    axes = sorted((str(dim) for dim in value.dims if value.sizes[dim] > 1), key=lambda dim: -value.sizes[dim])
    for name in filter(None, (x, y)):
        if name not in axes:
            raise ValueError(f"the dataset has no swept axis {name!r}; its swept axes are {', '.join(axes) or 'none'}")
    free = [name for name in axes if name not in (x, y)]
    x, y = (name or (free.pop(0) if free else "") for name in (x, y))
    if not y:
        raise ValueError(
            f"a heat map takes two swept axes, but the dataset has {axes[0] if axes else 'none'}; sweep another value, "
            f"{'or draw plots.sweep(ds, x=' + repr(axes[0]) + ')' if axes else 'e.g. with jb.grid(...)'}"
        )
    if len(free) > 1:
        raise ValueError(f"a heat map takes two swept axes and one for panels, got {axes}; fix the others with ds.sel")
    value = value.squeeze([dim for dim in value.dims if value.sizes[dim] == 1], drop=True)
    slices = [value.sel({free[0]: point}) for point in value[free[0]].values] if free else [value]
    smallest, largest = float(value.min()), float(value.max())
    norm = LogNorm if smallest > 0 and largest > 10 * smallest else Normalize
    titles = [f"{axis_name(free[0])} = {style.tick(part[free[0]].item())}" if free else "" for part in slices]
    scale = norm(smallest, largest)
    with style.panels(titles, title, ax=ax, venue=venue) as (figure, panels):
        for panel, part in zip(panels, slices, strict=True):
            table = part.transpose(y, x).values
            image = panel.imshow(table, origin="lower", aspect="auto", cmap=style.HEAT, norm=scale)
            panel.set(xlabel=axis_name(x), ylabel=axis_name(y))
            panel.set_xticks(range(part.sizes[x]), [style.tick(point) for point in part[x].values])
            panel.set_yticks(range(part.sizes[y]), [style.tick(point) for point in part[y].values])
            panel.grid(False)
            _write_cells(panel, table, image)
        figure.colorbar(
            ScalarMappable(scale, style.HEAT),
            ax=panels,
            label=f"mean pseudo-regret after {int(ds['round'][-1]):,} rounds",
        )
        _leave_out_numbers(figure, panels)
        return style.save(figure, path, also)


def sweeps(ds: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Yields the pairs of classes in a dataset that have two or three swept axes, each with a name."""
    if not {"policy", "environment"} <= set(ds.dims):
        pairs = [("", ds)]
    else:
        labels = (ds.policy.values, ds.environment.values)
        classes = [list(dict.fromkeys(str(label).split("[")[0] for label in side)) for side in labels]
        pairs = [(f"-{safe_name(p)}-{safe_name(e)}", product(ds, p, e)) for p, e in itertools.product(*classes)]
    for name, grid in pairs:
        swept = [d for d in grid.dims if d not in ("seed", "round", "arm", "quantile", "policy", "environment")]
        whole = not grid["regret" if "regret" in grid else "regret_mean"].isnull().any()  # no point was left out
        if whole and 2 <= sum(grid.sizes[dim] > 1 for dim in swept) <= 3:
            yield name, grid


def _write_cells(panel, table: np.ndarray, image) -> None:
    if table.size > 120:
        return
    for (row, column), number in np.ndenumerate(table):
        dark = image.norm(number) < 0.5
        text = f"{number:.3g}" if abs(number) < 1e3 else f"{number:,.0f}" if abs(number) < 1e6 else f"{number:.1e}"
        panel.text(
            column, row, text, ha="center", va="center", fontsize=style.letters(), color="white" if dark else "black"
        )


def _leave_out_numbers(figure: Any, panels: Sequence[Any]) -> None:
    """Leaves the numbers to the colours if one is larger than its cell, so that no number reaches another."""
    if isinstance(figure, style.Sheet):
        figure.fit()
    for panel in panels:
        wide, high = style.cell_size(panel)
        boxes = [text.get_window_extent() for text in panel.texts]
        if any(box.width > wide or box.height > high for box in boxes):
            for text in list(panel.texts):
                text.remove()

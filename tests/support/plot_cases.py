"""Datasets to draw, made up."""

import itertools

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.text import Text

ROUNDS = np.unique(np.rint(np.geomspace(1, 4096, 24)).astype(int))
LABELS = {"policy": ["uniinf", "uniform"], "environment": ["pareto", "switching"]}


def synthetic(shape: dict[str, list], exponent: float = 0.5, measures: bool = True) -> xr.Dataset:
    """Games whose mean regret is c t^exponent, a different c for every point."""
    rng = np.random.default_rng(0)
    size = tuple(len(values) for values in shape.values())
    level = np.arange(1, np.prod(size) + 1).reshape(*size, 1, 1)
    regret = level * rng.gamma(4.0, 0.25, size=(*size, 32, 1)) * ROUNDS**exponent
    dims = (*shape, "seed", "round")
    parts = {"div": 0.5, "shift": 1.0, "skip_error": 2.0} if measures else {}
    data = {"regret": (dims, regret)} | {name: (dims, factor * regret) for name, factor in parts.items()}
    ds = xr.Dataset(data, coords={**shape, "round": ROUNDS}, attrs={"num_seeds": 32, "title": "synthetic"})
    return ds.assign(failed=(dims[:-1], np.zeros((*size, 32))))


def overprinted(figure) -> list[tuple[str, str]]:
    """Texts of a figure that reach into each other by more than 0.6 points, and texts that reach out of it."""
    with matplotlib.rc_context(dict(figure.rc)):
        figure.draw_without_rendering()
        texts = [one for one in (figure._suptitle, figure._supxlabel) if one is not None]
        for legend in (*figure.legends, *(panel.get_legend() for panel in figure.axes if panel.get_legend())):
            texts += [*legend.get_texts(), legend.get_title()]
        for panel in filter(lambda panel: panel.get_visible(), figure.axes):
            texts += [panel.title, panel.xaxis.label, panel.yaxis.label, *panel.texts]
            for axis in (panel.xaxis, panel.yaxis):
                texts += [one.label1 for one in axis._update_ticks() if one in axis.majorTicks]
        texts = [one for one in texts if one.get_visible() and one.get_text().strip()]
        boxes = [Text.get_window_extent(one) for one in texts]
    pad, (width, height) = 0.6 * figure.dpi / 72, figure.bbox.size
    found = [
        (one.get_text(), "out of the figure")
        for one, box in zip(texts, boxes, strict=True)
        if box.x0 < -pad or box.y0 < -pad or box.x1 > width + pad or box.y1 > height + pad
    ]
    for (one, a), (other, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > pad and min(a.y1, b.y1) - max(a.y0, b.y0) > pad:
            found.append((one.get_text(), other.get_text()))
    return found

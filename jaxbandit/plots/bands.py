"""Means over seeds with their bands, and the note on a figure that describes the bands."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.dataset.results import played, summary
from jaxbandit.plots.common import RESAMPLES, seeds_note

BAND = "band"  # the mark of an area that is a band


def banded(ds: xr.Dataset, *, level: float = 0.95, method: str = "normal", simultaneous: bool = False) -> xr.Dataset:
    """Returns the ``summary`` of a dataset by policy and environment, with bands of the given method.

    Args:
      ds: A dataset with dimensions ``policy`` and ``environment``.
      level: The coverage of the bands.
      method: ``"normal"`` or ``"bootstrap"``.
      simultaneous: Whether a band covers its whole curve at once.
    """
    return with_bands(ds, summary(ds, level=level), level=level, method=method, simultaneous=simultaneous)


def with_bands(
    ds: xr.Dataset, stats: xr.Dataset, *, level: float = 0.95, method: str = "normal", simultaneous: bool = False
) -> xr.Dataset:
    """Replaces the normal bands of a summary, pair by pair, over the rounds and seeds that were played."""
    if method == "normal" and not simultaneous:
        return stats
    if "regret" not in ds:
        asked = f"{method}{', simultaneous' if simultaneous else ''}"
        raise ValueError(f'{asked!r} bands need every seed, and a summary has none; run with keep = "seeds"')
    low, high = (xr.full_like(stats[name], np.nan) for name in ("regret_low", "regret_high"))
    said = stats.attrs["band"]
    for policy in ds.policy.values:
        for environment in ds.environment.values:
            where = {"policy": policy, "environment": environment}
            games = played(ds.regret.sel(where).load())
            if games.sizes["seed"] < 2 or not games.size:
                continue
            found = statistics.band(
                games, level=level, method=method, simultaneous=simultaneous, num_resamples=RESAMPLES
            )
            inside = where | {"round": games["round"].values}
            low.loc[inside], high.loc[inside], said = found.low.values, found.high.values, found.attrs["band"]
    return stats.assign(regret_low=low, regret_high=high).assign_attrs(band=said)


def draw_curve(
    panel: Any, x: Any, at: xr.Dataset, look: Mapping[str, Any], label: str = "", unit: Any = 1.0, **line: Any
) -> Any:
    """Draws a mean with its band and returns the line.

    Args:
      panel: The panel.
      x: The places of the values.
      at: ``regret_mean``, ``regret_low`` and ``regret_high`` along ``x``.
      look: Colour and line.
      label: The name of the curve.
      unit: The unit of the values.
      **line: Further properties of the line.
    """
    mean, low, high = (at[name].values / unit for name in ("regret_mean", "regret_low", "regret_high"))
    (drawn,) = panel.plot(x, above_zero(mean), label=label or None, **(dict(look) | line))
    panel.fill_between(x, low, high, color=look["color"], alpha=0.22, linewidth=0, gid=BAND)
    return drawn


def band_note(stats: xr.Dataset, ds: xr.Dataset, panels: Sequence[Any] = (), aside: str = "") -> str:
    """Describes the bands of a figure and the number of seeds; a single seed has no bands.

    Args:
      stats: The summary with the bands.
      ds: The dataset.
      panels: The panels that the bands are drawn on; bands that are narrower than their lines are said to be.
      aside: Words about the bands.
    """
    if not np.isfinite(stats.regret_high).any():
        return f"no bands, {seeds_note(ds)}"
    return f"bands: {stats.attrs['band']}{aside}, {seeds_note(ds)}{narrow(panels)}"


def narrow(panels: Sequence[Any]) -> str:
    """Returns the words for bands that hide under their lines: all of them, or some."""
    hidden = []
    for panel in panels:
        for area in panel.collections:
            if area.get_gid() == BAND and area.get_paths():
                corners = panel.transData.transform(np.concatenate([path.vertices for path in area.get_paths()]))
                x, y = corners[np.isfinite(corners).all(axis=1)].T
                _, places = np.unique(x, return_inverse=True)
                top, bottom = np.full(places.max(initial=-1) + 1, -np.inf), np.full(places.max(initial=-1) + 1, np.inf)
                np.maximum.at(top, places, y)
                np.minimum.at(bottom, places, y)
                width = matplotlib.rcParams["lines.linewidth"] * panel.figure.dpi / 72
                hidden.append(bool((top - bottom <= 1.5 * width).all()))
    if not any(hidden):
        return ""
    return (
        "; the bands are narrower than the lines"
        if all(hidden)
        else "; where none is seen, it is narrower than its line"
    )


def lowest(stats: xr.Dataset) -> np.ndarray:
    """Returns the values that an axis must reach down to: the lower limits, or the means if there are no limits."""
    return stats.regret_low.fillna(stats.regret_mean).values


def above_zero(mean: np.ndarray) -> np.ndarray:
    """Removes the zeros of a curve, which a logarithmic axis cannot show; a curve of zeros alone stays as it is."""
    mean = np.asarray(mean, np.float64)
    return np.where(mean != 0, mean, np.nan) if np.any(mean[np.isfinite(mean)] != 0) else mean

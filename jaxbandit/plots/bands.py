"""Means over seeds with their bands, and the note on a figure that describes the bands."""

import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.dataset.results import summary
from jaxbandit.plots.common import RESAMPLES, seeds_note


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
            cell = played(ds.regret.sel(where).load())
            if cell.sizes["seed"] < 2 or not cell.size:
                continue
            found = statistics.band(
                cell, level=level, method=method, simultaneous=simultaneous, num_resamples=RESAMPLES
            )
            inside = where | {"round": cell["round"].values}
            low.loc[inside], high.loc[inside], said = found.low.values, found.high.values, found.attrs["band"]
    return stats.assign(regret_low=low, regret_high=high).assign_attrs(band=said)


def played(cell: xr.DataArray) -> xr.DataArray:
    """Selects one policy in one environment, [seed, round], without unplayed rounds and unfinished games."""
    return cell.transpose("seed", "round").dropna("round", how="all").dropna("seed", how="any")


def band_note(stats: xr.Dataset, ds: xr.Dataset, aside: str = "") -> str:
    """Describes the bands of a figure and the number of seeds; a single seed has no bands."""
    if not np.isfinite(stats.regret_high).any():
        return f"no bands, {seeds_note(ds)}"
    return f"bands: {stats.attrs['band']}{aside}, {seeds_note(ds)}"


def lowest(stats: xr.Dataset) -> np.ndarray:
    """Returns the values that an axis must reach down to: the lower limits, or the means if there are no limits."""
    return stats.regret_low.fillna(stats.regret_mean).values


def above_zero(mean: xr.DataArray) -> xr.DataArray:
    """Removes the zeros of a curve, which a logarithmic axis cannot show; a curve of zeros alone stays as it is."""
    return mean.where(mean != 0) if bool((mean != 0).any()) else mean

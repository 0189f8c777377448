"""Means over seeds with the bands that are asked for, and the words that say how they were made."""

import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.dataset.results import summary
from jaxbandit.plots.common import RESAMPLES, seeds_note


def banded(ds: xr.Dataset, *, level: float = 0.95, method: str = "normal", simultaneous: bool = False) -> xr.Dataset:
    """The ``summary`` of a dataset by policy and environment, with the bands that are asked for.

    Args:
      ds: With dimensions ``policy`` and ``environment``.
      level: Coverage.
      method: ``"normal"`` or ``"bootstrap"``.
      simultaneous: Whether a band covers its whole curve at once.
    """
    return with_bands(ds, summary(ds, level=level), level=level, method=method, simultaneous=simultaneous)


def with_bands(
    ds: xr.Dataset, stats: xr.Dataset, *, level: float = 0.95, method: str = "normal", simultaneous: bool = False
) -> xr.Dataset:
    """A summary with other bands than its normal ones, cell by cell over the rounds and seeds that were played."""
    if method == "normal" and not simultaneous:
        return stats
    if "regret" not in ds:
        asked = f"{method}{', simultaneous' if simultaneous else ''}"
        raise ValueError(f'a summary has normal bands only, not {asked!r}; run with keep = "seeds"')
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
    """How the bands of a figure were made, over how many seeds; that one seed has none."""
    if not np.isfinite(stats.regret_high).any():
        return f"no bands, {seeds_note(ds)}"
    return f"bands: {stats.attrs['band']}{aside}, {seeds_note(ds)}"


def lowest(stats: xr.Dataset) -> np.ndarray:
    """What an axis must reach down to: the lower limits, or the means where there are none."""
    return stats.regret_low.fillna(stats.regret_mean).values


def above_zero(mean: xr.DataArray) -> xr.DataArray:
    """A curve without its zeros, which have no place on a logarithmic axis; whole where it is nothing else."""
    return mean.where(mean != 0) if bool((mean != 0).any()) else mean

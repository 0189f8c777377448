"""Paired comparison of two policies, seed by seed on common random numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis.ranks import skewness_corrected_p
from jaxbandit.dataset.results import seed_count, student_quantile
from jaxbandit.grid import suggest


def compare(
    ds: xr.Dataset, a: str | Mapping[str, Any], b: str | Mapping[str, Any], *, level: float = 0.95
) -> xr.Dataset:
    """Returns the paired difference of two policies' regret, seed by seed on common random numbers.

    Args:
      ds: A dataset that ``simulate`` returned, with every seed kept.
      a: A policy label, or coordinates such as ``{"initial_scale": 4.0}``. Any coordinate will do, if one entry has
        the values.
      b: The policy to subtract, in the same form.
      level: Coverage of the normal band.

    Returns:
      ``difference`` (a minus b), its ``stderr``, ``low`` and ``high``, ``z``, ``p`` and ``variance_ratio``.
      ``p`` is the two-sided p-value of equal means that ``ranking`` gives, corrected for skewness but not for the
      number of comparisons. Independent runs would need ``variance_ratio`` times as many seeds.
    """
    if "regret" not in ds:
        raise ValueError('compare() pairs seeds, but keep="summary" dropped them; run with keep="seeds"')
    first, second = _select(ds.regret, a), _select(ds.regret, b)
    difference = first - second
    count = seed_count(difference)
    if np.min(count) < 2:
        raise ValueError(f"compare() needs at least 2 seeds that both policies have played, got {int(np.min(count))}")
    mean, stderr = difference.mean("seed"), difference.std("seed", ddof=1) / np.sqrt(count)
    half = student_quantile(0.5 + level / 2, count) * stderr
    independent = first.var("seed", ddof=1) + second.var("seed", ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return xr.Dataset(
            {
                "difference": mean,
                "stderr": stderr,
                "low": mean - half,
                "high": mean + half,
                "z": mean / stderr,
                "p": _p_values(difference),
                "variance_ratio": independent / (stderr**2 * count),
            },
            attrs={"a": str(a), "b": str(b), "band": f"normal, {100 * level:g} %", "test": "paired, Hall's t"},
        )


def _p_values(difference: xr.DataArray) -> xr.DataArray:
    """Returns the p-values of zero means; seeds that one policy has not played are left out."""
    if bool(difference.notnull().all()):
        return xr.apply_ufunc(skewness_corrected_p, difference, input_core_dims=[["seed"]])
    return xr.apply_ufunc(
        lambda row: skewness_corrected_p(row[~np.isnan(row)]), difference, input_core_dims=[["seed"]], vectorize=True
    )


def _select(regret: xr.DataArray, which: str | Mapping[str, Any]) -> xr.DataArray:
    """Returns the regret at some coordinates, which need not be dimensions but must have one entry."""
    where = {"policy": which} if isinstance(which, str) else dict(which)
    known = [str(name) for name in regret.coords if name not in ("seed", "round")]
    by_dimension: dict[Any, np.ndarray] = {}
    for name, value in where.items():
        if name not in regret.coords or regret[name].ndim != 1 or name in ("seed", "round"):
            raise ValueError(f"cannot select {value!r}: there is no coordinate {name!r}; {suggest(name, known)}")
        values, (dim,) = regret[name].values, regret[name].dims
        number = values.dtype.kind in "fiu" and isinstance(value, int | float | np.number)
        found = np.isclose(values, value, rtol=1e-9, atol=0) if number else values == value
        if not np.any(found):
            there = [str(v) for v in dict.fromkeys(values) if v == v]  # not the NaN of policies without this field
            raise ValueError(f"no {name} {value!r}; {suggest(str(value), there)}")
        by_dimension[dim] = by_dimension.get(dim, True) & found
    for dim, found in by_dimension.items():
        if found.sum() != 1:
            listed = ", ".join(map(str, regret[dim].values[found])) or "none"
            raise ValueError(
                f"{where} selects {int(found.sum())} entries of {dim!r}, not one ({listed}); add a coordinate"
            )
        regret = regret.isel({dim: int(np.argmax(found))}, drop=True)
    return regret

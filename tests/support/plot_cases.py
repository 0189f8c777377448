"""Datasets to draw, made up."""

import numpy as np
import xarray as xr

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

"""Curves and samples of known mean, and the count of intervals that cover it."""

import math

import numpy as np
import xarray as xr

ROUNDS = np.geomspace(1, 2**11, 12)


def lognormal(rng, *shape):
    """Mean 1, skewness 6.2."""
    return rng.lognormal(-0.5, 1.0, size=shape)


def assert_covers(covered: np.ndarray, level: float, extra: float = 0.0) -> None:
    """At most the nominal share of misses (plus ``extra``) but for 5 sigma; and not an interval that never misses."""
    allowed = 1 - level + extra
    misses, trials = int((~covered).sum()), covered.size
    assert misses <= trials * allowed + 5 * math.sqrt(trials * allowed * (1 - allowed)), misses / trials
    assert misses > 0


def curves(rng, cells: int, seeds: int, exponent: float = 0.6) -> xr.DataArray:
    """Games whose mean regret is t^exponent: a skewed factor for the game, noise for the round."""
    factor = rng.lognormal(-0.245, 0.7, size=(cells, seeds, 1))
    noise = 1 + 0.3 * rng.standard_normal((cells, seeds, ROUNDS.size))
    return xr.DataArray(factor * noise * ROUNDS**exponent, dims=("cell", "seed", "round"), coords={"round": ROUNDS})

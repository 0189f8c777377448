"""The parts that all competitors share: the form of their results, constants of the game, Newton's steps, regret."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray

Run = Callable[[], NDArray[np.float64]]

INITIAL_SCALE = 4.0
SEED = 0
SMALLEST_REST = 2.0**-100  # of 1 - x, where x rounds to 1
OFF_BY = 1e-3  # No arm, -1, is drawn from an x with a negative entry or with a sum that is further from 1.


def real_of(dtype: DTypeLike) -> type[np.float32] | type[np.float64]:
    """Returns the type of scalars, float32 or float64."""
    return {"float32": np.float32, "float64": np.float64}[np.dtype(dtype).name]


def num_steps(num_arms: int, real: type) -> int:
    """Returns the number of Newton steps after which the residual is at rounding level."""
    decades = math.ceil(math.log10(max(num_arms, 2) / 2) - 1e-9)
    return (4 if real is np.float64 else 3) + decades


def regret_of(pulls: NDArray, means: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
    """Returns pseudo-regret [N] from pulls [K, N]; NaN if no arm was drawn in some round."""
    regret = (means - means.min()) @ pulls.astype(np.float64)
    return np.where(pulls.sum(axis=0) == horizon, regret, np.nan)

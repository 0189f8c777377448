"""Laws as weighted points, for expectations on the host."""

from collections.abc import Callable
from typing import Any

import numpy as np

Points = tuple[np.ndarray, np.ndarray]  # losses and their probabilities, which sum to 1

_FINE = np.arange(-1960, 1961) * 0.002  # log(P(l <= z) / P(l > z)) is 12 sinh of it: tails down to e^-300


def at(value: Any, arm: int) -> float:
    """Returns the arm's own number, or the number of all arms if there is only one; on the host in float64."""
    value = np.asarray(value, np.float64)
    return float(value[arm] if value.ndim else value)


def uniforms(grid: np.ndarray = _FINE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns shares P(l <= z), P(l > z), both to full relative precision, and the weights of the points.

    The logit of a share is 12 sinh of an evenly spaced grid. The trapezoidal rule converges exponentially there, also
    if the loss grows like a power of the share in both tails.
    """
    logits = 12 * np.sinh(grid)
    below, above = (np.exp(-np.logaddexp(0, sign * logits)) for sign in (-1, 1))
    weights = below * above * np.cosh(grid)
    return below, above, weights / weights.sum()


def by_quantile(quantile: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Points:
    """Returns the points of a law whose quantile is a function of P(l <= z) and P(l > z)."""
    below, above, weights = uniforms()
    return quantile(below, above), weights


def minus_log(share: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Returns -log(share) to full relative precision, where ``rest`` is 1 - share."""
    return np.where(rest < 0.5, -np.log1p(-np.minimum(rest, 0.5)), -np.log(share))


def normal_quantile(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Returns the quantile of a standard normal law, to full relative precision in both tails."""
    from scipy.special import ndtri  # not at the top: `import jaxbandit` does without SciPy

    return np.where(below < above, ndtri(below), -ndtri(above))


def mixed(parts: list[tuple[float, Points]]) -> Points:
    """Returns the points of a mixture of laws, given the share and the points of each."""
    values = np.concatenate([points[0] for _, points in parts])
    return values, np.concatenate([share * points[1] for share, points in parts])


def is_symmetric(points: Points) -> bool:
    """Returns whether a law of finitely many losses is symmetric around its mean, up to rounding."""
    levels, places = np.unique(points[0], return_inverse=True)
    shares = np.bincount(places, points[1])
    levels, shares = levels[shares > 0], shares[shares > 0]
    centred = levels - shares @ levels
    slack = 1e-9 * np.max(np.abs(levels))
    return bool(np.allclose(centred, -centred[::-1], 0, slack) and np.allclose(shares, shares[::-1], 0, 1e-9))


def is_truncated_nonnegative(points: Points) -> bool:
    """Returns whether E[l 1(|l| > M)] >= 0 for every M >= 0, up to rounding."""
    values, weights = points
    order = np.argsort(-np.abs(values), kind="stable")
    size, parts = np.abs(values)[order], (values * weights)[order]
    # M lies between two different sizes: losses of equal size, up to rounding, are truncated together.
    cut = np.append(size[1:] < size[:-1] * (1 - 1e-12), True)
    return bool(np.all((np.cumsum(parts) >= -1e-9 * np.cumsum(np.abs(parts)))[cut]))

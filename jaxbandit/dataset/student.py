"""Student's t on the host: the law of a mean in units of its own standard error. SciPy is no dependency."""

import functools
import math
from statistics import NormalDist

import numpy as np


def tail(t: np.ndarray, freedom: float) -> np.ndarray:
    """P(|T| >= |t|), the two-sided p-value; NaN without a degree of freedom.

    It is the regularised incomplete beta function I_x(n/2, 1/2) at x = n / (n + t^2).

    Args:
      t: The statistic.
      freedom: Degrees of freedom n.

    Example:
      >>> tail(np.array([0.0, 12.7062047]), 1).round(6).tolist()
      [1.0, 0.05]
    """
    t = np.abs(np.asarray(t, np.float64))
    if freedom < 1:
        return np.full_like(t, np.nan)
    a, b = freedom / 2, 0.5
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = t * t / freedom
        x, rest = 1 / (1 + ratio), 1 / (1 + 1 / ratio)
        scale = np.exp(_log_scale(freedom) - a * np.log1p(ratio) + b * np.log(rest))
        # The fraction converges fast left of the mean of the beta law; right of it, its mirror image does.
        left = x < (a + 1) / (a + b + 2)
        far = scale / a * _fraction(a, b, np.where(left, x, 0))
        near = 1 - scale / b * _fraction(b, a, np.where(left, 0, rest))
    return np.where(left, far, near)


@functools.lru_cache(maxsize=1 << 12)
def quantile(p: float, freedom: float) -> float:
    """What T stays below with probability p; NaN without a degree of freedom.

    Example:
      >>> round(quantile(0.975, 1), 4), round(quantile(0.975, 63), 4)
      (12.7062, 1.9983)
    """
    if freedom < 1:
        return math.nan
    beyond = 2 * min(p, 1 - p)
    t = -NormalDist().inv_cdf(beyond / 2)
    # The tail is convex and the normal quantile is the smaller: Newton's steps rise to the root from there.
    for _ in range(100):
        density = math.exp(_log_scale(freedom) - (freedom + 1) / 2 * math.log1p(t * t / freedom)) / math.sqrt(freedom)
        step = (float(tail(np.asarray(t), freedom)) - beyond) / (2 * density)
        t += step
        if abs(step) <= 1e-12 * t:
            break
    return math.copysign(t, p - 0.5)


def _log_scale(freedom: float) -> float:
    """-log B(n/2, 1/2)."""
    return math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.lgamma(0.5)


def _fraction(a: float, b: float, x: np.ndarray) -> np.ndarray:
    """The continued fraction of the incomplete beta function by Lentz's method, DLMF 8.17.22."""
    c, d = np.ones_like(x), 1 / (1 - (a + b) / (a + 1) * x)
    value = d
    for m in range(1, 100_000):
        change = np.ones_like(x)
        for term in (
            m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = 1 + term * x / c, 1 / (1 + term * x * d)
            change = change * c * d
        value = value * change
        if not (np.abs(change - 1) > 1e-14).any():
            break
    return value

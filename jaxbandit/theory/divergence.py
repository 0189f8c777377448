r"""The divergence of a law from the laws with a smaller mean: the constant of asymptotic lower bounds.

For a law :math:`\eta` of losses and a number m below its mean, KLinf is the smallest Kullback-Leibler divergence
:math:`KL(\eta, \kappa)` of the laws :math:`\kappa` of a class whose mean is at most m. Two classes are known here, both
with :math:`E|\ell|^p \le B`: all such laws, and those of non-negative losses.

References:
  Agrawal, Juneja, Koolen. "Regret Minimization in Heavy-Tailed Bandits". COLT 2021. https://arxiv.org/abs/2102.03734.
  The dual of their Theorem on KLinf, written for losses and in units in which B is 1.
"""

import math
from collections.abc import Callable

import numpy as np

_WIDEST = 600.0  # the largest logarithm of a number that is computed
_GRID = 24  # ratios that are tried before the best of them is refined
_STEPS = 200  # at most, of the search for the length of a pair of multipliers; usually below 20
_EXACT = 1e-10  # of logarithms of multipliers; the error of the maximum is of second order in it


def klinf(
    losses: np.ndarray, weights: np.ndarray, mean: float, order: float, bound: float, *, nonnegative: bool = False
) -> float:
    r"""Returns the smallest KL divergence of a law of losses from the laws of a class with mean at most ``mean``.

    With rewards X = -loss and x = -``mean`` it is the largest value over :math:`\lambda_1, \lambda_2 \ge 0` of
    :math:`E \log(1 - (X - x) \lambda_1 - (B - |X|^p) \lambda_2)`, where the argument of the logarithm is not negative
    for any X of the class. On a ray :math:`\lambda_1 = \psi \lambda_2` this is a concave function of one number, and
    its maximum is a unimodal function of :math:`\psi`.

    Args:
      losses: The points of the law.
      weights: Their probabilities.
      mean: The largest mean of an alternative.
      order: p, above 1.
      bound: B.
      nonnegative: Whether the class has non-negative losses only.

    Example:
      >>> coin = np.array([0.0, 1.0]), np.array([0.3, 0.7])  # losses 0 and 1
      >>> round(klinf(*coin, mean=0.5, order=2.0, bound=1.0), 4)
      0.0407
    """
    losses, weights = np.asarray(losses, np.float64), np.asarray(weights, np.float64)
    unit = bound ** (1 / order)
    y, m = losses / unit, mean / unit
    gap = float(weights @ y) - m
    if gap <= 0:
        return 0.0
    slack = max(1 - float(weights @ np.abs(y) ** order), 0.0)  # how far the law is inside the class
    if nonnegative:
        if m <= 0:  # the point mass on 0, at best, which the law is not
            return math.inf
        # The argument is least at a loss of 0; there it is 1 - lambda_2 (1 + m psi).
        rays = _rays(y, m, order, lambda psi: 1 + m * psi)
        endless = _along((m - y) / m, weights)  # psi infinite: the moment does not bind
        return max(endless, _best_ray(rays, weights, slack / gap, 40.0))
    if m < -1:
        return math.inf  # no law of the class has such a mean
    # The argument is least at the gain theta = (psi / p)^(1/(p-1)); there it is 1 - lambda_2 h(theta).
    power = order / (order - 1)
    rays = _rays(y, m, order, lambda psi: 1 + (order - 1) * (psi / order) ** power + m * psi)
    return _best_ray(rays, weights, slack / gap, _WIDEST / power)


def _rays(y: np.ndarray, m: float, order: float, length: Callable[[float], float]) -> Callable[[float], np.ndarray]:
    """Returns the function of psi whose values g make the argument of the logarithm 1 - r g, with r from 0 to 1."""
    inside = 1 - np.abs(y) ** order
    return lambda psi: (psi * (m - y) + inside) / length(psi)


def _best_ray(rays: Callable[[float], np.ndarray], weights: np.ndarray, least: float, log_most: float) -> float:
    """Returns the maximum over psi from ``least``, below which the value is 0, to the exponential of ``log_most``."""
    from scipy.optimize import minimize_scalar  # not at the top: `import jaxbandit` does without SciPy

    def value(log_psi: float) -> float:
        return _along(rays(math.exp(log_psi)), weights)

    low = math.log(max(least, 1e-12))
    offsets = np.concatenate([[0.0], np.geomspace(1e-3, max(log_most - low, 1.0), _GRID)])
    tried = [value(low + offset) for offset in offsets]
    best = int(np.argmax(tried))
    around = low + offsets[max(best - 1, 0)], low + offsets[min(best + 1, offsets.size - 1)]
    found = minimize_scalar(lambda log_psi: -value(log_psi), bounds=around, method="bounded", options={"xatol": 1e-6})
    return max(tried[best], -float(found.fun))  # pyright: ignore[reportAttributeAccessIssue]


def _along(g: np.ndarray, weights: np.ndarray) -> float:
    """Returns the maximum over r in [0, 1] of E log(1 - r g), where g <= 1.

    Newton's method in s = log r, kept within brackets: r is tiny if the gap is small and the tail heavy.
    """
    if not np.isfinite(g).all() or not weights @ g < 0:  # the slope at r = 0 is -E g
        return 0.0
    g = np.minimum(g, 1.0)  # 1 up to rounding

    def derivatives(s: float) -> tuple[float, float]:
        part = math.exp(s) * g
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(weights > 0, part / (1 - part), 0.0)
        return -float(weights @ ratio), -float(weights @ (ratio * (1 + ratio)))

    low, high, s, last = -_WIDEST, 0.0, 0.0, math.inf
    slope, curve = derivatives(s)
    for _ in range(_STEPS):
        if s == 0 and slope >= 0:
            break
        low, high = (s, high) if slope > 0 else (low, s)
        step = -slope / curve if math.isfinite(curve) and curve < 0 else math.inf
        if not low < s + step < high or abs(step) > last / 2:
            step = (low + high) / 2 - s
        s, last = s + step, abs(step)
        if last <= _EXACT:
            break
        slope, curve = derivatives(s)
    return float(weights @ np.where(weights > 0, np.log1p(-math.exp(s) * np.where(weights > 0, g, 0.0)), 0.0))

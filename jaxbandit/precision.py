"""Stopping at a precision: how many seeds the mean regret of a game needs.

Stopping when an estimate looks good favours estimates that look better than they are: the variance of few
seeds from a skewed law is too small more often than too large. Three things hold the band to its level
(tests/test_precision.py measures it): a first look at no fewer than ``FIRST_LOOK`` seeds, Cochran's rule that
a normal band needs 25 times the squared skewness, and few looks, each at half as many seeds again or more.
"""

import math
from collections.abc import Iterable
from statistics import NormalDist

LEVEL = 0.95
FIRST_LOOK = 128
COCHRAN = 25.0
GROWTH = 1.5  # the least factor between two looks
MARGIN = 1.05  # seeds asked for beyond those the variance seen calls for
SEEDS = 64  # numbers of seeds are multiples of this

Moments = tuple[float, float, float, float]  # count, mean, central sums of squares and of cubes


def pooled(parts: Iterable[Moments]) -> Moments:
    """The moments of all parts together (Pébay, 2008)."""
    count, mean, squares, cubes = 0.0, 0.0, 0.0, 0.0
    for n, m, s, c in parts:
        total, delta = count + n, m - mean
        cubes += c + delta**3 * count * n * (count - n) / total**2 + 3 * delta * (count * s - n * squares) / total
        squares += s + delta**2 * count * n / total
        mean += delta * n / total
        count = total
    return count, mean, squares, cubes


def half_width(moments: Moments) -> float:
    """Half the width of the 95 % band of the mean, relative to the mean; infinite if nothing can be said."""
    count, mean, squares, _ = moments
    if count < 2:
        return math.inf
    half = student_quantile(0.5 + LEVEL / 2, count - 1) * math.sqrt(squares / (count - 1) / count)
    return 0.0 if half == 0 else half / abs(mean) if mean else math.inf


def seeds_needed(moments: Moments, precision: float, max_seeds: int) -> int:
    """The number of seeds to look at next; the present one if the band is narrow enough or the cap is reached."""
    count, _, squares, cubes = moments
    skewness = 0.0 if squares == 0 else cubes / count / (squares / count) ** 1.5
    width = half_width(moments)
    least = max(FIRST_LOOK, COCHRAN * skewness**2)
    if count >= max_seeds or (width <= precision and count >= least):
        return int(count)
    wanted = max(least, GROWTH * count)
    if math.isfinite(width):
        wanted = max(wanted, min(MARGIN * count * (width / precision) ** 2, 16 * count))
    return int(min(max_seeds, -(-wanted // SEEDS) * SEEDS))


def student_quantile(p: float, freedom: float) -> float:
    """Of Student's t, by the Cornish-Fisher expansion; right to 1e-4 from 10 degrees of freedom on."""
    z = NormalDist().inv_cdf(p)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3

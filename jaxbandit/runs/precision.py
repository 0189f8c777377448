"""The stopping rule of a precision: the number of seeds that the mean regret of a pair needs.

Rare seeds that settle on a wrong arm skew the regret. A sample without them has too low a mean and too small a
variance, so a plain normal band that is watched until it is narrow covers the mean in 91 to 93 studies of 100, not 95.
The first-order Edgeworth term widens the band on the far side; here the band is that wide on both sides,
``t + (2 t^2 + 1) |skewness| / (6 sqrt(n))`` standard errors. The band is looked at rarely, and never with fewer than
``FIRST_LOOK`` seeds. tests/runs/test_precision.py measures the coverage.
"""

import math
from collections.abc import Callable, Iterable

LEVEL = 0.95
FIRST_LOOK = 256
GROWTH = 1.5  # the least factor between two looks
MARGIN = 1.05  # factor on the number of seeds that the variance so far requires
SEEDS = 64  # numbers of seeds are multiples of this

Moments = tuple[float, float, float, float]  # count, mean, central sums of squares and of cubes


def pooled(parts: Iterable[Moments]) -> Moments:
    """Returns the moments of all parts together (Pébay, 2008)."""
    count, mean, squares, cubes = 0.0, 0.0, 0.0, 0.0
    for n, m, s, c in parts:
        total, delta = count + n, m - mean
        cubes += c + delta**3 * count * n * (count - n) / total**2 + 3 * delta * (count * s - n * squares) / total
        squares += s + delta**2 * count * n / total
        mean += delta * n / total
        count = total
    return count, mean, squares, cubes


def half_width(moments: Moments) -> float:
    """Returns half the width of the mean's 95 % band, relative to the mean; infinite for too few seeds or mean 0."""
    count, mean, squares, _ = moments
    if count < 2:
        return math.inf
    from scipy import special  # imported late, so that the first rounds do not wait for it

    t = special.stdtrit(count - 1, 0.5 + LEVEL / 2)
    t += (2 * t * t + 1) * abs(_skewness(moments)) / (6 * math.sqrt(count))
    half = t * math.sqrt(squares / (count - 1) / count)
    return 0.0 if half == 0 else half / abs(mean) if mean else math.inf


def seeds_needed(moments_of: Callable[[int], Moments | None], num_seeds: int, precision: float, max_seeds: int) -> int:
    """Returns the number of seeds that a pair needs; all earlier looks are repeated, so no state is kept.

    Args:
      moments_of: Function of a number n that returns the moments of the regrets of the first n seeds; None if not all
        of them have been played.
      num_seeds: Number of seeds at the first look.
      precision: The relative half-width to reach.
      max_seeds: The largest number of seeds.
    """
    count = num_seeds
    while count < max_seeds and (moments := moments_of(count)) is not None:
        width = half_width(moments)
        if width <= precision and count >= FIRST_LOOK:
            break
        wanted = max(FIRST_LOOK, GROWTH * count)
        if math.isfinite(width):
            wanted = max(wanted, min(MARGIN * count * (width / precision) ** 2, 16 * count))
        count = int(min(max_seeds, -(-wanted // SEEDS) * SEEDS))
    return count


def _skewness(moments: Moments) -> float:
    count, _, squares, cubes = moments
    return 0.0 if squares == 0 else cubes / count / (squares / count) ** 1.5

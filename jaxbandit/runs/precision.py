"""Stopping at a precision: how many seeds the mean regret of a game needs.

Regret is skewed by rare seeds that settle on a wrong arm, and a sample without them has too low a mean and too
small a variance at once: a plain normal band, watched until it is narrow, covers the mean in 91 to 93 studies of
100, not 95. So the band is as wide on both sides as the first-order Edgeworth term makes it on the far one,
``t + (2 t^2 + 1) |skewness| / (6 sqrt(n))`` standard errors; looks are few, none at fewer than ``FIRST_LOOK``
seeds. tests/test_precision.py measures the coverage.
"""

import math
from collections.abc import Callable, Iterable

LEVEL = 0.95
FIRST_LOOK = 256
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
    from scipy import special  # after the first rounds

    t = special.stdtrit(count - 1, 0.5 + LEVEL / 2)
    t += (2 * t * t + 1) * abs(_skewness(moments)) / (6 * math.sqrt(count))
    half = t * math.sqrt(squares / (count - 1) / count)
    return 0.0 if half == 0 else half / abs(mean) if mean else math.inf


def seeds_needed(moments_of: Callable[[int], Moments | None], num_seeds: int, precision: float, max_seeds: int) -> int:
    """The number of seeds a game is to have; the looks so far are gone through again, so nothing is remembered.

    Args:
      moments_of: Moments of the regrets of the first so many seeds; None if they have not all been played.
      num_seeds: The first look.
      precision: The relative half-width to reach.
      max_seeds: No look goes beyond.
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

"""Boxes of parameters, the designs that fill them (SALib's), and their evaluation on one lane axis."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.checks import check_whole
from jaxbandit.engine import Engine
from jaxbandit.parameters import Box, Range, check_range, having, move
from jaxbandit.sensitivity.kept import Kept, play_points
from jaxbandit.sensitivity.points import Pairs


class Evaluated(NamedTuple):
    """The played design in the box of one pair."""

    pair: int
    names: list[str]  # the parameters of the pair
    units: np.ndarray  # [points, parameters]  in the unit cube
    regret: np.ndarray  # [points, seeds]
    failed: int


def sampler(module: str) -> Callable[..., np.ndarray]:
    """Returns SALib's ``sample`` of a design; if SALib is not installed, an error names the extra to install."""
    try:
        return importlib.import_module(f"SALib.sample.{module}").sample
    except ImportError as error:
        raise ValueError(
            f"Sobol' and Morris designs need {error.name}, which is not installed; "
            "install it with pip install 'jaxbandit[sensitivity]'"
        ) from None


def evaluate(
    pairs: Pairs,
    box: Box,
    design: Callable[[int], np.ndarray],
    *,
    horizon: int,
    num_seeds: int,
    seed: int,
    dtype: str,
    engine: Engine | None,
    kept: Kept | None,
) -> list[Evaluated]:
    """Plays a design in the box of every pair; ``design(D)`` gives its points in the D-dimensional unit cube.

    All points of a policy class and an environment class lie on one lane axis and use common random numbers. A pair is
    moved only in the parameters it has.
    """
    check_whole("num_seeds", num_seeds, 2, "the noise of a mean is estimated from at least two")
    names = list(box)
    owned: dict[int, list[str]] = {}
    for n, number in having(pairs.pairs, names):
        owned.setdefault(n, []).append(names[number])
    cubes = {count: design(count) for count in {len(mine) for mine in owned.values()}}
    points = []
    for n, mine in owned.items():
        for name in mine:
            check_range(*pairs.pairs[n], name, box[name])
        rows = [
            {name: box[name].value(u) for name, u in zip(mine, row, strict=True)} for row in cubes[len(mine)].tolist()
        ]
        points += [_moved(*pairs.pairs[n], row) for row in rows]
    games = play_points(points, num_seeds, horizon=horizon, seed=seed, dtype=dtype, engine=engine, kept=kept)
    found, first = [], 0
    for n, mine in owned.items():
        units = cubes[len(mine)]
        rows = slice(first, first + len(units))
        failed = int((games.failed[rows] > 0).sum())
        found.append(Evaluated(n, mine, units, games.regret[rows, :, -1], failed))
        first += len(units)
    return found


def without_noise(form: Callable[[np.ndarray], np.ndarray], values: np.ndarray, counts: np.ndarray | None = None):
    r"""Returns a quadratic form of expected regrets without the noise of their estimates, and the noise subtracted.

    With :math:`\bar Y` the mean over m seeds, :math:`Q(\bar Y)` exceeds :math:`Q(E Y)` by the mean of
    :math:`Q(Y_s - E Y) / m`, whatever the seeds have in common between points:
    :math:`Q(\bar Y) - \frac{1}{m(m-1)} \sum_s Q(Y_s - \bar Y)` has no such excess.

    Args:
      form: A quadratic form of arrays [..., points], perhaps with more axes behind; it acts on each leading entry.
      values: Regrets [seeds, points...].
      counts: The number of times each seed occurs in a bootstrap sample.
    """
    m = values.shape[0]
    counts = np.ones(m) if counts is None else counts
    mean = np.tensordot(counts / m, values, axes=1)
    noise = np.tensordot(counts, form(values - mean), axes=1) / (m * (m - 1))
    return form(mean) - noise, noise


def centred_interval(samples: np.ndarray, estimate: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns limits from bootstrap samples [samples, ...]: their spread around their own mean, moved to the estimate.

    Resampled seeds repeat themselves, so a bootstrap sample has the noise once more than the estimate, and its mean is
    biased.
    """
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        off = samples - np.nanmean(samples, axis=0)
        low, high = np.nanquantile(off, [tail, 1 - tail], axis=0)
    return estimate + low, estimate + high


def range_coordinates(box: Box) -> dict[str, Any]:
    """Returns the ranges as coordinates along ``parameter``."""
    return {f"range_{end}": ("parameter", [getattr(ends, end) for ends in box.values()]) for end in Range._fields}


def _moved(policy: Any, environment: Any, values: Mapping[str, float]) -> tuple[Any, Any]:
    try:
        return move(policy, environment, values)
    except ValueError as error:
        at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        raise ValueError(f"the box holds invalid values at {at}: {error}; make a range smaller") from None

"""Sobol' indices: shares of the variance of expected regret over a box of parameters."""

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis.statistics import check_level
from jaxbandit.checks import check_whole
from jaxbandit.engine import Engine
from jaxbandit.parameters import as_box
from jaxbandit.sensitivity.design import centred_interval, evaluate, range_coordinates, sampler, without_noise
from jaxbandit.sensitivity.kept import Kept
from jaxbandit.sensitivity.points import pairs_of

NUM_BINS = 10  # bins of a response curve
NUM_RESAMPLES = 500

LONG_NAMES = {
    "first_order": "share of the variance of E[R] that the parameter explains alone",
    "total_order": "share of the variance of E[R] that the parameter has a part in",
    "variance": "variance of E[R] over the box",
    "noise_variance": "variance that the noise of means over seeds would add",
    "mean": "mean of E[R] over the box",
    "response": "mean of E[R] over the box, given the parameter",
    "response_stderr": "standard error of that, over the design",
    "response_value": "the parameter, in the middle of the bin",
    "failed": "games whose state was not finite at some round",
}
_INDICES = ("first_order", "total_order")
for _name in _INDICES:
    LONG_NAMES |= {f"{_name}_{end}": f"{end} end of the interval of {_name}" for end in ("low", "high")}


def sobol(
    policy: Any,
    environment: Any,
    box: Mapping[str, Sequence[float]],
    *,
    horizon: int,
    num_seeds: int,
    num_points: int = 256,
    seed: int = 0,
    scale: str | Mapping[str, str] = "log",
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    dtype: str = "float32",
    engine: Engine | None = None,
    kept: Kept | None = None,
) -> xr.Dataset:
    """Estimates first-order and total Sobol' indices of expected regret over a box of parameters.

    SALib makes Saltelli's design of ``num_points * (D + 2)`` points for D parameters. It is played as one lane axis per
    policy class, and all points use common random numbers. The estimators are Saltelli's (2010), of expected regret
    itself: the variance that the noise of means over seeds adds is estimated without bias and subtracted. Intervals are
    by bootstrap over the rows of the design and the seeds.

    Args:
      policy: A policy, a ``grid``, or a list; each gets indices of its own.
      environment: An environment, a ``grid``, or a list; None if ``policy`` is a ``Study``, which has
        environments of its own and gives its policies what they need of them.
      box: Ranges ``[low, high]`` by parameter, independent and uniform in the logarithm. A pair of a list is moved in
        those it has.
      horizon: Rounds to play.
      num_seeds: Games of each point.
      num_points: N, a power of two.
      seed: The seed of the games and of the design.
      scale: ``"log"`` or ``"linear"``, for all ranges or by name.
      level: The coverage of the intervals.
      num_resamples: Bootstrap samples.
      dtype: ``"float32"`` or ``"float64"``.
      engine: The settings of the engine; they do not change the numbers.
      kept: The finished points of an earlier call, which ``run`` finds in a directory.

    Returns:
      ``first_order`` and ``total_order`` with limits, along ``parameter``; the ``variance`` over the box and the
      ``noise_variance`` subtracted; ``response`` curves along ``bin``. If the variance is not above the noise, the
      indices are NaN.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit import sensitivity
      >>> environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
      >>> box = {"initial_scale": [1.0, 16.0], "gap": [0.1, 1.0]}
      >>> ds = sensitivity.sobol(jb.UniINF(horizon=100), environment, box, horizon=100, num_seeds=8, num_points=16)
      >>> ds.total_order.sizes["parameter"], ds.response.dims
      (2, ('parameter', 'bin'))

    References:
      Saltelli, Annoni, Azzini, Campolongo, Ratto, Tarantola. "Variance based sensitivity analysis of model output".
      Computer Physics Communications 181 (2010). https://doi.org/10.1016/j.cpc.2009.09.018
    """
    pairs = pairs_of(policy, environment)
    check_level(level)
    check_whole("num_resamples", num_resamples, 2)
    if not isinstance(num_points, int) or num_points < 2 or num_points & (num_points - 1):
        raise ValueError(f"num_points must be a power of two, at least 2, got {num_points!r}; 256 is usual")
    ranges, sample = as_box(box, scale), sampler("sobol")
    names = list(ranges)

    def design(count: int) -> np.ndarray:
        problem = {"num_vars": count, "names": [str(n) for n in range(count)], "bounds": [[0.0, 1.0]] * count}
        return sample(problem, num_points, calc_second_order=False, seed=np.random.default_rng(seed))

    played = evaluate(
        pairs, ranges, design, horizon=horizon, num_seeds=num_seeds, seed=seed, dtype=dtype, engine=engine, kept=kept
    )
    shape = {"": (len(pairs.pairs),), "parameter": (len(pairs.pairs), len(names))}
    shape["bin"] = (*shape["parameter"], NUM_BINS)
    whole = ("variance", "noise_variance", "mean", "failed")
    binned = ("response", "response_stderr", "response_value")
    variables = {
        name: np.full(shape["" if name in whole else "bin" if name in binned else "parameter"], np.nan)
        for name in LONG_NAMES
    }
    for one in played:
        table = one.regret.reshape(num_points, len(one.names) + 2, num_seeds)
        found = indices(np.moveaxis(table, -1, 0), level=level, num_resamples=num_resamples, seed=seed)
        found["failed"] = one.failed
        where = [names.index(name) for name in one.names]
        for name, values in found.items():
            variables[name][one.pair if name in whole else (one.pair, where)] = values
        base = np.arange(len(one.units)).reshape(num_points, -1)[:, [0, -1]].ravel()  # A and B: independent points
        for column, number in enumerate(where):
            curve = response(one.units[base, column], one.regret[base].mean(axis=1))
            values = [ranges[names[number]].value((n + 0.5) / NUM_BINS) for n in range(NUM_BINS)]
            for name, row in zip(binned, (*curve, np.asarray(values)), strict=True):
                variables[name][one.pair, number] = row
        if not found["variance"] > 0:
            warnings.warn(
                "the variance of regret over the box is not above its noise, so there are no indices; "
                "widen the box or play more seeds",
                stacklevel=2,
            )
    ds = pairs.dataset(variables, {"parameter": names, "bin": np.arange(NUM_BINS)}, LONG_NAMES)
    return ds.assign_coords(range_coordinates(ranges)).assign_attrs(
        kind="Sobol' indices",
        horizon=horizon,
        num_seeds=num_seeds,
        num_points=num_points,
        seed=seed,
        dtype=dtype,
        band=f"bootstrap over design and seeds ({num_resamples} resamples), {100 * level:g} %",
    )


def indices(table: np.ndarray, *, level: float, num_resamples: int, seed: int) -> dict[str, Any]:
    """Estimates the indices of a played design.

    Args:
      table: Regret [seeds, rows, 2 + D] at A, at A with column j from B, at B.
      level: The coverage of the intervals.
      num_resamples: Bootstrap samples.
      seed: The seed of the resampling.
    """
    num_seeds, num_rows, width = table.shape
    count = width - 2
    even = np.full(num_rows, 1 / num_rows)
    (variance, *parts), (noise, *_) = without_noise(functools.partial(_forms, even), table)
    estimate = _shares(variance, np.asarray(parts))
    rng = np.random.default_rng([seed, 1])
    samples = np.empty((num_resamples, 2 * count))
    for n in range(num_resamples):
        rows = rng.multinomial(num_rows, even) / num_rows
        seeds = rng.multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds)).astype(float)
        used = rows > 0
        (spread, *pieces), _ = without_noise(functools.partial(_forms, rows[used]), table[:, used], seeds)
        samples[n] = _shares(spread, np.asarray(pieces))
    low, high = (
        centred_interval(samples, estimate, level) if variance > 0 else (np.full(2 * count, np.nan) for _ in range(2))
    )
    found = {"variance": variance, "noise_variance": noise, "mean": table[:, :, [0, -1]].mean()}
    for n, name in enumerate(_INDICES):
        part = slice(n * count, (n + 1) * count)
        found |= {name: estimate[part], f"{name}_low": low[part], f"{name}_high": high[part]}
    return found


def response(units: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and standard error of values in equal bins of the unit interval; NaN if a bin has too few."""
    bins = np.minimum((units * NUM_BINS).astype(int), NUM_BINS - 1)
    curve = np.full((2, NUM_BINS), np.nan)
    for n in range(NUM_BINS):
        inside = values[bins == n]
        if inside.size:
            curve[0, n] = inside.mean()
        if inside.size > 1:
            curve[1, n] = inside.std(ddof=1) / np.sqrt(inside.size)
    return curve[0], curve[1]


def _forms(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Returns the variance and the numerators of both indices, [..., 1 + 2 D], of a table [..., rows, 2 + D]."""
    centre = np.einsum("n,...nj->...", weights, table) / table.shape[-1]
    table = table - centre[..., None, None]
    a, mixed, b = table[..., 0], table[..., 1:-1], table[..., -1]
    variance = np.einsum("n,...n->...", weights, (a * a + b * b) / 2)
    variance = variance - np.einsum("n,...n->...", weights, (a + b) / 2) ** 2
    change = mixed - a[..., None]
    first = np.einsum("n,...n,...nj->...j", weights, b, change)
    total = np.einsum("n,...nj->...j", weights, change * change) / 2
    return np.concatenate([variance[..., None], first, total], axis=-1)


def _shares(variance: float, parts: np.ndarray) -> np.ndarray:
    return parts / variance if variance > 0 else np.full(parts.shape, np.nan)

"""Error bars for skewed samples: bands over rounds, quantiles, and the chance of a large regret.

Regret is bounded, but rare seeds that settle on a wrong arm skew it, so that a normal interval misses on one side. The
bootstrap here is *studentised*: it resamples seeds and measures each resampled mean in units of its own standard error,
which follows the skewness. Quantiles and probabilities get intervals that hold for every distribution. Every result
says in its attribute ``band`` how it was made.

For few seeds the normal interval takes Student's quantile. A resample that drew only one value has no standard error.
It counts as Student's quantile with the sign of its shift, so that two seeds have Student's interval. If many resamples
are of this kind (up to 3 seeds, or seeds that nearly all agree), both limits are at least about that far from the mean.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy import special

NUM_RESAMPLES = 2_000
KEPT = 1 << 23  # resamples of at most this many numbers are cached
MOST = 8_192  # the bootstrap resamples batches of seeds if there are more seeds than this


class Interval(NamedTuple):
    """An estimate with its standard error and confidence limits."""

    value: np.ndarray
    stderr: np.ndarray
    low: np.ndarray
    high: np.ndarray


def band(
    values: xr.DataArray,
    *,
    level: float = 0.95,
    method: str = "bootstrap",
    simultaneous: bool = False,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> xr.Dataset:
    """Returns the mean over seeds with a confidence band.

    Args:
      values: Any variable with a dimension ``seed``, e.g. ``ds.regret``.
      level: Coverage.
      method: ``"normal"``, mean +- Student's quantile in standard errors; or ``"bootstrap"``, studentised, over seeds.
      simultaneous: Whether the band covers the whole curve along ``round`` at once, not each round by itself. Its
        half-width is then a quantile of the largest deviation over rounds in units of standard errors: under normal
        multipliers (over a chi, as in Student's t), or over bootstrap samples.
      num_resamples: Bootstrap samples.
      seed: Seed of the resampling.

    Returns:
      ``mean``, ``stderr``, ``low`` and ``high``; the attribute ``band`` says how they were made.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.analysis.statistics import band
      >>> ds = jb.simulate(jb.Uniform(), jb.Bernoulli(means=[0.0, 1.0]), horizon=100, num_seeds=64)
      >>> found = band(ds.regret, method="bootstrap", simultaneous=True)
      >>> found.attrs["band"], bool((found.low <= found["mean"]).all())
      ('bootstrap (studentised, 2000 resamples), 95 %, simultaneous over rounds', True)
    """
    check_level(level)
    if not isinstance(values, xr.DataArray):
        raise ValueError(f"band() takes one variable, such as ds.regret, got {type(values).__name__}")
    if method not in ("normal", "bootstrap"):
        raise ValueError(f"method must be 'normal' or 'bootstrap', got {method!r}")
    if simultaneous and "round" not in values.dims:
        raise ValueError(f"a simultaneous band runs along `round`, but the dimensions are {values.dims}; pass a curve")
    table, template = seeds_last(values)
    if simultaneous:
        found = _simultaneous(table, template.get_axis_num("round"), level, method, num_resamples, seed)
    elif method == "normal":
        found = normal_interval(table, level)
    else:
        found = bootstrap_interval(table, level, num_resamples, seed)
    how = "normal" if method == "normal" else f"bootstrap (studentised, {num_resamples} resamples)"
    text = f"{how}, {100 * level:g} %" + (", simultaneous over rounds" if simultaneous else "")
    return as_dataset(found, template, "mean", {"band": text})


def quantile(values: xr.DataArray, levels: Sequence[float], *, level: float = 0.95) -> xr.Dataset:
    """Returns quantiles over seeds with intervals between order statistics, valid for every distribution.

    Args:
      values: Any variable with a dimension ``seed``.
      levels: Levels of the quantiles.
      level: Coverage of each interval, at least.

    Returns:
      ``quantile_value``, ``low`` and ``high`` with a dimension ``quantile``. A limit is infinite if
      there are too few seeds for one (fewer than about 3 / min(q, 1 - q)).
    """
    check_level(level)
    table, template = seeds_last(values)
    ordered = np.sort(table, axis=-1)
    count = table.shape[-1]
    found = []
    for q in levels:
        if not 0 < q < 1:
            raise ValueError(f"quantile levels must lie between 0 and 1, got {q}")
        cdf = special.bdtr(np.arange(count + 1), count, q)  # P(Bin(count, q) <= k)
        # The r-th smallest lies above the quantile with probability P(Bin < r), the s-th below it with P(Bin >= s).
        lower = int(np.searchsorted(cdf, (1 - level) / 2, side="right"))
        upper = int(np.searchsorted(cdf, 1 - (1 - level) / 2, side="left")) + 1
        low = ordered[..., lower - 1] if lower >= 1 else np.full(ordered.shape[:-1], -np.inf)
        high = ordered[..., upper - 1] if upper <= count else np.full(ordered.shape[:-1], np.inf)
        found.append((np.quantile(table, q, axis=-1), low, high))
    parts = zip(("quantile_value", "low", "high"), zip(*found, strict=True), strict=True)
    dims = ("quantile", *template.dims)
    return xr.Dataset(
        {name: (dims, np.stack(arrays)) for name, arrays in parts},
        coords={**template.coords, "quantile": list(levels)},
        attrs={"band": f"order statistics, at least {100 * level:g} % for every distribution"},
    )


def exceedance(values: xr.DataArray, thresholds: Sequence[float], *, level: float = 0.95) -> xr.Dataset:
    """Returns the probability that a game's value exceeds x, e.g. P(R_T > x), with exact binomial limits.

    Args:
      values: Any variable with a dimension ``seed``.
      thresholds: The values of x.
      level: Coverage of each interval, at least (Clopper and Pearson).

    Returns:
      ``probability``, ``low`` and ``high`` with a dimension ``threshold``.

    Example:
      >>> regret = xr.DataArray([[1.0, 5.0], [2.0, 9.0], [1.5, 30.0]], dims=("seed", "round"))
      >>> exceedance(regret, [8.0]).probability.values.round(2).tolist()
      [[0.0, 0.67]]
    """
    check_level(level)
    table, template = seeds_last(values)
    count = table.shape[-1]
    above = np.stack([(table > x).sum(axis=-1) for x in thresholds])
    dims = ("threshold", *template.dims)
    low, high = clopper_pearson(above, count, level)
    found = {"probability": (dims, above / count), "low": (dims, low), "high": (dims, high)}
    coords = template.drop_vars(list(found), errors="ignore").coords  # a swept value may have one of these names
    return xr.Dataset(
        found,
        coords={**coords, "threshold": list(thresholds)},
        attrs={"band": f"Clopper-Pearson, at least {100 * level:g} %"},
    )


def clopper_pearson(successes: np.ndarray, count: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns confidence limits of a probability, given ``successes`` in ``count`` trials.

    At the lower limit, ``successes`` or more have probability (1 - level) / 2. At the upper limit, ``successes`` or
    fewer have that probability.

    Example:
      >>> [round(float(limit), 4) for limit in clopper_pearson(np.array(3), 10, 0.95)]
      [0.0667, 0.6525]
    """
    tail = (1 - level) / 2
    low = special.betaincinv(np.maximum(successes, 1), count - np.maximum(successes, 1) + 1, tail)
    high = special.betaincinv(np.minimum(successes, count - 1) + 1, count - np.minimum(successes, count - 1), 1 - tail)
    return np.where(successes == 0, 0.0, low), np.where(successes == count, 1.0, high)


def two_sided(t: np.ndarray, freedom: float) -> np.ndarray:
    """Returns P(|T| >= |t|) of Student's law, the two-sided p-value; NaN if there is no degree of freedom.

    Example:
      >>> two_sided(np.array([0.0, 12.7062047]), 1).round(6).tolist()
      [1.0, 0.05]
    """
    return 2 * special.stdtr(freedom, -np.abs(t))


def normal_interval(table: np.ndarray, level: float) -> Interval:
    """Returns mean +- Student's quantile in standard errors, along the last axis; NaN limits for one seed."""
    mean, stderr = mean_and_stderr(table)
    half = special.stdtrit(table.shape[-1] - 1, 0.5 + level / 2) * stderr
    return Interval(mean, stderr, mean - half, mean + half)


def skewed_interval(table: np.ndarray, level: float) -> Interval:
    """Returns the interval of the mean by Hall's transformation of t, for levels that resamples cannot reach.

    With g the skewness over sqrt(n), ``t + g t^2 / 3 + g^2 t^3 / 27 + g / 6`` is held against Student's law. The limits
    come from the inverse of that function.
    """
    count = table.shape[-1]
    mean, stderr = mean_and_stderr(table)
    g = skewness(table) / math.sqrt(count)
    quantile = special.stdtrit(count - 1, 0.5 + level / 2)

    def inverse(z: float) -> np.ndarray:
        shifted = z - g / 6
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.abs(g) < 1e-9, shifted, 3 / g * (np.cbrt(1 + g * shifted) - 1))

    return Interval(mean, stderr, mean - inverse(quantile) * stderr, mean - inverse(-quantile) * stderr)


def skewness(table: np.ndarray) -> np.ndarray:
    """Returns the skewness of the samples along the last axis; 0 if all agree."""
    centred = table - table.mean(axis=-1, keepdims=True)
    return _ratio((centred**3).mean(axis=-1), table.std(axis=-1) ** 3)


def bootstrap_interval(table: np.ndarray, level: float, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> Interval:
    """Returns the studentised bootstrap interval of the mean along the last axis; all rows share the resamples."""
    mean, stderr = mean_and_stderr(table)
    t = studentised(table, level, num_resamples, seed)
    upper, lower = np.quantile(t, [0.5 + level / 2, 0.5 - level / 2], axis=0)
    return Interval(mean, stderr, mean - upper * stderr, mean - lower * stderr)


def studentised(table: np.ndarray, level: float, num_resamples: int, seed: int) -> np.ndarray:
    """Returns (resampled mean - mean) / resampled standard error, for limits of a level: [resamples, ...]."""
    table = batched(table)
    count = table.shape[-1]
    weights = resamples(count, num_resamples, seed)
    centred = (table - table.mean(axis=-1, keepdims=True)).reshape(-1, count)
    shift, square = weights @ centred.T, weights @ (centred**2).T
    variance = square - shift**2
    # If a resample has only one value, its variance is the rounding error of a difference of equal numbers.
    t = in_errors(shift, stderr_of(variance, count), variance > 1e-12 * square, level, count)
    return t.reshape(-1, *table.shape[:-1])


def batched(table: np.ndarray) -> np.ndarray:
    """Returns means of batches of seeds, along the last axis, if there are many seeds; otherwise the table.

    Means of batches are independent too, and the mean of all has the same error and skewness in terms of them. Without
    batches the bootstrap of 10^5 seeds takes minutes and gigabytes. Seeds that do not fill a batch are left out.
    """
    size = -(-table.shape[-1] // MOST)
    if size == 1:
        return table
    whole = table[..., : table.shape[-1] // size * size]
    return whole.reshape(*table.shape[:-1], -1, size).mean(axis=-1)


def in_errors(shift: np.ndarray, error: np.ndarray, known: np.ndarray, level: float, count: int) -> np.ndarray:
    """Divides shifts by their standard errors; if an error is not ``known``, returns +- Student's quantile."""
    unknown = np.sign(shift) * special.stdtrit(count - 1, 0.5 + level / 2)
    return np.divide(shift, error, out=unknown, where=known)


def resamples(num_seeds: int, num_resamples: int, seed: int) -> np.ndarray:
    """Returns the share of each seed in each bootstrap sample: read-only, [resamples, seeds]."""
    # The pairs of a study use the same resamples, so they are cached unless they are large.
    draw = _kept_resamples if num_seeds * num_resamples <= KEPT else _resamples
    return draw(num_seeds, num_resamples, seed)


def _resamples(num_seeds: int, num_resamples: int, seed: int) -> np.ndarray:
    counts = np.random.default_rng(seed).multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=num_resamples)
    shares = counts / num_seeds
    shares.flags.writeable = False
    return shares


_kept_resamples = functools.lru_cache(maxsize=2)(_resamples)


def mean_and_stderr(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean along the last axis, and its standard error, which is 0 if all values agree."""
    variance = np.where(table.max(axis=-1) == table.min(axis=-1), 0.0, table.var(axis=-1))  # rounding leaves some
    return table.mean(axis=-1), stderr_of(variance, table.shape[-1])


def stderr_of(variance: np.ndarray, count: int) -> np.ndarray:
    """Returns the standard error of a mean of ``count`` values; NaN for one value."""
    return np.sqrt(np.maximum(variance, 0) / (count - 1 or math.nan))


def seeds_last(values: xr.DataArray) -> tuple[np.ndarray, xr.DataArray]:
    """Returns the values as [..., seeds], and an array with the other dimensions and coordinates."""
    if "seed" not in values.dims:
        raise ValueError(f'no dimension `seed` in {values.dims}; keep="summary" drops it, so run with keep="seeds"')
    if values.sizes["seed"] < 2:
        raise ValueError(f"an interval needs at least 2 seeds, got {values.sizes['seed']}; raise num_seeds")
    template = values.isel(seed=0, drop=True)
    return np.asarray(values.transpose(*template.dims, "seed"), np.float64), template


def as_dataset(found: Interval, template: xr.DataArray, name: str, attrs: dict) -> xr.Dataset:
    """Returns an interval as a dataset with the labels of ``template``."""
    parts = dict(zip((name, "stderr", "low", "high"), found, strict=True))
    return xr.Dataset({key: template.copy(data=data) for key, data in parts.items()}, attrs=attrs)


def check_level(level: float) -> None:
    """Raises unless ``level`` lies between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")


def _simultaneous(table: np.ndarray, axis: int, level: float, method: str, num_resamples: int, seed: int) -> Interval:
    mean, stderr = mean_and_stderr(table)
    if method == "bootstrap":
        # Few seeds do not show how rounds are correlated; Bonferroni's correction does not need the correlation.
        t = studentised(table, 1 - (1 - level) / mean.shape[axis], num_resamples, seed)
    else:
        # Normal multipliers give a Gaussian curve with the correlation of the rounds; one common chi makes it a t.
        count, rng = table.shape[-1], np.random.default_rng(seed)
        normal = rng.standard_normal((num_resamples, count))
        normal /= np.sqrt(count * rng.chisquare(count - 1, (num_resamples, 1)))
        centred = (table - mean[..., None]).reshape(-1, count)
        t = _ratio((normal @ centred.T).reshape(-1, *mean.shape), stderr)
    half = np.quantile(np.abs(t).max(axis=axis + 1, keepdims=True), level, axis=0) * stderr
    return Interval(mean, stderr, mean - half, mean + half)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Returns the quotient; 0 where the denominator is 0, because all seeds agree."""
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below > 0)

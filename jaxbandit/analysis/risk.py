"""Lost games: how often a game goes wrong, whether a sample can carry its mean, and what a win in the mean needs.

A policy that settles on a wrong arm in one game of two hundred has a fine mean in most samples of a hundred games. No
test of a mean can see lost games that did not occur. So two questions are answered apart: who does better in the usual
game (an exact sign test of paired differences), and who does better in the mean, claimed only if the win survives the
largest share of lost games that the games allow, times the largest loss.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from jaxbandit.analysis import statistics
from jaxbandit.analysis.ranks import holm
from jaxbandit.dataset.labels import environment_labels
from jaxbandit.game import is_stationary

SHARE = 4  # a game is lost if its regret exceeds T times the smallest gap over this
MOST_SKEW = 0.2  # skewness over sqrt(n) beyond which an interval of the mean is short of its level
MOST_WEIGHT = 0.25  # share of the variance beyond which a single game decides the mean
MOST_SEEDS = 1 << 34


class Gaps(NamedTuple):
    """The smallest positive gap and the largest gap of an environment's means."""

    smallest: float
    largest: float


def gaps_of(environment: Any) -> Gaps | None:
    """Returns the gaps of a stationary environment; None if it is None or changes, or all arms are equally good."""
    if environment is None or not is_stationary(environment):
        return None
    means = np.asarray(environment.means(1), np.float64)
    gaps = means - means.min()
    return Gaps(float(gaps[gaps > 0].min()), float(gaps.max())) if (gaps > 0).any() else None


def failure_rate(regret: xr.DataArray, gaps: Gaps, *, level: float = 0.95) -> xr.Dataset:
    """Returns P(R_T > T Delta / 4) with exact limits; Delta is the smallest gap.

    A game with that much regret is *lost*: it has played wrong arms for a quarter of its rounds or more.

    Args:
      regret: An array with dimensions ``seed`` and ``round``.
      gaps: The environment's gaps, from ``gaps_of``.
      level: Coverage, at least (Clopper and Pearson).

    Returns:
      ``probability``, ``low``, ``high``.
    """
    last = regret.isel(round=-1)
    threshold = float(last["round"]) * gaps.smallest / SHARE
    return statistics.exceedance(last, [threshold], level=level).isel(threshold=0, drop=True)


def lost(regret: xr.DataArray, gaps: Gaps, *, level: float = 0.95) -> tuple[float, float, float]:
    """Returns ``failure_rate`` as three numbers: the share of lost games and its limits."""
    found = failure_rate(regret, gaps, level=level)
    return float(found.probability), float(found.low), float(found.high)


def tells(medians: Iterable[float], rounds: float, gaps: Gaps) -> bool:
    """Returns whether the share of lost games tells policies apart: a policy wins its median game.

    If the median regret of every policy exceeds T Delta / 4, the gap is too small for the horizon: a lost game is then
    the rule, and says nothing about a policy.
    """
    return any(median <= rounds * gaps.smallest / SHARE for median in medians)


def telling(games: Iterable[xr.DataArray], gaps: Gaps | None) -> Gaps | None:
    """Returns the gaps of an environment if lost games tell its policies apart, as ``tells`` defines; None if not.

    Args:
      games: The regret of each policy there, by ``seed`` and ``round``, without missing values.
      gaps: The environment's gaps, from ``gaps_of``.
    """
    last = [one.isel(round=-1) for one in games if one.size]
    rounds = max((int(one["round"]) for one in last), default=0)
    return gaps if gaps is not None and tells((float(one.median()) for one in last), rounds, gaps) else None


def fragile(samples: np.ndarray) -> np.ndarray:
    """Returns whether a mean along the last axis rests on too few of its games for an interval or a test.

    That is so if the skewness over sqrt(n) exceeds 0.2, or if one game makes up a quarter of the variance (of fewer
    than 32 games, 8/n of it, because the largest of few normal samples often makes up a quarter).
    """
    centred = (samples - samples.mean(axis=-1, keepdims=True)) ** 2
    total = centred.sum(axis=-1)
    weight = np.divide(centred.max(axis=-1), total, out=np.zeros_like(total), where=total > 0)
    skew = np.abs(statistics.skewness(samples)) / math.sqrt(samples.shape[-1])
    return (skew > MOST_SKEW) | (weight > max(MOST_WEIGHT, 8 / samples.shape[-1]))


def sign_test(differences: np.ndarray) -> np.ndarray:
    """Returns exact two-sided p-values of a zero median along the last axis; ties are left out.

    Example:
      >>> sign_test(np.array([-1.0, -2.0, -0.5, 0.0, -3.0, -1.5])).tolist()
      0.0625
    """
    below, above = (differences < 0).sum(axis=-1), (differences > 0).sum(axis=-1)
    return np.minimum(2 * special.bdtr(np.minimum(below, above), below + above, 0.5), 1.0)


def claims(ds: xr.Dataset, environments: Mapping[str, Any], *, level: float = 0.95) -> xr.Dataset:
    """Answers, for every two policies in every environment, who does better in the usual game and in the mean.

    *The usual game*: the exact sign test of the paired differences, corrected by Holm over the pairs of an environment.
    *The mean*: policy A is better than B if the upper limit of the mean difference over games in which A did not fail,
    plus the upper Clopper-Pearson limit of A's failure rate times the largest loss (T times the largest gap), is
    below 0, at the level over all ordered pairs of an environment at once. The rest is open.

    Args:
      ds: A dataset with ``regret`` by ``policy``, ``environment``, ``seed`` and ``round``.
      environments: The environments by label, or None for an unknown one; unknown environments and those that change
        have no gaps, and no claim on the mean.
      level: Confidence, over all comparisons in an environment.

    Returns:
      A dataset. It has by ``environment``, ``policy`` and ``rival`` the variables ``usual`` and ``better``, whether
      the policy surely does better in the usual game and in the mean; ``p_sign``; ``bound``, the upper limit
      of the mean difference; ``seeds_needed``, the number of seeds at which the claim on the mean would hold if the
      games went on like these (NaN if no number would do, or if the environment changes); ``fragile``, whether the
      mean difference rests on few games. By ``environment`` and ``policy`` it has the ``failure_rate`` with limits.
    """
    statistics.check_level(level)
    if "regret" not in ds or not {"policy", "environment", "seed", "round"} <= set(ds.regret.dims):
        raise ValueError('claims() needs `regret` by policy, environment, seed and round; run with keep="seeds"')
    labels = environment_labels(ds, environments)
    found = [
        _claims(
            ds.regret.sel(environment=label).transpose("policy", "seed", "round"), gaps_of(environments[label]), level
        )
        for label in labels
    ]
    return xr.concat(found, "environment").assign_coords(environment=ds.environment.values)


def _claims(regret: xr.DataArray, gaps: Gaps | None, level: float) -> xr.Dataset:
    rounds, final = float(regret["round"][-1]), np.asarray(regret.isel(round=-1), np.float64)  # [policies, seeds]
    policies, seeds = final.shape
    shape = (policies, policies)
    p_sign, usual = np.ones(shape), np.zeros(shape, bool)
    rows, columns = np.triu_indices(policies, 1)
    if rows.size:
        corrected = holm(sign_test(final[rows] - final[columns]))
        p_sign[rows, columns] = p_sign[columns, rows] = corrected
        median = np.median(final[:, None] - final[None, :], axis=-1)
        usual = (p_sign < 1 - level) & (median < 0)
    weak = np.zeros(shape, bool)
    for a, b in zip(*np.nonzero(~np.eye(policies, dtype=bool)), strict=True):
        weak[a, b] = fragile(final[a] - final[b])
    bound, needed = np.full(shape, np.nan), np.full(shape, np.nan)
    rates = np.full((3, policies), np.nan)
    if gaps is not None:
        failed = final > rounds * gaps.smallest / SHARE
        low, high = statistics.clopper_pearson(failed.sum(axis=-1), seeds, level)
        rates = np.stack([failed.mean(axis=-1), low, high])
        each = 1 - (1 - level) / max(1, policies * (policies - 1))
        for a, b in zip(*np.nonzero(~np.eye(policies, dtype=bool)), strict=True):
            usual_part = np.where(failed[a], 0.0, final[a]) - final[b]
            bound[a, b], needed[a, b] = _mean_bound(usual_part, int(failed[a].sum()), rounds * gaps.largest, each)
    pair, one = ("policy", "rival"), ("policy",)
    return xr.Dataset(
        {
            "usual": (pair, usual),
            "better": (pair, bound < 0),
            "p_sign": (pair, p_sign),
            "bound": (pair, bound),
            "seeds_needed": (pair, needed),
            "fragile": (pair, weak),
            "failure_rate": (one, rates[0]),
            "failure_low": (one, rates[1]),
            "failure_high": (one, rates[2]),
        },
        coords={"policy": regret.policy.values, "rival": regret.policy.values},
        attrs={"test": f"exact sign test, Holm; mean with Clopper-Pearson's limit of failures, {100 * level:g} %"},
    )


def _mean_bound(differences: np.ndarray, failures: int, worst: float, level: float) -> tuple[float, float]:
    """Returns the upper limit of a mean difference with failures at their worst, and the seeds that would make it < 0.

    Half of the error is given to the mean of the usual games, half to the rate of failures.
    """
    seeds = differences.size
    half = 1 - (1 - level) / 2
    mean, stderr = (float(part) for part in statistics.mean_and_stderr(differences))

    def limit(count: int) -> float:
        rate = statistics.clopper_pearson(np.asarray(round(failures * count / seeds)), count, half)[1]
        if count == seeds:
            return float(statistics.skewed_interval(differences, half).high) + float(rate) * worst
        quantile = special.stdtrit(count - 1, 0.5 + half / 2)
        return mean + quantile * stderr * math.sqrt((seeds - 1) / (count - 1)) + float(rate) * worst

    if mean + failures / seeds * worst >= 0:
        return limit(seeds), math.nan
    low, high = 2, 4
    while limit(high) >= 0 and high < MOST_SEEDS:
        low, high = high, 2 * high
    if limit(high) >= 0:
        return limit(seeds), math.nan
    while high - low > max(1, high // 64):
        middle = (low + high) // 2
        low, high = (low, middle) if limit(middle) < 0 else (middle, high)
    return limit(seeds), float(high)

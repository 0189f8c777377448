"""Verdicts: the winner in each environment and the significance of the win."""

import dataclasses
import math

import numpy as np
import xarray as xr

from jaxbandit.analysis.ranks import holm, ranking
from jaxbandit.analysis.statistics import normal_interval, two_sided

UNPAIRED = (
    "not paired, because the seeds were not kept. Means are compared by t tests that hold for any correlation of two "
    'policies, Holm over all pairs, {percent:g} %. A run with keep = "seeds" gives sharper, paired tests'
)


@dataclasses.dataclass(frozen=True)
class Row:
    """The row of one pair, a policy in an environment.

    Attributes:
      policy: Its label.
      mean: Final mean regret, over the seeds that are compared.
      low: Lower limit of the mean's normal band.
      high: Upper limit of the band.
      rank: The rank; 1 has the least regret.
      beaten_by: The number of policies that are significantly better; 0 if nothing was tested.
      p_best: Corrected p-value of the comparison with the best; NaN for the best itself or if nothing was tested.
    """

    policy: str
    mean: float
    low: float
    high: float
    rank: int
    beaten_by: int
    p_best: float


@dataclasses.dataclass(frozen=True)
class Stopped:
    """A policy that stops before the last round of a study and is not ranked.

    Attributes:
      policy: Its label.
      round: Its last round.
      mean: Its mean regret at that round.
      best: Mean regret, at the same round, of the policy that is best in the end.
    """

    policy: str
    round: int
    mean: float
    best: float


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The order of the policies in an environment.

    Attributes:
      environment: Its label.
      rows: The policies, the best first.
      missing: Policies without any finished game.
      stopped: Policies that stop before the last round.
      pairs: Corrected p-values in the order of ``rows``; None if nothing was tested.
      test: The test in words, or the reason why there is none.
      level: The confidence of the test.
    """

    environment: str
    rows: list[Row]
    missing: list[str]
    stopped: list[Stopped]
    pairs: np.ndarray | None
    test: str
    level: float

    @property
    def best(self) -> Row:
        """Returns the policy of least mean regret."""
        return self.rows[0]

    @property
    def ties(self) -> list[Row]:
        """Returns the other policies that are not significantly worse than the best; none if nothing was tested."""
        return [row for row in self.rows[1:] if row.p_best >= 1 - self.level]

    @property
    def is_sure(self) -> bool:
        """Returns whether the best policy is significantly better than every other ranked policy."""
        return self.pairs is not None and not self.ties

    @property
    def p_worst(self) -> float:
        """Returns the largest corrected p-value of the best policy against another, which decides the win."""
        return max((row.p_best for row in self.rows[1:]), default=math.nan)


def verdicts(ds: xr.Dataset, stats: xr.Dataset, level: float = 0.95) -> list[Verdict]:
    """Returns one verdict for each environment with a finished game.

    Args:
      ds: A dataset with dimensions ``policy`` and ``environment``. If its seeds were kept, they are read environment by
        environment.
      stats: Its ``summary``, with the number of ``seeds`` of each pair.
      level: The confidence over all comparisons in an environment.
    """
    found = []
    for e in range(ds.sizes["environment"]):
        there = np.flatnonzero(np.isfinite(stats.regret_mean.isel(environment=e, round=-1).values))
        if not there.size:
            continue
        if "regret" in ds:
            final = ds.regret.isel(environment=e, round=-1).transpose("policy", "seed").values
            made = _paired(final[there], ds.policy.values[there], level)
        else:
            made = _unpaired(stats.isel(environment=e, round=-1, policy=there), level)
        verdict = _ordered(str(ds.environment.values[e]), [str(p) for p in ds.policy.values[there]], *made)
        unranked = np.setdiff1d(np.arange(ds.sizes["policy"]), there)
        means = stats.regret_mean.isel(environment=e)
        stopped, missing = _unranked(means.isel(policy=unranked), means.sel(policy=verdict.best.policy))
        found.append(dataclasses.replace(verdict, stopped=stopped, missing=missing))
    return found


def _unranked(means: xr.DataArray, best: xr.DataArray) -> tuple[list[Stopped], list[str]]:
    """Separates policies that stopped from those that were not played; ``means`` is [policy, round]."""
    stopped, missing = [], []
    for policy in map(str, means.policy.values):
        at = np.flatnonzero(np.isfinite(means.sel(policy=policy).values))
        if at.size:
            values = (float(curve[at[-1]]) for curve in (means.sel(policy=policy), best))
            stopped.append(Stopped(policy, int(means["round"][at[-1]]), *values))
        else:
            missing.append(policy)
    return stopped, missing


def _paired(final: np.ndarray, policies: np.ndarray, level: float) -> tuple:
    """Compares policies over the seeds that all of them have played; ``final`` is [policies, seeds]."""
    played = final[:, np.isfinite(final).all(axis=0)]
    count = played.shape[1]
    if count < 2:
        means = np.asarray([row[np.isfinite(row)].mean() for row in final])
        nan = np.full_like(means, np.nan)
        return (
            means,
            nan,
            nan,
            None,
            f"none, because a test needs at least 2 seeds that all policies have played, got {count}",
            level,
        )
    mean, _, low, high = normal_interval(played, level)
    if len(policies) < 2:
        return mean, low, high, None, "none, because there is only one policy", level
    regret = xr.DataArray(played, dims=("policy", "seed"), coords={"policy": policies}, name="regret")
    tested = ranking(regret.to_dataset(), level=level)
    return mean, low, high, tested.p_holm.values, tested.attrs["test"], level


def _unpaired(stats: xr.Dataset, level: float) -> tuple:
    """Compares policies by means and standard errors alone.

    The standard error of a difference is at most the sum of the two, whatever the correlation.
    """
    mean, stderr = stats.regret_mean.values, stats.regret_stderr.values
    limits = mean, stats.regret_low.values, stats.regret_high.values
    if len(mean) < 2:
        return *limits, None, "none, because there is only one policy", level
    if not np.isfinite(stderr).all():
        return *limits, None, "none, because a standard error needs at least 2 seeds", level
    first, second = np.triu_indices(len(mean), 1)
    gaps, errors = np.abs(mean[first] - mean[second]), stderr[first] + stderr[second]
    sizes = np.divide(gaps, errors, out=np.where(gaps > 0, np.inf, 0.0), where=errors > 0)
    pairs = np.ones((len(mean), len(mean)))
    pairs[first, second] = pairs[second, first] = holm(two_sided(sizes, int(stats.seeds.min()) - 1))
    return *limits, pairs, UNPAIRED.format(percent=100 * level), level


def _ordered(environment: str, policies: list[str], mean, low, high, pairs, test, level) -> Verdict:
    order = np.argsort(mean, kind="stable")
    worse = np.zeros(len(policies), int)
    if pairs is not None:
        worse = ((pairs < 1 - level) & (mean[:, None] > mean)).sum(axis=1)
    rows = [
        Row(
            policy=policies[n],
            mean=float(mean[n]),
            low=float(low[n]),
            high=float(high[n]),
            rank=1 + int((mean < mean[n]).sum()),
            beaten_by=int(worse[n]),
            p_best=math.nan if pairs is None or n == order[0] else float(pairs[order[0], n]),
        )
        for n in order
    ]
    return Verdict(environment, rows, [], [], None if pairs is None else pairs[np.ix_(order, order)], test, level)

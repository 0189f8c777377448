"""Inspection of a measured table before anything is played on it: tails, gap, scale, assumptions."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from jaxbandit.environments.measured import Truncated, truncated_mean
from jaxbandit.tables.succession import REPEATED, persistence, repetition

FRACTIONS = (0.1, 0.05, 0.02, 0.01, 0.005)  # of an arm's losses taken as its tail
LEAST = 10  # with fewer exceedances no tail index is estimated
QUANTILES = (0.5, 0.9, 0.99)
INITIAL_SCALE = 4.0  # uniINF's S_1
LEVEL = 0.95  # coverage of the intervals of tail indices
DRIFT = 3.0  # standard errors by which estimates at two thresholds may differ
ENOUGH = 36  # with as many exceedances, three standard errors are at most half of the estimate


def hill(values: np.ndarray, count: int) -> float:
    r"""Returns Hill's estimate of the tail index of :math:`|\ell|` from its ``count`` largest values.

    It is :math:`k / \sum_{i \le k} \log(X_{(i)} / X_{(k+1)})`, and its standard error is :math:`a / \sqrt k` if values
    are independent. It is NaN if the (k+1)-th value is 0 or absent, and infinite if all larger values equal it.

    Example:
      >>> round(hill(np.exp([3.0, 2.0, 1.0, 0.0]), 2), 6)  # logarithms lie 2 and 1 above the threshold
      0.666667

    References:
      B. M. Hill, A simple general approach to inference about the tail of a distribution, Ann. Statist. 3, 1975.
    """
    return float(hill_path(values, [count])[0])


def hill_path(values: np.ndarray, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Returns Hill's estimate for each of ``counts``: the ordinates of a Hill plot."""
    size = np.abs(np.asarray(values, np.float64))
    ordered = np.sort(size[np.isfinite(size)])[::-1]
    logs = np.log(ordered[ordered > 0])
    k = np.asarray(counts, int)
    inside = (k >= 1) & (k < logs.size)
    at = np.where(inside, k, 0)
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = sums[at] / at - (logs[at] if logs.size else np.nan)
        return np.where(inside, 1 / np.maximum(excess, 0), np.nan)


def hill_limits(
    index: np.ndarray | float, count: np.ndarray | int, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    r"""Returns the limits of the tail index around Hill's estimates of ``count`` exceedances.

    Of a Pareto tail, :math:`\log(X_{(i)} / X_{(k+1)})` are k exponentials of mean 1/a, so the sum of them is a gamma
    variable, and the interval is exact if values are independent. If all exceedances are equal, it has no limits.

    Example:
      >>> low, high = hill_limits(1.5, 100)
      >>> round(float(low), 2), round(float(high), 2)
      (1.22, 1.81)
    """
    at = np.maximum(np.asarray(count, float), 1)
    factors = (special.gammaincinv(at, (1 - level) / 2) / at, special.gammaincinv(at, (1 + level) / 2) / at)
    low, high = (np.asarray(index) * factor for factor in factors)
    return low, high


def skipped_rounds(size: float, num_arms: int, rounds: int) -> float:
    """Estimates the rounds in which uniINF skips losses of this size.

    They are ``32 K log T ln(l / C_1)`` with ``C_1 = S_1 K / (4 (K - 1))``.
    """
    if num_arms < 2:
        return 0.0
    first_threshold = INITIAL_SCALE * num_arms / (4 * (num_arms - 1))
    if size <= first_threshold:
        return 0.0
    return 32 * num_arms * math.log(max(rounds, 2)) * math.log(size / first_threshold)


@dataclasses.dataclass(frozen=True)
class Inspection:
    """The results of ``jaxbandit inspect``; per-arm arrays are [K].

    Attributes:
      arms: Names of the arms.
      rounds: T.
      missing: Number of entries that are not finite; all statistics leave them out.
      means: Mean loss of each arm.
      tail_fractions: The thresholds: fractions of an arm's losses taken as its tail.
      tail_index: Hill's estimates [thresholds, K], NaN if fewer than ten losses exceed the threshold.
      tail_low: Lower limits of the tail indices, 95 %; exact for independent Pareto tails.
      tail_high: Upper limits.
      tail_count: The numbers k of exceedances behind the tail indices [thresholds, K]; the standard error of an index a
        is a / sqrt(k).
      stable: Whether an arm's estimates at all thresholds agree within three standard errors, as they do for 99 % of
        independent Pareto arms. False if fewer than two thresholds can be estimated.
      best: The arm with the least mean.
      gap: The second least mean minus the least.
      gap_z: The gap in standard errors of the paired difference of the two arms, rounds taken as independent.
      quantiles: Quantiles of ``|loss|`` over all entries, at 50, 90 and 99 %.
      skipped: Rounds uniINF would spend skipping losses of those sizes.
      truncated: The least truncated mean of the best arm.
      persistence: Median over arms of the rank correlation of one round's loss with the next.
      repeated: The share of entries that equal the entry of the round before.
      repeated_by_chance: That share if the rounds of each arm came in random order; 0 if few entries repeat.
    """

    arms: tuple[str, ...]
    rounds: int
    missing: int
    means: np.ndarray
    tail_fractions: tuple[float, ...]
    tail_index: np.ndarray
    tail_low: np.ndarray
    tail_high: np.ndarray
    tail_count: np.ndarray
    stable: np.ndarray
    best: int
    gap: float
    gap_z: float
    quantiles: tuple[float, ...]
    skipped: tuple[float, ...]
    truncated: Truncated
    persistence: float
    repeated: float
    repeated_by_chance: float

    @property
    def scale(self) -> float:
        """The factor that makes the 99 % quantile of ``|loss|`` one."""
        return 1 / self.quantiles[-1] if self.quantiles[-1] > 0 else 1.0

    @property
    def typical_index(self) -> np.ndarray:
        """The median tail index over arms at each threshold; NaN if no arm has an estimate."""
        return _medians(self.tail_index)

    @property
    def sure_index(self) -> np.ndarray:
        """The median over arms of the tail index minus three standard errors; NaN without enough exceedances."""
        enough = self.tail_count >= ENOUGH
        lower = self.tail_index * (1 - DRIFT / np.sqrt(np.where(enough, self.tail_count, ENOUGH)))
        return _medians(np.where(enough, lower, np.nan))

    @property
    def repeats(self) -> bool:
        """Whether many more entries repeat the round before than they would in random order."""
        return self.repeated - self.repeated_by_chance > REPEATED

    def assumptions(self) -> list[tuple[str, str, str]]:
        """Returns (assumption, verdict, reason) for each assumption of the theory.

        The verdict is ``holds``, ``fails``, ``unclear``, or ``covered`` if tails are lighter than the theory asks for.
        It is ``open`` if tails seem that light, but an index of 1 lies within three standard errors of the estimate.
        """
        return [self._tail(), self._sign(), self._unique(), self._independent()]

    def _tail(self) -> tuple[str, str, str]:
        name = "tail index in (1, 2]"
        known = self.typical_index[~np.isnan(self.typical_index)]
        if known.size == 0:
            return name, "unclear", f"too few rounds: the top {100 * self.tail_fractions[0]:g} % are fewer than {LEAST}"
        sure = self.sure_index[~np.isnan(self.sure_index)]
        if (known > 1).all():
            covered = sure.size > 0 and bool((sure > 1).all())
            answer = "holds" if (known <= 2).all() else "covered" if covered else "open"
        else:
            answer = "unclear" if (known > 1).any() else "fails"
        span = f"median over arms {known.min():.3g} to {known.max():.3g} over {known.size} thresholds"
        rest = ""
        if answer == "covered":
            rest = "; tails lighter than index 2 are covered too"
        elif answer == "open" and sure.size:
            rest = f"; the estimate minus three standard errors is {sure.min():.3g}, so an index of 1 is not excluded"
        elif answer == "open":
            rest = f"; no threshold has {ENOUGH} losses above it, so an index of 1 is not excluded"
        return name, answer, f"{span}; stable in {int(self.stable.sum())} of {len(self.arms)} arms{rest}"

    def _sign(self) -> tuple[str, str, str]:
        name = "best arm truncated non-negative"
        least, at, z = self.truncated
        if least >= 0:
            return name, "holds", "E[l 1{|l| > M}] >= 0 for every M, in this table"
        found = f"E[l 1{{|l| > M}}] = {least:.4g} at M = {at:.4g}, in this table"
        return name, "fails" if z < -DRIFT else "unclear", f"{found}; at worst {z:.1f} standard errors"

    def _unique(self) -> tuple[str, str, str]:
        name = "best arm unique"
        if len(self.arms) < 2:
            return name, "holds", "there is one arm"
        if self.gap <= 0:
            return name, "fails", "two arms share the least mean"
        clear = self.gap_z >= DRIFT
        return name, "holds" if clear else "unclear", f"the gap is {self.gap_z:.1f} paired standard errors"

    def _independent(self) -> tuple[str, str, str]:
        name = "rounds independent in stored order"
        limit = DRIFT / math.sqrt(max(self.rounds - 1, 1))
        if math.isnan(self.persistence):
            return name, "unclear", "too few rounds, or constant losses"
        found = f"rank correlation of successive rounds {self.persistence:+.2f} (median over arms)"
        if self.repeats:
            found += (
                f"; {100 * self.repeated:.0f} % of entries repeat the round before, so there are fewer independent "
                "losses than rounds, and the intervals and standard errors here are too narrow"
            )
            return name, "fails", found
        return name, "fails" if abs(self.persistence) > limit else "holds", found


def inspect(losses: np.ndarray, arms: Sequence[str], fractions: Sequence[float] = FRACTIONS) -> Inspection:
    """Inspects a table [T, K] in which missing entries are NaN."""
    table = np.asarray(losses, np.float64)
    known = np.isfinite(table)
    empty = np.flatnonzero(~known.any(axis=0))
    if empty.size:
        raise ValueError(f"arm {arms[empty[0]]!r} has no finite entry; drop it from the table")
    columns = [column[here] for column, here in zip(table.T, known.T, strict=True)]
    whole = bool(known.all())
    means = np.ascontiguousarray(table.T).mean(axis=1) if whole else np.asarray([one.mean() for one in columns])
    ranked = np.argsort(means, kind="stable")
    best = int(ranked[0])
    gap, gap_z = _gap(table, int(ranked[0]), int(ranked[1])) if len(columns) > 1 else (math.nan, math.nan)
    tail_index, (tail_low, tail_high), tail_count, stable = _tails(columns, fractions)
    repeated, by_chance = repetition(table, columns)
    quantiles = tuple(np.quantile(np.abs(table[known]), QUANTILES).tolist())
    return Inspection(
        arms=tuple(arms),
        rounds=table.shape[0],
        missing=int((~known).sum()),
        means=means,
        tail_fractions=tuple(fractions),
        tail_index=tail_index,
        tail_low=tail_low,
        tail_high=tail_high,
        tail_count=tail_count,
        stable=stable,
        best=best,
        gap=gap,
        gap_z=gap_z,
        quantiles=quantiles,
        skipped=tuple(skipped_rounds(size, len(columns), table.shape[0]) for size in quantiles),
        truncated=truncated_mean(columns[best]),
        persistence=persistence(table, columns),
        repeated=repeated,
        repeated_by_chance=by_chance,
    )


def _gap(table: np.ndarray, best: int, second: int) -> tuple[float, float]:
    gap = float(np.nanmean(table[:, second]) - np.nanmean(table[:, best]))
    paired = table[:, second] - table[:, best]
    paired = paired[np.isfinite(paired)]
    spread = paired.std(ddof=1) / math.sqrt(paired.size) if paired.size > 1 else math.nan
    if spread > 0:
        return gap, gap / spread
    return gap, math.inf if gap > 0 and spread == 0 else math.nan if math.isnan(spread) else 0.0


def _tails(
    columns: Sequence[np.ndarray], fractions: Sequence[float]
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    counts = np.rint(np.multiply.outer(fractions, [column.size for column in columns])).astype(int)
    estimates = np.full(counts.shape, np.nan)
    stable = np.zeros(len(columns), bool)
    for arm in np.flatnonzero(counts.max(axis=0) >= LEAST).tolist():
        column = columns[arm]
        estimates[:, arm] = np.where(counts[:, arm] >= LEAST, hill_path(column, counts[:, arm]), np.nan)
        usable = ~np.isnan(estimates[:, arm])
        stable[arm] = usable.sum() > 1 and _agree(estimates[usable, arm], counts[usable, arm])
    return estimates, hill_limits(estimates, counts), counts, stable


def _agree(index: np.ndarray, counts: np.ndarray) -> bool:
    """Returns whether estimates on nested tails agree up to chance: 1/a is a mean of k exponentials of mean 1/a."""
    widest = np.argmax(counts)
    inverse = 1 / index
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = inverse[widest] * np.sqrt(1 / counts - 1 / counts[widest])
        return bool((np.abs(inverse - inverse[widest]) <= DRIFT * spread).all())


def _medians(rows: np.ndarray) -> np.ndarray:
    """Returns the median of the known entries of each row; NaN if a row has none."""
    known = [row[~np.isnan(row)] for row in rows]
    return np.asarray([np.median(row) if row.size else np.nan for row in known])

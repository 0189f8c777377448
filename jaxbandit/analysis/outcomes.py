"""The outcome of every pair of a study at its last round: the mean with its error, the risk, and broken games."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import final, risk
from jaxbandit.analysis.multiples import multiples
from jaxbandit.studies import recorded
from jaxbandit.theory import assumptions

TAIL = 0.99  # the quantile that tables show beside the mean
NONE = (math.nan, math.nan, math.nan)
_AXES = ("policy", "environment", "round", "quantile", "seed")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Final regret of one pair.

    Attributes:
      policy: The policy's label.
      environment: The environment's label.
      rounds: The last round that the pair was played to.
      seeds: The number of games.
      mean: Mean pseudo-regret.
      stderr: Its standard error.
      low: The lower limit of its normal 95 % band.
      high: The upper limit.
      median: The median over seeds.
      tail: The 99 % quantile over seeds; NaN if the results lack it.
      lost: The share of lost games, whose regret exceeds T times the smallest gap over 4, with exact 95 % limits; NaN
        if the environment has no constant gap or the results keep no seeds.
      telling: Whether a policy wins its median game in this environment. If none does, the gap is too small for the
        horizon, and readers see no share of lost games.
      failed: Broken games: games whose state was not finite.
      multiple: Mean regret over the asymptotic lower bound times log T; NaN if no bound binds the policy here.
      outside: Whether the policy is outside its assumptions.
      values: The swept values of the pair.
    """

    policy: str
    environment: str
    rounds: int
    seeds: int
    mean: float
    stderr: float
    low: float
    high: float
    median: float
    tail: float
    lost: tuple[float, float, float]
    telling: bool
    failed: int
    multiple: float
    outside: bool
    values: dict[str, Any]

    def row(self) -> dict[str, Any]:
        """Returns the outcome as a row for programs; None in place of numbers that are not finite."""
        row: dict[str, Any] = {"policy": self.policy, "environment": self.environment, "seeds": self.seeds}
        row["round"] = self.rounds
        numbers = {
            "regret_mean": self.mean,
            "regret_stderr": self.stderr,
            "regret_low": self.low,
            "regret_high": self.high,
            "regret_median": self.median,
            "regret_q99": self.tail,
        }
        numbers |= dict(zip(("lost_rate", "lost_low", "lost_high"), self.lost, strict=True))
        numbers["multiple_of_bound"] = self.multiple
        row |= {name: _finite(value) for name, value in numbers.items()}
        row |= {"failed": self.failed, "outside_assumptions": self.outside}
        return row | {name: _finite(value) for name, value in self.values.items()}


def outcomes(
    ds: xr.Dataset, stats: xr.Dataset | None = None, environments: Mapping[str, Any] | None = None
) -> list[Outcome]:
    """Returns the outcome of every pair, environment by environment.

    Args:
      ds: A dataset by ``policy`` and ``environment``, with every seed or as a summary.
      stats: Its ``final_summary``, if that has been computed.
      environments: The environments by label, for lost games and lower bounds; by default those of the study
        that the dataset carries, if they can be rebuilt without importing anything.
    """
    stats = final.final_summary(ds) if stats is None else stats
    known = recorded_environments(ds) if environments is None else environments
    times, outside = multiples(stats.assign_attrs(ds.attrs), known), assumptions.outside_of(ds.attrs)
    found = []
    for environment in map(str, stats.environment.values):
        gaps = risk.gaps_of(known[environment]) if environment in known else None
        ends = {str(p): at_the_end(stats.sel(policy=p, environment=environment)) for p in stats.policy.values}
        telling = gaps is not None and any(risk.tells([_median(at)], int(at["round"]), gaps) for at in ends.values())
        for policy, at in ends.items():
            pair = policy, environment
            bound = times.get(pair, math.nan)
            found.append(_outcome(*pair, at, _lost(ds, at, gaps), telling, bound, pair in outside))
    return found


def at_the_end(at: xr.Dataset) -> xr.Dataset:
    """Selects a pair's last played round."""
    there = np.flatnonzero(at.regret_mean.notnull().values)
    return at.isel(round=int(there[-1]) if there.size else -1)


def recorded_environments(ds: xr.Dataset) -> dict[str, Any]:
    """Returns the environments of the study that a dataset carries, by label; none if they cannot be rebuilt."""
    text = str(ds.attrs.get("study") or "")
    try:
        points = recorded.environments(text) if text else []
    except ValueError:  # for example, a table that is not here, or a class of another package
        return {}
    labels = [str(label) for label in ds.environment.values]
    return dict(zip(labels, points, strict=True)) if len(labels) == len(points) else {}


def _lost(ds: xr.Dataset, at: xr.Dataset, gaps: risk.Gaps | None) -> tuple[float, float, float]:
    if gaps is None or "regret" not in ds or "seed" not in ds.regret.dims:
        return NONE
    where = {"policy": at.policy.item(), "environment": at.environment.item(), "round": at["round"].item()}
    regret = ds.regret.sel(where).dropna("seed")
    if regret.size < 2:  # too few for limits
        return NONE
    return risk.lost(regret.expand_dims("round"), gaps)


def _median(at: xr.Dataset) -> float:
    return float(at.regret_quantile.sel(quantile=0.5)) if 0.5 in at["quantile"].values else math.nan


def _outcome(
    policy: str,
    environment: str,
    at: xr.Dataset,
    lost: tuple[float, float, float],
    telling: bool,
    multiple: float,
    outside: bool,
) -> Outcome:
    quantiles = {float(level): float(at.regret_quantile.sel(quantile=level)) for level in at["quantile"].values}
    return Outcome(
        policy=policy,
        environment=environment,
        rounds=int(at["round"]),
        seeds=int(at.seeds),
        mean=float(at.regret_mean),
        stderr=float(at.regret_stderr),
        low=float(at.regret_low),
        high=float(at.regret_high),
        median=_median(at),
        tail=quantiles.get(TAIL, math.nan),
        lost=lost,
        telling=telling,
        failed=max(0, int(at.failed)),  # -1: not played yet
        multiple=multiple,
        outside=outside,
        values={str(name): at[name].item() for name in at.coords if name not in _AXES},
    )


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

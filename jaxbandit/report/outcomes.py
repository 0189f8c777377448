"""Outcomes: how risky each policy is in each environment, and who does better in the usual game and in the mean."""

import dataclasses
import math
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import risk, statistics
from jaxbandit.game import is_stationary
from jaxbandit.report import words
from jaxbandit.report.names import pretty
from jaxbandit.report.verdicts import Verdict

TAIL = 0.99  # the quantile that stands beside every mean
LEVEL = 0.95
MOST = 24  # policies of a study whose pairs are tested: the number of tests grows with its square

Limits = tuple[float, float, float]  # value, lower and upper limit
NOTHING: Limits = (math.nan, math.nan, math.nan)


@dataclasses.dataclass(frozen=True)
class Risk:
    """The risk of one pair.

    Attributes:
      tail: The 99 % quantile of final regret with its limits; NaN if it was not kept.
      lost: The share of lost games, P(R > T Delta / 4), with exact limits; NaN if the environment has no gaps, the
        games were not kept, or the gap is too small for the horizon.
      fragile: Whether the mean rests on few of its games.
    """

    tail: Limits = NOTHING
    lost: Limits = NOTHING
    fragile: bool = False


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer to one of the two questions in an environment.

    Attributes:
      winner: The policy that does better than every other; empty if that is open.
      text: The rest of the sentence: how the winner does, or between whom and why it is open.
    """

    winner: str
    text: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome in one environment.

    Attributes:
      verdict: The order of the policies by mean regret.
      risks: The risk of each ranked policy, by label.
      usual: Who does better in the usual game.
      mean: Whether the least mean is claimed.
      threshold: The regret T Delta / 4 beyond which a game is lost; NaN if the environment has no gaps.
    """

    verdict: Verdict
    risks: dict[str, Risk]
    usual: Answer
    mean: Answer
    threshold: float


def outcomes(ds: xr.Dataset, stats: xr.Dataset, verdicts: list[Verdict], environments: Any) -> list[Outcome]:
    """Returns the outcome of every environment that has a verdict.

    Args:
      ds: A dataset with dimensions ``policy`` and ``environment``.
      stats: Its summary.
      verdicts: The order of the policies in every environment.
      environments: The environments by label, as far as they are known.
    """
    return [_outcome(ds, stats, verdict, environments.get(verdict.environment)) for verdict in verdicts]


def _outcome(ds: xr.Dataset, stats: xr.Dataset, verdict: Verdict, environment: Any) -> Outcome:
    labels = [row.policy for row in verdict.rows]
    gaps = risk.gaps_of(environment)
    threshold = math.nan if gaps is None else int(ds["round"][-1]) * gaps.smallest / risk.SHARE
    if "regret" not in ds:
        kept = stats.regret_quantile.isel(round=-1).sel(environment=verdict.environment)
        risks = {label: Risk(tail=_kept(kept.sel(policy=label))) for label in labels}
        why = 'because the seeds were not kept; run with keep = "seeds"'
        return Outcome(verdict, risks, Answer("", why), Answer("", why), threshold)
    final = ds.regret.sel(environment=verdict.environment, policy=labels).isel(round=[-1])
    final = final.transpose("policy", "seed", "round").load()
    medians = final.isel(round=0).median("seed").values
    telling = gaps if gaps is not None and risk.tells(medians, int(ds["round"][-1]), gaps) else None
    risks = {label: _risk(final.sel(policy=label), telling) for label in labels}
    common = final.isel(seed=np.flatnonzero(final.notnull().all(("policy", "round"))))
    few = common.sizes["seed"] < 2
    if len(labels) < 2 or few or len(labels) > MOST:
        why = "there is only one policy" if len(labels) < 2 else "a test needs 2 seeds that all policies have played"
        why = why if len(labels) < 2 or few else f"pairs of more than {MOST} policies are not tested"
        return Outcome(verdict, risks, Answer("", f"because {why}"), Answer("", f"because {why}"), threshold)
    asked = common.expand_dims(environment=[verdict.environment]).to_dataset(name="regret")
    found = risk.claims(asked, {verdict.environment: environment}, level=LEVEL).isel(environment=0)
    return Outcome(verdict, risks, _usual(found), _mean(found, labels[0], environment, gaps), threshold)


def _kept(quantiles: xr.DataArray) -> Limits:
    """Returns the stored 99 % quantile, without limits; NaN if it was not kept."""
    at = np.flatnonzero(np.isclose(quantiles["quantile"].values, TAIL))
    return (float(quantiles.values[at[0]]), math.nan, math.nan) if at.size else NOTHING


def _risk(regret: xr.DataArray, gaps: risk.Gaps | None) -> Risk:
    regret = regret.dropna("seed")
    if regret.sizes["seed"] < 2:
        return Risk()
    found = statistics.quantile(regret.isel(round=-1), [TAIL], level=LEVEL).isel(quantile=0)
    tail = (float(found.quantile_value), float(found.low), float(found.high))
    lost = NOTHING if gaps is None else risk.lost(regret, gaps, level=LEVEL)
    return Risk(tail, lost, bool(risk.fragile(regret.isel(round=-1).values.astype(float))))


def _usual(found: xr.Dataset) -> Answer:
    """Answers the question of the usual game by the exact sign tests of all pairs."""
    beats, labels = found.usual.values, [str(label) for label in found.policy.values]
    others = ~np.eye(len(labels), dtype=bool)
    winners = [label for label, row, other in zip(labels, beats, others, strict=True) if row[other].all()]
    if winners:
        at = labels.index(winners[0])
        p = float(found.p_sign.values[at][others[at]].max())
        return Answer(winners[0], f"better than {_rivals(len(labels))}, p {_compared(p)}")
    unbeaten = [pretty(label) for label, column in zip(labels, beats.T, strict=True) if not column.any()]
    return Answer("", f"between {words.listed(unbeaten, 3)}" if len(unbeaten) > 1 else "")


def _mean(found: xr.Dataset, best: str, environment: Any, gaps: risk.Gaps | None) -> Answer:
    """Answers the question of the mean for the policy of least mean regret."""
    if gaps is None:
        if environment is None:
            return Answer("", "because the environment's gaps are not known")
        reason = "all arms are equally good" if is_stationary(environment) else "this environment changes"
        return Answer("", f"because {reason}, so a lost game is not defined")
    row = found.sel(policy=best)
    rivals = [str(rival) for rival in row.rival.values if rival != best]
    open_ = [rival for rival in rivals if not bool(row.better.sel(rival=rival))]
    if not open_:
        return Answer(best, f"less than that of {_rivals(len(rivals) + 1)}")
    needed = [float(row.seeds_needed.sel(rival=rival)) for rival in open_]
    against = words.listed([pretty(rival) for rival in open_], 3)
    if any(math.isnan(count) for count in needed):
        return Answer("", f"against {against}; more games like these would not decide it")
    return Answer("", f"against {against}; about {words.rounded_up(max(needed))} seeds would decide it")


def _rivals(count: int) -> str:
    return "the other policy" if count == 2 else "every other policy"


def _compared(p: float) -> str:
    text = words.probability(p)
    return text if text.startswith("<") else f"= {text}"

"""The forest: final regret of every policy in every environment, with interval, tail and lost games."""

import dataclasses
import math

from jaxbandit.analysis import risk
from jaxbandit.report import svg, words
from jaxbandit.report.findings import Findings
from jaxbandit.report.names import pretty
from jaxbandit.report.outcomes import LEVEL, Outcome, Risk
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.verdicts import Row
from jaxbandit.theory import assumptions

MOST = 16  # policies that are drawn in an environment, the best ones
OPEN = 6  # environments that are shown unfolded


@dataclasses.dataclass(frozen=True)
class Mark:
    """A policy's row.

    Attributes:
      policy: Its label.
      number: Its place among the policies of the study, which has its colour.
      row: Its mean and rank.
      risk: Its tail and lost games.
      dot: Where the mean is, in percent of the axis; so are the other places, NaN if there is none.
      low: Where the interval starts.
      high: Where it ends.
      tail: Where the 99 % quantile is.
      outside: Whether the policy is outside its assumptions.
    """

    policy: str
    number: int
    row: Row
    risk: Risk
    dot: float
    low: float
    high: float
    tail: float
    outside: bool

    @property
    def spoken(self) -> str:
        """Returns what the row shows, in words."""
        interval = words.limits(self.row.low, self.row.high)
        return f"{pretty(self.policy)}: mean {words.number(self.row.mean)}, interval {interval}"


@dataclasses.dataclass(frozen=True)
class Group:
    """An environment with its rows, its axis ticks (place in percent, text) and the number of rows left out."""

    outcome: Outcome
    marks: list[Mark]
    ticks: list[tuple[float, str]]
    log: bool
    left_out: int


def panel(findings: Findings, render: Render) -> Panel:
    """Makes the panel: an environment a group, a policy a row."""
    groups = [group(findings, outcome) for outcome in findings.outcomes]
    risks = [one for outcome in findings.outcomes for one in outcome.risks.values()]
    return Panel(
        "Final regret",
        render(
            "forest.html",
            groups=groups,
            level=f"{100 * LEVEL:g} %",
            rounds=int(findings.ds["round"][-1]),
            opened=OPEN,
            quick=findings.quick,
            asked=not findings.quick and any(len(outcome.verdict.rows) > 1 for outcome in findings.outcomes),
            intervals=any(math.isfinite(row.low) for outcome in findings.outcomes for row in outcome.verdict.rows),
            kept="regret" in findings.ds,
            tails=any(math.isfinite(one.tail[0]) for one in risks),
            rates=any(math.isfinite(one.lost[0]) for one in risks),
            fragile=any(one.fragile for one in risks),
            share=risk.SHARE,
        ),
    )


def group(findings: Findings, outcome: Outcome) -> Group:
    """Places the rows of an environment on one axis, which is linear if signs mix."""
    rows = outcome.verdict.rows[:MOST]
    values = [(row.mean, row.low, row.high, outcome.risks[row.policy].tail[0]) for row in rows]
    axis = svg.axis([value for some in values for value in some])
    outside = assumptions.outside_of(findings.ds.attrs)
    labels = [str(label) for label in findings.ds.policy.values]

    def place(value: float) -> float:
        return round(100 * axis.place(value), 2) if math.isfinite(value) else math.nan

    marks = [
        Mark(
            row.policy,
            labels.index(row.policy),
            row,
            outcome.risks[row.policy],
            place(row.mean),
            place(row.low),
            place(row.high),
            place(tail),
            (row.policy, outcome.verdict.environment) in outside,
        )
        for row, (*_, tail) in zip(rows, values, strict=True)
    ]
    ticks = [(place(value), text) for value, text in axis.ticks(4)]
    return Group(outcome, marks, ticks, axis.log, len(outcome.verdict.rows) - len(rows))

"""How fast regret grows, cell by cell, beside what is proved: the numbers of ``jaxbandit.analysis.comparison``."""

import dataclasses
import math
from collections.abc import Iterator

from jaxbandit.analysis import comparison
from jaxbandit.analysis.comparison import Cell
from jaxbandit.analysis.comparison.writers import regime
from jaxbandit.game import is_stationary
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Panel, Render

LEVEL = 0.95
LEAST_DOUBLINGS = 3  # of the record; fewer say nothing of growth


@dataclasses.dataclass(frozen=True)
class Row:
    """A policy in an environment.

    Attributes:
      policy: Its label.
      proved: The order that is proved in an environment of this kind; empty if none is.
      cell: What was measured.
    """

    policy: str
    proved: str
    cell: Cell

    @property
    def regime(self) -> str:
        """Which growth was seen."""
        return regime(self.cell)

    @property
    def promised(self) -> str:
        """The exponent that is proved."""
        exponent = self.cell.promised
        return "–" if exponent is None else "log T" if exponent == 0 else f"{exponent:.2f}"


@dataclasses.dataclass(frozen=True)
class Environment:
    """An environment with its rows; ``kind`` is empty where it is not known whether it changes."""

    label: str
    kind: str
    rows: list[Row]


def panel(findings: Findings, render: Render) -> Panel | None:
    """The table of exponents; None where the games were not kept, or are too short or too few to say."""
    rounds = findings.ds["round"].values
    if "regret" not in findings.ds or math.log2(rounds[-1] / rounds[0]) < LEAST_DOUBLINGS:
        return None
    found = [environment for environment in growths(findings) if environment.rows]
    if not found:
        return None
    shown = {
        "doublings": comparison.LAST_DOUBLINGS,
        "level": f"{100 * LEVEL:g}%",
        "margin": f"{1 + comparison.MARGIN:g}",
        "why": findings.no_environments,
        "below": any(row.cell.below_zero for environment in found for row in environment.rows),
        "stopped": any(row.cell.stopped for environment in found for row in environment.rows),
    }
    return Panel("Growth of regret", render("growth.html", environments=found, **shown))


def growths(findings: Findings) -> Iterator[Environment]:
    """Every cell of at least two games, environment by environment."""
    for label in map(str, findings.ds.environment.values):
        environment = findings.environments.get(label)
        stochastic = None if environment is None else is_stationary(environment)
        here = findings.ds.regret.sel(environment=label)
        rows = []
        for policy in map(str, findings.ds.policy.values):
            games = here.sel(policy=policy).transpose("seed", "round").load()
            if games.isel(round=0).notnull().sum() < 2:
                continue
            promised = None if stochastic is None else comparison.promised_exponent(policy, environment, stochastic)
            order = None if stochastic is None else comparison.proved(policy, stochastic)
            cell = comparison.measured(games, promised, LEVEL)
            if cell is not None:
                rows.append(Row(policy, order.text if order else "", cell))
        kind = "" if stochastic is None else "stochastic" if stochastic else "adversarial"
        yield Environment(label, kind, rows)

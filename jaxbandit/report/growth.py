"""The panel of growth: measured and proved exponents of every pair, from ``jaxbandit.analysis.comparison``."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from jaxbandit.analysis import comparison, growth
from jaxbandit.analysis.comparison import Entry
from jaxbandit.analysis.comparison.form import Footnotes
from jaxbandit.analysis.comparison.writers import promises, regime
from jaxbandit.game import is_stationary
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Panel, Render
from jaxbandit.theory import assumptions

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Row:
    """The row of one pair, a policy in an environment.

    Attributes:
      policy: Its label.
      proved: The orders that are proved in an environment of this kind; empty if none is.
      entry: The measured growth.
    """

    policy: str
    proved: str
    entry: Entry

    @property
    def regime(self) -> str:
        """Returns how regret was seen to grow."""
        return regime(self.entry)

    @property
    def exponent(self) -> str:
        """Returns the measured exponent with its interval."""
        return growth.exponent_text(*self.entry.exponent) or "–"

    @property
    def promised(self) -> str:
        """Returns the exponent that is proved."""
        exponent = self.entry.promised
        return "–" if exponent is None else "log T" if exponent == 0 else f"{exponent:.2f}"


@dataclasses.dataclass(frozen=True)
class Environment:
    """An environment with its rows; ``kind`` is empty if it is unknown whether the environment changes."""

    label: str
    kind: str
    rows: list[Row]


def panel(findings: Findings, render: Render) -> Panel | None:
    """Makes the table of exponents; returns None if the games were not kept, or are too short or too few."""
    if "regret" not in findings.ds or not growth.enough_doublings(findings.ds["round"].values):
        return None
    notes = Footnotes()
    found = [environment for environment in growths(findings, notes) if environment.rows]
    if not found:
        return None
    shown = {
        "doublings": growth.LAST_DOUBLINGS,
        "apart": growth.APART,
        "flat": growth.FLAT,
        "entries": findings.ds.sizes["policy"] * findings.ds.sizes["environment"],
        "level": f"{100 * LEVEL:g} %",
        "why": findings.no_environments,
        "below": any(row.entry.below_zero for environment in found for row in environment.rows),
        "notes": notes.listed(),
        "stopped": any(row.entry.stopped for environment in found for row in environment.rows),
    }
    return Panel("Growth of regret", render("growth.html", environments=found, **shown))


def growths(findings: Findings, notes: Footnotes | None = None) -> Iterator[Environment]:
    """Yields every environment with its pairs of at least two games; footnotes of orders are added to ``notes``."""
    notes, outside = notes or Footnotes(), assumptions.outside_of(findings.ds.attrs)
    entries = findings.ds.sizes["policy"] * findings.ds.sizes["environment"]
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
            is_outside = (policy, label) in outside
            entry = comparison.measured(games, promised, LEVEL, entries, outside=is_outside)
            if entry is not None:
                rows.append(Row(policy, _proved(policy, environment, stochastic, is_outside, notes), entry))
        kind = "" if stochastic is None else "stochastic" if stochastic else "adversarial"
        yield Environment(label, kind, rows)


def _proved(policy: str, environment: Any, stochastic: bool | None, outside: bool, notes: Footnotes) -> str:
    """Returns the orders that are proved for a policy in an environment; an empty text if there is none."""
    if stochastic is None or outside:
        return ""
    tied = assumptions.is_tied(policy, environment, stochastic)
    return promises(comparison.line(policy, "", stochastic, outside=False, tied=tied), notes)

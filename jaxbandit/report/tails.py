"""Tails: quantiles of final regret over the seeds, pair by pair."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from jaxbandit.analysis import statistics
from jaxbandit.dataset.results import played
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Render
from jaxbandit.theory import assumptions

QUANTILES = (0.5, 0.9, 0.99)
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Row:
    """The row of one pair, a policy in an environment.

    Attributes:
      policy: Its label.
      seeds: The number of its games.
      quantiles: Value, lower and upper limit of each of ``QUANTILES``; a limit may be infinite.
      worst: The largest regret of a game.
      stopped: Its last round, if that is before the last round of the study; else 0.
    """

    policy: str
    seeds: int
    quantiles: list[tuple[float, float, float]]
    worst: float
    stopped: int


def listed(findings: Findings, render: Render) -> str:
    """Writes the table of quantiles; nothing if the games were not kept or every pair has one game."""
    environments = dict(quantiles(findings)) if "regret" in findings.ds else {}
    if not environments:
        return ""
    names = ["median", *(f"{100 * q:g} % quantile" for q in QUANTILES[1:])]
    rows = [row for listed in environments.values() for row in listed]
    unbounded = any(not np.isfinite(row.quantiles).all() for row in rows)
    shown = {
        "names": names,
        "outside": assumptions.outside_of(findings.ds.attrs),
        "level": f"{100 * LEVEL:g} %",
        "unbounded": unbounded,
        "stopped": any(r.stopped for r in rows),
    }
    return render("tails.html", environments=environments, **shown)


def quantiles(findings: Findings) -> Iterator[tuple[str, list[Row]]]:
    """Yields every environment with its pairs of at least two games."""
    last = int(findings.ds["round"][-1])
    for environment in map(str, findings.ds.environment.values):
        rows = []
        for policy in map(str, findings.ds.policy.values):
            games = played(findings.ds.regret.sel(policy=policy, environment=environment).load())
            if not games.size or games.sizes["seed"] < 2:
                continue
            final = games.isel(round=-1)
            found = statistics.quantile(final, QUANTILES, level=LEVEL)
            limits = np.stack([found.quantile_value, found.low, found.high], axis=-1)
            stop = int(final["round"])
            rows.append(
                Row(
                    policy=policy,
                    seeds=games.sizes["seed"],
                    quantiles=[(float(value), float(low), float(high)) for value, low, high in limits],
                    worst=float(final.max()),
                    stopped=stop if stop < last else 0,
                )
            )
        if rows:
            yield environment, rows

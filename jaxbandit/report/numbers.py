"""All numbers: rankings with tests, quantiles, and a CSV file to download."""

import math
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from jaxbandit.analysis.multiples import NOTE, Multiples, multiples
from jaxbandit.analysis.table import rows_csv
from jaxbandit.report import tails
from jaxbandit.report.findings import Findings
from jaxbandit.report.names import pretty
from jaxbandit.report.panel import Panel, Render
from jaxbandit.theory import assumptions

MATRIX = 12  # the largest number of policies whose pairwise tests are shown as a table


def panel(findings: Findings, render: Render) -> Panel:
    """Makes the panel of all numbers."""
    times = multiples(findings.stats, findings.environments)
    quantiles = tails.listed(findings, render)
    verdicts = findings.verdicts
    ranking = render(
        "ranking.html",
        verdicts=verdicts,
        outside=assumptions.outside_of(findings.ds.attrs),
        tests=list(dict.fromkeys(verdict.test for verdict in verdicts)),
        matrix=MATRIX,
        level=f"{100 * verdicts[0].level:g} %",
        tested=any(verdict.pairs is not None for verdict in verdicts),
        multiples=times,
        bounded={environment for _, environment in times},
        about_bound=NOTE,
        quick=findings.quick,
    )
    content = as_csv(rows(findings, times))
    link = "data:text/csv;charset=utf-8," + urllib.parse.quote(content, safe=",.()[]=")
    return Panel("All numbers", render("numbers.html", link=link, ranking=ranking, quantiles=quantiles))


def rows(findings: Findings, times: Multiples) -> list[dict[str, Any]]:
    """Returns the numbers of every ranked pair, environment by environment and the best policy first."""
    outside = assumptions.outside_of(findings.ds.attrs)
    seeds = findings.stats.seeds
    quantiles = {
        (row.policy, environment): row
        for environment, listed in (tails.quantiles(findings) if "regret" in findings.ds else ())
        for row in listed
    }
    found = []
    for outcome in findings.outcomes:
        environment = outcome.verdict.environment
        for row in outcome.verdict.rows:
            pair = row.policy, environment
            one, spread = outcome.risks[row.policy], quantiles.get(pair)
            found.append(
                {
                    "environment": environment,
                    "policy": pretty(row.policy),
                    "label": row.policy,
                    "rounds": int(findings.ds["round"][-1]),
                    "seeds": int(seeds.sel(policy=row.policy, environment=environment)),
                    "mean": row.mean,
                    "mean_low": row.low,
                    "mean_high": row.high,
                    "median": spread.quantiles[0][0] if spread else math.nan,
                    "quantile_90": spread.quantiles[1][0] if spread else math.nan,
                    **_limits("quantile_99", one.tail),
                    "worst": spread.worst if spread else math.nan,
                    **_limits("lost_rate", one.lost),
                    "rank": row.rank,
                    "p_against_best": row.p_best,
                    "beaten_by": row.beaten_by,
                    "times_bound": times.get(pair, math.nan),
                    "outside_assumptions": int(pair in outside),
                }
            )
    return found


def as_csv(table: Iterable[Mapping[str, Any]]) -> str:
    """Returns rows as CSV; a text that a spreadsheet would compute has an apostrophe before it.

    Example:
      >>> print(as_csv([{"policy": "=1+1", "mean": -2.5, "worst": float("nan")}]))
      policy,mean,worst
      '=1+1,-2.5,
      <BLANKLINE>
    """
    return rows_csv(list(table), digits=6)


def _limits(name: str, limits: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), limits, strict=True))

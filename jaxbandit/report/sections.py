"""The panels of every report in their order: the study, its winners and their significance, then the figures."""

import collections
import shlex
import tomllib
import urllib.parse
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxbandit.analysis import final
from jaxbandit.analysis.multiples import NOTE, Multiples, multiples
from jaxbandit.report import growth, tails, words
from jaxbandit.report.answers import Answers
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.points import as_json, explorer, has_heat
from jaxbandit.theory import assumptions

MATRIX = 12  # the largest number of policies whose pairwise tests are shown as a table
FEW = 8  # fewer seeds than this cause a warning about intervals and tests

# The attributes of a run that the page shows, in this order; `study` and `warnings` are shown elsewhere.
PROVENANCE = {
    "jaxbandit": "jaxbandit",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "numpy": "numpy",
    "python": "python",
    "device": "device",
    "platforms": "platform",
    "dtype": "dtype",
    "seed": "study seed",
    "num_seeds": "seeds",
    "horizon": "rounds",
    "prng": "random bits",
    "compile_seconds": "seconds of compiling",
    "run_seconds": "seconds of play",
    "written": "written",
    "policy": "policies",
    "environment": "environments",
}


def panels(
    findings: Findings | None, render: Render, extra: list[Panel], answers: Answers | None = None, name: str = ""
) -> Iterator[Panel]:
    """Yields every panel of the page; those of ``answers`` and ``extra`` come between the figures and the ranking.

    Args:
      findings: The results of the games; None for a directory that holds answers only.
      render: Fills a template.
      extra: Further panels.
      answers: The results on sensitivity, tuning and worst cases.
      name: The name of the directory, for the commands that reproduce it.
    """
    if findings is not None:
        data = explorer(findings)
        yield Panel("Summary", summary(findings, render, len(list(troubles(findings, answers)))))
        yield Panel("Regret over time", render("curves.html", data=as_json(data), bounds=any(data["bounds"])))
        if has_heat(data):
            yield Panel(
                "Final regret at a glance",
                render("heat.html", rounds=data["rounds"][-1], stopped=any(v.stopped for v in findings.verdicts)),
            )
        yield from filter(None, (growth.panel(findings, render), tails.panel(findings, render)))
    yield from answers.panels if answers else ()
    yield from extra
    if findings is not None:
        times = multiples(findings.stats, findings.environments)
        yield Panel("Ranking", ranking(findings, render, times))
    said = list(troubles(findings, answers))
    yield Panel(
        "Failures and warnings",
        render("warnings.html", troubles=said, played=findings is not None, checked=assumptions.CHECKED),
    )
    yield Panel("Provenance", provenance(findings, render, answers, name))


def summary(findings: Findings, render: Render, num_troubles: int) -> str:
    """Writes the summary: the study, its winners and their significance."""
    stats = findings.stats
    played = int(stats.seeds.sum())
    rounds = int(stats["round"][-1])
    lengths = stats["round"].where(stats.regret_mean.notnull()).max("round").fillna(0)  # policies may stop earlier
    stopped = list(dict.fromkeys(one.policy for verdict in findings.verdicts for one in verdict.stopped))
    facts = {
        "policies": f"{stats.sizes['policy']:,}",
        "environments": f"{stats.sizes['environment']:,}",
        "seeds a cell": _range(stats.seeds.values[stats.seeds.values > 0]),
        "rounds": f"{rounds:,}",
        "games": f"{played:,}",
        "rounds in all": words.number(float((stats.seeds * lengths).sum())),
    }
    counts = collections.Counter(verdict.best.policy for verdict in findings.verdicts)
    sure = collections.Counter(verdict.best.policy for verdict in findings.verdicts if verdict.is_sure)
    winners = [(policy, n, sure[policy]) for policy, n in counts.most_common()]
    return render(
        "summary.html",
        facts=facts,
        winners=winners[:5],
        others=len(winners) - 5,
        verdicts=findings.verdicts,
        outside=assumptions.outside_of(findings.ds.attrs),
        tested=any(verdict.pairs is not None for verdict in findings.verdicts),
        several=stats.sizes["policy"] > 1,
        stopped=stopped,
        unranked=any(verdict.stopped or verdict.missing for verdict in findings.verdicts),
        partly=len(findings.verdicts) < stats.sizes["environment"],
        negative=any(row.mean < 0 for verdict in findings.verdicts for row in verdict.rows),
        troubles=num_troubles,
        level=f"{100 * findings.verdicts[0].level:g}%",
    )


def ranking(findings: Findings, render: Render, times: Multiples) -> str:
    """Writes the ranking of the policies in every environment, with tests and multiples of lower bounds."""
    verdicts = findings.verdicts
    tests = list(dict.fromkeys(verdict.test for verdict in verdicts))
    return render(
        "ranking.html",
        verdicts=verdicts,
        outside=assumptions.outside_of(findings.ds.attrs),
        tests=tests,
        matrix=MATRIX,
        level=f"{100 * verdicts[0].level:g}%",
        tested=any(verdict.pairs is not None for verdict in verdicts),
        multiples=times,
        bounded={environment for _, environment in times},
        about_bound=NOTE,
    )


def troubles(findings: Findings | None, answers: Answers | None = None) -> Iterator[str]:
    """Yields the warnings that a reader needs before relying on the numbers."""
    yield from _troubles_of_games(findings) if findings is not None else ()
    yield from answers.troubles if answers else ()


def _troubles_of_games(findings: Findings) -> Iterator[str]:
    stats = findings.stats
    yield from final.failures(stats)
    asked = int(findings.ds.attrs.get("num_seeds", 0))
    empty = [
        f"{stats.policy.values[p]} in {stats.environment.values[e]}" for p, e in np.argwhere(stats.seeds.values == 0)
    ]
    if empty:
        yield f"{words.count(len(empty), 'cell')} not played yet: {words.listed(empty)}; run the study again"
    short = int(((stats.seeds > 0) & (stats.seeds < asked)).sum())
    if short:
        yield f"{words.count(short, 'cell')} with fewer than {asked:,} seeds; comparisons use the seeds that all have"
    least = int(stats.seeds.where(stats.seeds > 0).min())
    if least == 1:
        yield "some cells have only 1 seed, so they have no interval and no test"
    elif least < FEW:
        yield f"intervals and tests rest on {words.count(least, 'seed')}, fewer than {FEW}: read them with care"
    said = [line for line in str(findings.ds.attrs.get("warnings", "")).splitlines() if line]
    yield from assumptions.told(said)
    platforms = str(findings.ds.attrs.get("platforms", "")).split("; ")
    if len(platforms) > 1 and not any("platforms stand side by side" in note for note in findings.notes):
        yield f"the cells come from {len(platforms)} platforms: their numbers have the same law"
    yield from findings.notes


def provenance(findings: Findings | None, render: Render, answers: Answers | None = None, name: str = "") -> str:
    """Writes the origin of the numbers and the commands that reproduce them."""
    attrs = (answers.attrs if answers else {}) if findings is None else findings.ds.attrs
    said = {title: attrs.get(key) for key, title in PROVENANCE.items()}
    study = str(attrs.get("study", "")) or (answers.study if answers else "")
    directory = shlex.quote(f"results/{name or 'study'}")
    version = attrs.get("jaxbandit", "")
    commands = [*(["run"] if findings is not None else []), *(answers.commands if answers else [])]
    elsewhere = attrs.get("tables") == "--data" or bool(study and tomllib.loads(study).get("needs_data"))
    given = " --data TABLES" if elsewhere else ""
    return render(
        "provenance.html",
        rows={title: _plain(value) for title, value in said.items() if value not in (None, "")},
        study=study,
        played=findings is not None,
        link="data:application/toml;charset=utf-8," + urllib.parse.quote(study),
        commands=[
            f"pip install 'jaxbandit[{'report,sensitivity' if 'sensitivity' in commands else 'report'}]"
            f"{f'=={version}' if version else ''}'",
            *(f"jaxbandit {name} study.toml --out {directory}{given if name == 'run' else ''}" for name in commands),
            f"jaxbandit report {directory}{given}",
        ],
        elsewhere=elsewhere,
    )


def _range(counts: np.ndarray) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _plain(value: Any) -> str:
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    return f"{value:,.4g}" if isinstance(value, float | np.floating) else str(value)

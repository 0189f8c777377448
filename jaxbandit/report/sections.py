"""The panels of every report in their order: the findings, the figures, all numbers, warnings and provenance."""

import shlex
import tomllib
import urllib.parse
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxbandit.analysis import final
from jaxbandit.report import environments, forest, growth, headline, numbers, rounds, sweeps, words
from jaxbandit.report.answers import Answers
from jaxbandit.report.findings import Findings
from jaxbandit.report.names import pretty
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.points import explorer
from jaxbandit.theory import assumptions

# The attributes of a run that the page shows, in this order; `study` and `warnings` are shown elsewhere.
PROVENANCE = {
    "jaxbandit": "jaxbandit",
    "commit": "commit",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "numpy": "numpy",
    "python": "python",
    "device": "device",
    "platforms": "played by",
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
    """Yields every panel of the page; those of ``answers`` and ``extra`` come between the figures and all numbers.

    Args:
      findings: The results of the games; None for a directory that holds answers only.
      render: Fills a template.
      extra: Further panels.
      answers: The results on sensitivity, tuning and worst cases.
      name: The name of the directory, for the commands that reproduce it.
    """
    said = list(troubles(findings, answers))
    if findings is not None:
        data = explorer(findings)
        yield headline.panel(findings, render, len(said))
        yield forest.panel(findings, render)
        yield from filter(None, [sweeps.panel(findings, data, render)])
        yield rounds.panel(findings, data, render)
        yield environments.panel(findings, render)
        yield from filter(None, [growth.panel(findings, render)])
    yield from answers.panels if answers else ()
    yield from extra
    if findings is not None:
        yield numbers.panel(findings, render)
    yield Panel(
        "Warnings",
        render("warnings.html", troubles=said, played=findings is not None, checked=assumptions.CHECKED),
    )
    yield Panel("Provenance", provenance(findings, render, answers, name))


def troubles(findings: Findings | None, answers: Answers | None = None) -> Iterator[str]:
    """Yields the warnings that a reader needs before relying on the numbers."""
    yield from _troubles_of_games(findings) if findings is not None else ()
    yield from answers.troubles if answers else ()


def _troubles_of_games(findings: Findings) -> Iterator[str]:
    stats = findings.stats
    if findings.quick:
        yield "this is a quick run: --quick cut its rounds, seeds and sweeps, so nothing is claimed; run it in full"
    named = stats.assign_coords(policy=[pretty(label) for label in stats.policy.values])
    yield from final.failures(named)
    asked = int(findings.ds.attrs.get("num_seeds", 0))
    empty = [
        f"{pretty(stats.policy.values[p])} in {pretty(stats.environment.values[e])}"
        for p, e in np.argwhere(stats.seeds.values == 0)
    ]
    if empty:
        yield f"{words.count(len(empty), 'pair')} not played yet: {words.listed(empty)}; run the study again"
    short = int(((stats.seeds > 0) & (stats.seeds < asked)).sum())
    if short:
        yield f"{words.count(short, 'pair')} with fewer than {asked:,} seeds; comparisons use the seeds that all have"
    least = int(stats.seeds.where(stats.seeds > 0).min())
    if least == 1:
        yield "some pairs have only 1 seed, so they have no interval and no test"
    elif least < headline.FEW:
        yield f"intervals and tests rest on {words.count(least, 'seed')}, fewer than {headline.FEW}: take care"
    yield from _of_broken(findings)
    said = [line for line in str(findings.ds.attrs.get("warnings", "")).splitlines() if line]
    yield from assumptions.sentences_of([_labelled(sentence, findings) for sentence in said])
    platforms = str(findings.ds.attrs.get("platforms", "")).split("; ")
    if len(platforms) > 1 and not any("differ in the last bits" in note for note in findings.notes):
        yield f"the cells come from {len(platforms)} platforms: their numbers have the same law"
    yield from findings.notes


def _of_broken(findings: Findings) -> Iterator[str]:
    """Yields a sentence if broken games leave seeds out of the means and tests of an environment."""
    stats = findings.stats
    if "regret" not in findings.ds or not (stats.failed > 0).any():
        return
    left = []
    for outcome in findings.outcomes:
        here = stats.sel(environment=outcome.verdict.environment, policy=[row.policy for row in outcome.verdict.rows])
        if int(here.failed.clip(min=0).sum()):
            final = findings.ds.regret.isel(round=-1).sel(environment=here.environment, policy=here.policy)
            whole = int(final.notnull().all("policy").sum())
            if whole < int(here.seeds.max()):
                left.append(f"{whole:,} of {int(here.seeds.max()):,} in {pretty(outcome.verdict.environment)}")
    if left:
        yield (
            "a broken game has no final regret: the means and tests under Final regret use the seeds on which no "
            f"policy's game broke, {words.listed(left)}"
        )


def _labelled(sentence: str, findings: Findings) -> str:
    """Returns a sentence on a policy in an environment with the names that the page gives to both."""
    name, _, rest = sentence.partition(" ")
    for label, environment in findings.environments.items():
        rest = rest.replace(repr(environment), pretty(label))
    return f"{pretty(name)} {rest}"


def provenance(findings: Findings | None, render: Render, answers: Answers | None = None, name: str = "") -> str:
    """Writes the origin of the numbers and the commands that reproduce them."""
    attrs = (answers.attrs if answers else {}) if findings is None else findings.ds.attrs
    said = {title: attrs.get(key) for key, title in PROVENANCE.items()}
    if said["played by"] == "way native":
        said["played by"] = "machine code of the CPU (native)"
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
        native=attrs.get("way") == "native",
    )


def _plain(value: Any) -> str:
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    return f"{value:,.4g}" if isinstance(value, float | np.floating) else str(value)

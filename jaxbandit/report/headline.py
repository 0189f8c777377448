"""The headline: what was found, in sentences, and whether it can be trusted."""

import collections
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxbandit.report import words
from jaxbandit.report.findings import Findings
from jaxbandit.report.names import marked, pretty
from jaxbandit.report.panel import Panel, Render
from jaxbandit.studies import limits
from jaxbandit.theory import assumptions

FEW = 8  # fewer seeds than this cause a warning about intervals and tests
NAMED = 4  # winners that are named in sentences
NOTHING_CLAIMED = "This is a quick look with few rounds and seeds, so nothing is claimed."


class Check(NamedTuple):
    """An item of the trust bar: whether all is well, a text, and the panel that has the details."""

    well: bool
    text: str
    link: str


def panel(findings: Findings, render: Render, num_troubles: int) -> Panel:
    """Makes the panel of sentences, trust bar and winners."""
    stats = findings.stats
    stopped = list(dict.fromkeys(one.policy for verdict in findings.verdicts for one in verdict.stopped))
    return Panel(
        "What was found",
        render(
            "headline.html",
            asked=_asked(findings),
            sentences=list(sentences(findings)),
            checks=list(checks(findings)),
            outcomes=findings.outcomes,
            outside=assumptions.outside_of(findings.ds.attrs),
            several=stats.sizes["policy"] > 1,
            stopped=[pretty(policy) for policy in stopped],
            negative=any(row.mean < 0 for verdict in findings.verdicts for row in verdict.rows),
            troubles=num_troubles,
            quick=findings.quick,
            level=f"{100 * findings.verdicts[0].level:g} %",
        ),
    )


def sentences(findings: Findings) -> Iterator[str]:
    """Yields the findings in words, the policy that wins most often first."""
    attrs = findings.ds.attrs
    if findings.stats.sizes["policy"] < 2:
        for verdict in findings.verdicts[:NAMED]:
            best = verdict.best
            name = marked(attrs, best.policy, [verdict.environment])
            yield (
                f"{name} has a mean regret of {words.number(best.mean)} in {pretty(verdict.environment)}"
                f"{f' ({words.limits(best.low, best.high)})' if math.isfinite(best.low) else ''}."
            )
        return
    if findings.stats.sizes["environment"] == 1:
        yield _of_one(findings)
        if findings.quick:
            yield NOTHING_CLAIMED
        return
    best = collections.Counter(outcome.verdict.best.policy for outcome in findings.outcomes)
    usual = collections.Counter(outcome.usual.winner for outcome in findings.outcomes)
    won_in: dict[str, list[str]] = {}
    for outcome in findings.outcomes:
        for policy in {outcome.verdict.best.policy, outcome.usual.winner}:
            won_in.setdefault(policy, []).append(outcome.verdict.environment)
    mean = collections.Counter(outcome.mean.winner for outcome in findings.outcomes)
    played, all_ = len(findings.outcomes), findings.stats.sizes["environment"]
    where = words.count(played, "environment") + (" played so far" if played < all_ else "")
    ranked = "ranked " if any(verdict.stopped or verdict.missing for verdict in findings.verdicts) else ""
    for policy, wins in best.most_common(NAMED):
        won, claimed, rest = usual.pop(policy, 0), mean[policy], ""
        if "regret" in findings.ds and not findings.quick:
            rest = (
                f" In the usual game it surely beats every other {ranked}policy in {won or 'none'} of them; "
                f"its lower mean is claimed in {claimed or 'none'}."
            )
        yield f"{marked(attrs, policy, won_in[policy])} has the least mean regret in {wins} of {where}.{rest}"
    usual.pop("", None)
    for policy, wins in usual.items() if not findings.quick else ():
        if policy not in dict(best.most_common(NAMED)):
            yield (
                f"In the usual game {marked(attrs, policy, won_in[policy])} surely beats every other {ranked}policy in "
                f"{wins} of {where}, although its mean is not the least."
            )
    others = len(best) - NAMED
    if others > 0:
        yield f"{words.count(others, 'other policy')} {'has' if others == 1 else 'have'} the least mean elsewhere."
    if findings.quick:
        yield NOTHING_CLAIMED


def _of_one(findings: Findings) -> str:
    """Returns the finding of the only environment: the least mean, the next one, and the answers to the questions."""
    (outcome,) = findings.outcomes
    first, *others = outcome.verdict.rows
    attrs, place = findings.ds.attrs, outcome.verdict.environment
    interval = f" ({words.limits(first.low, first.high)})" if math.isfinite(first.low) else ""
    said = f"{marked(attrs, first.policy, [place])} has the least mean regret in {pretty(place)}, "
    said += f"{words.number(first.mean)}{interval}."
    if not others:
        return said
    ratio = words.times(others[0].mean, first.mean) if first.mean > 0 else words.number(others[0].mean)
    said += f" Next is {marked(attrs, others[0].policy, [place])} with {ratio.replace(' ×', ' times as much')}."
    if "regret" not in findings.ds or findings.quick:
        return said
    rival = f"every other{' ranked' if outcome.verdict.stopped or outcome.verdict.missing else ''} policy"
    if outcome.usual.winner:
        said += f" In the usual game {marked(attrs, outcome.usual.winner, [place])} surely beats {rival}."
    else:
        said += f" The usual game is open {outcome.usual.text}".rstrip() + "."
    return f"{said} The lower mean is {'claimed' if outcome.mean.winner else 'not claimed'}."


def checks(findings: Findings) -> Iterator[Check]:
    """Yields the items of the trust bar."""
    stats, attrs = findings.stats, findings.ds.attrs
    warnings = "warnings"
    if findings.quick:
        yield Check(False, "quick run, cut down by --quick", "provenance")
    elif attrs.get("study"):
        yield Check(True, "full run of its study file", "provenance")
    seeds = stats.seeds.values
    games = int(seeds.sum())
    failed = int(stats.failed.clip(min=0).sum())
    yield Check(not failed, f"{failed:,} of {games:,} games broken" if failed else "no broken game", warnings)
    missing, pairs = int((seeds == 0).sum()), seeds.size
    asked = int(attrs.get("num_seeds", 0))
    short = int(((seeds > 0) & (seeds < asked)).sum())
    if missing or short:
        lacks = [f"{missing:,} of {pairs:,} pairs missing"] * bool(missing)
        lacks += [f"{short:,} of {pairs:,} pairs with too few seeds"] * bool(short)
        yield Check(False, ", ".join(lacks), warnings)
    else:
        yield Check(True, "no pair missing", warnings)
    outside = len(assumptions.outside_of(attrs))
    if "outside" in attrs:
        text = f"{outside:,} of {pairs:,} pairs outside assumptions" if outside else "all pairs inside assumptions"
        yield Check(not outside, text, "environments")
    counts = seeds[seeds > 0]
    yield Check(int(counts.min()) >= FEW, f"{_range(counts)} a pair", "all-numbers")
    fragile = sum(one.fragile for outcome in findings.outcomes for one in outcome.risks.values())
    if fragile:
        yield Check(False, f"{words.count(fragile, 'mean')} on few games ‡", "final-regret")


def _asked(findings: Findings) -> str:
    """Returns the question of the study in one sentence."""
    stats = findings.stats
    seeds = stats.seeds.values[stats.seeds.values > 0]
    lengths = stats["round"].where(stats.regret_mean.notnull()).max("round").fillna(0)  # policies may stop earlier
    rounds = limits.power(float((stats.seeds * lengths).sum()))
    return (
        f"{words.count(stats.sizes['policy'], 'policy')} in {words.count(stats.sizes['environment'], 'environment')}, "
        f"{int(stats['round'][-1]):,} rounds, {_range(seeds)} a pair: {int(stats.seeds.sum()):,} games, "
        f"{rounds} rounds in all."
    )


def _range(counts: np.ndarray) -> str:
    low, high = int(counts.min()), int(counts.max())
    return words.count(low, "seed") if low == high else f"{low:,} to {high:,} seeds"

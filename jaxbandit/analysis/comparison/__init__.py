"""The measured Table 1: measured regret beside proved orders, in the form of the paper's table.

An entry has the mean regret with its interval, the exponent of its growth at the end of the run, and whether the gain
per doubling has stopped rising. One instance cannot confirm a bound, which speaks of all instances: an entry says what
was seen, and the proved order stands beside it.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit import outputs
from jaxbandit.analysis import growth, risk, statistics
from jaxbandit.analysis.comparison import writers
from jaxbandit.analysis.comparison.form import LOWER_BOUND
from jaxbandit.analysis.comparison.form import Block as Block
from jaxbandit.analysis.comparison.form import Comparison as Comparison
from jaxbandit.analysis.comparison.form import Entry as Entry
from jaxbandit.analysis.comparison.form import Footnotes as Footnotes
from jaxbandit.analysis.comparison.form import Line as Line
from jaxbandit.analysis.comparison.form import Row as Row
from jaxbandit.analysis.multiples import NOTE, multiples
from jaxbandit.dataset.labels import environment_labels, pretty
from jaxbandit.dataset.results import played
from jaxbandit.game import is_stationary
from jaxbandit.theory import assumptions, guarantees
from jaxbandit.theory.guarantees import INSTANCE, MINIMAX, Order

RESAMPLES = 1_000
FRAGILE = "* The mean rests on few games, so its interval may be too short."


def write(
    ds: xr.Dataset, path: str | pathlib.Path, *, environments: Mapping[str, Any], title: str = "", level: float = 0.95
) -> list[pathlib.Path]:
    """Writes the table as ``.html``, ``.md`` and ``.tex``; returns the files."""
    table = compared(ds, environments=environments, title=title, level=level)
    path, made = pathlib.Path(path), []
    for ending, writer in writers.WRITERS.items():
        made.append(path.with_name(f"{path.name}.{ending}"))
        outputs.write_text(made[-1], writer(table))
    return made


def compared(ds: xr.Dataset, *, environments: Mapping[str, Any], title: str = "", level: float = 0.95) -> Comparison:
    """Builds the measured table of a dataset.

    Args:
      ds: A dataset with dimensions ``policy``, ``environment``, ``seed``, ``round``.
      environments: The environments by label.
      title: Heading of the table.
      level: Coverage of all intervals.
    """
    if "regret" not in ds or not {"policy", "environment", "seed"} <= set(ds.regret.dims):
        raise ValueError('the table needs `regret` by policy, environment and seed; run a study with keep = "seeds"')
    labels = environment_labels(ds, environments)
    stationary = {label: is_stationary(environments[label]) for label in labels}
    entries = ds.sizes["policy"] * len(labels)
    times = multiples(xr.Dataset({"regret_mean": ds.regret.mean("seed")}, attrs=ds.attrs), environments)
    outside = assumptions.outside_of(ds.attrs)
    blocks = []
    gaps = {
        label: risk.telling(
            (played(ds.regret.sel(policy=policy, environment=label)) for policy in ds.policy.values),
            risk.gaps_of(environments[label]),
        )
        for label in labels
    }
    for num_arms in sorted({environments[label].num_arms for label in labels}):
        inside = [label for label in labels if environments[label].num_arms == num_arms]
        columns = sorted({_order(environments[label]) for label in inside})
        kinds = dict.fromkeys((_head(label), stationary[label]) for label in inside)
        at = {(_head(label), _order(environments[label])): label for label in reversed(inside)}
        rows = [_lower_bound(len(columns))]
        for policy in ds.policy.values:
            found = {
                label: measured(
                    ds.regret.sel(policy=policy, environment=label),
                    promised_exponent(str(policy), environments[label], stationary[label]),
                    level,
                    entries,
                    times.get((str(policy), label)),
                    (str(policy), label) in outside,
                    gaps[label],
                )
                for label in at.values()
            }
            lines = [
                _line(
                    str(policy),
                    kind,
                    fixed,
                    [found.get(at.get((kind, column), "")) for column in columns],
                    [environments[label] for label in inside if (_head(label), stationary[label]) == (kind, fixed)],
                )
                for kind, fixed in sorted(kinds, key=lambda entry: not entry[1])
            ]
            row = guarantees.of(str(policy))
            remark = assumptions.remark(ds.attrs, policy, inside)
            note = row.note if row else ""
            rows.append(Row(pretty(policy), guarantees.given(str(policy)), tuple(lines), note, remark))
        blocks.append(Block(num_arms, tuple(columns), tuple(rows)))
    lines = [one for block in blocks for row in block.rows for one in row.lines]
    fragile = any(entry.fragile for one in lines for entry in one.entries if entry)
    return Comparison(title, int(ds["round"][-1]), tuple(blocks), _notes(ds, level, entries, bool(times), fragile))


def _lower_bound(num_columns: int) -> Row:
    lines = (
        Line("one instance", True, INSTANCE, (None,) * num_columns),
        Line("the worst", False, MINIMAX, (None,) * num_columns),
    )
    return Row(LOWER_BOUND, None, lines)


def _line(
    policy: str, kind: str, stochastic: bool, entries: Sequence[Entry | None], environments: Sequence[Any]
) -> Line:
    there = [entry.outside for entry in entries if entry]
    return line(
        policy,
        kind,
        stochastic,
        tuple(entries),
        outside=bool(there) and all(there),
        tied=all(assumptions.is_tied(policy, environment, stochastic) for environment in environments),
    )


def line(
    policy: str, kind: str, stochastic: bool, entries: tuple[Entry | None, ...] = (), *, outside: bool, tied: bool
) -> Line:
    """Returns a line of the table for a policy, given by its label, with the orders that are proved there."""
    guarantee = None if outside else guarantees.of(policy)
    order = proved(policy, stochastic) if guarantee and not tied else None
    worst = guarantee.worst_case if guarantee and stochastic else None
    return Line(kind, stochastic, order, entries, worst, outside, tied)


def proved(policy: str, stochastic: bool) -> Order | None:
    """Returns the order proved for a policy, given by its label, in stochastic or in adversarial environments."""
    guarantee = guarantees.of(policy)
    return None if guarantee is None else guarantee.stochastic if stochastic else guarantee.adversarial


def promised_exponent(policy: str, environment: Any, stochastic: bool) -> float | None:
    """Returns the exponent of T in the proved order; None if nothing is proved, or the exponent is 1 or more.

    If several arms are best and the bound for one instance needs one, then the order is that of the worst instance.
    """
    order, alpha, guarantee = proved(policy, stochastic), _order(environment), guarantees.of(policy)
    if guarantee is not None and assumptions.is_tied(policy, environment, stochastic):
        order = guarantee.worst_case
    promised = None if order is None or np.isnan(alpha) else order.exponent(alpha, environment.num_arms)
    return None if promised is None or promised >= 1 else promised  # regret is at most linear anyway


def measured(
    regret: xr.DataArray,
    promised: float | None,
    level: float = 0.95,
    entries: int = 1,
    multiple: float | None = None,
    outside: bool = False,
    gaps: risk.Gaps | None = None,
) -> Entry | None:
    """Returns the table's entry for the regrets of one pair, [seed, round]; None if the pair was not played.

    ``entries`` is the number of entries of the table, for which the verdict on growth is corrected, ``multiple`` the
    regret over an asymptotic lower bound, and ``outside`` whether the policy is outside its assumptions; nothing is
    promised then. ``gaps`` are those of the environment, if lost games are counted.
    """
    rounds = int(regret["round"][-1])
    regret = played(regret)
    if regret.size == 0:
        return None
    last = regret.isel(round=-1)
    band = statistics.band(last, level=level, num_resamples=RESAMPLES)
    reached, recorded = int(last["round"]), regret["round"].values
    none = float("nan")
    exponent, ratio, verdict = (none, none, none, none), (none, none, none), ""
    if (recorded >= reached / 2**growth.LAST_DOUBLINGS).sum() >= 2:
        fit = growth.exponent(regret, level=level, num_resamples=RESAMPLES)
        exponent = float(fit.slope), float(fit.low), float(fit.high), float(fit.model_error)
        verdict = "falling" if bool(fit.falls) else ""
    if not verdict and growth.enough_doublings(recorded):
        found = growth.gain_ratio(regret, level=level, entries=entries)
        ratio = float(found.ratio), float(found.low), float(found.high)
        verdict = str(found.verdict.values)
    return Entry(
        regret=(float(band["mean"]), float(band.low), float(band.high)),
        exponent=exponent,
        promised=None if outside else promised,
        verdict=verdict,
        ratio=ratio,
        played=reached,
        stopped=reached < rounds,
        multiple=multiple,
        outside=outside,
        tail=float(np.quantile(last.values, 0.99)),
        lost=None if gaps is None else risk.lost(regret, gaps, level=level),
        fragile=bool(risk.fragile(last.values)),
    )


def _notes(ds: xr.Dataset, level: float, entries: int, bounded: bool, fragile: bool) -> tuple[str, ...]:
    seeds = ds.attrs.get("num_seeds", ds.sizes["seed"])
    low, high = growth.FLAT
    return (
        f"Each entry has the mean pseudo-regret over {seeds} seeds with its {100 * level:g} % interval (studentised "
        "bootstrap over seeds), and below it the 99 % quantile of regret.",
        "Lost is the share of games whose regret exceeds T times the smallest gap over 4, with exact limits. It is "
        "shown if games were lost and some policy wins its median game.",
        *([FRAGILE] if fragile else []),
        f"The number after a verdict divides the gain of the last doubling of T by the gain {growth.APART} doublings "
        f"earlier; its interval holds at {100 * level:g} % for all {entries} entries at once. The words say where the "
        f"interval lies: between {low:g} and {high:g} (like log T), above {high:g} (faster than log T), below {low:g} "
        "(gains still fall), or across one of these limits (open; more seeds would decide).",
        f"T^e is the growth over the last {growth.LAST_DOUBLINGS} doublings of T with its {100 * level:g} % interval, "
        "to the digits that the bend of the curve allows. An interval narrower than the last digit is left out. There "
        "is no exponent if mean regret falls or is not positive.",
        "An entry is one instance, and a bound speaks of all instances: growth below a proved order does not confirm "
        "the order, and growth above it before the horizon is large enough does not refute it.",
        "Proved: in a stochastic environment, the first order is for one instance and the second for the worst case. O "
        "hides constants, Õ also hides powers of log T, and Ω is a lower bound.",
        "Optimal up to logarithms: ✓ if the order meets the lower bound. For one instance that is up to constants and "
        "logarithms of σ and the gaps; in the worst case, up to constants and logarithms.",
        "Given unit: whether the policy must be given the scale of the losses, as a parameter or in their size.",
        *([f"× bound: mean regret divided by the bound times log T; {NOTE}."] if bounded else []),
        "Below 0: the policy does better than every fixed arm.",
        "†: the policy played fewer rounds; its entry names their number.",
        *_failures(ds),
    )


def _failures(ds: xr.Dataset) -> list[str]:
    if "failed" not in ds:
        return []
    failed, played = int((ds.failed > 0).sum()), int((ds.failed >= 0).sum())
    return [f"{failed:,} of {played:,} games are broken (met a number that is not finite)."]


def _order(environment: Any) -> float:
    order = getattr(environment, "moment_order", None)
    return float("nan") if order is None else round(float(order), 4)


def _head(label: Any) -> str:
    return str(label).split("[")[0].split("#")[0]

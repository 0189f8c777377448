"""The outcome of a certificate in words: the facts, the expectations and the single-step bounds as tables."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbandit.analysis import escapes
from jaxbandit.analysis.rounding import short
from jaxbandit.certify.conditional import CONDITIONALS
from jaxbandit.certify.expectations import EXPECTATIONS, verdict
from jaxbandit.certify.statements import FACTS


class Listing(NamedTuple):
    """A table: its title, headings and rows of text."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def listings(ds: xr.Dataset) -> list[Listing]:
    """Returns the three tables of a certificate."""
    return [_facts(ds), _expectations(ds), _steps(ds)]


def rows(ds: xr.Dataset) -> list[dict[str, Any]]:
    """Returns the numbers of every fact, expectation and single-step bound; None if a number is not finite."""
    found = []
    for kind in ("fact", "expectation", "conditional"):
        names = [str(name) for name, values in ds.data_vars.items() if set(values.dims) == {"environment", kind}]
        for environment in ds.environment.values:
            for one in ds[kind].values:
                at = ds.sel({"environment": environment, kind: one})
                numbers = {name: value if math.isfinite(value := at[name].item()) else None for name in names}
                found.append({"kind": kind, "name": str(one), "environment": str(environment)} | numbers)
    return found


def tables(ds: xr.Dataset) -> Sequence[Any]:
    """Returns the outcome as rich tables: the facts, the expectations and the single-step bounds."""
    from rich.table import Table
    from rich.text import Text

    made = []
    for title, heads, rows in listings(ds):
        made.append(Table(*heads, title=title, title_justify="left"))
        for row in rows:
            # As Text, so that rich does not read brackets as markup.
            made[-1].add_row(*(Text(escapes.plain(cell)) for cell in row))
    return made


def _facts(ds: xr.Dataset) -> Listing:
    rows = []
    for name, fact in FACTS.items():
        at = ds.sel(fact=name)
        there = at.isel(environment=int(np.argmax(at.worst.values)))
        where = f"{there.environment.item()}, seed {int(there.seed)}, round {int(there['round'])}"
        shown = f"{short(float(there.worst), 2)} (error)" if fact.equal else short(float(there.worst), 6)
        statement = fact.statement + (" (printed)" if fact.printed else "")
        rows.append((statement, str(int(at.violations.sum())), shown, where if int(there["round"]) else ""))
    title = f"{ds.seed_rounds:,} seed-rounds in {ds.sizes['environment']} environments, {ds.horizon:,} rounds each"
    return Listing(title, ("fact", "violations", "tightest", "where"), rows)


def _expectations(ds: xr.Dataset) -> Listing:
    rows = []
    for name, fact in EXPECTATIONS.items():
        at = ds.sel(expectation=name)
        verdicts = [verdict(float(low), float(high)) for low, high in zip(at.low.values, at.high.values, strict=True)]
        counts = {word: verdicts.count(word) for word in ("VIOLATED", "undecided", "holds")}
        counted = ", ".join(f"{word} in {count}" for word, count in counts.items() if count) or "no moment declared"
        rows.append((fact.statement, *_largest(at.ratio), counted))
    title = f"in expectation, over seeds ({ds.interval})"
    return Listing(title, ("in expectation", "largest left/right", "where", "verdict"), rows)


def _steps(ds: xr.Dataset) -> Listing:
    rows = []
    for name, fact in CONDITIONALS.items():
        at = ds.sel(conditional=name)
        ratio, where = _largest(at.step_ratio)
        if where:
            there = at.sel(environment=where)
            ratio += f" ({short(float(there.step_low), 3)} to {short(float(there.step_high), 3)})"
            where += f", round {int(there.step_round)}"
        rows.append((fact.statement + (" (printed)" if fact.printed else ""), ratio, where))
    title = "in the next round, given the past: the state with the largest left/right, and its interval"
    return Listing(title, ("given the past", "largest left/right", "where"), rows)


def _largest(ratio: xr.DataArray) -> tuple[str, str]:
    """Returns the largest ratio over environments and where it is; empty texts if there is none."""
    if np.isnan(ratio.values).all():
        return "", ""
    place = int(np.nanargmax(ratio.values))
    return short(float(ratio[place]), 3), str(ratio.environment.values[place])

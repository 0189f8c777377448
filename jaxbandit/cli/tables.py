"""The results of a run on the terminal: a table of regret for every environment, and what a study costs."""

import math
import pathlib
from collections.abc import Sequence

import xarray as xr
from rich.table import Table

from jaxbandit.analysis import table as result_table
from jaxbandit.analysis.outcomes import Outcome
from jaxbandit.cli.layout import facts_table, new_table
from jaxbandit.dataset import labels
from jaxbandit.runs.forecast import Forecast
from jaxbandit.studies import limits
from jaxbandit.studies.limits import duration as duration
from jaxbandit.studies.limits import size as size
from jaxbandit.theory import assumptions

MOST_ROWS = 200  # of regret on the terminal; all are in the dataset


def regret_tables(found: Sequence[Outcome], stats: xr.Dataset, grouped: bool = True) -> list[Table]:
    """Returns a table of final regret for every environment.

    Args:
      found: The outcomes of the study's pairs.
      stats: The summary that they come from.
      grouped: Whether the swept values of a policy stand below its name, and not beside it.
    """
    by_environment: dict[str, list[Outcome]] = {}
    for one in found:
        by_environment.setdefault(one.environment, []).append(one)
    per_table = max(map(len, by_environment.values()), default=1)
    shown = list(by_environment)[: max(1, MOST_ROWS // per_table)]
    counts = len({one.seeds for one in found}) > 1
    return [_regret_table(by_environment[label], stats, grouped, counts) for label in shown]


def notes(tables: Sequence[Table], environments: int, directory: pathlib.Path) -> list[str]:
    """Returns sentences about the columns of tables of regret, and about environments that they leave out."""
    heads = {str(column.header) for table in tables for column in table.columns}
    said = result_table.notes(list(heads))
    if len(tables) < environments:
        rest = environments - len(tables)
        said.append(f"{rest} more environments are not shown. For all: jaxbandit export {directory} --csv")
    return said


def plan_table(forecast: Forecast, directory: pathlib.Path) -> Table:
    """Returns a table of a study's cost: cells, compiles, games, time, memory and disk space."""
    least = "at least " if forecast.at_least else ""
    return facts_table(
        {
            "cells": f"{forecast.cells:,} to play, {forecast.found:,} already stored",
            "compiles": _compiles(forecast),
            "games": f"{least}{forecast.lanes:,} games, {limits.power(forecast.seed_rounds)} rounds in all",
            "time": f"{least}{duration(forecast.run_seconds)}",
            "memory": f"{size(forecast.memory_bytes)} of {size(limits.total_memory())}",
            "disk": f"{least}{size(forecast.disk_bytes)} of {size(limits.free_disk(directory))} that are free",
        }
    )


def _compiles(forecast: Forecast) -> str:
    """Returns the number of programs to compile, and how long that takes without the cache."""
    if not forecast.compiles:
        return "none"
    if forecast.compile_seconds < 0.05:
        return f"{forecast.compiles:,}, found in the cache"
    return f"{forecast.compiles:,}, {forecast.compile_seconds:.1f} s now (less if the cache has them)"


def _regret_table(rows: Sequence[Outcome], stats: xr.Dataset, grouped: bool, counts: bool) -> Table:
    numbers = [[*result_table.number_entries(one), f"{one.seeds:,}" if counts else "–"] for one in rows]
    heads = [*result_table.NUMBERS, "seeds"]
    kept = [n for n in range(len(heads)) if n == 0 or any(row[n] != "–" for row in numbers)]
    last = int(stats["round"][-1])
    table = new_table("policy", *(heads[n] for n in kept), title=_heading(rows[0]), right=heads)
    group = None
    for one, entries in zip(rows, numbers, strict=True):
        name, values = labels.readable(one.policy)
        remark = _remark(one, last)
        if grouped and values:
            if name != group:
                table.add_row(name)
            shown = f"  {values}"
        else:
            shown = labels.shown(one.policy)
        group = name
        table.add_row(shown + remark, *(entries[n] for n in kept))
    return table


def _remark(one: Outcome, last: int) -> str:
    words = [assumptions.OUTSIDE] if one.outside else []
    words += [f"to round {one.rounds:,}"] if one.rounds < last and not math.isnan(one.mean) else []
    return f"\n    ({'; '.join(words)})" if words else ""


def _heading(one: Outcome) -> str:
    """Returns an environment's name with its declared moment order and bound."""
    name = labels.shown(one.environment)
    order, bound = (
        one.values.get(key, one.values.get(f"environment_{key}")) for key in ("moment_order", "moment_bound")
    )
    if order is None or bound is None or math.isnan(order):
        return name
    return f"{name} (α = {order:.4g}, σ = {bound:.4g})"

"""Output of the command line: tables for people, JSON for programs."""

import dataclasses
import math
import pathlib
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import jax
import numpy as np
import xarray as xr
from rich.table import Table
from rich.text import Text

from jaxbandit.analysis.multiples import NOTE, Multiples
from jaxbandit.engine import cards_summary, code_cache, explained, llvm_summary, native_unavailable, usable_cores
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import text
from jaxbandit.runs.forecast import Forecast
from jaxbandit.studies import entries, limits
from jaxbandit.studies.limits import duration as duration
from jaxbandit.studies.limits import size as size
from jaxbandit.tables import readers
from jaxbandit.tables.inspection import Inspection
from jaxbandit.theory import assumptions
from jaxbandit.types import public_fields
from jaxbandit.version import __version__, commit


def regret_table(stats: xr.Dataset, times: Multiples | None = None) -> Table:
    """Returns a table of final regret with standard errors; a policy that stops earlier appears at its last round.

    Args:
      stats: The summary.
      times: Regret as multiples of asymptotic lower bounds, for the pairs that have one.
    """
    last = int(stats["round"][-1])
    table = Table(
        title=f"pseudo-regret after {last:,} rounds: mean ± standard error (median)",
        title_justify="left",
    )
    table.add_column("policy")
    for environment in stats.environment.values:
        heading = _heading(stats.isel(round=-1).sel(environment=environment))
        table.add_column(Text(heading), justify="right")  # as text: rich would read brackets as markup
    for policy in stats.policy.values:
        cells = []
        for environment in stats.environment.values:
            at = _final(stats.sel(policy=policy, environment=environment))
            median = float(at.regret_quantile.sel(quantile=0.5))
            stopped = f", at {int(at['round']):,}" if int(at["round"]) < last and not np.isnan(median) else ""
            error = "" if np.isnan(at.regret_stderr) else f" ± {float(at.regret_stderr):,.1f}"  # one seed has none
            multiple = (times or {}).get((str(policy), str(environment)))
            bound = "" if multiple is None else f", {multiple:.2g} × bound"
            cells.append(f"{float(at.regret_mean):,.1f}{error} ({median:,.1f}){stopped}{bound}")
        remark = assumptions.remark(stats.attrs, policy, stats.environment.values)
        table.add_row(Text(str(policy) + (f"\n{remark}" if remark else "")), *cells)
    if times:
        table.caption, table.caption_justify = f"bound: {NOTE}", "left"
    return table


def results_json(stats: xr.Dataset) -> list[dict[str, Any]]:
    """Returns the final regret of every pair as rows for JSON; ``round`` is the last round played."""
    numbers = ("regret_mean", "regret_stderr", "regret_low", "regret_high")
    rows = []
    for policy in stats.policy.values:
        for environment in stats.environment.values:
            at = _final(stats.sel(policy=policy, environment=environment))
            row: dict[str, Any] = {"policy": str(policy), "environment": str(environment), "seeds": int(at.seeds)}
            row["round"] = int(at["round"])
            row |= {name: _finite(at[name]) for name in numbers}
            row["regret_median"] = _finite(at.regret_quantile.sel(quantile=0.5))
            row["failed"] = int(at.failed)
            others = [str(n) for n in at.coords if n not in ("policy", "environment", "round", "quantile")]
            rows.append(row | {name: _plain(at[name].item()) for name in others})
    return rows


def plan_table(forecast: Forecast, directory: pathlib.Path) -> Table:
    """Returns a table of a study's cost: cells, compiles, games, time, memory and disk space."""
    table = Table(show_header=False, box=None)
    least = "at least " if forecast.at_least else ""
    rows = {
        "cells": f"{forecast.cells:,} to play, {forecast.found:,} already stored",
        "compiles": f"{forecast.compiles:,}, {forecast.compile_seconds:.1f} s now (less from the cache)",
        "lanes": f"{least}{forecast.lanes:,} games, {forecast.seed_rounds:.3g} rounds in all",
        "time": f"{least}{duration(forecast.run_seconds)}",
        "memory": f"{size(forecast.memory_bytes)} of {size(limits.total_memory())}",
        "disk": f"{least}{size(forecast.disk_bytes)} of {size(limits.free_disk(directory))} that are free",
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/bold]", value)
    return table


def machine_table() -> Table:
    """Returns a table of versions, cores, devices, the engine's way, dtype and the cache of compiled code."""
    table = Table(show_header=False, box=None)
    devices = jax.devices()
    rows = {
        "jaxbandit": f"{__version__} {commit()}".strip(),
        "python, numpy": f"{sys.version.split()[0]}, {np.__version__}",
        "jax, jaxlib": f"{jax.__version__}, {metadata.version('jaxlib')}",
        "llvmlite": llvm_summary(),
        "cores": str(usable_cores()),
        "NVIDIA cards": cards_summary(),
        "JAX devices": f"{len(devices)} x {devices[0].device_kind} ({jax.default_backend()})",
        "games are played by": _way(),
        "dtype": 'float32; simulate(..., dtype="float64") plays the same code in float64',
        "compiled code": code_cache(),
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/bold]", str(value))
    return table


def ways_table(policies: Mapping[str, Any], num_arms: int = 10) -> Table:
    """Returns a table of the engine's way for every policy on this machine, with the reason."""
    table = Table("policy", "played by", f"because (K = {num_arms}, float32)", box=None, title_justify="left")
    given = {"horizon": 10_000, "moment_order": 1.5, "moment_bound": 2.0, "mean_bound": 1.0, "delay": 10}
    given["policy"] = policies["uniinf"](horizon=10_000)
    arms = ENVIRONMENTS["pareto"](means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
    for name, cls in sorted(policies.items()):
        try:
            policy = cls(**{field: value for field, value in given.items() if field in public_fields(cls)})
            way, why = explained(policy, arms)
        except (TypeError, ValueError) as error:
            way, why = "not tried", str(error)
        table.add_row(name, way, why)
    return table


def _way() -> str:
    if jax.default_backend() not in ("cpu", "gpu"):
        return f"JAX's scan, on the {jax.default_backend()}; Engine(way='native') plays on the CPU instead"
    if native_unavailable():
        return "JAX's scan, 20 to 50 times slower: LLVM cannot be used here; run pip install --force-reinstall llvmlite"
    played = (
        "the cores; --device gpu plays on NVIDIA cards" if jax.default_backend() == "cpu" else "the cards, if usable"
    )
    return f"machine code made by LLVM, on {played}. Results are the same to the bit everywhere"


def _heading(at: xr.Dataset) -> str:
    """Returns an environment's label with its declared moment order and bound."""
    order = at.coords.get("moment_order", at.coords.get("environment_moment_order"))
    bound = at.coords.get("moment_bound", at.coords.get("environment_moment_bound"))
    name = str(at.environment.item())
    if order is None or bound is None or order.dims or math.isnan(float(order)):
        return name
    return f"{name}\nα = {float(order):.4g}, σ = {float(bound):.4g}"


def _final(at: xr.Dataset) -> xr.Dataset:
    """Selects a pair's last played round."""
    there = np.flatnonzero(at.regret_mean.notnull().values)
    return at.isel(round=int(there[-1]) if there.size else -1)


def _finite(value: xr.DataArray) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def registry_table(section: str) -> Table:
    """Returns a table of the ``policies`` or ``environments`` of a study, with the declarations of environments."""
    columns = {"moments": "moments", "best arm truncated non-negative": "nonnegative"}
    columns = columns if section == "environments" else {}
    table = Table("name", "keys", *columns, "what it is", title=section, title_justify="left")
    table.caption, table.caption_justify = "* required; a horizon that is left out is the study's", "left"
    for name in entries.names(section):
        try:
            cls = entries.find_class(name, section, pathlib.Path())
        except ValueError as error:  # a class of another package that cannot be imported
            table.add_row(name, "", *("" for _ in columns), str(error))
            continue
        told = (str(getattr(cls, attribute, "")) for attribute in columns.values())
        about = (cls.__doc__ or "").strip().splitlines()[0]
        table.add_row(name, Text(", ".join(_keys(name, cls, section))), *told, Text(about))
    return table


def default_text(value: Any) -> str:
    """Returns a field's default as in a study file; empty text if there is no default or it is empty."""
    if value is dataclasses.MISSING or value is None or value == "":
        return ""
    return "=" + (str(value).lower() if isinstance(value, bool) else text(value))


def _keys(name: str, cls: type, section: str) -> list[str]:
    """Returns the keys of a study file's entry with their defaults; an asterisk marks required keys."""
    shown = []
    for field, spec in public_fields(cls).items():
        filled = section == "policies" and field == "horizon"
        needed = (spec.default is dataclasses.MISSING and not filled) or spec.metadata.get("nested")
        if field == readers.TABLE_FIELDS.get(name):
            shown.append(f"table* (or {field})")
        else:
            key = entries.CALLED if field == "name" else field
            shown.append(f"{key}*" if needed else key + default_text(spec.default))
    return [*shown, *(readers.TABLE_OPTIONS if name in readers.TABLE_FIELDS else ())]


def inspection_tables(name: str, found: Inspection) -> list[Table]:
    """Returns tables of the facts, the arms with their tails by threshold, and the assumptions of an inspection."""
    rounds, num_arms = found.rounds, len(found.arms)
    facts = Table(show_header=False, box=None)
    sizes = " / ".join(f"{size:.4g}" for size in found.quantiles)
    skipped = " / ".join(f"{count:,.0f}" for count in found.skipped)
    for fact, value in {
        "table": f"{name}, {rounds:,} rounds x {num_arms} arms",
        "missing entries": f"{found.missing:,}" + (" (a replay needs every entry)" if found.missing else ""),
        "gap": f"{found.gap:.4g} between {found.arms[found.best]!r} and the next" if num_arms > 1 else "one arm",
        "50 / 90 / 99 % of |loss|": sizes,
        "rounds uniINF skips": f"about {skipped} of {rounds:,} if all losses had those sizes",
        "scale": f"{found.scale:.4g} makes the 99 % quantile 1" if found.quantiles[-1] else "any: 99 % of losses are 0",
    }.items():
        facts.add_row(f"[bold]{fact}[/bold]", Text(value))
    fractions = [f"top {100 * fraction:g} %" for fraction in found.tail_fractions]
    arms = Table("arm", "mean", *fractions, "stable", title="tail index by Hill's estimate", title_justify="left")
    for n in np.argsort(found.means, kind="stable"):
        index = [_number(value) for value in found.tail_index[:, n]]
        arms.add_row(Text(found.arms[n]), f"{found.means[n]:.5g}", *index, "yes" if found.stable[n] else "no")
    arms.add_section()
    arms.add_row("median", f"{np.median(found.means):.5g}", *map(_number, found.typical_index), "")
    assumptions = Table("assumption", "holds", "why", title="assumptions", title_justify="left")
    for row in found.assumptions():
        assumptions.add_row(*map(Text, row))
    return [facts, arms, assumptions]


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"

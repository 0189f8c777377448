"""The panel of a sensitivity study: bars with intervals, response curves, and the numbers behind them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.report import words
from jaxbandit.report.names import pretty
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.points import AT_FIRST, as_json, compact, look, points
from jaxbandit.sensitivity import bars, curves, tables
from jaxbandit.sensitivity.figures import LEVEL, MEASURES, labelled

# Title and explanation of each kind of result, by its name in the directory.
ABOUT = {
    "local": (
        "A small change of one parameter",
        "The bars show the elasticity d log R / d log θ: if the parameter grows by 1 %, mean regret changes by so many "
        "percent. It is estimated by coupled differences: the games on both sides of the value share every random bit.",
    ),
    "sobol": (
        "Shares of the variance over the box",
        "All parameters vary over the box at once. The first-order index is the share of the variance of expected "
        "regret that a parameter explains alone. The total index is the share in which it has a part. Their difference "
        "is due to interaction with other parameters.",
    ),
    "morris": (
        "Screening by Morris",
        "An effect is the change of regret as one parameter moves over its whole range, somewhere in the box. The bars "
        "show the mean absolute effect (mu*), which noise makes larger, and the root mean square effect, from which "
        "the noise has been subtracted.",
    ),
}
HEADINGS = {
    "elasticity": "Elasticity",
    "first_order": "First order: alone",
    "total_order": "Total: with others",
    "mu_star": "mu*: mean absolute effect",
    "size": "Root mean square effect, free of noise",
}


def panel(results: Mapping[str, xr.Dataset], render: Render) -> Panel:
    """Makes the panel of the results that ``jaxbandit.sensitivity.load`` returned."""
    return Panel(
        "Sensitivity",
        render(
            "sensitivity.html",
            parts=[_part(kind, ds) for kind, ds in results.items()],
            data=as_json(_data(results)),
        ),
    )


def remarks(ds: xr.Dataset) -> Iterator[str]:
    """Yields a warning of broken games."""
    failed = int(np.nansum(ds.failed.values))
    if failed:
        yield f"broken games: {failed:,} behind the {ds.attrs['kind']}, whose state was not finite (see `failed`)"


def sentences(ds: xr.Dataset) -> Iterator[str]:
    """Yields for every policy the parameter that matters most, by the last measure, and whether it stands out."""
    data = bars(ds).isel(measure=-1)
    axis = MEASURES[ds.attrs["kind"]][str(data.measure.values)]
    for policy in map(str, data.policy.values):
        here = data.sel(policy=policy)
        size = abs(here.value)
        if not np.isfinite(size).any():
            continue
        at = here.isel(size.argmax(...))  # pyright: ignore[reportArgumentType]
        value, low, high = (float(at[name]) for name in ("value", "low", "high"))
        rest = " Its interval holds 0, so this may be noise." if low <= 0 <= high else ""
        yield (
            f"{pretty(policy)} depends most on {at.parameter.values} in {pretty(at.environment.values)}: {axis} "
            f"{words.estimate((value, low, high))}.{rest}"
        )


def _part(kind: str, ds: xr.Dataset) -> dict[str, Any]:
    """Returns the text of one kind of result and the table of all its numbers."""
    title, text = ABOUT[kind]
    columns = tables.COLUMNS[ds.attrs["kind"]]
    rows = [
        {"labels": [row[name] for name in ("policy", "environment", "parameter")]}
        | {"entries": [[row[name] for name in names] for names in columns.values()]}
        for row in tables.rows(ds)
    ]
    seeds = f"{ds.attrs['num_seeds']:,} seeds" + ("" if kind == "local" else " at every point of the design")
    noise = [sentence for sentence in tables.remarks(ds) if sentence.startswith("noise")]
    return {
        "kind": kind,
        "title": title,
        "text": text,
        "sentences": list(sentences(ds)),
        "note": f"{ds.attrs['horizon']:,} rounds, {seeds}. Intervals: {bars(ds).attrs['band']}.",
        "noise": f"{noise[0][0].upper()}{noise[0][1:]}." if noise else "",
        "columns": list(columns),
        "rows": rows,
        "curves": kind == "sobol",
        "level": f"{100 * LEVEL:g} %",
    }


def _data(results: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """Collects the data that the panel draws; all kinds have the policies and environments of the study."""
    first = labelled(next(iter(results.values())))
    environments = points(first, "environment")
    return {
        "policies": points(first, "policy"),
        "environments": [point | look(n) for n, point in enumerate(environments)],
        "shown": list(range(min(len(environments), AT_FIRST))),
        "bars": {kind: _bars(ds) for kind, ds in results.items()},
        "curves": _curves(results["sobol"]) if "sobol" in results else None,
    }


def _bars(ds: xr.Dataset) -> dict[str, Any]:
    data = bars(ds)
    return {
        "parameters": [str(name) for name in data.parameter.values],
        "measures": [
            {"title": HEADINGS[str(name)], "axis": MEASURES[ds.attrs["kind"]][str(name)]}
            for name in data.measure.values
        ],
        **{name: _nested(data[name].values) for name in ("value", "low", "high")},
    }


def _curves(ds: xr.Dataset) -> dict[str, Any]:
    data = curves(ds).transpose("policy", "environment", "parameter", "bin", ...)
    names = {"at": "response_value", "mean": "response", "low": "low", "high": "high"}
    return {
        "parameters": [str(name) for name in data.parameter.values],
        "scales": [str(scale) for scale in data.range_scale.values],
        **{name: _nested(data[variable].values) for name, variable in names.items()},
    }


def _nested(values: np.ndarray) -> Any:
    return compact(values) if values.ndim == 1 else [_nested(part) for part in values]

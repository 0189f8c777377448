"""The results of a sensitivity study as tables for the terminal and as rows for programs."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from rich.table import Table
from rich.text import Text

from jaxbandit.analysis import escapes, rounding
from jaxbandit.dataset.labels import shown
from jaxbandit.sensitivity.figures import labelled, short
from jaxbandit.store import form

COLUMNS = {
    "local sensitivity": {
        "value": ("value",),
        "d R / d value": ("gradient", "gradient_stderr"),
        "elasticity": ("elasticity", "elasticity_stderr"),
        "bias of the step": ("bias", "bias_stderr"),
        "coupling gains": ("variance_reduction",),
    },
    "Sobol' indices": {
        "alone": ("first_order", "first_order_low", "first_order_high"),
        "with others": ("total_order", "total_order_low", "total_order_high"),
    },
    "Morris screening": {
        "mu*": ("mu_star", "mu_star_low", "mu_star_high"),
        "size": ("size", "size_low", "size_high"),
        "sigma": ("sigma", "sigma_low", "sigma_high"),
        "noise in mu*": ("noise",),
    },
}

MOST = 2**53  # larger counts of games are no whole numbers in float64

_BINS = ("response", "response_stderr", "response_value")  # of Sobol' indices, along ``bin``
_OTHERS = {  # besides the columns
    "local sensitivity": ("value",),
    "Sobol' indices": _BINS,
    "Morris screening": ("mu",),
}


def problem(ds: xr.Dataset) -> str | None:
    """Returns why a dataset of a known kind cannot be shown, as a clause about it; None if it can."""
    return next(_problems(ds, ds.attrs["kind"]), None)


def _problems(ds: xr.Dataset, kind: str) -> Iterator[str]:
    dims = ("policy", "environment", "parameter")
    yield from form.label_problems(ds, dims)
    names = [*(name for column in COLUMNS[kind].values() for name in column), *_OTHERS[kind]]
    arrays = {name: ((*dims, "bin") if name in _BINS else dims, form.NUMBER) for name in names}
    yield from form.array_problems(ds, arrays)
    if kind == "Sobol' indices":
        pair = (dims[:2], form.NUMBER)
        yield from form.array_problems(
            ds, {"variance": pair, "noise_variance": pair, "range_scale": (dims[2:], form.TEXT)}
        )
    for name in ("failed", *(name for name in ds.data_vars if "parameter" in ds[name].dims)):
        if name not in ds or not {*ds[name].dims} <= {*dims, "bin"} or ds[name].dtype.kind not in "iufb":
            yield f"`{name}` is missing, or is no number of a policy, an environment and a parameter"
    if "failed" in ds and ds.failed.dtype.kind in "iufb" and (abs(np.nan_to_num(ds.failed.values)) > MOST).any():
        yield "`failed` holds numbers that count no games"
    if missing := [name for name in ("horizon", "num_seeds") if name not in ds.attrs]:
        yield f"it lacks the attribute `{missing[0]}`"
    if kind != "local sensitivity" and "band" not in ds.attrs:
        yield "it lacks the attribute `band`"
    yield from form.attribute_problems(ds.attrs, ("title", "key", "band", "study"), ("horizon", "num_seeds"))


def table(ds: xr.Dataset) -> Table:
    """Makes a table with a row per policy, environment and parameter."""
    kind, columns = ds.attrs["kind"], COLUMNS[ds.attrs["kind"]]
    made = Table(title=f"{kind}, {ds.attrs['horizon']:,} rounds, {ds.attrs['num_seeds']:,} seeds", title_justify="left")
    for heading in ("policy", "environment", "parameter"):
        made.add_column(heading)
    for heading in columns:
        made.add_column(Text(heading), justify="right")
    for row in rows(ds):
        cells = [_cell([row[name] for name in names]) for names in columns.values()]
        if row.get("extrapolated"):
            cells[3] += " removed"
        names = (shown(row["policy"]), shown(row["environment"]), str(row["parameter"]))
        made.add_row(*(Text(escapes.plain(name)) for name in names), *cells)
    return made


def remarks(ds: xr.Dataset) -> Iterator[str]:
    """Yields sentences on noise and on broken games."""
    failed = int(np.nansum(ds.failed.values))
    if failed:
        yield f"broken games: {failed:,}, whose state was not finite (see `failed`)"
    if ds.attrs["kind"] == "Sobol' indices":
        share = 100 * float((ds.noise_variance / (ds.noise_variance + ds.variance)).max())
        size = "less than 0.1" if share < 0.1 else f"at most {share:.1f}"
        yield f"noise was {size} % of the variance over the box and has been subtracted"


def rows(ds: xr.Dataset) -> list[dict[str, Any]]:
    """Returns the numbers of every pair and each of its parameters; None if a number is not finite."""
    ds = labelled(ds)
    names = [
        name for name, variable in ds.data_vars.items() if "parameter" in variable.dims and "bin" not in variable.dims
    ]
    known = {"local sensitivity": "value", "Morris screening": "mu"}.get(ds.attrs["kind"], "response_value")
    found = []
    for policy in ds.policy.values:
        for environment in ds.environment.values:
            for parameter in ds.parameter.values:
                at = ds.sel(policy=policy, environment=environment, parameter=parameter)
                if at[known].isnull().all():
                    continue  # a parameter that the pair does not have
                numbers = {str(name): value if math.isfinite(value := at[name].item()) else None for name in names}
                found.append(
                    {"policy": str(policy), "environment": str(environment), "parameter": str(parameter)} | numbers
                )
    return found


def _cell(numbers: list[float | None]) -> str:
    if numbers[0] is None:
        return "–"
    found = [math.nan if number is None else number for number in numbers]
    if len(found) == 1:
        return short(found[0]).replace("-", "−")
    return rounding.with_error(*found) if len(found) == 2 else rounding.with_limits(*found)

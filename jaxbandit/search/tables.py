"""The output of ``jaxbandit tune`` and ``jaxbandit worst``: tables for people, JSON for programs."""

import math
from collections.abc import Sequence
from typing import Any

import xarray as xr
from rich.table import Table
from rich.text import Text

from jaxbandit.analysis import escapes, rounding
from jaxbandit.dataset.labels import shown
from jaxbandit.search.study import Found


def tune_table(found: Sequence[Found]) -> Table:
    """Makes a table of every tuned parameter of every policy and the gain in regret."""
    table = Table(title="tuned values against the defaults, on unseen environments and seeds", title_justify="left")
    for heading in ("policy", "parameter", "default", "tuned", "bounds"):
        table.add_column(heading)
    for heading in ("regret, default", "regret, tuned", "difference"):
        table.add_column(heading, justify="right")
    for one in found:
        ds = one.ds
        numbers = [
            f"{float(ds.regret.sel(candidate='default')):,.1f}",
            f"{float(ds.regret.sel(candidate='tuned')):,.1f}",
            _interval(ds, "difference"),
        ]
        for n, name in enumerate(ds.parameter.values):
            at = ds.sel(parameter=name)
            edge = " (edge)" if at_edge(float(at.tuned), float(at.low), float(at.high)) else ""
            row = [_text(str(name)), f"{float(at.default):.4g}", f"{float(at.tuned):.4g}{edge}"]
            bounds = f"{float(at.low):.4g} to {float(at.high):.4g}"
            table.add_row(_text(shown(one.policy) if n == 0 else ""), *row, bounds, *(numbers if n == 0 else [""] * 3))
    return table


def worst_table(found: Sequence[Found]) -> Table:
    """Makes a table of the worst instance found for every policy around every environment, at every horizon."""
    table = Table(title="worst instances found, on fresh seeds", title_justify="left")
    for heading in ("policy", "around", "horizon", "instance"):
        table.add_column(heading)
    for heading in ("regret", "estimate of the search", "as given", "order of the bound"):
        table.add_column(heading, justify="right")
    for one in found:
        for at in by_horizon(one.ds):
            values = {str(name): at.sel(parameter=name) for name in at.parameter.values}
            instance = ", ".join(
                f"{name} = {rounding.short(float(value.worst))}{' (edge)' * on_edge(value)}"
                for name, value in values.items()
            )
            unit = " of the bound" if one.ds.attrs.get("objective") == "ratio" else ""
            thought = _short(at.searched) + unit
            numbers = [_interval(at, "regret"), thought, _short(at.given_regret), _short(at.bound)]
            row = [_text(shown(one.policy)), _text(shown(one.environment)), f"T = {int(at.horizon):,}", _text(instance)]
            table.add_row(*row, *numbers)
    return table


def tune_json(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Returns the results of tuning as JSON for programs."""
    rows = []
    for one in found:
        ds = one.ds
        rows.append(
            {
                "policy": one.policy,
                "default": _values(ds.default),
                "tuned": _values(ds.tuned),
                "regret_default": _number(ds.regret.sel(candidate="default")),
                "regret_tuned": _number(ds.regret.sel(candidate="tuned")),
                **{name: _number(ds[name]) for name in ("difference", "difference_low", "difference_high", "p")},
                "default_within_noise": bool(ds.attrs["within_noise"]),
                "verdict": ds.attrs["verdict"],
                "band": ds.attrs["band"],
                "steps": ds.sizes["step"],
                "failed": int(ds.attrs["failed"]),
                "trace": str(one.path),
            }
        )
    return rows


def worst_json(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Returns the worst instances as JSON for programs."""
    numbers = (
        "regret",
        "regret_low",
        "regret_high",
        "searched",
        "given_regret",
        "bound",
        "moment_order",
        "moment_bound",
    )
    rows = []
    for one in found:
        slope = _number(one.ds.slope) if "slope" in one.ds else None
        for at in by_horizon(one.ds):
            row = {"policy": one.policy, "environment": one.environment, "horizon": int(at.horizon)}
            row |= {"worst": _values(at.worst)} | {name: _number(at[name]) for name in numbers}
            row["objective"] = one.ds.attrs.get("objective")
            rows.append(row | {"slope": slope, "failed": int(one.ds.attrs["failed"]), "band": one.ds.attrs["band"]})
    return rows


def by_horizon(ds: xr.Dataset) -> list[xr.Dataset]:
    """Splits the dataset that ``worst`` returned by horizon."""
    return [ds.isel(horizon=n) for n in range(ds.sizes["horizon"])] if "horizon" in ds.dims else [ds]


def _text(label: str) -> Text:
    """Returns a label for a terminal: neither rich's markup nor a control character in it has an effect."""
    return Text(escapes.plain(label))


def _values(values: xr.DataArray) -> dict[str, float]:
    return dict(zip(map(str, values.parameter.values), map(float, values.values), strict=True))


def _interval(ds: xr.Dataset, name: str) -> str:
    return rounding.with_limits(*(float(ds[key]) for key in (name, f"{name}_low", f"{name}_high")))


def at_edge(value: float, low: float, high: float) -> bool:
    """Returns whether a value is within 2 % of the box's width of its edge, so that the optimum may lie beyond."""
    share = math.log(value / low) / math.log(high / low)
    return not 0.02 <= share <= 0.98


def on_edge(at: xr.Dataset) -> bool:
    """Returns whether a worst value is at the edge of its range; False for results that did not store the range."""
    return {"low", "high"} <= set(at) and at_edge(float(at.worst), float(at.low), float(at.high))


def any_on_edge(found: Sequence[Found]) -> bool:
    """Returns whether a worst value of some instance is at the edge of its range."""
    instances = (at for one in found for at in by_horizon(one.ds))
    return any(on_edge(at.sel(parameter=name)) for at in instances for name in at.parameter.values)


def _short(value: xr.DataArray) -> str:
    number = float(value)
    return rounding.short(number) if math.isfinite(number) else "none"


def _number(value: xr.DataArray) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None

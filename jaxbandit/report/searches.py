"""Panels of searches: the gain of tuning, and the worst cases over T beside the lower bound."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import growth
from jaxbandit.plots import style
from jaxbandit.report import svg, words
from jaxbandit.report.names import pretty
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.points import DASHES
from jaxbandit.search.study import Found
from jaxbandit.search.tables import at_edge, by_horizon, on_edge

GREY = "#888888"  # visible on light and dark paper
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}}


def tuning(found: Sequence[Found], render: Render) -> Panel:
    """Makes the panel of tuned values against the defaults, with the trace of each search."""
    rows, views = [], {}
    for one in found:
        ds = one.ds
        regrets = [_interval(ds.sel(candidate=name), "regret") for name in ("default", "tuned")]
        values = [
            {
                "name": str(name),
                "default": float(ds.default.sel(parameter=name)),
                "tuned": float(ds.tuned.sel(parameter=name)),
                "low": float(ds.low.sel(parameter=name)),
                "high": float(ds.high.sel(parameter=name)),
            }
            for name in ds.parameter.values
        ]
        for value in values:
            value["edge"] = at_edge(value["tuned"], value["low"], value["high"])
        rows.append(
            {
                "policy": one.policy,
                "values": values,
                "regrets": regrets,
                "difference": _interval(ds, "difference"),
                "strip": strip(_interval(ds, "difference")),
                "quick": bool(ds.attrs.get("quick")),
                "within_noise": bool(ds.attrs["within_noise"]),
                "verdict": ds.attrs["verdict"],
                "steps": ds.sizes["step"],
                "band": ds.attrs["band"],
            }
        )
        ahead = f"{pretty(one.policy)}: " if len(found) > 1 else ""
        views |= {f"{ahead}{name} over the steps": _way(ds.sel(parameter=name)) for name in ds.parameter.values}
        views[f"{ahead}the objective over the steps"] = _objective(ds)
    return Panel("Tuning", render("tuning.html", rows=rows), views=views)


def strip(difference: tuple[float, float, float]) -> dict[str, Any]:
    """Places a difference with its limits on a linear axis that holds 0; places are in percent."""
    finite = [value for value in (*difference, 0.0) if math.isfinite(value)]
    room = 0.06 * (max(finite) - min(finite)) or 1.0
    axis = svg.Axis(min(finite) - room, max(finite) + room)
    names = ("dot", "low", "high", "zero")
    places = [round(100 * axis.place(value), 2) if math.isfinite(value) else math.nan for value in (*difference, 0.0)]
    ticks = [(round(100 * axis.place(value), 2), text) for value, text in axis.ticks(4)]
    return dict(zip(names, places, strict=True)) | {"ticks": ticks}


def worst(found: Sequence[Found], render: Render) -> Panel:
    """Makes the panel of the worst instances found, with curves over T if several horizons were searched."""
    rows, slopes, views = [], [], {}
    for one in found:
        unit = " of the bound" if one.ds.attrs.get("objective") == "ratio" else ""
        for at in by_horizon(one.ds):
            values = {str(name): at.sel(parameter=name) for name in at.parameter.values}
            instance = ", ".join(f"{name} = {float(value.worst):.4g}" for name, value in values.items())
            row = {
                "policy": one.policy,
                "environment": one.environment,
                "horizon": int(at.horizon),
                "instance": instance,
                "edge": [name for name, value in values.items() if on_edge(value)],
            }
            row |= {"regret": _interval(at, "regret"), "searched": float(at.searched), "unit": unit}
            rows.append(row | {"given": float(at.given_regret), "bound": float(at.bound)})
        if "slope" in one.ds:
            slopes.append({"policy": one.policy, "environment": one.environment, "slope": _exponent(one.ds)})
    for environment in dict.fromkeys(one.environment for one in found):
        here = [one for one in found if one.environment == environment and one.ds.sizes.get("horizon", 1) > 1]
        if here:
            views[f"Worst cases around {pretty(environment)}"] = _curves(here)
    return Panel(
        "Worst cases",
        render(
            "worst.html",
            rows=rows,
            slopes=slopes,
            band=found[0].ds.attrs["band"],
            curves=bool(views),
            edges=any(row["edge"] for row in rows),
        ),
        views=views,
    )


def failures(found: Sequence[Found], command: str) -> Iterator[str]:
    """Yields a warning of broken games."""
    failed = sum(int(one.ds.attrs.get("failed", 0)) for one in found)
    if failed:
        yield f"broken games: {failed:,} of `jaxbandit {command}`, whose state was not finite"


def _exponent(ds: xr.Dataset) -> str:
    """Returns the exponent of T with its interval, in the form that all tables have."""
    return growth.exponent_text(*_interval(ds, "slope"), 0.0)


def _way(ds: xr.Dataset) -> dict[str, Any]:
    """Draws one parameter over the steps, within its bounds."""
    step = ds["step"].values
    ends = [step[0], step[-1]]
    level = {"tuned": (float(ds.tuned), "dash", style.COLOURS[1]), "default": (float(ds.default), "dot", GREY)}
    lines = [_line("value", step, ds.value.values, style.COLOURS[0])]
    lines += [_line(f"{name} value", ends, [at, at], colour, dash=dash) for name, (at, dash, colour) in level.items()]
    edges = [math.log10(float(ds.low)) - 0.05, math.log10(float(ds.high)) + 0.05]
    return _figure(lines, "step", str(ds.parameter.values), yaxis={"type": "log", "range": edges, "dtick": 1})


def _objective(ds: xr.Dataset) -> dict[str, Any]:
    step, looked = ds["step"].values, np.isfinite(ds.held_out.values)
    lines = [
        _line("at the points of the step", step, ds.objective.values, style.COLOURS[0]),
        _line(
            "held-out environments", step[looked], ds.held_out.values[looked], style.COLOURS[2], mode="markers", size=9
        ),
    ]
    return _figure(lines, "step", "objective")


def _curves(found: Sequence[Found]) -> dict[str, Any]:
    """Draws regret over T of every policy, and in its colour the order of the lower bound of its worst instances."""
    lines = []
    looks = style.looks([one.policy for one in found])
    for one, look in zip(found, looks, strict=True):
        T = one.ds.horizon.values
        text = pretty(one.policy)
        if "slope" in one.ds:
            text += f": {_exponent(one.ds).split(' ')[0].rstrip(',')}"
        drawn = _line(
            text, T, one.ds.regret.values, look["color"], mode="lines+markers", dash=DASHES[look["linestyle"]]
        )
        drawn["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": (one.ds.regret_high - one.ds.regret).values,
            "arrayminus": (one.ds.regret - one.ds.regret_low).values,
        }
        lines.append(drawn)
    orders = [one.ds.bound.values for one in found]
    same = all(order.shape == orders[0].shape and np.allclose(order, orders[0], rtol=1e-3) for order in orders)
    for one, look in list(zip(found, looks, strict=True))[: 1 if same else None]:
        if np.isfinite(one.ds.bound.values).all():
            text = "order of the lower bound" + ("" if same else f" ({pretty(one.policy)})")
            colour = GREY if same else look["color"]
            lines.append(_line(text, one.ds.horizon.values, one.ds.bound.values, colour, dash="2px,4px"))
    axes = {name: {"type": "log", "tickformat": ",", "dtick": "D2"} for name in ("xaxis", "yaxis")}
    return _figure(lines, "T", "largest mean pseudo-regret found", **axes)


def _line(
    name: str, x: Any, y: Any, colour: str, *, mode: str = "lines", dash: str = "solid", size: int = 6
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": mode,
        "name": words.escaped(name),
        "x": x,
        "y": y,
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "size": size},
        "hovertemplate": "%{y:,.4~g}",
    }


def _figure(lines: list[dict[str, Any]], x: str, y: str, **axes: Any) -> dict[str, Any]:
    layout: dict[str, Any] = {"legend": LEGEND, "hovermode": "x unified"}
    layout |= {"xaxis": {"title": {"text": words.escaped(x)}} | axes.get("xaxis", {})}
    layout |= {"yaxis": {"title": {"text": words.escaped(y)}} | axes.get("yaxis", {})}
    return {"data": lines, "layout": layout}


def _interval(ds: xr.Dataset, name: str) -> tuple[float, float, float]:
    return float(ds[name]), float(ds[f"{name}_low"]), float(ds[f"{name}_high"])

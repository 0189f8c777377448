"""The curves of a study as the page's scripts read them: compact, with the swept values of every point."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit import plots
from jaxbandit.plots import style
from jaxbandit.report.findings import Findings
from jaxbandit.report.names import pretty, short
from jaxbandit.theory import bounds

DIGITS = 5  # significant digits of a number on the page
SPREAD = 3  # those of the band that shows the spread of the games
AT_FIRST = 8  # curves that are drawn before a reader chooses more
DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot", style.LONG: "longdashdot"}  # plotly's names


def points(ds: xr.Dataset, side: str) -> list[dict[str, Any]]:
    """Returns label, class and swept values of every policy or environment.

    The dataset also holds what an environment declares about its tail. Such fields are not swept: only the fields that
    labels name are choices of the study.
    """
    riders = [str(name) for name, coord in ds.coords.items() if coord.dims == (side,) and name != side]
    found = []
    for n, label in enumerate(map(str, ds[side].values)):
        name, _, inside = label.partition("[")
        fields = {rider: rider.removeprefix(f"{side}_") for rider in riders}
        values = {
            field: _value(ds[rider].values[n])
            for rider, field in fields.items()
            if re.search(rf"(?<!\w){re.escape(field)}=", inside)
        }
        there = {field: value for field, value in values.items() if value not in (None, "")}
        found.append({"label": label, "name": name, "values": there, "shown": pretty(label), "title": pretty(name)})
    for point in found:  # a field that never varies within a class is not a choice
        alike = [other["values"] for other in found if other["name"] == point["name"]]
        point["swept"] = [f for f in point["values"] if len({str(values.get(f)) for values in alike}) > 1]
    seen: list[tuple] = []
    for point in found:
        point["values"] = {field: point["values"][field] for field in point.pop("swept")}
        if (point["name"], point["values"]) in seen:  # only its label distinguishes it
            point |= {"name": point["label"], "values": {}, "title": point["shown"]}
        seen.append((point["name"], point["values"]))
    return found


def explorer(findings: Findings) -> dict[str, Any]:
    """Collects the data that the interactive panels draw."""
    ds, stats = findings.ds, findings.stats.transpose("policy", "environment", "quantile", "round", ...)
    curves = {
        "mean": stats.regret_mean,
        "low": stats.regret_low,
        "high": stats.regret_high,
        "rare_low": stats.regret_quantile.sel(quantile=0.05),
        "rare_high": stats.regret_quantile.sel(quantile=0.95),
    }
    policies = points(ds, "policy")
    of_policies = looks([str(label) for label in ds.policy.values])
    return {
        "rounds": [int(n) for n in ds["round"].values],
        "policies": [
            point | one | {"brief": brief}
            for point, one, brief in zip(policies, of_policies, short(policies), strict=True)
        ],
        "environments": points(ds, "environment"),
        "curves": {
            name: [[compact(c, SPREAD if name.startswith("rare") else DIGITS) for c in row] for row in values.values]
            for name, values in curves.items()
        },
        "bounds": [_bound(findings, str(label)) for label in ds.environment.values],
        "shown": shown(findings),
        "band": f"of the mean: {stats.attrs['band']}",
        "rare": "5 to 95 % of the games",
        "heat": style.HEAT.capitalize(),
    }


def _bound(findings: Findings, label: str) -> dict[str, Any] | None:
    """Returns the order of the lower bound for an environment's class; None if it is unknown or has none."""
    found = plots.slope_guide(findings.environments.get(label), findings.ds["round"].values)
    if found is None:
        return None
    kind, order = found
    return {"text": bounds.LABELS[kind], "at": compact(order)}


def has_heat(data: dict[str, Any]) -> bool:
    """Returns whether there are two axes to spread final regret over."""
    sides = (data["policies"], data["environments"])
    return sum(max(len(side) > 1, *(len(point["values"]) for point in side)) for side in sides) > 1


def shown(findings: Findings) -> list[int]:
    """Selects the policies drawn at first: all if they are few, else the best of each class, then the next ones."""
    labels = [str(label) for label in findings.ds.policy.values]
    if len(labels) <= AT_FIRST:
        return list(range(len(labels)))
    ranks: dict[str, list[int]] = {}
    for verdict in findings.verdicts:
        for row in verdict.rows:
            ranks.setdefault(row.policy, []).append(row.rank)
    best: dict[str, str] = {}
    order = sorted(ranks, key=lambda label: float(np.mean(ranks[label])))
    for label in order:
        best.setdefault(label.partition("[")[0], label)
    chosen = list(dict.fromkeys([*best.values(), *order]))[:AT_FIRST]
    return sorted(labels.index(label) for label in chosen)


def looks(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Returns colours and dashes of policies on a light and on a dark page, the same as in figures for print."""
    light, dark = style.looks(labels), style.looks(labels, dark=True)
    return [
        {"light": one["color"], "dark": other["color"], "dash": DASHES[one["linestyle"]]}
        for one, other in zip(light, dark, strict=True)
    ]


def look(n: int) -> dict[str, Any]:
    """Returns colours and dashes of environment ``n`` on a light and on a dark page."""
    found = style.look(n)
    dark = style.ON_DARK.get(found["color"], found["color"])
    return {"light": found["color"], "dark": dark, "dash": DASHES[found["linestyle"]]}


def compact(values: np.ndarray, digits: int = DIGITS) -> list[float | int | None] | None:
    """Rounds a curve to few digits; a missing value becomes None."""
    numbers = [_short(float(value), digits) for value in values]
    return None if all(number is None for number in numbers) else numbers


def as_json(data: Any) -> str:
    """Returns JSON that is safe in a script element: nothing in it ends the element. Infinity and NaN become null."""
    return json.dumps(_plain(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _plain(data: Any) -> Any:
    """Replaces arrays by lists, and numbers that JSON does not have by None."""
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, np.ndarray | np.generic):
        return _plain(data.tolist())
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return data if data is None or isinstance(data, bool | int | str) else str(data)


def _short(value: float, digits: int = DIGITS) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def _value(value: Any) -> float | str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | str):
        return str(value)
    return _short(float(value))

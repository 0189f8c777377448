"""Final regret over one swept value or two, with the default marked: a figure for every environment or policy class."""

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.policies import POLICIES
from jaxbandit.report import names, svg
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.points import has_heat
from jaxbandit.types import public_fields

MOST = 12  # figures
LINES = 10  # lines of a figure
CELLS = 150  # cells of a map; larger ones are drawn by the page's script alone


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A swept number of a class.

    Attributes:
      side: ``"policy"`` or ``"environment"``.
      name: The class.
      field: The swept field.
      places: The numbers of the points, in the order of their values.
      values: Their values.
      default: The value that the class has if none is given; None if it must be given.
    """

    side: str
    name: str
    field: str
    places: list[int]
    values: list[float]
    default: float | None


def panel(findings: Findings, data: dict[str, Any], render: Render) -> Panel | None:
    """Makes the panel of sweeps and the heat map; returns None if there is neither."""
    found = [sweep for side in ("policy", "environment") for sweep in sweeps(data, side)]
    planes = [plane for side in ("policy", "environment") for plane in plane_sweeps(data, side)]
    lines = dict(itertools.islice(((t, f) for sweep in found for t, f in _figures(findings, data, sweep)), MOST))
    maps = dict(
        itertools.islice(((t, f) for plane in planes for t, f in _maps(findings, data, plane)), MOST - len(lines))
    )
    heat = shows_heat(data)
    if not lines and not maps and not heat:
        return None
    shown = {
        "figures": lines | maps,
        "lines": bool(lines),
        "maps": bool(maps),
        "bare": names.of_bare(data["policies"]),
        "dashed": any("stroke-dasharray" in figure for figure in lines.values()),
        "band": data["band"],
        "heat": heat,
        "default": any('class="mark-line"' in figure for figure in lines.values()),
        "default_cell": any('class="cell-mark"' in figure for figure in maps.values()),
        "rounds": data["rounds"][-1],
        "stopped": any(verdict.stopped for verdict in findings.verdicts),
    }
    return Panel("Over the swept values" if found or planes else "At a glance", render("sweeps.html", **shown))


def shows_heat(data: dict[str, Any]) -> bool:
    """Returns whether two things are swept, or there are so many pairs that the eye needs a map."""
    swept = {
        (side, field) for side in ("policies", "environments") for point in data[side] for field in point["values"]
    }
    many = len(data["policies"]) > 2 and len(data["environments"]) > 2
    return has_heat(data) and (len(swept) > 1 or many)


def sweeps(data: dict[str, Any], side: str) -> list[Sweep]:
    """Returns the classes of a side of which exactly one field, a number, is swept."""
    points = data["policies" if side == "policy" else "environments"]
    found = []
    for name in dict.fromkeys(point["name"] for point in points):
        mine = [n for n, point in enumerate(points) if point["name"] == name]
        fields = {field for n in mine for field in points[n]["values"]}
        if len(fields) != 1 or len(mine) < 2:
            continue
        (field,) = fields
        values = {n: points[n]["values"].get(field) for n in mine}
        if not all(isinstance(value, int | float) for value in values.values()):
            continue
        order = sorted(mine, key=values.__getitem__)
        found.append(Sweep(side, name, field, order, [float(values[n]) for n in order], _default(side, name, field)))
    return found


@dataclasses.dataclass(frozen=True)
class Plane:
    """Two swept numbers of a class.

    Attributes:
      side: ``"policy"`` or ``"environment"``.
      name: The class.
      fields: The two swept fields, across and down.
      values: Their values in order, across and down.
      places: The numbers of the points by their two values.
      defaults: The values that the class has if none are given; None if one must be given.
    """

    side: str
    name: str
    fields: tuple[str, str]
    values: tuple[list[float], list[float]]
    places: dict[tuple[float, float], int]
    defaults: tuple[float | None, float | None]


def plane_sweeps(data: dict[str, Any], side: str) -> list[Plane]:
    """Returns the classes of a side of which exactly two fields, both numbers, are swept."""
    points = data["policies" if side == "policy" else "environments"]
    found = []
    for name in dict.fromkeys(point["name"] for point in points):
        mine = {n: point["values"] for n, point in enumerate(points) if point["name"] == name}
        fields = list(dict.fromkeys(field for values in mine.values() for field in values))
        if len(fields) != 2 or len(mine) > CELLS:
            continue
        if not all(isinstance(values.get(field), int | float) for values in mine.values() for field in fields):
            continue
        across, down = fields
        places = {(float(values[across]), float(values[down])): n for n, values in mine.items()}
        values = (sorted({a for a, _ in places}), sorted({b for _, b in places}))
        if len(values[0]) * len(values[1]) <= CELLS:
            defaults = (_default(side, name, across), _default(side, name, down))
            found.append(Plane(side, name, (across, down), values, places, defaults))
    return found


def _maps(findings: Findings, data: dict[str, Any], plane: Plane):
    """Yields title and map: a swept policy has one for each environment, a swept environment one for each policy."""
    mean = findings.stats.isel(round=-1).transpose("policy", "environment", ...).regret_mean.values
    if plane.side == "policy":
        name = names.pretty(plane.name)
        finals = {f"{name} in {one['shown']}": mean[:, e] for e, one in enumerate(data["environments"])}
    else:
        over = f"in {names.pretty(plane.name)}"
        finals = {f"{data['policies'][p]['shown']} {over}": mean[p] for p in data["shown"][:LINES]}
    fields = [names.spaced(field) for field in plane.fields]
    across, down = plane.values
    for title, final in finals.items():
        table = np.array(
            [[final[plane.places[a, b]] if (a, b) in plane.places else np.nan for a in across] for b in down]
        )
        if np.isfinite(table).any():
            pairs = zip(plane.values, plane.defaults, strict=True)
            mark = [values.index(at) if at in values else -1 for values, at in pairs]
            label = f"Final mean regret over {fields[0]} and {fields[1]}"
            yield title, svg.heat_map(table, plane.values, fields, label, mark)


def _default(side: str, name: str, field: str) -> float | None:
    registry: Mapping[str, Any] = POLICIES if side == "policy" else ENVIRONMENTS
    by_class = {cls.__name__: cls for cls in registry.values()}
    cls = registry.get(name, by_class.get(name))
    spec = None if cls is None else public_fields(cls).get(field)
    value = None if spec is None else spec.default
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _figures(findings: Findings, data: dict[str, Any], sweep: Sweep):
    """Yields title and figure: for a swept policy one for each environment, for a swept environment just one."""
    stats = findings.stats.isel(round=-1).transpose("policy", "environment", ...)
    mean, low, high = (stats[name].values for name in ("regret_mean", "regret_low", "regret_high"))
    short, x = names.short(data["policies"]), _places(sweep)
    field = names.spaced(sweep.field)
    marks = [(sweep.default, "default")] if sweep.default is not None and x.low <= sweep.default <= x.high else []
    if sweep.side == "environment":
        lines = [
            _line(short[p], sweep, f"var(--p{p})", *(part[p, sweep.places] for part in (mean, low, high)))
            for p in data["shown"][:LINES]
        ]
        yield f"{names.pretty(sweep.name)}: regret over its {field}", _drawn(lines, x, field, marks)
        return
    others = [p for p in data["shown"] if p not in sweep.places and not data["policies"][p]["values"]]
    colour = f"var(--p{sweep.places[len(sweep.places) // 2]})"
    for e, environment in enumerate(data["environments"]):
        lines = [_line(names.pretty(sweep.name), sweep, colour, *(part[sweep.places, e] for part in (mean, low, high)))]
        ends = [sweep.values[0], sweep.values[-1]]
        lines += [svg.Line(short[p], ends, [mean[p, e]] * 2, f"var(--p{p})", dash="5 4") for p in others[:LINES]]
        if np.isfinite(mean[sweep.places, e]).any():
            yield f"{names.pretty(sweep.name)} in {environment['shown']}", _drawn(lines, x, field, marks)


def _places(sweep: Sweep) -> svg.Axis:
    values = [*sweep.values, *([] if sweep.default is None else [sweep.default])]
    low, high = min(values), max(values)
    if low > 0 and high / low > 4:
        return svg.axis(values, log=True)
    room = 0.04 * (high - low) or 0.5
    return svg.Axis(low - room, high + room)


def _line(name: str, sweep: Sweep, colour: str, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> svg.Line:
    return svg.Line(name, sweep.values, mean, colour, low, high, dots=True)


def _drawn(lines: list[svg.Line], x: svg.Axis, field: str, marks: list) -> str:
    y = svg.axis([value for line in lines for value in line.y])
    return svg.figure(lines, f"Final mean regret over {field}", x, y, field, "final mean regret", marks)

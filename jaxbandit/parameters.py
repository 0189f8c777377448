"""Movable parameters: the traced numbers of a policy or environment, found and changed by name.

A name is that of a field, such as ``"initial_scale"``, or of a field of the law inside an environment, such as
``"law.tail_index"`` (or ``"tail_index"`` if only one field has that name). An environment with means also has
``"gap"``, the distance of the other arms' means from the best one's; a new gap stretches all distances alike. If a
policy and its environment both have a name, write ``"policy.scale"`` or ``"environment.scale"``. A box gives ranges to
several names.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer

from jaxbandit.grid import GAP, gap_of, suggest, with_gap
from jaxbandit.types import is_static, public_fields, rank, renamed_fields, warn_of_first_name

SIDES: tuple[str, str] = ("policy", "environment")
SCALES = ("log", "linear")


class Range(NamedTuple):
    """The range of a parameter; ``scale`` says whether the parameter or its logarithm is spread evenly in it."""

    low: float
    high: float
    scale: str

    def value(self, unit: float) -> float:
        """Returns the value at a place between 0 (low) and 1 (high)."""
        if self.scale == "log":
            return self.low * (self.high / self.low) ** unit
        return self.low + unit * (self.high - self.low)


Box = dict[str, Range]


def movable(obj: Any, *, whole: bool = False) -> dict[str, float]:
    """Returns the parameters of a policy or environment that can be moved in log space, with their values.

    They are traced, positive, finite, and one number each; ``whole`` includes those that take whole numbers only.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.parameters import movable
      >>> movable(jb.UniINF(horizon=1_000))
      {'horizon': 1000.0, 'initial_scale': 4.0}
      >>> movable(jb.Swap(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), at=0.25))
      {'law.gap': 0.5, 'law.tail_index': 1.6, 'at': 0.25}
    """
    return {name: found for name, found in _listed(obj, whole).items() if not isinstance(found, str)}


def value_of(obj: Any, name: str) -> float:
    """Returns the value of a parameter."""
    return movable(obj, whole=True)[full_name(obj, name, whole=True)]


def with_value(obj: Any, name: str, value: float) -> Any:
    """Returns the policy or environment with one parameter set, after a check of bounds; derived fields follow it.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.parameters import with_value
      >>> with_value(jb.Pareto(means=[0.5, 1.0, 1.5], tail_index=1.6), "gap", 0.25)
      Pareto(means=[0.5, 0.75, 1.0], tail_index=1.6)
    """
    return _replaced(obj, full_name(obj, name, whole=True).split("."), value)


def full_name(obj: Any, name: str, *, whole: bool = False) -> str:
    """Returns the parameter's full name from the outermost object; raises if the parameter cannot be moved."""
    listed = _listed(obj, whole)
    matches = [known for known in listed if known == name or known.endswith(f".{name}")]
    if name in listed:
        matches = [name]
    matches = matches or _renamed(obj, name)
    able = movable(obj, whole=whole)
    kind = type(obj).__name__
    if len(matches) > 1:
        raise ValueError(f"{kind} has {name!r} more than once; write one of: {', '.join(matches)}")
    if not matches:
        raise ValueError(f"{kind} has no parameter {name!r} that can be moved; {suggest(name, able)}")
    if isinstance(listed[matches[0]], str):
        others = f"these can be moved: {', '.join(able)}" if able else f"{kind} has none that can be moved"
        raise ValueError(f"{kind}.{matches[0]} cannot be moved: {listed[matches[0]]}; {others}")
    return matches[0]


def place(policy: Any, environment: Any, name: str, *, whole: bool = False) -> tuple[str, str]:
    """Finds the owner of a parameter: (``"policy"`` or ``"environment"``, the full name); raises if neither has it.

    With ``whole``, a parameter that takes whole numbers only is found if no other parameter has the name.
    """
    sides = dict(zip(SIDES, (policy, environment), strict=True))
    first, _, rest = name.partition(".")
    if first in sides and rest:
        return first, full_name(sides[first], rest, whole=whole)
    if whole and any(_has(obj, name) for obj in sides.values()):
        return place(policy, environment, name)
    found, reasons = [], []
    for side, obj in sides.items():
        try:
            found.append((side, full_name(obj, name, whole=whole)))
        except ValueError as error:
            if any(known == name or known.endswith(f".{name}") for known in _listed(obj, whole)):
                reasons.append(str(error))
    if len(found) > 1:
        raise ValueError(
            f"{name!r} is a parameter of the policy {type(policy).__name__} and of the environment "
            f"{type(environment).__name__}; write one of: {', '.join(f'{side}.{name}' for side in SIDES)}"
        )
    if not found:
        if reasons:
            raise ValueError("; ".join(reasons))
        able = [*movable(policy, whole=whole), *movable(environment, whole=whole)]
        pair = f"{type(policy).__name__} in {type(environment).__name__}"
        raise ValueError(f"{pair} has no parameter {name!r} that can be moved; {suggest(name, able)}")
    return found[0]


def values_of(policy: Any, environment: Any, names: Sequence[str]) -> dict[str, float]:
    """Returns the values of parameters of a policy and its environment, by the given names."""
    sides = dict(zip(SIDES, (policy, environment), strict=True))
    placed = {name: place(policy, environment, name, whole=True) for name in names}
    return {name: value_of(sides[side], inner) for name, (side, inner) in placed.items()}


def move(policy: Any, environment: Any, values: Mapping[str, float]) -> tuple[Any, Any]:
    """Returns a policy and its environment with parameters set; a side without any of them is the same object."""
    pair = dict(zip(SIDES, (policy, environment), strict=True))
    for name, value in values.items():
        side, inner = place(policy, environment, name, whole=True)
        pair[side] = with_value(pair[side], inner, value)
    return pair["policy"], pair["environment"]


def having(pairs: Sequence[tuple[Any, Any]], names: Sequence[str]) -> list[tuple[int, int]]:
    """Returns (index of the pair, index of the name) for every parameter a pair has; raises if no pair has it."""
    found = []
    for number, name in enumerate(names):
        if list(names).count(name) > 1:
            raise ValueError(f"parameter {name!r} is named twice; name it once")
        errors = []
        for n, pair in enumerate(pairs):
            try:
                place(*pair, name)
            except ValueError as error:
                errors.append(error)
            else:
                found.append((n, number))
        if len(errors) == len(pairs):
            raise errors[0]
    return sorted(found)


def as_box(box: Mapping[str, Sequence[float]], scale: str | Mapping[str, str] = "log") -> Box:
    """Returns the checked ranges of a box."""
    if not box:
        raise ValueError('the box is empty; give at least one range, e.g. {"initial_scale": [1.0, 16.0]}')
    for name in scale if isinstance(scale, Mapping) else ():
        if name not in box:
            raise ValueError(f"scale names {name!r}, which is not in the box; {suggest(name, list(box))}")
    ranges = {}
    for name, ends in box.items():
        kind = scale.get(name, "log") if isinstance(scale, Mapping) else scale
        if kind not in SCALES:
            raise ValueError(f"the scale of {name} must be 'log' or 'linear', got {kind!r}")
        numbers = [isinstance(end, int | float | np.number) and not isinstance(end, bool) for end in ends]
        if numbers != [True, True] or not -math.inf < ends[0] < ends[1] < math.inf:
            raise ValueError(f"the range of {name} must be [low, high] with low < high, got {list(ends)}")
        if kind == "log" and ends[0] <= 0:
            raise ValueError(
                f"the range of {name} starts at {ends[0]:g}, which has no logarithm; "
                "start above 0, or give it the scale 'linear'"
            )
        ranges[name] = Range(float(ends[0]), float(ends[1]), kind)
    return ranges


def check_range(policy: Any, environment: Any, name: str, ends: Range) -> None:
    """Raises if an end of its range is an invalid value of a parameter of the policy or the environment."""
    for end in (ends.low, ends.high):
        try:
            move(policy, environment, {name: end})
        except ValueError as error:
            raise ValueError(
                f"the range of {name}, [{ends.low:g}, {ends.high:g}], reaches invalid values: {error}"
            ) from None


def _has(obj: Any, name: str) -> bool:
    """Returns whether an object has a parameter of that name that takes any number."""
    return any(known == name or known.endswith(f".{name}") for known in movable(obj))


def _listed(obj: Any, whole: bool) -> dict[str, float | str]:
    """Returns every field by its full name: its value if it can be moved, otherwise the reason why not."""
    found: dict[str, float | str] = {}
    for name, spec in public_fields(type(obj)).items():
        value = getattr(obj, spec.name)
        if spec.metadata.get("nested") and dataclasses.is_dataclass(value):
            found |= {f"{name}.{inner}": entry for inner, entry in _listed(value, whole).items()}
        elif spec.name == "arm_means" and rank(spec) == 1:
            found[name] = f"it holds one number per arm; move {GAP!r} instead"
            found[GAP] = gap_of(obj) or "all arms have the same mean"
        else:
            reason = _why_not(spec, value, whole)
            found[name] = reason or float(value)
    return found


def _renamed(obj: Any, name: str) -> list[str]:
    """Returns the full names of the parameters that had this name first, and warns of it."""
    found = []
    for first, current in renamed_fields(type(obj)).items():
        if first == name:
            warn_of_first_name(type(obj), first, current)
            found.append(current)
    for outer, spec in public_fields(type(obj)).items():
        inner = getattr(obj, spec.name)
        if spec.metadata.get("nested") and dataclasses.is_dataclass(inner):
            found += [f"{outer}.{known}" for known in _renamed(inner, name.removeprefix(f"{outer}."))]
    return found


def _why_not(spec: dataclasses.Field, value: Any, whole: bool) -> str:
    if is_static(spec):
        return "it is static, compiled into the program"
    if value is None:
        return "it is not set; give it a value first"
    if rank(spec) or np.ndim(value):
        return "it holds more than one number; give one number for all arms"
    if spec.metadata.get("whole") and not whole:
        return "it takes whole numbers only"
    if isinstance(value, Tracer):
        return "it is traced; move it outside of jit"
    if not (np.isfinite(float(value)) and value > 0):  # NumPy knows no whole numbers beyond 64 bits
        return f"it is {float(value):g}, which has no logarithm to move; give a positive number"
    return ""


def _replaced(obj: Any, path: list[str], value: float) -> Any:
    head, *rest = path
    specs = public_fields(type(obj))
    if rest:
        inner = getattr(obj, specs[head].name)
        return dataclasses.replace(obj, **{specs[head].name: _replaced(inner, rest, value)})
    if head in specs:
        return dataclasses.replace(obj, **{specs[head].name: value})
    return with_gap(obj, value)

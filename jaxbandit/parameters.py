"""Parameters that can be moved: the traced numbers of a policy or world, found and changed by name.

A name is that of a field, ``"initial_scale"``; of a field of a world inside a world, ``"law.tail_index"`` (or
``"tail_index"`` where only one field has that name); or ``"gap"`` of a world with means: the distance of the other
arms' means from the best one's, all of them stretched alike. Where a policy and its world both have a name,
``"policy.scale"`` and ``"environment.scale"`` tell them apart.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.core import Tracer

from jaxbandit.grid import suggest
from jaxbandit.types import is_static, public_fields, rank

GAP = "gap"
SIDES = ("policy", "environment")


def movable(obj: Any, *, whole: bool = False) -> dict[str, float]:
    """The parameters of a policy or world that can be moved in log space, with their values.

    Those are traced, positive, finite, one number each; ``whole`` includes the ones that take whole numbers only.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.parameters import movable
      >>> movable(jb.UniINF(horizon=1_000))
      {'horizon': 1000.0, 'initial_scale': 4.0, 'threshold': 0.25}
      >>> movable(jb.Swap(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), at=0.25))
      {'law.gap': 0.5, 'law.tail_index': 1.6, 'at': 0.25}
    """
    return {name: found for name, found in _listed(obj, whole).items() if not isinstance(found, str)}


def value_of(obj: Any, name: str) -> float:
    """The value of a parameter."""
    return movable(obj, whole=True)[full_name(obj, name, whole=True)]


def with_value(obj: Any, name: str, value: float) -> Any:
    """The policy or world with one parameter set; what follows from it is derived anew, and bounds are checked.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.parameters import with_value
      >>> with_value(jb.Pareto(means=[0.5, 1.0, 1.5], tail_index=1.6), "gap", 0.25)
      Pareto(means=[0.5, 0.75, 1.0], tail_index=1.6)
    """
    return _replaced(obj, full_name(obj, name, whole=True).split("."), value)


def full_name(obj: Any, name: str, *, whole: bool = False) -> str:
    """The parameter's name from the outermost object; raises where it cannot be moved, saying what can."""
    listed = _listed(obj, whole)
    matches = [known for known in listed if known == name or known.endswith(f".{name}")]
    if name in listed:
        matches = [name]
    able = movable(obj, whole=whole)
    kind = type(obj).__name__
    if len(matches) > 1:
        raise ValueError(f"{kind} has {name!r} more than once; say which: {', '.join(matches)}")
    if not matches:
        raise ValueError(f"{kind} has no parameter {name!r} that can be moved; {suggest(name, able)}")
    if isinstance(listed[matches[0]], str):
        others = f"can be moved: {', '.join(able)}" if able else f"{kind} has none that can be moved"
        raise ValueError(f"{kind}.{matches[0]} cannot be moved: {listed[matches[0]]}; {others}")
    return matches[0]


def place(policy: Any, environment: Any, name: str, *, whole: bool = False) -> tuple[str, str]:
    """Whose parameter a name is: (``"policy"`` or ``"environment"``, the name there); raises where it is nobody's.

    With ``whole``, a parameter that takes whole numbers only is found where no other has the name.
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
            f"{name!r} is a parameter of the policy {type(policy).__name__} and of the world "
            f"{type(environment).__name__}; say which: {', '.join(f'{side}.{name}' for side in SIDES)}"
        )
    if not found:
        if reasons:
            raise ValueError("; ".join(reasons))
        able = [*movable(policy, whole=whole), *movable(environment, whole=whole)]
        pair = f"{type(policy).__name__} in {type(environment).__name__}"
        raise ValueError(f"{pair} has no parameter {name!r} that can be moved; {suggest(name, able)}")
    return found[0]


def values_of(policy: Any, environment: Any, names: Any) -> dict[str, float]:
    """The values of parameters of a policy and its world, by the names given."""
    sides = dict(zip(SIDES, (policy, environment), strict=True))
    placed = {name: place(policy, environment, name, whole=True) for name in names}
    return {name: value_of(sides[side], inner) for name, (side, inner) in placed.items()}


def move(policy: Any, environment: Any, values: Mapping[str, float]) -> tuple[Any, Any]:
    """A policy and its world with parameters of either set; where none is a side's, it is the same object."""
    pair = dict(zip(SIDES, (policy, environment), strict=True))
    for name, value in values.items():
        side, inner = place(policy, environment, name, whole=True)
        pair[side] = with_value(pair[side], inner, value)
    return pair["policy"], pair["environment"]


def _has(obj: Any, name: str) -> bool:
    """Whether an object has a parameter of that name that takes any number."""
    return any(known == name or known.endswith(f".{name}") for known in movable(obj))


def _listed(obj: Any, whole: bool) -> dict[str, float | str]:
    """Every field by full name: its value if it can be moved, the reason if not."""
    found: dict[str, float | str] = {}
    for name, spec in public_fields(type(obj)).items():
        value = getattr(obj, spec.name)
        if spec.metadata.get("nested") and dataclasses.is_dataclass(value):
            found |= {f"{name}.{inner}": entry for inner, entry in _listed(value, whole).items()}
        elif spec.name == "arm_means" and rank(spec) == 1:
            found[name] = f"it holds one number per arm; move {GAP!r}"
            found[GAP] = _gap(value) or "all arms have the same mean"
        else:
            reason = _why_not(spec, value, whole)
            found[name] = reason or float(value)
    return found


def _why_not(spec: dataclasses.Field, value: Any, whole: bool) -> str:
    if is_static(spec):
        return "it is static, compiled into the program"
    if value is None:
        return "it is not set; give it a value first"
    if rank(spec) or np.ndim(value):
        return "it holds more than one number; give one for all"
    if spec.metadata.get("whole") and not whole:
        return "it takes whole numbers only"
    if isinstance(value, Tracer):
        return "it is traced; move it outside of jit"
    if not (np.isfinite(value) and value > 0):
        return f"it is {float(value):g}, which has no logarithm to move; give a positive number"
    return ""


def _gap(means: Any) -> float:
    """The smallest distance from the best mean that is not 0; 0 if there is none."""
    distances = np.asarray(means, np.float64) - np.min(means)
    positive = distances[distances > 0]
    return float(positive.min()) if positive.size else 0.0


def _replaced(obj: Any, path: list[str], value: float) -> Any:
    head, *rest = path
    specs = public_fields(type(obj))
    if rest:
        inner = getattr(obj, specs[head].name)
        return dataclasses.replace(obj, **{specs[head].name: _replaced(inner, rest, value)})
    if head in specs:
        return dataclasses.replace(obj, **{specs[head].name: value})
    means = np.asarray(obj.arm_means, np.float64)
    best = means.min()
    return dataclasses.replace(obj, arm_means=best + (means - best) * (value / _gap(means)))

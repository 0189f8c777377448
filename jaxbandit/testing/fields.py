"""The check of declared bounds, which policies and environments share."""

import dataclasses
from typing import Any

from jaxbandit.testing.games import require
from jaxbandit.types import public_fields


def edges(obj: Any) -> list[tuple[str, str, float, float]]:
    """Returns every declared bound: the field's public name, its attribute, a value outside and one inside."""
    found = []
    for name, spec in public_fields(type(obj)).items():
        for bound, limit in spec.metadata.get("bounds", {}).items():
            step = 1e-6 * max(abs(limit), 1)
            outside = {"gt": limit, "ge": limit - step, "lt": limit, "le": limit + step}[bound]
            inside = {"gt": limit + step, "ge": limit, "lt": limit - step, "le": limit}[bound]
            found.append((name, spec.name, outside, inside))
    return found


def counted(bounds: list) -> str:
    """Returns the number of declared bounds in words."""
    if not bounds:
        return "no bounds are declared; field(gt=0) would check values"
    return f"{len(bounds)} declared {'bound' if len(bounds) == 1 else 'bounds'}"


def refuses(obj: Any, name: str, attribute: str, outside: Any) -> None:
    """Raises unless a value outside of a declared bound is refused with a message that names the field."""
    where = f"{type(obj).__name__}.{name}"
    try:
        dataclasses.replace(obj, **{attribute: outside})
    except ValueError as error:
        require(where in str(error), f"the error of a bad {name} must name {where}, but it is: {error}")
    else:
        require(False, f"{where} = {outside:g} breaks a declared bound, but no error is raised; see __post_init__")

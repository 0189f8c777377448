"""The inverse of ``entries``: the entry of a study file that makes a policy, environment or grid."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import GAP, Grid, is_axis, takes_gap
from jaxbandit.policies import POLICIES
from jaxbandit.studies.sources import held_name, is_held
from jaxbandit.types import public_fields, written

CALLED = "called"  # the key for a field called ``name``: in an entry, ``name`` is the name of the class
REGISTRIES: dict[str, dict[str, type]] = {"policies": POLICIES, "environments": ENVIRONMENTS}

Values = dict[str, Any]


def as_tables(given: Any, section: str) -> list[Values]:
    """Returns the tables of a section that is given as a list, as one entry, or as a dictionary of labelled objects."""
    if isinstance(given, Mapping) and given and all(_is_object(obj) for obj in given.values()):
        return [as_table(obj, section) | {"label": str(label)} for label, obj in given.items()]
    return [as_table(obj, section) for obj in (given if isinstance(given, list | tuple) else [given])]


def _is_object(obj: Any) -> bool:
    return isinstance(obj, Grid) or (dataclasses.is_dataclass(obj) and not isinstance(obj, type))


def as_table(obj: Any, section: str) -> Values:
    """Returns the table that makes a policy, environment or grid; a field with two axes stays an array."""
    if isinstance(obj, Mapping):
        name = obj.get("name", "")
        known = REGISTRIES[section].get(name) if isinstance(name, str) else None
        specs = public_fields(known) if known else {}
        return {str(key): _field_value(value, specs.get(key), section) for key, value in obj.items()}
    if isinstance(obj, str):
        raise ValueError(f'{obj!r} in {section} must be a table with a name: [[{section}]] and below it name = "{obj}"')
    cls = obj.cls if isinstance(obj, Grid) else type(obj)
    if not dataclasses.is_dataclass(cls):
        made = f"; pass an object: {written(obj)}(...)" if isinstance(obj, type) else ""
        raise ValueError(f"an entry of {section} must be a table, an object or a grid, got {obj!r}{made}")
    name = next((key for key, known in REGISTRIES[section].items() if known is cls), None)
    table: Values = {"name": name or (held_name(cls) if is_held(cls) else f"{cls.__module__}:{cls.__qualname__}")}
    point = obj.points[0] if isinstance(obj, Grid) else obj
    for key, spec in public_fields(cls).items():
        value = obj.axes[key] if isinstance(obj, Grid) and key in obj.axes else getattr(point, spec.name)
        if value is not None and not _is_default(value, spec):
            swept = isinstance(obj, Grid) and key in obj.axes
            if spec.metadata.get("table"):
                value = [np.asarray(entry) for entry in value] if swept else np.asarray(value)
            given = _field_value(value, spec, section)
            if is_axis(spec, given) and not swept:
                given = [given]  # one number per arm: without the outer list it would be swept
            table[CALLED if key == "name" else key] = given
    if isinstance(obj, Grid):
        table |= {GAP: list(obj.axes[GAP])} if GAP in obj.axes and takes_gap(cls) else {}
        table |= {key: table.pop(key) for key in obj.axes if key in table}  # axes in their own order
        table |= {"zip": [list(group) for group in obj.zipped]} if obj.zipped else {}
    return table


def held_tables(table: Mapping[str, Any]) -> list[str]:
    """Returns the fields of an entry, and of entries inside it, that hold arrays: TOML cannot store them."""
    places = []
    for key, value in table.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Mapping):
                places += held_tables(part)
            elif isinstance(part, np.ndarray):
                places.append(f"{table['name']}.{key}")
    return list(dict.fromkeys(places))


def _field_value(value: Any, spec: dataclasses.Field | None, section: str) -> Any:
    """Converts a field's value for TOML, except arrays of two axes if the field takes them or is unknown."""
    if spec is None or spec.metadata.get("table"):
        if isinstance(value, np.ndarray | jax.Array) and value.ndim > 1:
            return np.asarray(value)
        if isinstance(value, list | tuple):
            return [_field_value(entry, spec, section) for entry in value]
    return _plain(value, section)


def _plain(value: Any, section: str) -> Any:
    """Converts a value to one that TOML can store."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return value.tolist()
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
        return as_table(value, section)
    if isinstance(value, list | tuple | range):
        if {int, float, str}.issuperset(map(type, value)):
            return list(value)
        return [_plain(entry, section) for entry in value]
    return value


def _is_default(value: Any, spec: dataclasses.Field) -> bool:
    return isinstance(value, bool | int | float | str) and value == spec.default

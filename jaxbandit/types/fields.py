"""Fields of a policy or environment: their declaration, their names, their form."""

import dataclasses
import hashlib
import math
import operator
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

Array = jax.Array
Numbers = Any  # of a field with one number per arm or round: callers pass a list or an array, methods find an array

ONE_PER_ARM = "one value per arm, a list such as [0.5, 1.0]"
BOUNDS = {
    "gt": (np.greater, ">"),
    "ge": (np.greater_equal, ">="),
    "lt": (np.less, "<"),
    "le": (np.less_equal, "<="),
}


def field(
    *,
    default: Any = dataclasses.MISSING,
    alias: str | None = None,
    was: str | None = None,
    static: bool = False,
    vector: bool | str = False,
    per_arm: bool = False,
    table: bool | str = False,
    shared: bool = False,
    derived: bool = False,
    nested: bool = False,
    choices: Sequence[Any] | None = None,
    whole: bool = False,
    infinite: bool = False,
    hint: str = "",
    **bounds: float,
) -> Any:
    """Declares a field of a policy or environment.

    Args:
      default: Value when none is given.
      alias: The public name, if a method has the name of the attribute.
      was: The first public name, if the field was renamed. It is still read, with a warning, and names of results
        still contain it.
      static: Decides a shape or a branch: compiled in, not traced.
      vector: One value per arm, ``[K]``; a plain list is then one value, not a sweep. A string
        describes the list in messages.
      per_arm: One number for all arms, or one for each: a list ``[K]``.
      table: One value has two axes, e.g. ``[rounds, K]``; makes the field shared. A string describes it.
      shared: Whether all lanes share the value. The engine then keeps one copy, and computes once a round every
        number that depends on it and on the round alone. Points of a sweep that differ in it are played in turn.
      derived: (With a default.) Set by ``__post_init__`` from the others; not an argument, not shown.
      nested: Holds another policy or environment, whose own fields are checked by itself.
      choices: The admissible values; makes the field static.
      whole: Takes whole numbers only.
      infinite: Takes infinity too.
      hint: What to do about a bad value; ends the error message.
      **bounds: ``gt``, ``ge``, ``lt``, ``le``, each checked on the host.
    """
    unknown = set(bounds) - set(BOUNDS)
    if unknown:
        raise TypeError(f"unknown bounds {sorted(unknown)}; use {sorted(BOUNDS)}")
    if isinstance(default, list):
        default = tuple(default)  # which cannot change; the object holds an array of it
    metadata = {
        "alias": alias,
        "was": was,
        "static": static or choices is not None,
        "vector": ONE_PER_ARM if vector is True else vector,
        "per_arm": per_arm,
        "table": "a table with a row per round and a column per arm" if table is True else table,
        "shared": shared or bool(table),
        "derived": derived,
        "nested": nested,
        "choices": choices,
        "whole": whole,
        "infinite": infinite,
        "hint": hint,
        "bounds": bounds,
    }
    if derived:
        return dataclasses.field(default=default, init=False, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def as_whole(value: Any) -> int | None:
    """Returns a whole number, NumPy's included, as Python's; None for anything else, True and 4.0 included."""
    return None if isinstance(value, bool) or not hasattr(value, "__index__") else operator.index(value)


def is_static(spec: dataclasses.Field) -> bool:
    """Returns whether a field is compiled in rather than traced."""
    return bool(spec.metadata.get("static"))


def rank(spec: dataclasses.Field) -> int:
    """Returns the number of axes of one value; a value with one more axis is a sweep."""
    return 2 if spec.metadata.get("table") else 1 if spec.metadata.get("vector") and not is_static(spec) else 0


def public_name(spec: dataclasses.Field) -> str:
    """Returns the name of a field that a user gives and reads."""
    return spec.metadata.get("alias") or spec.name


def written(cls: type) -> str:
    """Returns a class as a script writes it: ``jb.UniINF``, but the own name of a class that is not shipped."""
    return f"jb.{cls.__name__}" if cls.__module__.startswith("jaxbandit.") else cls.__name__


def recorded_name(spec: dataclasses.Field) -> str:
    """Returns the name of a field in descriptions and in names of results, which stays if the field is renamed."""
    return spec.metadata.get("was") or public_name(spec)


def renamed_fields(cls: type) -> dict[str, str]:
    """Returns the public names of the fields that were renamed, by first name."""
    return {recorded_name(spec): name for name, spec in public_fields(cls).items() if spec.metadata.get("was")}


def current_names(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values by the current names of the fields of ``cls``; warns of a first name."""
    renamed = renamed_fields(cls)
    for first, name in renamed.items():
        if first in values and name in values:
            raise ValueError(f"{cls.__name__} is given both {first} and {name}, two names of one field; give {name}")
        if first in values:
            warn_of_first_name(cls, first, name)
    return {renamed.get(key, key): value for key, value in values.items()}


def warn_of_first_name(cls: type, first: str, name: str) -> None:
    """Warns that a field was given by its first name."""
    message = f"{cls.__name__}.{first} is now called {name}; the old name is still read in this release"
    warnings.warn(message, FutureWarning, stacklevel=4)


def public_fields(cls: type) -> dict[str, dataclasses.Field]:
    """Returns the fields that a user may give, by public name."""
    return {public_name(spec): spec for spec in dataclasses.fields(cls) if not spec.metadata.get("derived")}


def required_fields(cls: type) -> list[str]:
    """Returns the fields that a user must give, by public name."""
    return [name for name, spec in public_fields(cls).items() if spec.default is dataclasses.MISSING]


def field_values(obj: Any) -> dict[str, Any]:
    """Returns the values of the fields of a policy or environment, by public name."""
    return {name: getattr(obj, spec.name) for name, spec in public_fields(type(obj)).items()}


def shared_leaves(obj: Any) -> list[bool]:
    """Returns for each leaf, in the order of ``jax.tree.leaves``, whether all lanes share it."""
    return [_is_shared(obj, path) for path, _ in jax.tree_util.tree_flatten_with_path(obj)[0]]


def fingerprint(values: Any) -> str:
    """Returns a digest of the values of an array."""
    return hashlib.blake2b(np.asarray(values, np.float64).tobytes(), digest_size=16).hexdigest()


def format_number(value: float) -> str:
    """Returns a number as a label: ``4`` for 4.0, ``1e-05`` for 0.00001."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e9 else f"{value:g}"


def _is_shared(node: Any, path: Sequence[Any]) -> bool:
    for key in path:
        if not isinstance(key, jax.tree_util.GetAttrKey) or not dataclasses.is_dataclass(node):
            return False
        if any(spec.name == key.name and spec.metadata.get("shared") for spec in dataclasses.fields(node)):
            return True
        node = getattr(node, key.name)
    return False

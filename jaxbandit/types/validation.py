"""Checks of the values of fields, on the host."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxbandit.types.fields import BOUNDS, ONE_PER_ARM, fingerprint, is_static, public_fields, public_name, rank


def validate(obj: Any) -> None:
    """Raises ``ValueError`` where a field breaks a bound declared on it.

    Looks only at values on the host: under ``jit`` and ``vmap`` fields are tracers.
    """
    for spec in dataclasses.fields(obj):
        value = getattr(obj, spec.name)
        where = where_is(obj, spec)
        hint = f"; {spec.metadata['hint']}" if spec.metadata.get("hint") else ""
        choices = spec.metadata.get("choices")
        if choices is not None and value not in choices:
            raise ValueError(f"{where} must be one of {', '.join(map(repr, choices))}, got {value!r}{hint}")
        unchecked = is_static(spec) or spec.metadata.get("nested") or value is None or isinstance(value, Tracer)
        if unchecked:
            continue
        if not isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic | jax.Array):
            shape = "numbers" if rank(spec) else "a number"
            quoted = "; write it without quotes" if _is_number(value) else hint
            raise ValueError(f"{where} must be {shape}, got {short(value)}{quoted}")
        array = as_array(where, value)
        if np.isnan(array).any():
            place = f" at {_place(np.isnan(array))}" if array.ndim else ""
            raise ValueError(f"{where} must not be NaN, got {short(value)}{place}; give a number for every entry")
        if np.isinf(array).any() and not spec.metadata.get("infinite"):
            raise ValueError(f"{where} must be finite, got {short(value)}{hint or '; give a finite number'}")
        if spec.metadata.get("whole") and (array != np.floor(array)).any():
            raise ValueError(f"{where} must be whole, got {short(value)}{hint}")
        if spec.metadata.get("vector") and (array.ndim == 0 or array.shape[-1] == 0):
            raise ValueError(f"{where} needs {spec.metadata['vector']}, got {short(value)}")
        if spec.metadata.get("table") and (array.ndim < 2 or 0 in array.shape):
            raise ValueError(f"{where} needs {spec.metadata['table']}, got shape {array.shape}")
        for bound, limit in spec.metadata.get("bounds", {}).items():
            holds, sign = BOUNDS[bound]
            if not np.all(holds(array, limit)):
                raise ValueError(f"{where} must be {sign} {limit:g}, got {short(value)}{hint or '; choose another'}")


def check_single(obj: Any) -> None:
    """Raises ``ValueError`` where a field holds several values: stacked fields are for ``vmap``, a sweep is a grid."""
    for name, spec in public_fields(type(obj)).items():
        value = getattr(obj, spec.name)
        if spec.metadata.get("nested"):
            if dataclasses.is_dataclass(value):
                check_single(value)
            continue
        own = spec.metadata.get("vector") not in (False, None, ONE_PER_ARM)  # a list of its own kind: its class knows
        if own or is_static(spec) or np.ndim(value) <= max(rank(spec), bool(spec.metadata.get("per_arm"))):
            continue
        one = ("one number", "one list of numbers", "one table")[rank(spec)]
        cls, shown = type(obj).__name__, short(np.asarray(value).tolist())
        raise ValueError(
            f"{cls}.{name} must be {one} here, got {shown}; to sweep it: jb.grid(jb.{cls}, {name}={shown}, ...)"
        )


def check_made(obj: Any) -> None:
    """Raises ``TypeError`` unless the class of a policy or environment is made by ``pytree``; bases do not count."""
    cls = type(obj)
    if dataclasses.is_dataclass(obj) and not jax.tree_util.all_leaves([obj]):
        return
    base = next((base.__name__ for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)), None)
    why = f"its base {base} is, but a subclass needs a decorator of its own" if base else "so JAX cannot see its fields"
    raise TypeError(
        f"the class {cls.__name__} is not decorated, {why}; write `from jaxbandit.types import pytree`, and @pytree in "
        f"the line above `class {cls.__name__}`"
    )


def where_is(obj: Any, spec: dataclasses.Field) -> str:
    """Returns the name of a field with that of its class, for messages."""
    return f"{type(obj).__name__}.{public_name(spec)}"


def as_array(where: str, value: Any) -> np.ndarray:
    """Returns numbers as an array of float64; raises ``ValueError`` with the place if they are none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except OverflowError:
        raise ValueError(
            f"{where} must be at most 1.8e308 in size, got {short(value)}; give a smaller number"
        ) from None
    except (TypeError, ValueError):
        raise ValueError(
            f"{where} must be numbers of one shape, got {short(value)}{_text_at(value)}; "
            "give a number or an even list of numbers"
        ) from None


def _is_number(value: Any) -> bool:
    """Returns whether a text is a number in quotes."""
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


def _text_at(value: Any) -> str:
    """Returns the place of the first entry of a table that is no number, as text."""
    rows = value if isinstance(value, list | tuple | np.ndarray) else []
    for n, row in enumerate(rows):
        for k, entry in enumerate(row if isinstance(row, list | tuple | np.ndarray) else []):
            if not isinstance(entry, bool | int | float | np.generic):
                return f" with {entry!r} at row {n}, column {k}"
    return ""


def _place(where: np.ndarray) -> str:
    """Returns the index, from 0, of the first true entry."""
    index = np.unravel_index(int(np.argmax(where)), where.shape)
    return f"row {index[0]}, column {index[1]}" if where.ndim == 2 else f"entry {', '.join(map(str, index))}"


def short(value: Any) -> str:
    """Returns a value as text of at most 60 letters."""
    if isinstance(value, np.ndarray | jax.Array) and value.size > 100:
        return f"an array of shape {value.shape}"
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def shown(value: Any) -> str:
    """Returns a value in a line of text; a table by its shape and fingerprint, as in labels."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"{'x'.join(map(str, value.shape))} {fingerprint(value)[:8]}"
    return short(value)

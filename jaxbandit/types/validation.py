"""Checks of the values of fields, on the host."""

import dataclasses
import functools
import inspect
import math
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxbandit.types.fields import (
    BOUNDS,
    ONE_PER_ARM,
    as_whole,
    fingerprint,
    is_static,
    public_fields,
    public_name,
    rank,
    written,
)

PROTOCOL: dict[str, tuple[str, ...]] = {
    "policy": ("init", "probabilities", "update"),
    "environment": ("num_arms", "means", "loss"),
}
ARGUMENTS = {
    "init": ("num_arms",),
    "probabilities": ("state", "t", "key"),
    "update": ("state", "t", "x", "arm", "loss"),  # and key, if it is declared
    "measure": ("state", "t", "x", "arm", "loss", "after"),
    "means": ("t",),
    "loss": ("t", "arm", "key"),
    "moment": ("alpha",),
}


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
        cls, shown = type(obj), short(np.asarray(value).tolist())
        vector = "" if rank(spec) else "; if it has one number per arm, declare it with field(vector=True)"
        raise ValueError(
            f"{cls.__name__}.{name} must be {one} here, got {shown}; to sweep it: jb.grid({written(cls)}, "
            f"{name}={shown}, ...){'' if cls.__module__.startswith('jaxbandit.') else vector}"
        )


def check_kind(kind: str, obj: Any) -> None:
    """Raises unless an object is one policy or one environment, as ``kind`` says, of a class made by ``pytree``."""
    if isinstance(obj, type):
        raise ValueError(f"{kind} is the class {obj.__name__}; pass an instance: {written(obj)}(...)")
    if isinstance(obj, str):
        raise ValueError(f"{kind} is the text {obj!r}; pass an object, such as jb.UniINF(horizon=...)")
    if missing := lacking(kind, obj):
        name, (other,) = type(obj).__name__, (each for each in PROTOCOL if each != kind)
        if not lacking(other, obj):
            raise ValueError(f"{name} is no {kind}; pass the policy first and the environment second")
        if hasattr(obj, "replay"):
            raise ValueError(
                f"{kind} is a table of losses, which is replayed in one of two orders; pass table.replay() for its "
                'stored order, or table.replay(order="resampled") to draw rows at random'
            )
        if isinstance(obj, list | tuple | dict) or hasattr(obj, "points"):
            raise ValueError(f"{kind} must be one object here, got a {name}; pass lists and grids to jb.simulate")
        lacks = f"{short(obj)} lacks {', '.join(missing)}"
        raise ValueError(f"{kind} must have {', '.join(PROTOCOL[kind])}; {lacks}; see `jaxbandit list`")
    check_made(obj)


def lacking(kind: str, obj: Any) -> list[str]:
    """Returns what an object lacks to be a policy or an environment; a property may still raise an error of its own."""
    return [name for name in PROTOCOL[kind] if not hasattr(type(obj), name) and not hasattr(obj, name)]


def check_made(obj: Any) -> None:
    """Raises ``TypeError`` unless the class of a policy or environment is made by ``pytree``; bases do not count.

    Its methods must also take the arguments of the protocol, and its number of arms must be a whole number.
    """
    cls = type(obj)
    if dataclasses.is_dataclass(obj) and not jax.tree_util.all_leaves([obj]):
        _check_arguments(cls)
        num_arms = getattr(obj, "num_arms", 1) if hasattr(cls, "loss") else 1
        if (as_whole(num_arms) or 0) < 1:
            raise TypeError(
                f"{cls.__name__}.num_arms must be a whole number >= 1, got {num_arms!r}; write a property, such as "
                "@property def num_arms(self): return self.arm_means.shape[0]"
            )
        return
    base = next((base.__name__ for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)), None)
    why = f"its base {base} is, but a subclass needs a decorator of its own" if base else "so JAX cannot see its fields"
    raise TypeError(
        f"the class {cls.__name__} is not decorated, {why}; write `from jaxbandit.types import pytree`, and @pytree in "
        f"the line above `class {cls.__name__}`"
    )


@functools.lru_cache(maxsize=1024)
def _check_arguments(cls: type) -> None:
    """Raises ``TypeError`` unless every method takes the arguments of the protocol, which are passed by position."""
    for method, names in ARGUMENTS.items():
        function = inspect.getattr_static(cls, method, None)
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        own = list(signature.parameters)[1:]
        passed = (*names, "key") if method == "update" and "key" in own else names
        try:
            signature.bind("self", *passed)
            right = all(passed[n] == name for n, name in enumerate(own) if name in passed)
        except (TypeError, IndexError):
            right = False
        if not right:
            drawn = ", and key as its last argument if it draws" if method == "update" else ""
            raise TypeError(
                f"{cls.__name__}.{method} takes ({', '.join(own)}), but it is called with ({', '.join(passed)}); write "
                f"def {method}(self, {', '.join(names)}){drawn}"
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

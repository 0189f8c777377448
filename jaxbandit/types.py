"""The decorator that makes a policy or an environment data, and the checks of its fields.

A policy or environment is a frozen dataclass whose fields are pytree leaves: a hyperparameter is traced,
never compiled in, so an object with stacked fields is a sweep. ``field(static=True)`` is kept for
what decides a shape or a branch of the definition.
"""

import dataclasses
import functools
import hashlib
import inspect
import math
from collections.abc import Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.core import Tracer

Array = jax.Array
Numbers = Any  # of a field with one number per arm or round: callers pass a list or an array, methods find an array

T = TypeVar("T")

ONE_PER_ARM = "one value per arm, a list such as [0.5, 1.0]"
_BOUNDS = {
    "gt": (np.greater, ">"),
    "ge": (np.greater_equal, ">="),
    "lt": (np.less, "<"),
    "le": (np.less_equal, "<="),
}


def field(
    *,
    default: Any = dataclasses.MISSING,
    alias: str | None = None,
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
    """A field of a policy or environment.

    Args:
      default: Value when none is given.
      alias: The public name, where the attribute's own is taken by a method.
      static: Decides a shape or a branch: compiled in, not traced.
      vector: One value per arm, ``[K]``; a plain list is then one value, not a sweep. A string says what
        the list holds instead.
      per_arm: One number for all arms, or one for each: a list ``[K]``.
      table: One value has two axes, e.g. ``[rounds, K]``; makes the field shared. A string says what it holds.
      shared: The same in every lane, so that it is never copied per lane and what follows from it and the
        round alone is computed once, not per lane. Points of a sweep that differ in it are played in turn.
      derived: (With a default.) Set by ``__post_init__`` from the others; not an argument, not shown.
      nested: Holds another policy or environment, whose own fields are checked by itself.
      choices: The admissible values; makes the field static.
      whole: Takes whole numbers only.
      infinite: Takes infinity too.
      hint: What to do about a bad value; ends the error message.
      **bounds: ``gt``, ``ge``, ``lt``, ``le``, each checked on the host.
    """
    unknown = set(bounds) - set(_BOUNDS)
    if unknown:
        raise TypeError(f"unknown bounds {sorted(unknown)}; use {sorted(_BOUNDS)}")
    metadata = {
        "alias": alias,
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


@dataclass_transform(frozen_default=True, field_specifiers=(field,), eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Makes ``cls`` a frozen dataclass and a pytree; values given on the host are checked at once."""
    check_more = getattr(cls, "__post_init__", None)

    def __post_init__(self):
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if isinstance(value, list | tuple) and not is_static(spec):
                object.__setattr__(self, spec.name, _as_array(_where(self, spec), value))
        validate(self)
        if check_more is not None:
            check_more(self)

    cls.__post_init__ = __post_init__  # pyright: ignore[reportAttributeAccessIssue]
    cls.__repr__ = _repr  # pyright: ignore[reportAttributeAccessIssue]
    cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    specs = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
    _accept_aliases(cls, {public_name(spec): spec.name for spec in specs if spec.metadata.get("alias")})

    traced = [spec.name for spec in specs if not is_static(spec)]
    static = [spec.name for spec in specs if is_static(spec)]

    def flatten(obj):
        return [(jax.tree_util.GetAttrKey(name), getattr(obj, name)) for name in traced], tuple(
            getattr(obj, name) for name in static
        )

    def unflatten(aux, children):
        # Past the constructor and its checks: under jit and vmap the fields are tracers.
        obj = object.__new__(cls)
        for name, value in zip((*traced, *static), (*children, *aux), strict=True):
            object.__setattr__(obj, name, value)
        return obj

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


def validate(obj: Any) -> None:
    """Raises ``ValueError`` where a field breaks a bound declared on it.

    Looks only at values on the host: under ``jit`` and ``vmap`` fields are tracers.
    """
    for spec in dataclasses.fields(obj):
        value = getattr(obj, spec.name)
        where = _where(obj, spec)
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
            raise ValueError(f"{where} must be {shape}, got {_short(value)}{quoted}")
        array = _as_array(where, value)
        if np.isnan(array).any():
            place = f" at {_place(np.isnan(array))}" if array.ndim else ""
            raise ValueError(f"{where} must not be NaN, got {_short(value)}{place}; give a number for every entry")
        if np.isinf(array).any() and not spec.metadata.get("infinite"):
            raise ValueError(f"{where} must be finite, got {_short(value)}{hint or '; give a finite number'}")
        if spec.metadata.get("whole") and (array != np.floor(array)).any():
            raise ValueError(f"{where} must be whole, got {_short(value)}{hint}")
        if spec.metadata.get("vector") and (array.ndim == 0 or array.shape[-1] == 0):
            raise ValueError(f"{where} needs {spec.metadata['vector']}, got {_short(value)}")
        if spec.metadata.get("table") and (array.ndim < 2 or 0 in array.shape):
            raise ValueError(f"{where} needs {spec.metadata['table']}, got shape {array.shape}")
        for bound, limit in spec.metadata.get("bounds", {}).items():
            holds, sign = _BOUNDS[bound]
            if not np.all(holds(array, limit)):
                raise ValueError(f"{where} must be {sign} {limit:g}, got {_short(value)}{hint or '; choose another'}")


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
        cls, shown = type(obj).__name__, _short(np.asarray(value).tolist())
        raise ValueError(
            f"{cls}.{name} must be {one} here, got {shown}; to sweep it: jb.grid(jb.{cls}, {name}={shown}, ...)"
        )


def is_static(spec: dataclasses.Field) -> bool:
    """Whether a field is compiled in rather than traced."""
    return bool(spec.metadata.get("static"))


def rank(spec: dataclasses.Field) -> int:
    """The number of axes of one value; one more is a sweep."""
    return 2 if spec.metadata.get("table") else 1 if spec.metadata.get("vector") and not is_static(spec) else 0


def shared_leaves(obj: Any) -> list[bool]:
    """Whether each leaf of a policy or environment, in the order of ``jax.tree.leaves``, is the same in every lane."""
    return [_is_shared(obj, path) for path, _ in jax.tree_util.tree_flatten_with_path(obj)[0]]


def fingerprint(values: Any) -> str:
    """Tells arrays of one shape apart by what they hold."""
    return hashlib.blake2b(np.asarray(values, np.float64).tobytes(), digest_size=16).hexdigest()


def _is_shared(node: Any, path: Sequence[Any]) -> bool:
    for key in path:
        if not isinstance(key, jax.tree_util.GetAttrKey) or not dataclasses.is_dataclass(node):
            return False
        if any(spec.name == key.name and spec.metadata.get("shared") for spec in dataclasses.fields(node)):
            return True
        node = getattr(node, key.name)
    return False


def public_name(spec: dataclasses.Field) -> str:
    """The name a user gives and reads."""
    return spec.metadata.get("alias") or spec.name


def field_values(obj: Any) -> dict[str, Any]:
    """The fields of a policy or environment by public name."""
    return {name: getattr(obj, spec.name) for name, spec in public_fields(type(obj)).items()}


def public_fields(cls: type) -> dict[str, dataclasses.Field]:
    """The fields a user may give, by public name."""
    return {public_name(spec): spec for spec in dataclasses.fields(cls) if not spec.metadata.get("derived")}


def _where(obj: Any, spec: dataclasses.Field) -> str:
    return f"{type(obj).__name__}.{public_name(spec)}"


def _accept_aliases(cls: type, names: dict[str, str]) -> None:
    if not names:
        return
    init = cls.__init__
    signature = inspect.signature(init)
    inverse = {name: alias for alias, name in names.items()}
    parameters = [p.replace(name=inverse.get(p.name, p.name)) for p in signature.parameters.values()]

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        init(self, *args, **{names.get(name, name): value for name, value in kwargs.items()})

    __init__.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    cls.__init__ = __init__


def _repr(obj: Any) -> str:
    fields = ", ".join(f"{name}={_shown(value)}" for name, value in field_values(obj).items())
    return f"{type(obj).__name__}({fields})"


def _shown(value: Any) -> str:
    """A value in a line of text; a table by its shape and fingerprint, as in labels."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"{'x'.join(map(str, value.shape))} {fingerprint(value)[:8]}"
    return _short(value)


def _as_array(where: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{where} must be numbers of one shape, got {_short(value)}{_text_at(value)}; "
            "give a number or an even list of numbers"
        ) from None


def _is_number(value: Any) -> bool:
    """Whether a text is a number in quotes."""
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


def _text_at(value: Any) -> str:
    """Where in a table the first entry stands that is no number."""
    rows = value if isinstance(value, list | tuple | np.ndarray) else []
    for n, row in enumerate(rows):
        for k, entry in enumerate(row if isinstance(row, list | tuple | np.ndarray) else []):
            if not isinstance(entry, bool | int | float | np.generic):
                return f" with {entry!r} at row {n}, column {k}"
    return ""


def _place(where: np.ndarray) -> str:
    """The first place that holds, counted from 0."""
    index = np.unravel_index(int(np.argmax(where)), where.shape)
    return f"row {index[0]}, column {index[1]}" if where.ndim == 2 else f"entry {', '.join(map(str, index))}"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray | jax.Array) and value.size > 100:
        return f"an array of shape {value.shape}"
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def format_number(value: float) -> str:
    """A number as a label: ``4`` for 4.0, ``1e-05`` for 0.00001."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e9 else f"{value:g}"

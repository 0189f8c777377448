"""The decorator that makes a class a frozen dataclass and a pytree."""

import dataclasses
import functools
import inspect
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.core import Tracer

from jaxbandit.types.fields import current_names, field, field_values, is_static, public_name
from jaxbandit.types.validation import as_array, shown, validate, where_is

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,), eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Makes ``cls`` a frozen dataclass and a pytree; values given on the host are checked at once.

    Objects are equal if their class and all their values are.
    """
    if "__init__" in vars(cls):
        raise TypeError(
            f"{cls.__name__} has its own __init__, but @pytree makes one from the fields; declare them in the class, "
            "such as c: float = field(default=1.0, gt=0)"
        )
    check_more = getattr(cls, "__post_init__", None)

    def __post_init__(self):
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if isinstance(value, list | tuple) and not is_static(spec):
                object.__setattr__(self, spec.name, as_array(where_is(self, spec), value))
        validate(self)
        if check_more is not None:
            check_more(self)

    cls.__post_init__ = __post_init__  # pyright: ignore[reportAttributeAccessIssue]
    if check_more is not None:
        __post_init__.__wrapped__ = check_more  # pyright: ignore[reportFunctionMemberAccess]
    cls.__repr__ = _repr  # pyright: ignore[reportAttributeAccessIssue]
    cls.__eq__, cls.__hash__ = _equal, _hash  # pyright: ignore[reportAttributeAccessIssue]
    try:
        cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    except ValueError as error:
        problem = str(error).removesuffix(": use default_factory")
        raise ValueError(f"{cls.__name__}: {problem}; write field(default=[...], vector=True)") from None
    cls.__setattr__ = _refuse  # pyright: ignore[reportAttributeAccessIssue]
    specs = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
    if any(spec.metadata.get("alias") or spec.metadata.get("was") for spec in specs):
        _accept_public_names(cls, {public_name(spec): spec.name for spec in specs})

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


def _accept_public_names(cls: type, names: dict[str, str]) -> None:
    """Replaces the constructor by one that takes fields by their public names, and one field only once."""
    init = cls.__init__
    signature = inspect.signature(init)
    inverse = {name: alias for alias, name in names.items()}
    parameters = [p.replace(name=inverse.get(p.name, p.name)) for p in signature.parameters.values()]

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        kwargs = current_names(cls, kwargs)
        for public, name in names.items():
            if public != name and public in kwargs and name in kwargs:
                raise TypeError(
                    f"{cls.__name__} is given both {public} and {name}, two names of one field; give {public} alone "
                    f"(dataclasses.replace takes {name} alone)"
                )
        init(self, *args, **{names.get(name, name): value for name, value in kwargs.items()})

    __init__.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    cls.__init__ = __init__


def _refuse(obj: Any, name: str, value: Any) -> None:
    del value
    raise dataclasses.FrozenInstanceError(
        f"{type(obj).__name__} cannot change, so {name} cannot be set; return what changes from round to round as the "
        f"state of init and update, or make another object: dataclasses.replace(obj, {name}=...)"
    )


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return NotImplemented
    values = [(getattr(one, spec.name), getattr(other, spec.name)) for spec in dataclasses.fields(one)]
    return all(a is b or (not isinstance(a, Tracer) and not isinstance(b, Tracer) and _same(a, b)) for a, b in values)


def _same(a: Any, b: Any) -> bool:
    if dataclasses.is_dataclass(a) or dataclasses.is_dataclass(b):
        return a == b
    return np.array_equal(a, b)


def _hash(obj: Any) -> int:
    return hash((type(obj), *(_hashable(getattr(obj, spec.name)) for spec in dataclasses.fields(obj))))


def _hashable(value: Any) -> Any:
    """Returns what equal values share: a number itself, the shape of an array."""
    if isinstance(value, Tracer):
        return id(value)
    if isinstance(value, int | float | np.ndarray | np.generic | jax.Array):
        return np.shape(value) if np.ndim(value) else float(value)
    return value


def _repr(obj: Any) -> str:
    fields = ", ".join(f"{name}={shown(value)}" for name, value in field_values(obj).items())
    return f"{type(obj).__name__}({fields})"

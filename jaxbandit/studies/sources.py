"""Classes that no import finds, of a notebook, a script or a function: they are known by their source."""

import dataclasses
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

HELD: dict[str, type] = {}  # the classes that were given to studies in this process, by their names
# Methods that the decorator or the dataclass makes.
_MADE = {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__replace__"}


def is_held(cls: type) -> bool:
    """Returns whether an import of its module would not find a class."""
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not cls or cls.__module__ == "__main__"


def held_name(cls: type) -> str:
    """Returns ``module:Class@digest`` of a class that no import finds; entries of this process may use it."""
    name = f"{cls.__module__}:{cls.__qualname__}@{digest(cls)}"
    HELD[name] = cls
    return name


def digest(cls: type) -> str:
    """Returns a digest of the fields and methods of a class, and of all that they use from the same module."""
    text = "\n".join(_parts(cls, cls.__module__, set()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _parts(obj: Any, module: str, seen: set[int]) -> Iterator[str]:
    """Yields the source of a class or function, and of what it names."""
    if id(obj) in seen:
        return
    seen.add(id(obj))
    if isinstance(obj, type):
        yield f"class {obj.__qualname__} {list(vars(obj).get('__annotations__', {}))}"
        for base in obj.__mro__[1:]:
            if base.__module__ == module:
                yield from _parts(base, module, seen)
        for spec in dataclasses.fields(obj) if dataclasses.is_dataclass(obj) else ():
            yield f"field {spec.name} {spec.default!r} {sorted(spec.metadata.items())!r}"
        for name, value in sorted(vars(obj).items()):
            if name not in _MADE and not isinstance(value, types.MemberDescriptorType):
                yield from _value(name, value, module, seen)
        return
    yield _source(obj)
    inside = dict(zip(obj.__code__.co_freevars, (cell.cell_contents for cell in obj.__closure__ or ()), strict=True))
    for name in sorted(_names(obj.__code__)):
        if name in inside or name in obj.__globals__:
            yield from _value(name, inside.get(name, obj.__globals__.get(name)), module, seen)


def _value(name: str, value: Any, module: str, seen: set[int]) -> Iterator[str]:
    """Yields what a name stands for, if it is a number, a text or code of the same module."""
    value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    if callable(value) and getattr(value, "__wrapped__", None) is not None:
        value = inspect.unwrap(value)
    if isinstance(value, type | types.FunctionType):
        if value.__module__ == module:
            yield from _parts(value, module, seen)
    elif isinstance(value, bool | int | float | str | tuple) and not name.startswith("__"):
        yield f"{name} = {value!r}"
    elif isinstance(value, np.ndarray | jax.Array):
        yield f"{name} = {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"


def _source(function: types.FunctionType) -> str:
    """Returns the text of a function, or its bytecode if Python does not know the text."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        code = function.__code__
        return f"{sys.version_info[:2]} {code.co_code.hex()} {code.co_names} {[c for c in code.co_consts if _plain(c)]}"


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | tuple)


def _names(code: types.CodeType) -> set[str]:
    """Returns the global and free names of a function and of the functions inside of it."""
    names = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names

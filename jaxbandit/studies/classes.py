"""The classes that entries name: registered ones, those of installed packages, and those of modules."""

import contextlib
import contextvars
import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Iterator
from importlib import metadata

from jaxbandit.grid import suggest
from jaxbandit.studies.as_entry import REGISTRIES
from jaxbandit.studies.sources import HELD

# Methods without which a class is no policy, or no environment.
METHODS = {"policies": ("init", "probabilities", "update"), "environments": ("means", "loss")}


def names(section: str) -> list[str]:
    """Returns every name that a section knows: those of jaxbandit, then those of installed packages."""
    return [*REGISTRIES[section], *sorted(_installed(section))]


def find_class(name: str, section: str, directory: pathlib.Path) -> type:
    """Finds a class by registry key, entry point, or ``package.module:Class``; also looks beside the study file."""
    if name in HELD:
        return _with_methods(HELD[name], name, section)
    if "@" in name and ":" in name:
        raise ValueError(
            f"{name!r} in [[{section}]] was defined in a notebook, a script or a function; run its definition again "
            "and pass the object itself to jb.Study, or put the class into a module and write package.module:Class"
        )
    if ":" in name:
        return _imported(name, name, section, directory)
    if name in REGISTRIES[section]:
        return REGISTRIES[section][name]
    installed = _installed(section)
    if name in installed:
        return _imported(name, installed[name], section, directory)
    raise ValueError(f"unknown name {name!r} in [[{section}]]; {suggest(name, names(section))}")


def _installed(section: str) -> dict[str, str]:
    """Returns the entry points of other packages, name -> ``package.module:Class``."""
    return {entry.name: entry.value for entry in metadata.entry_points(group=f"jaxbandit.{section}")}


_imports = contextvars.ContextVar("imports", default=True)  # whether classes of other packages may be imported


@contextlib.contextmanager
def no_imports() -> Iterator[None]:
    """Refuses classes that are not part of jaxbandit while the context is open."""
    token = _imports.set(False)
    try:
        yield
    finally:
        _imports.reset(token)


def _imported(name: str, target: str, section: str, directory: pathlib.Path) -> type:
    if not _imports.get():
        raise ValueError(
            f"{name!r} in [[{section}]] is no class of jaxbandit, and results import no code; if you trust them, pass "
            "--trust (in Python trust=True)"
        )
    module, _, attribute = target.partition(":")
    beside = str(directory.resolve())
    if beside not in sys.path:
        sys.path.append(beside)  # at the end, so that it hides no other module
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # the user's module may raise anything, or be a script that ends
        why = error if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise ValueError(
            f"cannot load {name!r} in [[{section}]]: {why}; write package.module:Class, installed or beside the study"
        ) from None
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        problem = f"{name!r} in [[{section}]] is no class made with @jaxbandit.types.pytree"
        raise ValueError(f"{problem}; name a class, with @pytree above it")
    return _with_methods(found, name, section)


def _with_methods(found: type, name: str, section: str) -> type:
    """Returns a class that has the methods of its section; raises ``ValueError`` if it lacks one."""
    missing = [method for method in METHODS[section] if not hasattr(found, method)]
    if missing:
        kind = {"policies": "policy", "environments": "environment"}[section]
        raise ValueError(f"{name!r} in [[{section}]] is no {kind}: it has no {missing[0]}")
    return found

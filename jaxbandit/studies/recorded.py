"""The study that results carry with them.

Results are data: no code that they name is imported, unless the user trusts them. A policy of an unknown class keeps
its recorded label and values. An environment of an unknown class cannot be rebuilt, so figures have no lower bounds.
"""

import contextlib
import pathlib
import tomllib
import warnings
from collections.abc import Iterator
from typing import Any

from jaxbandit.studies import entries, study

KEPT = ("horizon", "record", "dtype", "environments")  # keys of a study that its environments depend on


def environments(text: str, data: str | pathlib.Path | None = None, trust: bool = False) -> list[Any]:
    """Returns the environments of a recorded study in their order; raises ``ValueError`` if they cannot be rebuilt.

    Args:
      text: The study file, as results carry it.
      data: The directory of its tables, if it names any.
      trust: Whether classes that are not part of jaxbandit are imported.
    """
    content = tomllib.loads(text)
    content = {key: content[key] for key in KEPT if key in content}
    named = _named(content)
    if data is None and not trust and (outside := _outside(content)):
        raise ValueError(
            f"its table {outside!r} may lie anywhere on this machine, so it is not opened; if you trust the results, "
            "pass the directory of its tables with --data"
        )
    if named and trust:
        warnings.warn(f"importing {', '.join(named)}, because the results name it and are trusted", stacklevel=3)
    with contextlib.nullcontext() if trust else entries.no_imports():
        made = study.parse(
            content | {"num_seeds": 1, "policies": [{"name": "uniform"}]}, "the recorded study", data=data
        )
        return made.resolved.points


def foreign_environments(text: str) -> list[str]:
    """Returns the classes of a recorded study's environments that are not part of jaxbandit."""
    return _named({"environments": tomllib.loads(text).get("environments", [])})


def _outside(content: Any) -> str:
    """Returns a table of a recorded study that may lie outside of the present directory, or is searched below it."""
    for entry in content.get("environments", []) if isinstance(content.get("environments"), list) else ():
        for path in _values(entry, "table"):
            parts = pathlib.PurePath(path).parts
            if pathlib.PurePath(path).is_absolute() or ".." in parts or "**" in path:
                return path
    return ""


def _named(content: Any) -> list[str]:
    known = entries.REGISTRIES["environments"]
    return [name for name in dict.fromkeys(_values(content, "name")) if name not in known]


def _values(content: Any, key: str) -> Iterator[str]:
    """Yields every text under a key, at any depth."""
    if isinstance(content, dict):
        if isinstance(content.get(key), str):
            yield content[key]
        content = list(content.values())
    for part in content if isinstance(content, list) else ():
        yield from _values(part, key)

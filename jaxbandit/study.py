"""Study files: what to play, read from TOML and checked before anything runs."""

import dataclasses
import importlib
import pathlib
import tomllib
from typing import Any, Literal

import pydantic

from jaxbandit import readers
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import Grid, grid, suggest
from jaxbandit.policies import POLICIES
from jaxbandit.types import public_fields

QUICK_ROUNDS, QUICK_SEEDS = 2_000, 64

# Entries made from files: a function of their values and the study's directory that returns the class's fields.
PREPARE = {"replay": readers.replay_fields}


class Study(pydantic.BaseModel):
    """A study: every policy in every world; lists of values are sweep axes.

    Attributes:
      title: Heads the table, the figure and the dataset.
      horizon: Rounds to play; also the horizon of every policy that needs one and names none.
      num_seeds: Independent games per policy and world.
      policies: Tables with ``name`` (registry key or ``package.module:Class``) and fields.
      environments: Likewise; a field that is a world itself is a table with a ``name``.
      seed: Seeds the study.
      record: Number of log-spaced rounds, or the rounds to record at.
      dtype: ``float32`` or ``float64``.
      keep: ``seeds`` or ``summary``.
      measures: Names to record besides regret.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    title: str = "untitled study"
    horizon: int
    num_seeds: int
    policies: list[dict[str, Any]]
    environments: list[dict[str, Any]]
    seed: int = 0
    record: int | list[int] = 64
    dtype: Literal["float32", "float64"] = "float32"
    keep: Literal["seeds", "summary"] = "seeds"
    measures: list[str] = []

    _directory: pathlib.Path = pydantic.PrivateAttr(default=pathlib.Path())

    def quick(self) -> "Study":
        """The same study cut down to a few seconds."""
        horizon = min(self.horizon, QUICK_ROUNDS)
        record = self.record if isinstance(self.record, int) else [n for n in self.record if n <= horizon] or 64
        return self.model_copy(
            update={"horizon": horizon, "num_seeds": min(self.num_seeds, QUICK_SEEDS), "record": record}
        )

    def policy_grids(self) -> list[Grid]:
        """A grid per entry of ``policies``."""
        return [
            build(entry, POLICIES, "policies", {"horizon": self.horizon}, self._directory) for entry in self.policies
        ]

    def environment_grids(self) -> list[Grid]:
        """A grid per entry of ``environments``."""
        return [build(entry, ENVIRONMENTS, "environments", {}, self._directory) for entry in self.environments]


def read(path: str | pathlib.Path) -> Study:
    """A study file as a checked ``Study``."""
    path = pathlib.Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{path} does not exist; give the path of a study file such as experiments/quickstart.toml"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    return parse(content, str(path), path.parent)


def parse(content: dict[str, Any], where: str = "study", directory: pathlib.Path | None = None) -> Study:
    """A table as a checked ``Study``; every policy and world is built once, paths are relative to ``directory``."""
    for key in content:
        if key not in Study.model_fields:
            raise ValueError(f"{where}: unknown key {key!r}; {suggest(key, list(Study.model_fields))}")
    try:
        study = Study.model_validate(content)
    except pydantic.ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"{where}: {problems}") from None
    study._directory = directory or pathlib.Path()
    for name in ("policies", "environments"):
        if not getattr(study, name):
            raise ValueError(f"{where}: [[{name}]] is empty; name at least one")
    try:
        study.policy_grids()
        study.environment_grids()
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return study


def build(
    entry: dict[str, Any], registry: dict[str, type], section: str, defaults: dict[str, Any], directory: pathlib.Path
) -> Grid:
    """The grid of one entry; ``defaults`` fill fields the class has and the entry leaves out."""
    entry = dict(entry)
    name = entry.pop("name", None)
    if not isinstance(name, str):
        raise ValueError(f"an entry of [[{section}]] has no name; {suggest('', list(registry))}")
    cls = find_class(name, registry, section)
    fields = public_fields(cls)
    if name in PREPARE:
        entry = PREPARE[name](entry, directory)
    values = {key: value for key, value in defaults.items() if key in fields} | entry
    for key in values:
        if key not in fields:
            raise ValueError(f"{name} has no field {key!r}; {suggest(key, list(fields))}")
    values = {key: _nested(value, registry, section, directory) for key, value in values.items()}
    missing = [key for key, spec in fields.items() if spec.default is dataclasses.MISSING and key not in values]
    if missing:
        raise ValueError(f"{name} needs {', '.join(missing)}; add it to its [[{section}]] entry")
    return grid(cls, **values)


def find_class(name: str, registry: dict[str, type], section: str) -> type:
    """A class by registry key or ``package.module:Class``."""
    if ":" not in name:
        if name not in registry:
            raise ValueError(f"unknown name {name!r} in [[{section}]]; {suggest(name, list(registry))}")
        return registry[name]
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot load {name!r} in [[{section}]]: {error}; check the module path") from None


def _nested(value: Any, registry: dict[str, type], section: str, directory: pathlib.Path) -> Any:
    """A table with a name stands for a world inside a world; a list of such tables is swept."""
    if isinstance(value, dict):
        points = build(value, registry, section, {}, directory).points
        return points[0] if len(points) == 1 else list(points)
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        return [point for entry in value for point in build(entry, registry, section, {}, directory).points]
    return value

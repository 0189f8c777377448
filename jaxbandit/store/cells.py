"""Cells: a study as games to be played, each named by all that determines its numbers.

A *game* is one policy in one environment, whatever the seeds and however long; its hash covers the policy,
the environment, the study's seed, dtype, generator and the version of the numerics. A *cell* is a game over a
range of seeds to a list of recorded rounds; its hash covers those and the platform too. The horizon is
no part of a game: where neither policy nor environment has it in a field, a longer one is the same game.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import jax
import numpy as np

from jaxbandit.engine import Job, measure_names, processor, shared_values, structure, way_of
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import suggest
from jaxbandit.policies import POLICIES
from jaxbandit.random import PRNG
from jaxbandit.store.cellfile import Header
from jaxbandit.studies.study import Study
from jaxbandit.types import is_static, public_fields

NUMERICS = 11  # raise it when the numbers of any game change: cells of another version are played anew
CELL_BYTES = 256 << 20  # a cell's results are held in memory to be written: more seeds are more cells
MAX_CELL_SEEDS = 65_536
OPTIONS = ("num_seeds", "precision", "max_seeds")  # of the study, or of a policy's entry
_LONG = 64  # arrays with more entries enter a description by their digest


@dataclasses.dataclass(frozen=True)
class Game:
    """One policy in one environment.

    Attributes:
      index: Its place in the dataset: (policy, environment).
      policy: As told by the environment.
      environment: The environment.
      about: What determines its numbers, as JSON has it.
      num_seeds: Seeds to play at least.
      precision: Relative half-width to reach, if any.
      max_seeds: Where that ends.
      stop_at: The round it is played to, if not to the last one of the study.
      way: How the engine plays it: "native" or "scan".
    """

    index: tuple[int, int]
    policy: Any
    environment: Any
    about: dict[str, Any]
    num_seeds: int
    precision: float | None
    max_seeds: int
    stop_at: int | None = None
    way: str = "native"

    def rounds(self, rounds: Sequence[int]) -> tuple[int, ...]:
        """Those of the study's recorded rounds that it is played to."""
        return tuple(n for n in rounds if self.stop_at is None or n <= self.stop_at)

    @functools.cached_property
    def key(self) -> str:
        """Its hash."""
        return digest(self.about)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A game over seeds ``first`` to ``last`` (exclusive), recorded at ``rounds``.

    ``before`` is the file of the same seeds with the first of these rounds, if the game goes on from there.
    """

    game: Game
    first: int
    last: int
    rounds: tuple[int, ...]
    before: Header | None = None

    @property
    def num_seeds(self) -> int:
        """Seeds in it."""
        return self.last - self.first

    @functools.cached_property
    def name(self) -> str:
        """Its file's name."""
        content = {"game": self.game.key, "platform": platform(self.game.way), "seeds": [self.first, self.last]}
        return f"{self.game.key}-{self.first}-{self.last}-{digest(content | {'rounds': list(self.rounds)})}.nc"


def games(study: Study, way: str | None = None) -> list[Game]:
    """Every policy in every environment; ``way`` is that of the engine, if it was given one."""
    declared, entries = study.declared(), study.policy_entries()
    told = [[entry.grid(one).points for one in (declared if entry.refers else declared[:1])] for entry in entries]
    common = {
        "numerics": NUMERICS,
        "prng": PRNG,
        "seed": study.seed,
        "dtype": study.dtype,
        "keep": study.keep,
        "measures": sorted(study.measures),
    }
    about_environments = [describe(one.environment) for one in declared]
    listed, first = [], 0
    for entry, points in zip(entries, told, strict=True):
        options = {name: entry.options.get(name, getattr(study, name)) for name in OPTIONS}
        stop_at = entry.options.get("stop_at")
        for p in range(len(points[0])):
            shared = describe(points[0][p])
            for e, one in enumerate(declared):
                policy = points[e][p] if entry.refers else points[0][p]
                about = {"policy": describe(policy) if entry.refers else shared, "environment": about_environments[e]}
                taken = way_of(policy, one.environment, study.measures, study.dtype, way)
                options |= {"stop_at": stop_at, "way": taken}
                listed.append(Game((first + p, e), policy, one.environment, about | common, **options))
        first += len(points[0])
    _check_measures(study, listed)
    return listed


def describe(obj: Any) -> dict[str, Any]:
    """A policy or environment as JSON has it; equal if and only if it plays the same numbers."""
    cls = type(obj)
    about: dict[str, Any] = {"class": _registered().get(cls, f"{cls.__module__}:{cls.__qualname__}")}
    if cls.__module__.split(".")[0] != "jaxbandit":
        about["source"] = _source(cls.__module__)
    for name, spec in public_fields(cls).items():
        value = getattr(obj, spec.name)
        if dataclasses.is_dataclass(value):
            about[name] = describe(value)
        elif value is None or is_static(spec):
            about[name] = value if isinstance(value, str | bool | int | None) else repr(value)
        else:
            array = np.asarray(value, np.float64)
            long = {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
            about[name] = long if array.size > _LONG else array.tolist()
    return about


@functools.cache
def _registered() -> dict[type, str]:
    """The classes of the registries by name: a file of the package may move without orphaning results."""
    return {cls: name for registry in (POLICIES, ENVIRONMENTS) for name, cls in registry.items()}


@functools.cache
def platform(way: str = "native") -> dict[str, str]:
    """Returns what the last bits depend on besides the game: nothing but the way, if machine code plays."""
    if way == "native":
        return {"way": way}
    device = jax.local_devices()[0]
    kind = f"{device.device_kind} ({device.platform})"
    features = processor() if device.platform == "cpu" else ""  # XLA's bits differ between AVX and AVX2
    return {"way": way, "jaxlib": metadata.version("jaxlib"), "device": kind, "instruction_set": features}


def digest(content: Any) -> str:
    """A short hash of JSON content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def cell_seeds(game: Game, rounds: Sequence[int], num_measures: int) -> int:
    """Seeds that go into one cell; a function of the game's shape alone, so that runs agree on it."""
    per_seed = len(rounds) * 8 * (2 + num_measures + game.environment.num_arms)
    fitting = max(64, CELL_BYTES // per_seed)
    return min(MAX_CELL_SEEDS, 1 << (fitting.bit_length() - 1))


def by_program(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that are played together, in order of appearance: one program, equal shared fields, the same rounds."""
    groups: dict[Any, list[Cell]] = {}
    known: dict[int, tuple[str, ...]] = {}  # a table is looked at once, not once per cell

    def shared(point: Any) -> tuple[str, ...]:
        if id(point) not in known:
            known[id(point)] = shared_values(point)
        return known[id(point)]

    for cell in cells:
        alike = program(cell), shared(cell.game.policy), shared(cell.game.environment), cell.rounds
        groups.setdefault(alike, []).append(cell)
    return list(groups.values())


def program(cell: Cell) -> tuple:
    """What is compiled for a cell."""
    return structure(cell.game.policy), structure(cell.game.environment)


@dataclasses.dataclass(frozen=True)
class LaneJob(Job):
    """Any lanes of any cells: lane n is seed ``seed_of[n]`` of ``cells[cell_of[n]]``."""

    cells: Sequence[Cell] = ()
    cell_of: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    seed_of: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    environment_of: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))  # by cell

    @property
    def num_lanes(self) -> int:
        """Games in all."""
        return self.cell_of.size

    def cell(self, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Policy, environment and seed of a lane; every cell has its policy."""
        cell = self.cell_of[lane]
        return cell, self.environment_of[cell], self.seed_of[lane]


def lane_job(cells: Sequence[Cell], cell_of: np.ndarray, seed_of: np.ndarray, study: Study, start: int = 0) -> LaneJob:
    """A job of the given lanes; environments that several cells share are kept once."""
    environments: dict[int, int] = {}
    environment_of = np.asarray(
        [environments.setdefault(id(cell.game.environment), len(environments)) for cell in cells]
    )
    by_id = {id(cell.game.environment): cell.game.environment for cell in cells}
    return LaneJob(
        policies=[cell.game.policy for cell in cells],
        environments=[by_id[key] for key in environments],
        record=np.asarray(cells[0].rounds),
        num_seeds=study.num_seeds,
        seed=study.seed,
        measures=tuple(study.measures),
        start=start,
        cells=cells,
        cell_of=cell_of,
        seed_of=seed_of,
        environment_of=environment_of,
    )


@functools.cache
def _source(module: str) -> str:
    """A digest of the file a class of one's own comes from: an edited policy is another policy."""
    try:
        return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()[:16]
    except (OSError, TypeError):
        return "unknown"


def _check_measures(study: Study, games: Sequence[Game]) -> None:
    seen: dict[tuple[type, int], list[str]] = {}
    for game in games:
        num_arms = game.environment.num_arms
        if study.measures and (type(game.policy), num_arms) not in seen:
            seen[type(game.policy), num_arms] = measure_names(game.policy, num_arms)
        for name in study.measures:
            known = seen[type(game.policy), num_arms]
            if name not in known:
                raise ValueError(f"{type(game.policy).__name__} has no measure {name!r}; {suggest(name, known)}")

"""The pairs and cells of a study, each named by everything that determines its numbers.

A *pair* is one policy in one environment, whatever the seeds and the horizon. Its hash covers
the policy, the environment, the study seed, the dtype, the generator and the version of the numerics. A *cell* is a
pair over a range of seeds and a list of recorded rounds. Its hash covers these and the platform too. The horizon is
no part of a pair: if neither policy nor environment has it in a field, a study with a longer horizon has the same pair.
"""

import dataclasses
import functools
import hashlib
import inspect
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import jax
import numpy as np

from jaxbandit.engine import measure_names, processor, way_of
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import suggest
from jaxbandit.policies import POLICIES
from jaxbandit.random import PRNG
from jaxbandit.store.cellfile import Header, file_name
from jaxbandit.store.cellfile import digest as digest
from jaxbandit.studies.sources import held_name, is_held
from jaxbandit.studies.study import Study
from jaxbandit.types import is_static, public_fields, recorded_name

NUMERICS = 11  # raise it when the numbers of any game change: cells of another version are played again
CELL_BYTES = 256 << 20  # most memory of a cell's results, which are written at once: more seeds make more cells
MAX_CELL_SEEDS = 65_536
OPTIONS = ("num_seeds", "precision", "max_seeds")  # keys of the study that a policy's entry may override
_LONG = 64  # an array with more entries is described by its digest


@dataclasses.dataclass(frozen=True)
class Pair:
    """A pair: one policy in one environment.

    Attributes:
      index: Its place in the dataset: (policy, environment).
      policy: The policy, with the values that it is given by the environment.
      environment: The environment.
      about: Description, for JSON, of everything that determines its numbers.
      num_seeds: The least number of seeds to play.
      precision: Relative half-width to reach, if any.
      max_seeds: The largest number of seeds that a precision may request.
      stop_at: The last round of this pair, if that is not the last round of the study.
      way: The way in which the engine plays it: "native" or "scan".
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

    @property
    def sides(self) -> tuple[Any, Any]:
        """The policy and the environment."""
        return self.policy, self.environment

    def rounds(self, rounds: Sequence[int]) -> tuple[int, ...]:
        """Returns the study's recorded rounds up to the last round of this pair."""
        return tuple(n for n in rounds if self.stop_at is None or n <= self.stop_at)

    @functools.cached_property
    def key(self) -> str:
        """The hash of the pair."""
        return digest(self.about)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A pair over seeds ``first`` to ``last`` (exclusive), recorded at ``rounds``.

    If the cell continues an earlier one, ``before`` is the file of the same seeds with the first of these rounds.
    """

    pair: Pair
    first: int
    last: int
    rounds: tuple[int, ...]
    before: Header | None = None

    @property
    def num_seeds(self) -> int:
        """The number of seeds in the cell."""
        return self.last - self.first

    @functools.cached_property
    def name(self) -> str:
        """The name of the cell's file."""
        return file_name(self.pair.key, self.first, self.last, self.rounds, platform(self.pair.way))


def pairs(study: Study, way: str | None = None) -> list[Pair]:
    """Returns every policy in every environment; ``way`` is that of the engine, if the engine was given one."""
    common = {
        "numerics": NUMERICS,
        "prng": PRNG,
        "seed": study.seed,
        "dtype": study.dtype,
        "keep": study.keep,
        "measures": sorted(study.measures),
    }
    described: dict[int, dict[str, Any]] = {}  # by object: a policy that takes no value from environments is shared
    listed = []
    for pair in study.resolved.pairs():
        policy, environment = pair.policy, pair.environment
        for side in (policy, environment):
            if id(side) not in described:
                described[id(side)] = describe(side)
        about = {"policy": described[id(policy)], "environment": described[id(environment)]}
        options = {name: pair.entry.options.get(name, getattr(study, name)) for name in OPTIONS}
        options |= {"stop_at": pair.entry.options.get("stop_at")}
        options |= {"way": way_of(policy, environment, study.measures, study.dtype, way)}
        listed.append(Pair(pair.index, policy, environment, about | common, **options))
    _check_measures(study, listed)
    return listed


def describe(obj: Any) -> dict[str, Any]:
    """Describes a policy or environment for JSON; descriptions are equal if and only if the numbers are."""
    cls = type(obj)
    own = cls.__module__.split(".")[0] != "jaxbandit"
    if own and is_held(cls):
        about: dict[str, Any] = {"class": held_name(cls)}
    else:
        about = {"class": _registered().get(cls, f"{cls.__module__}:{cls.__qualname__}")}
    if own and not is_held(cls):
        about["source"] = _source(cls.__module__)
    for spec in public_fields(cls).values():
        name, value = recorded_name(spec), getattr(obj, spec.name)
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
    """Returns the registered names of classes, so that a module may move without orphaning results."""
    return {cls: name for registry in (POLICIES, ENVIRONMENTS) for name, cls in registry.items()}


@functools.cache
def platform(way: str = "native") -> dict[str, str]:
    """Returns what the last bits depend on besides the pair; for native games that is the way alone."""
    if way == "native":
        return {"way": way}
    device = jax.local_devices()[0]
    kind = f"{device.device_kind} ({device.platform})"
    features = processor() if device.platform == "cpu" else ""  # XLA's bits differ between AVX and AVX2
    return {"way": way, "jaxlib": metadata.version("jaxlib"), "device": kind, "instruction_set": features}


def cell_seeds(pair: Pair, rounds: Sequence[int], num_measures: int) -> int:
    """Returns the most seeds of a cell; they depend on the pair's shape alone, so that all runs agree."""
    per_seed = len(rounds) * 8 * (2 + num_measures + pair.environment.num_arms)
    fitting = max(64, CELL_BYTES // per_seed)
    return min(MAX_CELL_SEEDS, 1 << (fitting.bit_length() - 1))


@functools.cache
def _source(module: str) -> str:
    """Returns a digest of the file that defines a user's class: an edited policy is another policy."""
    try:
        return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()[:16]
    except (OSError, TypeError):
        return "unknown"


def _check_measures(study: Study, pairs: Sequence[Pair]) -> None:
    seen: dict[tuple[type, int], list[str]] = {}
    for pair in pairs:
        num_arms = pair.environment.num_arms
        if study.measures and (type(pair.policy), num_arms) not in seen:
            seen[type(pair.policy), num_arms] = measure_names(pair.policy, num_arms)
        for name in study.measures:
            known = seen[type(pair.policy), num_arms]
            if name not in known:
                raise ValueError(f"{type(pair.policy).__name__} has no measure {name!r}; {suggest(name, known)}")

"""The runner of many games, which deals lanes into blocks and blocks to the cores.

The lanes of all games of one shape form one axis, which is cut into blocks. One compiled program serves any number of
games, values, seeds and rounds. On CPUs every core plays blocks of its own; on accelerators one block is split over
all devices.
"""

import dataclasses
import platform
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit import random
from jaxbandit.engine import blocks, machine, native, round, scan, tallies, ways, workers
from jaxbandit.engine.checkpoint import Keeper
from jaxbandit.engine.shape import Shape
from jaxbandit.game import Environment, Policy, is_stationary
from jaxbandit.progress import Progress
from jaxbandit.types import fingerprint, shared_leaves

MOST_LANES = 4096  # most lanes of a block
BLOCK_BYTES = 64 << 20  # most memory of a block's games
TURN_LANES, MOST_TURNS = 512, 4  # a core gets at most MOST_TURNS blocks, each of at least TURN_LANES games
SCAN_LANES = 65_536  # most lanes of a block on an accelerator


@dataclasses.dataclass(frozen=True)
class Engine:
    """The settings of a run. Only ``way`` changes the results, and only their last bits.

    Attributes:
      block: Games that a core or the accelerators play at a time; default by the memory they need.
      chunk: Most rounds in a call of the compiled program; default as many as take about a fifth of a second.
      devices: Number of cores that play natively. For the scan, the number or the list of JAX devices. Default all.
      progress: True for a progress bar, or a function of (seed-rounds done, in all), called by one thread at a time.
      checkpoint: Seconds between two checkpoints of unfinished games; only studies in a directory have checkpoints.
      way: "native", machine code by LLVM, or "scan", plain JAX. By default CPUs play natively if LLVM is usable and
        the round has only operations with a native rule; all other games are played by the scan.
    """

    block: int | None = None
    chunk: int | None = None
    devices: int | Sequence[Any] | None = None
    progress: bool | Progress = False
    checkpoint: float = 5.0
    way: str | None = None

    def __post_init__(self):
        for name in ("block", "chunk"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                remedy = "leave it out for the default"
                raise ValueError(f"Engine.{name} must be a whole number >= 1, got {value!r}; {remedy}")
        if self.way is not None and self.way not in ways.WAYS:
            raise ValueError(f"Engine.way must be 'native' or 'scan', got {self.way!r}; leave it out for the default")

    def cores(self) -> int:
        """Returns the number of cores that play natively."""
        available = machine.usable_cores()
        if isinstance(self.devices, int):
            if not 1 <= self.devices <= available:
                seen = f"this process may run on {available}; `jaxbandit doctor` shows them"
                raise ValueError(f"Engine.devices is {self.devices}, but {seen}")
            return self.devices
        if self.devices is not None and not self.devices:
            raise ValueError("Engine.devices is an empty list; leave it out for all cores, or give their number")
        return available if self.devices is None else min(len(self.devices), available)

    def jax_devices(self) -> list[Any]:
        """Returns the devices that play by scan."""
        available = jax.local_devices()
        if self.devices is None or (isinstance(self.devices, int) and available[0].platform == "cpu"):
            return available
        if isinstance(self.devices, int):
            if not 1 <= self.devices <= len(available):
                seen = f"JAX sees {len(available)}; `jaxbandit doctor` shows them"
                raise ValueError(f"Engine.devices is {self.devices}, but {seen}")
            return available[: self.devices]
        if not self.devices:
            raise ValueError("Engine.devices is an empty list; leave it out for all devices, or name at least one")
        return list(self.devices)

    def games(self, shape: Shape) -> tuple[Any, int]:
        """Returns the compiled games of a shape and the number of threads that play blocks of them."""
        found = ways.chosen(shape, self.way)
        if isinstance(found, native.Games):
            return found, self.cores()
        return scan.Games(shape, self.jax_devices()), 1

    def lanes(self, games: Any, threads: int, num_lanes: int) -> int:
        """Returns the number of games of a block: as many as fit its memory, and no fewer blocks than threads.

        If there are many games, each core gets a few blocks, so that a slow core does not delay the others.
        """
        if self.block:
            return self.block
        most = MOST_LANES if isinstance(games, native.Games) or jax.default_backend() == "cpu" else SCAN_LANES
        fitting = max(64, min(most, BLOCK_BYTES // max(games.lane_bytes, 1)))
        turns = min(max(num_lanes // threads // TURN_LANES, 1), MOST_TURNS) if threads > 1 else 1
        each = -(-num_lanes // (threads * turns))
        width = getattr(games, "width", 1)
        even = -(-each // -(-each // fitting))
        return -(-even // width) * width


def described(games: Any, threads: int) -> str:
    """Returns a description of the machine and the way that play games."""
    if isinstance(games, native.Games):
        return f"native: {threads} x {platform.machine()} core"
    device = games.mesh.devices.flat[0]
    return f"scan: {games.mesh.size} x {device.device_kind} ({device.platform}, {platform.machine()})"


@dataclasses.dataclass
class Timing:
    """The times that a run spent on compiling and on playing."""

    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    devices: set[str] = dataclasses.field(default_factory=set)  # descriptions of the machine and the way


@dataclasses.dataclass(frozen=True)
class Job:
    """The games of one policy class and one environment class: every policy, every environment, all seeds."""

    policies: Sequence[Policy]  # one class, one structure, shared fields equal
    environments: Sequence[Environment]  # likewise
    record: np.ndarray  # [R] increasing rounds; the last is the horizon
    num_seeds: int
    seed: int
    measures: tuple[str, ...] = ()
    trace: int = 0
    start: int = 0  # rounds that the keeper's lanes have already played

    @property
    def num_lanes(self) -> int:
        """The number of games."""
        return len(self.policies) * len(self.environments) * self.num_seeds

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return self.environments[0].num_arms

    def shape(self, trace: bool = False) -> Shape:
        """Returns the shape of the job's games."""
        policy, environment = self.policies[0], self.environments[0]
        fields = getattr(_initial_state(policy, self.num_arms), "_fields", ()) if self.measures else ()
        plan = round.Plan(
            stationary=is_stationary(environment),
            measures=tuple(name for name in self.measures if name not in fields),
            fields=tuple(name for name in self.measures if name in fields),
            trace=trace,
        )
        return Shape.of(policy, environment, plan)

    def cell(self, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the policy, environment and seed of a lane."""
        point, seed = np.divmod(lane, self.num_seeds)
        policy, environment = np.divmod(point, len(self.environments))
        return policy, environment, seed


# A sink receives the lanes of a block and its variables, lanes first: {name: [lanes, R, ...]}.
Sink = Callable[[np.ndarray, dict[str, np.ndarray]], None]


def run(job: Job, config: Engine, sink: Sink, progress: Progress, timing: Timing, keeper: Keeper | None = None) -> None:
    """Plays a job block by block; ``sink`` receives each finished block, ``keeper`` sees unfinished ones."""
    began = time.perf_counter()
    shape = job.shape()
    games, threads = config.games(shape)
    timing.devices.add(described(games, threads))
    compiled = time.perf_counter()
    timing.compile_seconds += compiled - began
    try:
        _play(job, shape, games, threads, config, sink, _Counter(job, progress), keeper)
    finally:
        timing.run_seconds += time.perf_counter() - compiled


def _play(job: Job, shape: Shape, games, threads: int, config: Engine, sink: Sink, counter, keeper) -> None:
    width = config.lanes(games, threads, job.num_lanes)
    traced: list[Any] = []  # games that hand out every round; compiled when a block has a traced seed
    wide = shape.dtype == "float64"
    policies, environments = _stacked(job.policies, shape.dtype), _stacked(job.environments, shape.dtype)
    gaps = [tallies.Gaps(environment, job.record, shape.plan.stationary) for environment in job.environments]
    pace, key = blocks.Pace(config.chunk), random.seed_words(job.seed)

    def play(first: int, halt: threading.Event) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        numbers = np.arange(first, min(first + width, job.num_lanes))
        policy_of, environment_of, seed_of = job.cell(numbers)
        with jax.enable_x64(wide):  # a thread does not inherit this setting
            playing = games
            if (seed_of < job.trace).any():
                playing = traced[0] if traced else config.games(job.shape(trace=True))[0]
                traced.append(playing)
            parameters = [*_taken(policies, policy_of), *_taken(environments, environment_of)]
            block = playing.block(parameters, random.game_words(key, seed_of))
            report = lambda rounds: counter.add(numbers.size * rounds)  # noqa: E731
            keep = np.flatnonzero(seed_of < job.trace)
            variables = blocks.play(block, playing.shape, job.record, numbers, report, pace, keeper, halt, keep)
        variables["regret"] = tallies.regret(variables, gaps, environment_of, job.record)
        variables.pop("gap", None)
        return numbers, variables

    workers.in_order(play, range(0, job.num_lanes, width), threads, lambda played: sink(*played))


class _Counter:
    """A counter of a job's seed-rounds, which all threads share."""

    def __init__(self, job: Job, progress: Progress):
        self._done, self._total = 0, job.num_lanes * (int(job.record[-1]) - job.start)
        self._progress, self._lock = progress, threading.Lock()

    def add(self, seed_rounds: int) -> None:
        """Adds the seed-rounds of a call and reports the progress."""
        with self._lock:
            self._done += seed_rounds
            self._progress(self._done, self._total)


def way_of(policy: Policy, environment: Environment, measures: Sequence[str], dtype: str, way: str | None) -> str:
    """Returns the way in which games of a pair are played: "native" or "scan"."""
    if way == "scan" or (way is None and jax.default_backend() != "cpu") or native.unavailable():
        return "scan"
    if all(type(side).__module__.startswith("jaxbandit.") for side in (policy, environment)):
        return "native"  # tests check that all of them can be lowered
    with jax.enable_x64(dtype == "float64"):
        job = Job([policy], [environment], np.ones(1, int), 1, 0, tuple(measures))
        return "scan" if ways.chosen(job.shape(), way) is None else "native"


def measure_names(policy: Policy, num_arms: int) -> list[str]:
    """Returns the names that ``measures`` may hold: fields of the state and results of ``policy.measure``."""
    fields = getattr(_initial_state(policy, num_arms), "_fields", ())
    return [*fields, *(round.measure_shapes(policy, num_arms) if hasattr(policy, "measure") else ())]


def by_structure(points: Sequence[Any]) -> list[list[int]]:
    """Groups the indices of points that are played together: one compiled program, equal shared fields."""
    groups: dict[Any, list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault((structure(point), shared_values(point)), []).append(index)
    return list(groups.values())


def structure(point: Any) -> tuple:
    """Returns the compiled-in part of a policy or an environment: class, static fields and shapes."""
    return jax.tree.structure(point), tuple(np.shape(leaf) for leaf in jax.tree.leaves(point))


def shared_values(point: Any) -> tuple[str, ...]:
    """Returns fingerprints of the values of a policy or environment that all lanes of a job share."""
    leaves = zip(jax.tree.leaves(point), shared_leaves(point), strict=True)
    return tuple(fingerprint(leaf) for leaf, shared in leaves if shared)


def state_size(policy: Policy, num_arms: int) -> int:
    """Returns the count of numbers in the state of one game."""
    return _size(_initial_state(policy, num_arms))


def _initial_state(policy: Policy, num_arms: int) -> Any:
    """Returns the shapes and dtypes of a state."""
    return jax.eval_shape(lambda: policy.init(num_arms))


def _size(state: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(state))


def _stacked(objects: Sequence[Any], dtype: str) -> list[tuple[bool, np.ndarray]]:
    """Stacks every leaf of the objects along a first axis; a leaf that games share is equal in all and kept once."""
    return [
        (shared, np.asarray(leaves[0], dtype) if shared else np.stack([np.asarray(leaf, dtype) for leaf in leaves]))
        for shared, *leaves in zip(shared_leaves(objects[0]), *map(jax.tree.leaves, objects), strict=True)
    ]


def _taken(job_leaves: list[tuple[bool, np.ndarray]], index: np.ndarray) -> list[np.ndarray]:
    """Returns the leaves of the given points, lanes last; shared leaves stay unchanged."""
    return [leaf if shared else np.moveaxis(leaf[index], 0, -1) for shared, leaf in job_leaves]

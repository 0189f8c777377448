"""Running many cells: lanes are dealt into blocks, blocks to the cores.

A *cell* is one policy in one world with all its seeds. The lanes of all cells of one pair of
classes form one axis, cut into blocks of a fixed width that is padded, never reshaped: so one
compiled program serves any number of cells, seeds and rounds. On CPUs every device is a core and plays
blocks of its own; elsewhere one block is split over all devices.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxbandit import blocks, engine, kernels, lanes, random, totals, workers, xla
from jaxbandit.checkpoint import Keeper
from jaxbandit.game import Environment, Policy, is_stationary
from jaxbandit.types import fingerprint, shared_leaves

# Narrower blocks compile to other code for small reductions, with other rounding.
LANE_MULTIPLE = 64
MANY_ARMS, FEW_LANES = 512, 32  # with more arms even 64 games leave the second cache

Progress = Callable[[int, int], None]  # (seed-rounds done, seed-rounds in all)


@dataclasses.dataclass(frozen=True)
class Engine:
    """How to run; never what comes out.

    Attributes:
      block: Games that a device plays at a time, rounded up to a multiple of 64 (32 beyond 512 arms); default by arms,
        size of the state and cache.
      chunk: Rounds whose random bits are drawn at once.
      devices: Number of devices, or the devices; default all of them.
      progress: True for a progress bar, or a function of (seed-rounds done, in all), called by one thread at a time.
      checkpoint: Seconds between two checkpoints of games under way; only studies in a directory have them.
    """

    block: int | None = None
    chunk: int | None = None
    devices: int | Sequence[Any] | None = None
    progress: bool | Progress = False
    checkpoint: float = 5.0

    def __post_init__(self):
        for name in ("block", "chunk"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                remedy = "leave it out for the default"
                raise ValueError(f"Engine.{name} must be a whole number >= 1, got {value!r}; {remedy}")

    def mesh(self) -> Mesh:
        """The devices."""
        devices = self.devices
        if devices is None or isinstance(devices, int):
            available = jax.local_devices()
            count = len(available) if devices is None else devices
            if not 1 <= count <= len(available):
                seen = f"JAX sees {len(available)}; `jaxbandit doctor` shows them"
                raise ValueError(f"Engine.devices is {count}, but {seen}")
            devices = available[:count]
        elif not devices:
            raise ValueError("Engine.devices is an empty list; leave it out for all devices, or name at least one")
        return Mesh(np.asarray(devices), (engine.LANES,))

    def apart(self) -> bool:
        """Whether each device plays blocks of its own: cores do, and none waits for another."""
        return self.mesh().devices.flat[0].platform == "cpu"

    def width(self, num_arms: int, state_size: int, num_lanes: int = 1 << 30) -> int:
        """Lanes per device: enough to pay for the dispatch of kernels, few enough for the cache, no more than play."""
        mesh = self.mesh()
        # Measured with uniINF and a second cache of 512 KiB: 1024 up to 5 arms, 512 for 10, 320 for 32, about 100 for
        # 100; with 2 MiB 1024 for 10 arms, and little difference for more.
        fitting = 10 * (xla.second_cache() >> 10) // num_arms
        by_arms = min(1024, max(fitting, min(320, 10_240 // num_arms)))
        usual = kernels.width(mesh, state_size) or min(by_arms, 200_000 // max(state_size, 1))
        each = -(-num_lanes // mesh.size)
        fewest = FEW_LANES if num_arms > MANY_ARMS else LANE_MULTIPLE
        even = self.block or -(-each // -(-each // max(usual, fewest)))
        # In steps of up to a quarter, unless it was asked for: few widths are ever compiled.
        step = fewest if self.block else max(fewest, 1 << even.bit_length() >> 3)
        return -(-even // step) * step


@dataclasses.dataclass
class Timing:
    """Where the time of a run went."""

    compile_seconds: float = 0.0
    run_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Job:
    """One pair of classes to be played: every policy against every world, all seeds."""

    policies: Sequence[Policy]  # one class, one structure, shared fields equal
    environments: Sequence[Environment]  # likewise
    record: np.ndarray  # [R] increasing rounds; the last is the horizon
    num_seeds: int
    seed: int
    measures: tuple[str, ...] = ()
    trace: int = 0
    start: int = 0  # rounds that the keeper's lanes have behind them

    @property
    def num_lanes(self) -> int:
        """Games in all."""
        return len(self.policies) * len(self.environments) * self.num_seeds

    @property
    def num_arms(self) -> int:
        """K."""
        return self.environments[0].num_arms

    def cell(self, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Policy, environment and seed of a lane."""
        point, seed = np.divmod(lane, self.num_seeds)
        policy, environment = np.divmod(point, len(self.environments))
        return policy, environment, seed


# Gets the lanes of a block and its variables, lanes first: {name: [lanes, R, ...]}.
Sink = Callable[[np.ndarray, dict[str, np.ndarray]], None]


def run(job: Job, config: Engine, sink: Sink, progress: Progress, timing: Timing, keeper: Keeper | None = None) -> None:
    """Plays a job block by block; ``sink`` gets each block when it is done, ``keeper`` sees it on the way."""
    compiled, began = blocks.compile_seconds(), time.perf_counter()
    try:
        _play(job, config, sink, _Counter(job, progress), keeper)
    finally:
        compiling = blocks.compile_seconds() - compiled
        timing.compile_seconds += compiling
        timing.run_seconds += max(time.perf_counter() - began - compiling, 0.0)


def _play(job: Job, config: Engine, sink: Sink, counter: "_Counter", keeper: Keeper | None) -> None:
    mesh, threads = config.mesh(), config.mesh().size if config.apart() else 1
    state = _initial_state(job.policies[0], job.num_arms)
    fields = getattr(state, "_fields", ())
    program = engine.Program(
        stationary=is_stationary(job.environments[0]),
        chunk=config.chunk or engine.CHUNK,
        measures=tuple(name for name in job.measures if name not in fields),
        fields=tuple(name for name in job.measures if name in fields),
        mesh=None if config.apart() else mesh,
    )
    width = config.width(job.num_arms, _size(state), job.num_lanes) * mesh.size // threads
    # Threads of this process share the first core's device, so that one program is compiled, not one for each.
    device, wide = mesh.devices.flat[0], jnp.result_type(float) == jnp.float64
    with jax.default_device(device):
        policies, environments = _stacked(job.policies, program.mesh), _stacked(job.environments, program.mesh)
    gaps = [totals.Gaps(environment, job.record, program.stationary) for environment in job.environments]
    pace = blocks.Pace()

    def play(first: int, halt: threading.Event) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        numbers = np.arange(first, min(first + width, job.num_lanes))
        policy_of, environment_of, seed_of = job.cell(np.pad(numbers, (0, width - numbers.size), mode="edge"))
        with jax.enable_x64(wide), jax.default_device(device):  # which a thread does not inherit
            block = blocks.Block(
                _take(policies, policy_of),
                _take(environments, environment_of),
                _key_words(random.seed_words(job.seed), seed_of.astype(np.uint32)),
                program=dataclasses.replace(program, trace=bool((seed_of[: numbers.size] < job.trace).any())),
                record=job.record,
                num_arms=job.num_arms,
            )
            variables = block.play(numbers, lambda rounds: counter.add(numbers.size * rounds), pace, keeper, halt)
        variables["regret"] = totals.regret(variables, gaps, environment_of[: numbers.size])
        variables.pop("gap", None)
        return numbers, variables

    workers.in_order(play, range(0, job.num_lanes, width), threads, lambda played: sink(*played))


class _Counter:
    """Counts the seed-rounds of a job, whoever plays them."""

    def __init__(self, job: Job, progress: Progress):
        self._done, self._total = 0, job.num_lanes * (int(job.record[-1]) - job.start)
        self._progress, self._lock = progress, threading.Lock()

    def add(self, seed_rounds: int) -> None:
        """Takes note of a call."""
        with self._lock:
            self._done += seed_rounds
            self._progress(self._done, self._total)


def measure_names(policy: Policy, num_arms: int) -> list[str]:
    """What ``measures`` may name: fields of the state, and what ``policy.measure`` returns."""
    fields = getattr(_initial_state(policy, num_arms), "_fields", ())
    return [*fields, *(engine.measure_shapes(policy, num_arms) if hasattr(policy, "measure") else ())]


def by_structure(points: Sequence[Any]) -> list[list[int]]:
    """Indices of points that are played together: one compiled program, equal shared fields."""
    groups: dict[Any, list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault((structure(point), shared_values(point)), []).append(index)
    return list(groups.values())


def structure(point: Any) -> tuple:
    """What is compiled in of a policy or a world: class, static fields and shapes."""
    return jax.tree.structure(point), tuple(np.shape(leaf) for leaf in jax.tree.leaves(point))


def shared_values(point: Any) -> tuple[str, ...]:
    """What a policy or world has of values that all lanes of a job share, by their fingerprints."""
    leaves = zip(jax.tree.leaves(point), shared_leaves(point), strict=True)
    return tuple(fingerprint(leaf) for leaf, shared in leaves if shared)


def state_size(policy: Policy, num_arms: int) -> int:
    """Numbers in the state of one game."""
    return _size(_initial_state(policy, num_arms))


def _initial_state(policy: Policy, num_arms: int) -> Any:
    """Shapes and dtypes of a state."""
    return jax.eval_shape(lambda: policy.init(num_arms))


def _size(state: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(state))


def _stacked(objects: Sequence[Any], mesh: Mesh | None) -> Any:
    """One object whose leaves have a leading axis over the given ones, in the working dtype.

    Leaves that lanes share are the same in all objects (a job is made so): one of them goes to the devices, once.
    """
    dtype = np.dtype(jnp.result_type(float))
    stacked = [
        _placed(lanes.Shared(np.asarray(leaves[0], dtype)), mesh)
        if shared
        else np.stack([np.asarray(leaf, dtype) for leaf in leaves])
        for shared, *leaves in zip(shared_leaves(objects[0]), *map(jax.tree.leaves, objects), strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(objects[0]), stacked)


def _placed(shared: lanes.Shared, mesh: Mesh | None) -> lanes.Shared:
    return jax.device_put(shared) if mesh is None else engine.place(shared, mesh)


def _take(stacked: Any, index: np.ndarray) -> Any:
    """The leaves of the given points, lanes last; shared ones as they are."""

    def take(leaf):
        return leaf if lanes.is_shared(leaf) else np.ascontiguousarray(np.moveaxis(leaf[index], 0, -1))

    return jax.tree.map(take, stacked, is_leaf=lanes.is_shared)


@jax.jit
def _key_words(key: Any, numbers: Any) -> jax.Array:
    """The key words of the games with these numbers, uint32 [2, lanes]: ``game_key``, which is slower to compile."""
    return jnp.stack(random.threefry2x32((key[0], key[1]), (jnp.zeros_like(numbers), numbers)))

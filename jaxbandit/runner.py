"""Running many cells: lanes are dealt into blocks, blocks are played segment by segment.

A *cell* is one policy in one world with all its seeds. The lanes of all cells of one pair of
classes form one axis, cut into blocks of a fixed width that is padded, never reshaped: so one
compiled program serves any number of cells, seeds and rounds.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxbandit import engine, kernels, lanes, totals
from jaxbandit.checkpoint import Keeper, Snapshot, take_snapshot
from jaxbandit.game import Environment, Policy, game_key, is_stationary
from jaxbandit.types import fingerprint, shared_leaves

STOPS = 16  # recorded rounds per call
# Narrower blocks compile to other code for small reductions, with other rounding.
LANE_MULTIPLE = 64
TARGET_SECONDS = 0.5  # a call is kept about this short, for progress and Ctrl-C
FIRST_ROUNDS = 512  # rounds of the first call, before the speed is known

Progress = Callable[[int, int], None]  # (seed-rounds done, seed-rounds in all)


@dataclasses.dataclass(frozen=True)
class Engine:
    """How to run; never what comes out.

    Attributes:
      block: Lanes per device and call, rounded up to a multiple of 64; default by number of arms and size of the state.
      chunk: Rounds whose random bits are drawn at once.
      devices: Number of devices, or the devices; default all of them.
      progress: True for a progress bar, or a function of (seed-rounds done, in all).
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
        """The devices the lanes are split over."""
        devices = self.devices
        if devices is None or isinstance(devices, int):
            available = jax.local_devices()
            count = len(available) if devices is None else devices
            if not 1 <= count <= len(available):
                seen = f"JAX sees {len(available)}; `jaxbandit doctor` shows them"
                raise ValueError(f"Engine.devices is {count}, but {seen}")
            devices = available[:count]
        return Mesh(np.asarray(devices), (engine.LANES,))

    def width(self, num_arms: int, state_size: int, num_lanes: int = 1 << 30) -> int:
        """Lanes per device: enough to pay for the dispatch of kernels, few enough for the cache, no more than play."""
        mesh = self.mesh()
        usual = kernels.width(mesh, state_size) or min(1024, 10_240 // num_arms, 200_000 // max(state_size, 1))
        each = -(-num_lanes // mesh.size)
        even = self.block or -(-each // -(-each // max(usual, LANE_MULTIPLE)))
        # In steps of up to a quarter, unless it was asked for: few widths are ever compiled.
        step = LANE_MULTIPLE if self.block else max(LANE_MULTIPLE, 1 << even.bit_length() >> 3)
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
    mesh = config.mesh()
    width = config.width(job.num_arms, state_size(job.policies[0], job.num_arms), job.num_lanes)
    policies, environments = _stacked(job.policies, mesh), _stacked(job.environments, mesh)
    state_fields = _state_fields(job.policies[0], job.num_arms)
    program = engine.Program(
        stationary=is_stationary(job.environments[0]),
        chunk=config.chunk or engine.CHUNK,
        measures=tuple(name for name in job.measures if name not in state_fields),
        fields=tuple(name for name in job.measures if name in state_fields),
        mesh=mesh,
    )
    gaps = [totals.Gaps(environment, job.record, program.stationary) for environment in job.environments]
    in_block = width * mesh.size
    pace = _Pace()
    for first in range(0, job.num_lanes, in_block):
        numbers = np.arange(first, min(first + in_block, job.num_lanes))
        padded = np.pad(numbers, (0, in_block - numbers.size), mode="edge")
        policy_of, environment_of, seed_of = job.cell(padded)
        args = (_take(policies, policy_of), _take(environments, environment_of), _key_words(job.seed, seed_of))
        block = _Block(
            *engine.place(args, mesh),
            mesh=mesh,
            program=dataclasses.replace(program, trace=bool((seed_of[: numbers.size] < job.trace).any())),
            job=job,
        )
        report = functools.partial(_report, progress, job, first, numbers.size)
        variables = block.play(numbers, report, timing, pace, keeper)
        variables = {name: values[: numbers.size] for name, values in variables.items()}
        variables["regret"] = totals.regret(variables, gaps, environment_of[: numbers.size])
        variables.pop("gap", None)
        sink(numbers, variables)


def _report(progress: Progress, job: Job, lanes_before: int, num_lanes: int, t: int) -> None:
    rounds = int(job.record[-1]) - job.start
    progress(lanes_before * rounds + num_lanes * (t - job.start), job.num_lanes * rounds)


class _Pace:
    """How many rounds make a call of about ``TARGET_SECONDS``; learnt from call to call."""

    def __init__(self):
        self.rounds = FIRST_ROUNDS

    def learn(self, rounds: int, seconds: float) -> None:
        """Takes note of a call."""
        self.rounds = int(np.clip(rounds * TARGET_SECONDS / max(seconds, 1e-4), 64, 4 * self.rounds))


def measure_names(policy: Policy, num_arms: int) -> list[str]:
    """What ``measures`` may name: fields of the state, and what ``policy.measure`` returns."""
    fields = _state_fields(policy, num_arms)
    measure = getattr(policy, "measure", None)
    if measure is None:
        return list(fields)
    state, x = policy.init(num_arms), jnp.full(num_arms, 1 / num_arms)
    t, arm, loss = jnp.int32(1), jnp.int32(0), jnp.zeros(())
    return [*fields, *jax.eval_shape(measure, state, t, x, arm, loss, state)]


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


def _state_fields(policy: Policy, num_arms: int) -> tuple[str, ...]:
    return getattr(jax.eval_shape(lambda: policy.init(num_arms)), "_fields", ())


def state_size(policy: Policy, num_arms: int) -> int:
    """Numbers in the state of one game."""
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(lambda: policy.init(num_arms))))


def _stacked(objects: Sequence[Any], mesh: Mesh) -> Any:
    """One object whose leaves have a leading axis over the given ones, in the working dtype.

    Leaves that lanes share are the same in all objects (a job is made so): one of them goes to the devices, once.
    """
    dtype = np.dtype(jnp.result_type(float))
    stacked = [
        engine.place(lanes.Shared(np.asarray(leaves[0], dtype)), mesh)
        if shared
        else np.stack([np.asarray(leaf, dtype) for leaf in leaves])
        for shared, *leaves in zip(shared_leaves(objects[0]), *map(jax.tree.leaves, objects), strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(objects[0]), stacked)


def _take(stacked: Any, index: np.ndarray) -> Any:
    """The leaves of the given points, lanes last; shared ones as they are."""

    def take(leaf):
        return leaf if lanes.is_shared(leaf) else np.ascontiguousarray(np.moveaxis(leaf[index], 0, -1))

    return jax.tree.map(take, stacked, is_leaf=lanes.is_shared)


@jax.jit
def _words(seed: jax.Array, numbers: jax.Array) -> jax.Array:
    return jax.random.key_data(jax.vmap(game_key, (None, 0))(seed, numbers)).T


def _key_words(seed: int, numbers: np.ndarray) -> np.ndarray:
    """The key words of the games with these seed numbers, [2, lanes]."""
    return np.asarray(_words(jnp.asarray(seed), jnp.asarray(numbers, jnp.uint32)))


class _Block:
    """Lanes that are played together."""

    def __init__(self, policy, environment, keys, mesh: Mesh, program: engine.Program, job: Job):
        self.policy, self.environment, self.keys = policy, environment, keys
        self.mesh, self.program, self.job = mesh, program, job

    def play(
        self, numbers: np.ndarray, progress: Callable[[int], None], timing: Timing, pace: _Pace, keeper: Keeper | None
    ) -> dict[str, np.ndarray]:
        """All rounds; returns the variables, lanes first."""
        record = self.job.record
        rounds = []
        carry, sums, t, reached = self._begin(keeper.start(numbers) if keeper else None)

        def snapshot():
            taken = take_snapshot(carry, t, reached, sums.running, sums.recorded)
            return taken.take(slice(0, numbers.size))

        while reached < len(record):
            until = min(t + (self.program.chunk if self.program.trace else pace.rounds), int(record[-1]))
            stops = record[reached : reached + STOPS]
            stops = np.pad(stops, (0, STOPS - stops.size), mode="edge").astype(np.int32)
            until = min(until, int(stops[-1]))
            if self.program.trace:  # a traced call hands out once, so it may not pass a stop
                until = min(until, int(stops[0]))
            began = time.perf_counter()
            carry, tally = _timed(timing, self.policy, self.environment, self.keys, carry, until, stops, self.program)
            count = int(np.searchsorted(stops[: len(record) - reached], until, side="right"))
            sums.add(tally, count)
            if tally.rounds is not None:
                rounds.append(jax.tree.map(lambda leaf: np.asarray(leaf)[: until - t], tally.rounds))  # noqa: B023
            pace.learn(until - t, time.perf_counter() - began)
            t, reached = until, reached + count
            progress(t)
            if keeper and reached < len(record):
                keeper.between(numbers, snapshot)
        if keeper:
            keeper.finish(numbers, snapshot())
        return sums.variables() | totals.traced(rounds)

    def _begin(self, start: Snapshot | None) -> tuple[engine.Carry, totals.Totals, int, int]:
        """The block before its first call: its carry, sums, round, and recorded rounds behind."""
        begin = functools.partial(engine.begin, num_arms=self.job.num_arms, program=self.program)
        if start is None:
            carry, sums, t, reached = begin(self.policy, self.keys), totals.Totals(), 0, 0
        else:
            start = start.padded(self.keys.shape[-1])
            carry = start.engine_carry(jax.eval_shape(begin, self.policy, self.keys))
            sums, t, reached = totals.Totals(start.running, start.recorded), start.t, start.reached
        return engine.place(carry, self.mesh), sums, t, reached  # as advance hands it back: one compile, not two


def _timed(timing: Timing, policy, environment, keys, carry, until: int, stops, program):
    """``engine.advance``, with compilation booked apart."""
    compiled, began = sum(_compilations), time.perf_counter()
    out = jax.block_until_ready(
        engine.advance(policy, environment, keys, carry, np.int32(until), stops, program=program)
    )
    compiling = sum(_compilations) - compiled
    timing.compile_seconds += compiling
    timing.run_seconds += time.perf_counter() - began - compiling
    return out


_compilations: list[float] = []  # seconds of every tracing, lowering and compilation so far


def _note_duration(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.startswith("/jax/core/compile/"):
        _compilations.append(duration_secs)


jax.monitoring.register_event_duration_secs_listener(_note_duration)

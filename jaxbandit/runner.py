"""Running many cells: lanes are dealt into blocks, blocks are played segment by segment.

A *cell* is one policy in one world with all its seeds. The lanes of all cells of one pair of
classes form one axis, cut into blocks of a fixed width that is padded, never reshaped: so one
compiled program serves any number of cells, seeds and rounds.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxbandit import engine
from jaxbandit.game import Environment, Policy, as_arrays, game_key

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
      block: Lanes per device and call, rounded up to a multiple of 64; default by number of arms.
      chunk: Rounds whose random bits are drawn at once.
      devices: Number of devices, or the devices; default all of them.
      progress: True for a progress bar, or a function of (seed-rounds done, in all).
    """

    block: int | None = None
    chunk: int | None = None
    devices: int | Sequence[Any] | None = None
    progress: bool | Progress = False

    def __post_init__(self):
        for name in ("block", "chunk"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(
                    f"Engine.{name} must be a whole number >= 1, got {value!r}; leave it out for the default"
                )

    def mesh(self) -> Mesh:
        """The devices the lanes are split over."""
        devices = self.devices
        if devices is None or isinstance(devices, int):
            available = jax.local_devices()
            count = len(available) if devices is None else devices
            if not 1 <= count <= len(available):
                raise ValueError(
                    f"Engine.devices is {count}, but JAX sees {len(available)}; `jaxbandit doctor` shows them"
                )
            devices = available[:count]
        return Mesh(np.asarray(devices), (engine.LANES,))

    def width(self, num_arms: int) -> int:
        """Lanes per device: enough to pay for the dispatch of kernels, few enough for the cache."""
        block = self.block or max(64, min(1024, 10_240 // num_arms))
        return -(-block // LANE_MULTIPLE) * LANE_MULTIPLE


@dataclasses.dataclass
class Timing:
    """Where the time of a run went."""

    compile_seconds: float = 0.0
    run_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Job:
    """One pair of classes to be played: every policy against every world, all seeds."""

    policies: Sequence[Policy]  # one class, one structure
    environments: Sequence[Environment]  # likewise
    record: np.ndarray  # [R] increasing rounds; the last is the horizon
    num_seeds: int
    seed: int
    measures: tuple[str, ...] = ()
    trace: int = 0

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


def run(job: Job, config: Engine, sink: Sink, progress: Progress, timing: Timing) -> None:
    """Plays a job block by block; ``sink`` gets each block when it is done."""
    mesh, width = config.mesh(), config.width(job.num_arms)
    policies, environments = _stacked(job.policies), _stacked(job.environments)
    state_fields = _state_fields(job.policies[0], job.num_arms)
    program = engine.Program(
        stationary=engine.is_stationary(job.environments[0]),
        chunk=config.chunk or engine.CHUNK,
        measures=tuple(name for name in job.measures if name not in state_fields),
        fields=tuple(name for name in job.measures if name in state_fields),
        mesh=mesh,
    )
    gaps = [_Gaps(environment, job.record, program.stationary) for environment in job.environments]
    in_block = width * mesh.size
    for first in range(0, job.num_lanes, in_block):
        lanes = np.arange(first, min(first + in_block, job.num_lanes))
        padded = np.pad(lanes, (0, in_block - lanes.size), mode="edge")
        policy_of, environment_of, seed_of = job.cell(padded)
        args = (_take(policies, policy_of), _take(environments, environment_of), _key_words(job.seed, seed_of))
        block = _Block(
            *engine.place(args, mesh),
            mesh=mesh,
            program=dataclasses.replace(program, trace=bool((seed_of[: lanes.size] < job.trace).any())),
            job=job,
        )
        done_before = first * int(job.record[-1])
        variables = block.play(lambda rounds: progress(done_before + rounds * lanes.size, _total(job)), timing)  # noqa: B023
        variables = {name: values[: lanes.size] for name, values in variables.items()}
        variables["regret"] = _regret(variables, gaps, environment_of[: lanes.size])
        variables.pop("gap", None)
        sink(lanes, variables)


def _total(job: Job) -> int:
    return job.num_lanes * int(job.record[-1])


def measure_names(policy: Policy, num_arms: int) -> list[str]:
    """What ``measures`` may name: fields of the state, and what ``policy.measure`` returns."""
    fields = _state_fields(policy, num_arms)
    measure = getattr(policy, "measure", None)
    if measure is None:
        return list(fields)
    state, x = policy.init(num_arms), jnp.full(num_arms, 1 / num_arms)
    t, arm, loss = jnp.int32(1), jnp.int32(0), jnp.zeros(())
    return [*fields, *jax.eval_shape(measure, state, t, x, arm, loss, state)]


def _state_fields(policy: Policy, num_arms: int) -> tuple[str, ...]:
    return getattr(jax.eval_shape(lambda: policy.init(num_arms)), "_fields", ())


def _stacked(objects: Sequence[Any]) -> Any:
    """One object whose leaves have a leading axis over the given ones, in the working dtype."""
    dtype = np.dtype(jnp.result_type(float))
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf, dtype) for leaf in leaves]), *objects)


def _take(stacked: Any, index: np.ndarray) -> Any:
    """The leaves of the given points, lanes last."""
    return jax.tree.map(lambda leaf: np.ascontiguousarray(np.moveaxis(leaf[index], 0, -1)), stacked)


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

    def play(self, progress: Callable[[int], None], timing: Timing) -> dict[str, np.ndarray]:
        """All rounds; returns the variables, lanes first."""
        record = self.job.record
        totals = _Totals()
        rounds = []
        carry = engine.begin(self.policy, self.keys, self.job.num_arms, self.program)
        carry = engine.place(carry, self.mesh)  # as advance hands it back: one compile, not two
        t, reached, budget = 0, 0, FIRST_ROUNDS
        while reached < len(record):
            until = min(t + (self.program.chunk if self.program.trace else budget), int(record[-1]))
            stops = record[reached : reached + STOPS]
            stops = np.pad(stops, (0, STOPS - stops.size), mode="edge").astype(np.int32)
            until = min(until, int(stops[-1]))
            if self.program.trace:  # a traced call hands out once, so it may not pass a stop
                until = min(until, int(stops[0]))
            began = time.perf_counter()
            carry, tally = _timed(timing, self.policy, self.environment, self.keys, carry, until, stops, self.program)
            count = int(np.searchsorted(stops[: len(record) - reached], until, side="right"))
            totals.add(tally, count)
            if tally.rounds is not None:
                rounds.append(jax.tree.map(lambda leaf: np.asarray(leaf)[: until - t], tally.rounds))  # noqa: B023
            seconds = max(time.perf_counter() - began, 1e-4)
            budget = int(np.clip(budget * TARGET_SECONDS / seconds, 64, 4 * budget))
            t, reached = until, reached + count
            progress(t)
        return totals.variables() | _traced(rounds)


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


class _Totals:
    """Adds the tallies of a block in float64."""

    def __init__(self):
        self._running: dict[str, np.ndarray] = {}
        self._recorded: dict[str, list[np.ndarray]] = {}
        self._failed = np.zeros(0)

    def add(self, tally: engine.Tally, count: int) -> None:
        """Takes the first ``count`` stops, those that were reached."""
        self._failed = np.asarray(tally.failed[-1])
        if count == 0:
            return
        increments: dict[str, np.ndarray] = {"pulls": np.asarray(tally.pulls[:count], np.int64)}
        for name, (total, lost) in tally.sums.items():
            increments[name] = np.asarray(total[:count], np.float64) + np.asarray(lost[:count], np.float64)
        for name, values in increments.items():
            for value in values:
                running = self._running[name] + value if name in self._running else value
                self._running[name] = running
                self._recorded.setdefault(name, []).append(running)
        for name, values in tally.fields.items():
            self._recorded.setdefault(name, []).extend(np.asarray(values[:count], np.float64))

    def variables(self) -> dict[str, np.ndarray]:
        """Every variable with the lanes first, then the recorded rounds."""
        variables = {name: np.moveaxis(np.stack(values), -1, 0) for name, values in self._recorded.items()}
        variables["failed"] = self._failed
        return variables


def _traced(rounds: list) -> dict[str, np.ndarray]:
    if not rounds:
        return {}
    joined = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), -1, 0), *rounds)
    return {"trace_x": joined.x, "trace_arm": joined.arm, "trace_loss": joined.loss}


def _regret(variables: dict[str, np.ndarray], gaps: list["_Gaps"], environment_of: np.ndarray) -> np.ndarray:
    """Pseudo-regret [lanes, R], Eq. (1) of the paper."""
    if "gap" not in variables:
        of_arm = np.stack([gap.of_arm for gap in gaps])[environment_of]  # [lanes, K]
        return (variables["pulls"] * of_arm[:, None]).sum(axis=-1)
    fixed = np.stack([gap.best_fixed for gap in gaps])[environment_of]  # [lanes, R]
    return variables["gap"] + fixed


class _Gaps:
    """What a world's best fixed arm is compared by, in float64."""

    def __init__(self, environment: Environment, record: np.ndarray, stationary: bool):
        if stationary:
            with jax.enable_x64(True):
                means = np.asarray(as_arrays(environment).means(jnp.int32(1)), np.float64)
            self.of_arm = means - means.min()
            return
        arms, best = np.zeros(environment.num_arms), 0.0
        fixed = []
        for first, last in zip([0, *record[:-1]], record, strict=True):
            for start in range(int(first), int(last), _ROUNDS):
                rounds = np.arange(start + 1, start + _ROUNDS + 1, dtype=np.int32)
                means = np.asarray(_means(as_arrays(environment), rounds), np.float64)[: int(last) - start]
                arms, best = arms + means.sum(axis=0), best + means.min(axis=1).sum()
            fixed.append(best - arms.min())
        self.best_fixed = np.asarray(fixed)


_ROUNDS = 8192


@jax.jit
def _means(environment: Environment, rounds: jax.Array) -> jax.Array:
    return jax.vmap(environment.means)(rounds)

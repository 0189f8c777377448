"""The runner of many games, which deals lanes into blocks and blocks to the cores.

The lanes of all games of one shape form one axis, which is cut into blocks. One compiled program serves any number of
games, values, seeds and rounds. On CPUs every core plays blocks of its own; on accelerators one block is split over
all devices.
"""

import contextlib
import dataclasses
import platform
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit import random
from jaxbandit.engine import blocks, gpu, machine, native, scan, tallies, ways, workers
from jaxbandit.engine.checkpoint import Keeper
from jaxbandit.engine.job import Job
from jaxbandit.engine.shape import Shape
from jaxbandit.engine.stacking import distinct, stacked, taken
from jaxbandit.game import Environment, Policy
from jaxbandit.progress import Progress

MOST_LANES = 4096  # most lanes of a block
BLOCK_BYTES = 64 << 20  # most memory of a block's games
TURN_LANES, MOST_TURNS = 512, 4  # a core gets at most MOST_TURNS blocks, each of at least TURN_LANES games
SCAN_LANES, SCAN_BYTES = 65_536, 1 << 30  # most lanes of a block on each accelerator, and most memory of their games


@dataclasses.dataclass(frozen=True)
class Engine:
    """The settings of a run. Only ``way`` changes the numbers, but not their law.

    Attributes:
      block: Games that a core or the accelerators play at a time; default by the memory they need.
      chunk: Most rounds in a call of the compiled program; default as many as take about a fifth of a second.
      devices: Number of cores that play natively, "cpu" for all of them, or "gpu" for all NVIDIA cards. For the scan,
        the number or the list of JAX devices. By default, cards play if JAX's default device is a GPU, else all cores.
      progress: True for a progress bar, False for none, or a function of (seed-rounds done, in all), called by one
        thread at a time. By default a bar appears after two seconds. Bars are shown on a terminal only.
      checkpoint: Seconds between two checkpoints of unfinished games; only studies in a directory have checkpoints.
      way: "native", machine code by LLVM, or "scan", plain JAX. By default CPUs play natively if LLVM is usable and
        the round has only operations with a native rule; all other games are played by the scan.
    """

    block: int | None = None
    chunk: int | None = None
    devices: int | str | Sequence[Any] | None = None
    progress: bool | Progress | None = None
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
        if isinstance(self.devices, str) and self.devices not in ways.KINDS:
            raise ValueError(f"Engine.devices must be 'cpu', 'gpu' or a number of cores, got {self.devices!r}")
        if self.devices == "gpu" and self.way == "scan":
            raise ValueError(
                "Engine(devices='gpu') plays machine code, so it cannot have way='scan'; leave out one of them"
            )

    def cores(self) -> int:
        """Returns the number of cores that play natively."""
        available = machine.usable_cores()
        if isinstance(self.devices, str):
            return available
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
        if isinstance(self.devices, str):
            return jax.local_devices(backend=self.devices)
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
        if cards := ways.cards(self.devices, self.way):
            try:
                games = gpu.Games(shape, cards)
                return games, games.threads
            except native.UnsupportedError:
                pass  # the CPUs cannot play it natively either, and the next line warns
            except gpu.CardLostError as error:
                gpu.warn_once(f"{error.problem}. The CPUs play instead; no result is lost", gpu.NO_CARD_LEFT)
            except gpu.CardError as error:
                if self.devices == "gpu":
                    raise
                ways.warn(f"{error.problem}. The CPUs play instead")
        found = ways.chosen(shape, self.way)
        if isinstance(found, native.Games):
            return found, self.cores()
        return workers.apart(lambda: scan.Games(shape, self.jax_devices())), 1

    def in_flight(self, shape: Shape, num_lanes: int) -> int:
        """Returns the number of games of a shape that play at a time if there are ``num_lanes`` of them."""
        games, threads = self.games(shape)
        try:
            return self.lanes(games, threads, num_lanes) * threads
        finally:
            _close([games])

    def lanes(self, games: Any, threads: int, num_lanes: int, rows: int = 1) -> int:
        """Returns the number of games of a block: as many as fit its memory, and no fewer blocks than threads.

        If there are many games, each core gets a few blocks, so that a slow core does not delay the others. A card
        gets blocks as large as it can hold instead, because it is fast only if it plays many games at a time. Its
        memory also holds the tallies of the recorded rounds, the ``rows``.
        """
        if self.block:
            return self.block
        if on_cards := isinstance(games, gpu.Games):
            fitting = games.most_lanes(rows)
        else:
            most, size = MOST_LANES, BLOCK_BYTES
            if isinstance(games, scan.Games) and games.platform != "cpu":
                most, size = SCAN_LANES * games.mesh.size, SCAN_BYTES * games.mesh.size
            fitting = max(64, min(most, size // max(games.lane_bytes, 1)))
        turns = min(max(num_lanes // threads // TURN_LANES, 1), MOST_TURNS) if threads > 1 and not on_cards else 1
        each = -(-num_lanes // (threads * turns))
        width = getattr(games, "width", 1)
        even = -(-each // -(-each // fitting))
        return -(-even // width) * width


def described(games: Any, threads: int) -> str:
    """Returns a description of the machine and the way that play games."""
    if isinstance(games, native.Games):
        return f"native: {threads} x {platform.machine()} core"
    if isinstance(games, gpu.Games):
        return f"native: {gpu.named(games.cards)}"
    device = games.mesh.devices.flat[0]
    return f"scan: {games.mesh.size} x {device.device_kind} ({device.platform}, {platform.machine()})"


@dataclasses.dataclass
class Timing:
    """The times that a run spent on compiling and on playing."""

    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    devices: set[str] = dataclasses.field(default_factory=set)  # descriptions of the machine and the way


# A sink receives the numbers of the lanes of a block and its variables, lanes first: {name: [lanes, R, ...]}.
Sink = Callable[[np.ndarray, dict[str, np.ndarray]], None]


def run(job: Job, config: Engine, sink: Sink, progress: Progress, timing: Timing, keeper: Keeper | None = None) -> None:
    """Plays a job block by block; ``sink`` receives each finished block, ``keeper`` sees unfinished ones."""
    began = time.perf_counter()
    shape = workers.apart(lambda: job.shape(trace=bool((job.seed_of < job.trace).all())))
    games, threads = config.games(shape)
    if keeper and isinstance(games, scan.Games):
        _check_way(job, shape, config.way)
    timing.devices.add(described(games, threads))
    compiled = time.perf_counter()
    timing.compile_seconds += compiled - began
    counter, finished = _Counter(job, progress), [0]

    def take(numbers: np.ndarray, variables: dict[str, np.ndarray]) -> None:
        sink(numbers, variables)
        finished[0] = int(numbers[-1]) + 1

    try:
        _play(job, shape, games, threads, config, take, counter, keeper)
    except gpu.CardError as error:
        if isinstance(error, gpu.NoMemoryError) and config.devices == "gpu":
            raise
        left = job.num_lanes - finished[0]
        sentence = f"{error.problem}. The CPUs play the {left:,} games that are not finished; no result is lost"
        if isinstance(error, gpu.CardLostError):
            gpu.warn_once(sentence, gpu.NO_CARD_LEFT)
        else:
            ways.warn(sentence)
        config = dataclasses.replace(config, devices="cpu", way="native", block=None)
        games, threads = config.games(shape)
        timing.devices.add(described(games, threads))
        counter.back_to(finished[0])
        _play(job, shape, games, threads, config, sink, counter, keeper, finished[0])
    finally:
        timing.run_seconds += time.perf_counter() - compiled


def _play(
    job: Job, shape: Shape, games, threads: int, config: Engine, sink: Sink, counter, keeper, first_lane: int = 0
) -> None:
    traced: list[Any] = []  # games that hand out every round; compiled when a block has a traced seed
    wide = shape.dtype == "float64"
    (policies, policy_of), (environments, environment_of) = (distinct(side) for side in zip(*job.pairs, strict=True))
    leaves = stacked(policies, shape.dtype), stacked(environments, shape.dtype)
    gaps = workers.apart(
        lambda: [tallies.Gaps(environment, job.record, shape.plan.stationary) for environment in environments]
    )
    # XLA compiles a program for each number of recorded rounds in a call, so the scan has no very short calls.
    pace = blocks.Pace(config.chunk, least=16 if isinstance(games, scan.Games) else 1)
    key = random.seed_words(job.seed)

    def play(first: int, halt: threading.Event) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        numbers = np.arange(first, min(first + width, job.num_lanes))
        pair_of, seed_of = job.pair_of[numbers], job.seed_of[numbers]
        plays, played_in = policy_of[pair_of], environment_of[pair_of]
        with jax.enable_x64(wide):  # a thread does not inherit this setting
            playing: Any = games
            if (seed_of < job.trace).any() and not shape.plan.trace:
                playing = traced[0] if traced else config.games(job.shape(trace=True))[0]
                traced.append(playing)
            parameters = [*taken(leaves[0], plays), *taken(leaves[1], played_in)]
            keep = np.flatnonzero(seed_of < job.trace)
            while True:
                done: list[int] = []

                def report(rounds: int, done: list[int] = done) -> None:
                    done.append(numbers.size * rounds)
                    counter.add(done[-1])

                try:
                    with contextlib.closing(playing.block(parameters, random.game_words(key, seed_of))) as block:
                        variables = blocks.play(
                            block, playing.shape, job.record, numbers, report, pace, keeper, halt, keep
                        )
                    break
                except gpu.CardLostError as error:
                    if all(card.lost for card in playing.cards):
                        raise
                    gpu.warn_once(f"{error.problem}. The other cards play its games")
                    counter.add(-sum(done))
        variables["regret"] = tallies.regret(variables, gaps, played_in, job.record)
        variables.pop("gap", None)
        return numbers, variables

    try:
        width = config.lanes(games, threads, job.num_lanes - first_lane, len(job.record))
        workers.in_order(play, range(first_lane, job.num_lanes, width), threads, lambda played: sink(*played))
    finally:
        _close([games, *traced])


def _close(games: list[Any]) -> None:
    for opened in {id(one): one for one in games if isinstance(one, gpu.Games)}.values():
        opened.close()


class _Counter:
    """A counter of a job's seed-rounds, which all threads share."""

    def __init__(self, job: Job, progress: Progress):
        self._done, self._total, self._lanes = 0, job.seed_rounds, job.num_lanes
        self._progress, self._lock = progress, threading.Lock()

    def add(self, seed_rounds: int) -> None:
        """Adds the seed-rounds of a call and reports the progress."""
        with self._lock:
            self._done += seed_rounds
            self._progress(self._done, self._total)

    def back_to(self, num_lanes: int) -> None:
        """Counts the rounds of the first lanes alone, because the others are played anew."""
        with self._lock:
            self._done = self._total // self._lanes * num_lanes


def way_of(policy: Policy, environment: Environment, measures: Sequence[str], dtype: str, way: str | None) -> str:
    """Returns the way in which games of a pair are played: "native" or "scan"."""
    if way == "scan" or (way is None and jax.default_backend() not in ways.KINDS) or native.unavailable():
        return "scan"
    if all(type(side).__module__.startswith("jaxbandit.") for side in (policy, environment)):
        return "native"  # tests check that all of them can be lowered
    with jax.enable_x64(dtype == "float64"):
        job = Job.of([(policy, environment)], 1, [1], measures=tuple(measures))
        return "scan" if ways.chosen(job.shape(), way) is None else "native"


def _check_way(job: Job, shape: Shape, way: str | None) -> None:
    """Raises if the scan would play games whose files are named as native ones, because LLVM has failed."""
    if way_of(*job.pairs[0], job.measures, shape.dtype, way) == "native":
        raise ValueError(
            f"{ways.reason(shape)}, and files of native results never hold games of the scan; play this study by the "
            "scan: jb.run(study, directory, engine=jb.Engine(way='scan'))"
        )

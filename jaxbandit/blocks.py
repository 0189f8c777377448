"""A block of games played call by call: as many rounds as make a call of about half a second, to the last one."""

import contextlib
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxbandit import engine, totals
from jaxbandit.checkpoint import Keeper, Snapshot, take_snapshot

STOPS = 16  # recorded rounds per call
TARGET_SECONDS = 0.5  # a call is kept about this short, for progress and Ctrl-C
FIRST_ROUNDS = 512  # rounds of the first call, before the speed is known


class Pace:
    """What the blocks of a job share: how many rounds make a call of about ``TARGET_SECONDS``, learnt call by call."""

    def __init__(self):
        self.rounds = FIRST_ROUNDS
        self._compiled, self._compiling = False, threading.Lock()

    def compiling(self) -> contextlib.AbstractContextManager:
        """For the first calls of a block: of blocks that begin together one compiles, the others wait."""
        return contextlib.nullcontext() if self._compiled else self._compiling

    def learn(self, rounds: int, seconds: float) -> None:
        """Takes note of a call."""
        self._compiled = True
        self.rounds = int(np.clip(rounds * TARGET_SECONDS / max(seconds, 1e-4), 64, 4 * self.rounds))


class Block:
    """Lanes that are played together.

    Args:
      policy: Leaves end in the lane axis or are ``lanes.Shared``.
      environment: Likewise.
      keys: Key words of the games, uint32 [2, lanes].
      program: What is compiled in.
      record: [R] increasing rounds; the last is the horizon.
      num_arms: K.
    """

    def __init__(self, policy, environment, keys, program: engine.Program, record: np.ndarray, num_arms: int):
        self.policy, self.environment, self.keys = place((policy, environment, keys), program.mesh)
        self.program, self.record, self.num_arms = program, record, num_arms

    def play(
        self,
        numbers: np.ndarray,
        progress: Callable[[int], None],
        pace: Pace,
        keeper: Keeper | None,
        halt: threading.Event,
    ) -> dict[str, np.ndarray]:
        """All rounds, or none after ``halt``; returns the variables of the first lanes, lanes first.

        Args:
          numbers: The games that these lanes are; the others fill the block.
          progress: Told the rounds of every call.
          pace: Of the job.
          keeper: Shown the block between two calls.
          halt: Set when another block was broken off.
        """
        record = self.record
        rounds = []
        carry, sums, t, reached = self._begin(keeper.start(numbers) if keeper else None, pace)

        def snapshot():
            taken = take_snapshot(carry, t, reached, sums.running, sums.recorded)
            return taken.take(slice(0, numbers.size))

        while reached < len(record):
            if halt.is_set():
                raise InterruptedError("another block of games was broken off")
            until = min(t + (self.program.chunk if self.program.trace else pace.rounds), int(record[-1]))
            stops = record[reached : reached + STOPS]
            stops = np.pad(stops, (0, STOPS - stops.size), mode="edge").astype(np.int32)
            until = min(until, int(stops[-1]))
            if self.program.trace:  # a traced call hands out once, so it may not pass a stop
                until = min(until, int(stops[0]))
            began = time.perf_counter()
            with pace.compiling():
                called = call(self.policy, self.environment, self.keys, carry, until, stops, self.program)
            carry, tally = jax.block_until_ready(called)
            pace.learn(until - t, time.perf_counter() - began)
            count = int(np.searchsorted(stops[: len(record) - reached], until, side="right"))
            sums.add(tally, count)
            if tally.rounds is not None:
                rounds.append(jax.tree.map(lambda leaf: np.asarray(leaf)[: until - t], tally.rounds))  # noqa: B023
            played, t, reached = until - t, until, reached + count
            progress(played)
            if keeper and reached < len(record):
                keeper.between(numbers, snapshot)
        if keeper:
            keeper.finish(numbers, snapshot())
        variables = sums.variables() | totals.traced(rounds)
        return {name: values[: numbers.size] for name, values in variables.items()}

    def _begin(self, start: Snapshot | None, pace: Pace) -> tuple[engine.Carry, totals.Totals, int, int]:
        """The block before its first call: its carry, sums, round, and recorded rounds behind."""
        begin = functools.partial(engine.begin, num_arms=self.num_arms, program=self.program)
        if start is None:
            with pace.compiling():
                carry = begin(self.policy, self.keys)
            sums, t, reached = totals.Totals(), 0, 0
        else:
            start = start.padded(self.keys.shape[-1])
            carry = start.engine_carry(jax.eval_shape(begin, self.policy, self.keys))
            sums, t, reached = totals.Totals(start.running, start.recorded), start.t, start.reached
        return place(carry, self.program.mesh), sums, t, reached  # as advance hands it back: one compile, not two


def place(tree: Any, mesh: Mesh | None) -> Any:
    """A tree of arrays that end in the lane axis, on the devices of a mesh; one device takes them as they come."""
    return tree if mesh is None else engine.place(tree, mesh)


def call(policy, environment, keys, carry: engine.Carry, until: int, stops, program: engine.Program):
    """``engine.advance``, not waited for."""
    return engine.advance(policy, environment, keys, carry, np.int32(until), stops, program=program)


def compile_seconds() -> float:
    """Of every tracing, lowering and compilation of this process so far."""
    return sum(_compilations)


_compilations: list[float] = []


def _note_duration(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.startswith("/jax/core/compile/"):
        _compilations.append(duration_secs)


jax.monitoring.register_event_duration_secs_listener(_note_duration)

"""The loop that plays a block of games to the last round, in calls of about a fifth of a second."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit.engine import tallies
from jaxbandit.engine.checkpoint import Keeper, Snapshot
from jaxbandit.engine.round import Outcome, Tally
from jaxbandit.engine.shape import Shape

TARGET_SECONDS = 0.2  # a call is kept about this short, for progress and Ctrl-C
FIRST_CALL = 4  # rounds of the first call, in units of the least, before the speed is known
OUT_BYTES = 32 << 20  # most that one call hands out


class Pace:
    """The number of rounds that make a call of about ``TARGET_SECONDS``; all blocks of a job share and improve it.

    Args:
      most: The largest number of rounds of a call.
      least: The smallest, unless fewer are left.
    """

    def __init__(self, most: int | None = None, least: int = 1):
        self._most, self._least = most or 1 << 30, least
        self.rounds = min(FIRST_CALL * least, self._most)

    def learn(self, rounds: int, seconds: float) -> None:
        """Updates the number of rounds after a call."""
        fitting = int(rounds * TARGET_SECONDS / max(seconds, 1e-5))
        self.rounds = min(max(fitting, self._least), 8 * self.rounds, self._most)


def play(
    block: Any,
    shape: Shape,
    record: np.ndarray,
    numbers: np.ndarray,
    progress: Callable[[int], None],
    pace: Pace,
    keeper: Keeper | None,
    halt: threading.Event,
    traced_lanes: Sequence[int] | np.ndarray = (),
) -> dict[str, np.ndarray]:
    """Plays all rounds of a block and returns its variables, lanes first; stops soon after ``halt`` is set.

    Args:
      block: The games, of either way.
      shape: Shape of the games.
      record: [R] increasing rounds; the last is the horizon.
      numbers: Numbers of the games, for the keeper.
      progress: Receives the rounds of every call.
      pace: Pace of the job.
      keeper: Sees the block between two calls.
      halt: Event that is set if another block was interrupted.
      traced_lanes: Lanes of which every round is kept, if the shape's plan has a trace; the variables ``trace_...``
        have these lanes only.
    """
    start = keeper.start(numbers) if keeper else None
    t, reached = (start.t, start.reached) if start else (0, 0)
    left = len(record) - reached
    sums = tallies.Totals(left, start.running, start.recorded) if start else tallies.Totals(left)
    block.start(start.fitting(shape) if start else None)
    structure = jax.tree.structure(shape.tally)
    row = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shape.tally)) * block.num_lanes
    most_recorded, most_rounds = max(1, OUT_BYTES // row), int(record[-1])
    if shape.plan.trace:
        most_rounds = max(1, OUT_BYTES // (8 * (shape.num_arms + 2) * block.num_lanes))
    rounds: list[Outcome] = []

    def snapshot() -> Snapshot:
        return Snapshot(t=t, reached=reached, carry=block.carry(), running=sums.running, recorded=sums.recorded)

    while reached < len(record):
        if halt.is_set():
            raise InterruptedError("this block of games was stopped because another block was interrupted")
        until = min(t + min(pace.rounds, most_rounds), int(record[-1]))
        count = int(np.searchsorted(record[reached:], until, side="right"))
        if count > most_recorded:
            count, until = most_recorded, int(record[reached + most_recorded - 1])
        began = time.perf_counter()
        handed_out, traced = block.advance(t, until, record[reached : reached + count])
        pace.learn(until - t, time.perf_counter() - began)
        if count:
            sums.add(Tally(*jax.tree.unflatten(structure, handed_out)), count)
        if traced:
            rounds.append(Outcome(*(values[..., traced_lanes] for values in traced)))
        played, t, reached = until - t, until, reached + count
        progress(played)
        if keeper and reached < len(record):
            keeper.between(numbers, snapshot)
    if keeper:
        keeper.finish(numbers, snapshot())
    failed = block.carry()[-1]
    return sums.variables(failed) | tallies.traced(rounds)

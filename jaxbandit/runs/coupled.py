"""Play of many pairs side by side on one lane axis, with common random numbers.

``simulate`` plays every policy in every environment; here the n-th policy plays in the n-th environment. Such a pair is
called a point. Seed k of every point reads the same random bits, so differences between points are far less noisy than
the points themselves.
``jaxbandit.parameters`` makes the points.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.checks import check_choice, check_whole, recorded_rounds
from jaxbandit.engine import Engine, Job, Timing, run_job, shared_values, structure
from jaxbandit.game import at_horizon
from jaxbandit.progress import bar


class Games(NamedTuple):
    """The results of the games of each point."""

    regret: np.ndarray  # [points, seeds, rounds]  float64; NaN beyond a point's own number of seeds
    failed: np.ndarray  # [points, seeds]  first round at which the state was not finite, 0 if never


@dataclasses.dataclass(frozen=True)
class PairJob(Job):
    """A job of points, each with its own number of seeds; lanes are in the order of points."""

    policy_of: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))  # [points]
    environment_of: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    seeds_of: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    first_seed: int = 0

    @property
    def num_lanes(self) -> int:
        """The number of games."""
        return int(self.seeds_of.sum())

    def cell(self, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the policy, environment and seed of a lane."""
        point, seed = self.point(lane)
        return self.policy_of[point], self.environment_of[point], seed + self.first_seed

    def point(self, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the point of a lane, and the lane's number among the point's lanes."""
        ends = np.cumsum(self.seeds_of)
        point = np.searchsorted(ends, lane, side="right")
        return point, lane - (ends - self.seeds_of)[point]


def final_regret(
    policies: Sequence[Any],
    environments: Sequence[Any],
    *,
    horizon: int,
    num_seeds: int,
    seed: int = 0,
    first_seed: int = 0,
    dtype: str = "float32",
    engine: Engine | None = None,
) -> np.ndarray:
    """Returns the regret of each pair after the last round: [points, seeds], float64.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.runs.coupled import final_regret
      >>> environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
      >>> policies = [jb.UniINF(horizon=100, initial_scale=scale) for scale in (2.0, 4.0, 8.0)]
      >>> final_regret(policies, [environment], horizon=100, num_seeds=16).shape
      (3, 16)
    """
    games = play_pairs(
        policies,
        environments,
        record=[horizon],
        num_seeds=num_seeds,
        seed=seed,
        first_seed=first_seed,
        dtype=dtype,
        engine=engine,
    )
    return games.regret[..., -1]


def play_pairs(
    policies: Sequence[Any],
    environments: Sequence[Any],
    *,
    record: Sequence[int],
    num_seeds: int | Sequence[int],
    seed: int = 0,
    first_seed: int = 0,
    dtype: str = "float32",
    engine: Engine | None = None,
    timing: Timing | None = None,
) -> Games:
    """Plays the n-th policy in the n-th environment; memory does not grow with the rounds.

    Args:
      policies: One policy for each point, or a single one for all. Points of one class and shape share one compiled
        program and one lane axis; points that differ in a static or shared field are played in turn.
      environments: One environment for each point, or a single one for all.
      record: Increasing rounds at which regret is recorded; the last is the horizon.
      num_seeds: Number of seeds: one number for all points, or one for each.
      seed: The study seed, as in ``simulate``.
      first_seed: Number of the first seed. To play new games, pass a number beyond all earlier seeds.
      dtype: ``"float32"`` or ``"float64"``.
      engine: Settings of the run; only ``way`` changes the numbers, but not their law.
      timing: Timing to which the times of this call are added.
    """
    count = max(len(policies), len(environments))
    for name, given in (("policies", policies), ("environments", environments)):
        if len(given) not in (1, count) or not given:
            raise ValueError(f"{name} has {len(given)} entries for {count} points; give one for each, or a single one")
    rounds = recorded_rounds(int(max(record, default=0)), list(record))
    seeds_of = np.broadcast_to(np.asarray(num_seeds), (count,))
    check_whole("num_seeds", int(seeds_of.min()), 1)
    for name, value in (("seed", seed), ("first_seed", first_seed)):
        check_whole(name, value, 0)
    check_choice("dtype", dtype, ("float32", "float64"))

    told = {id(environment): at_horizon(environment, int(rounds[-1])) for environment in environments}
    sides = _Side(policies, count), _Side([told[id(environment)] for environment in environments], count)
    games = Games(np.full((count, seeds_of.max(), rounds.size), np.nan), np.zeros((count, seeds_of.max()), np.int64))
    config, timing = engine or Engine(), timing or Timing()
    groups: dict[Any, list[int]] = {}
    for point in range(count):
        groups.setdefault(tuple(side.program(point) for side in sides), []).append(point)

    total, done = int(seeds_of.sum()) * int(rounds[-1]), 0
    with jax.enable_x64(dtype == "float64"), bar(config.progress) as progress:
        for members in groups.values():
            points = np.asarray(members)
            (chosen, policy_of), (played_in, environment_of) = (side.select(members) for side in sides)
            job = PairJob(
                policies=chosen,
                environments=played_in,
                record=rounds,
                num_seeds=int(seeds_of[points].max()),
                seed=seed,
                policy_of=policy_of,
                environment_of=environment_of,
                seeds_of=seeds_of[points],
                first_seed=first_seed,
            )

            def sink(lanes: np.ndarray, block: dict[str, np.ndarray], job=job, points=points) -> None:
                point, number = job.point(lanes)
                games.regret[points[point], number] = block["regret"]
                games.failed[points[point], number] = block["failed"]

            run_job(job, config, sink, lambda now, _, done=done: progress(done + now, total), timing)
            done += job.num_lanes * int(rounds[-1])
    return games


class _Side:
    """The policies or the environments of all points; an object that several share is kept once."""

    def __init__(self, objects: Sequence[Any], count: int):
        self.objects = list(objects) * (count if len(objects) == 1 else 1)
        self._programs: dict[int, tuple] = {}

    def program(self, point: int) -> tuple:
        """Returns a key that is equal for points that can be played together."""
        obj = self.objects[point]
        if id(obj) not in self._programs:
            self._programs[id(obj)] = structure(obj), shared_values(obj)
        return self._programs[id(obj)]

    def select(self, points: Sequence[int]) -> tuple[list[Any], np.ndarray]:
        """Returns the distinct objects of some points, and the index of each point's object."""
        places: dict[int, int] = {}
        of = np.asarray([places.setdefault(id(self.objects[point]), len(places)) for point in points])
        by_id = {id(self.objects[point]): self.objects[point] for point in points}
        return [by_id[key] for key in places], of

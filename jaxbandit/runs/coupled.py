"""Play of many pairs side by side on one lane axis, with common random numbers.

``simulate`` plays every policy in every environment; here the n-th policy plays in the n-th environment. Such a pair is
called a point. Seed k of every point reads the same random bits, so differences between points are far less noisy than
the points themselves.
``jaxbandit.parameters`` makes the points.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.checks import check_choice, check_whole, recorded_rounds
from jaxbandit.engine import Engine, Job, Timing, by_program, run_job
from jaxbandit.game import at_horizon
from jaxbandit.progress import bar


class Games(NamedTuple):
    """The results of the games of each point."""

    regret: np.ndarray  # [points, seeds, rounds]  float64; NaN beyond a point's own number of seeds
    failed: np.ndarray  # [points, seeds]  first round at which the state was not finite, 0 if never


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

    played_in = {id(environment): at_horizon(environment, int(rounds[-1])) for environment in environments}
    sides = [policies, [played_in[id(environment)] for environment in environments]]
    pairs = list(zip(*(list(side) * (count if len(side) == 1 else 1) for side in sides), strict=True))
    games = Games(np.full((count, seeds_of.max(), rounds.size), np.nan), np.zeros((count, seeds_of.max()), np.int64))
    config, timing = engine or Engine(), timing or Timing()
    total, done = int(seeds_of.sum()) * int(rounds[-1]), 0
    with jax.enable_x64(dtype == "float64"), bar(config.progress) as progress:
        for members in by_program(pairs):
            points = np.asarray(members)
            job = Job.of([pairs[point] for point in members], seeds_of[points], rounds, first_seed, seed=seed)

            def sink(lanes: np.ndarray, block: dict[str, np.ndarray], job=job, points=points) -> None:
                place = points[job.pair_of[lanes]], job.seed_of[lanes] - first_seed
                games.regret[place] = block["regret"]
                games.failed[place] = block["failed"]

            run_job(job, config, sink, lambda now, _, done=done: progress(done + now, total), timing)
            done += job.seed_rounds
    return games

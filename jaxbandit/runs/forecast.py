"""The forecast of a study's cost, from a short probe of each program that it compiles."""

import contextlib
import dataclasses
import os
import pathlib
import sys
import tempfile

import jax
import numpy as np

from jaxbandit.engine import Engine, Job, Timing, run_job, state_size, structure
from jaxbandit.runs.campaign import Campaign, Report
from jaxbandit.runs.work import job_of, played_together
from jaxbandit.store.cells import Cell
from jaxbandit.store.directory import Store
from jaxbandit.studies import limits
from jaxbandit.studies.study import Study

PROBE_ROUNDS = 256  # rounds of the first probe, which compiles
PROBE_SECONDS = 0.5  # length of the second probe, which is timed
FILE_BYTES = 24_000  # size of a cell's file besides its numbers


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The work that is left and its cost.

    Attributes:
      cells: Number of cells to play.
      found: Number of cells that the directory already holds.
      compiles: Number of programs to compile: one per pair of classes, static fields, arms and dtype.
      lanes: Number of games to play.
      seed_rounds: Number of rounds of all games together.
      compile_seconds: Compile time of this probe; a program in the compile cache takes less.
      run_seconds: Run time, predicted from the probe's speed.
      memory_bytes: Peak memory of this process.
      disk_bytes: Size of the files to write.
      at_least: Whether the study sets a precision; then it may need more seeds than the forecast counts.
    """

    cells: int
    found: int
    compiles: int
    lanes: int
    seed_rounds: int
    compile_seconds: float
    run_seconds: float
    memory_bytes: int
    disk_bytes: int
    at_least: bool


def plan(study: Study, directory: str | os.PathLike | None = None, *, engine: Engine | None = None) -> Forecast:
    """Estimates the cost of running a study without running it; writes nothing.

    Args:
      study: The study.
      directory: Results directory; cells already there are left out of the estimate.
      engine: Settings of the run.
    """
    limits.check_is_study(study, "plan")
    study.check_size(None if directory is None else pathlib.Path(directory))
    report = Report()
    with tempfile.TemporaryDirectory() if directory is None else contextlib.nullcontext(directory) as place:
        campaign = Campaign(study, Store(place), report, way=engine.way if engine else None)
    todo, config = campaign.todo(), engine or Engine()
    if directory is not None:
        campaign.check_disk(todo)
    groups = played_together(todo)
    timing, run_seconds, disk = Timing(), 0.0, 0
    with jax.enable_x64(study.dtype == "float64"):
        for group in groups:
            run_seconds += _probe(group, study, config, timing)
            disk += sum(_file_bytes(cell, study) for cell in group)
    work = [cell.num_seeds * (cell.rounds[-1] - (cell.before.rounds[-1] if cell.before else 0)) for cell in todo]
    return Forecast(
        cells=len(todo),
        found=report.found,
        compiles=len({tuple(map(structure, cell.pair.sides)) for cell in todo}),
        lanes=sum(cell.num_seeds for cell in todo),
        seed_rounds=sum(work),
        compile_seconds=timing.compile_seconds,
        run_seconds=run_seconds,
        memory_bytes=_peak_bytes() + max((_working_bytes(group, study, config) for group in groups), default=0),
        disk_bytes=disk,
        at_least=any(game.precision is not None for game in campaign.pairs),
    )


def _probe(group: list[Cell], study: Study, config: Engine, timing: Timing) -> float:
    """Returns the predicted seconds to play the cells of a group; adds the compile time to ``timing``."""
    width = _block_lanes(group, study, config)
    cell_of = np.repeat(np.arange(len(group)), [cell.num_seeds for cell in group])
    seed_of = np.concatenate([np.arange(cell.first, cell.last) for cell in group])
    job = job_of(group, cell_of[:width], seed_of[:width], study)
    horizon = group[0].rounds[-1]
    played = min(PROBE_ROUNDS, horizon)
    timing.compile_seconds += _played(job, played, config).compile_seconds
    seconds = _played(job, played, config).run_seconds
    if played < horizon and seconds < PROBE_SECONDS:
        played = int(min(horizon, played * max(2, PROBE_SECONDS / seconds)))
        seconds = _played(job, played, config).run_seconds
    rounds = [horizon - (cell.before.rounds[-1] if cell.before else 0) for cell in group]
    lane_rounds = sum(cell.num_seeds * left for cell, left in zip(group, rounds, strict=True))
    blocks = -(-lane_rounds // (width * max(rounds)))  # the last block counts as a whole one
    return seconds / played * blocks * max(rounds)


def _block_lanes(group: list[Cell], study: Study, config: Engine) -> int:
    num_lanes = sum(cell.num_seeds for cell in group)
    return config.in_flight(job_of([group[0]], np.zeros(1, int), np.zeros(1, int), study).shape(), num_lanes)


def _played(job: Job, rounds: int, config: Engine) -> Timing:
    timing = Timing()
    short = dataclasses.replace(job, record=np.asarray([rounds]))
    run_job(short, config, lambda lanes, variables: None, lambda done, total: None, timing)
    return timing


def _file_bytes(cell: Cell, study: Study) -> int:
    num_arms, seeds = cell.pair.environment.num_arms, cell.num_seeds
    per_seed = len(cell.rounds) * (8 * (2 + len(study.measures)) + 4 * num_arms) + 12
    if study.keep == "summary":
        values = len(cell.rounds) * 8 * (8 + num_arms + len(study.measures)) + 8 * seeds
    else:
        values = seeds * per_seed
    return FILE_BYTES + values + (seeds * _state_bytes(cell) if study.extendable else 0)


def _state_bytes(cell: Cell) -> int:
    """Returns the size of one game's last state in its file."""
    num_arms = cell.pair.environment.num_arms
    return 4 * (state_size(cell.pair.policy, num_arms) + num_arms + 3) + 8 * (num_arms + 1)


def _working_bytes(group: list[Cell], study: Study, config: Engine) -> int:
    """Returns the memory for a block's results on their way to the host and a cell's on their way to its file."""
    num_arms = group[0].pair.environment.num_arms
    per_seed = len(group[0].rounds) * 8 * (2 + len(study.measures) + num_arms)
    return per_seed * (2 * _block_lanes(group, study, config) + 3 * max(cell.num_seeds for cell in group))


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

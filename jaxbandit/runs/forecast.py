"""What a study will cost, from a short probe of each program it compiles."""

import contextlib
import dataclasses
import os
import sys
import tempfile

import jax
import numpy as np

from jaxbandit.engine import Engine, Timing, run_job, state_size
from jaxbandit.runs.campaign import Campaign, Report
from jaxbandit.store.cells import Cell, LaneJob, by_program, lane_job, program
from jaxbandit.store.directory import Store
from jaxbandit.studies.study import Study

PROBE_ROUNDS = 256  # of the first, which compiles
PROBE_SECONDS = 0.5  # of the second, which is timed
FILE_BYTES = 24_000  # of a cell's file besides its numbers


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What is left to do and what it takes.

    Attributes:
      cells: Cells to play.
      found: Cells that the directory holds already.
      compiles: Programs to compile: one per pair of classes, static fields, arms and dtype.
      lanes: Games to play.
      seed_rounds: Rounds of all games.
      compile_seconds: Of this probe; a program in the compile cache takes less.
      run_seconds: Predicted from the probe's speed.
      memory_bytes: Peak of this process.
      disk_bytes: Of the files to be written.
      at_least: Whether a precision is asked for, which may take more seeds.
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
    """What running a study would take, without running it; writes nothing.

    Args:
      study: The study.
      directory: The store it would be run in: what is there is not counted.
      engine: How it would be run.
    """
    report = Report()
    with tempfile.TemporaryDirectory() if directory is None else contextlib.nullcontext(directory) as place:
        campaign = Campaign(study, Store(place), report, way=engine.way if engine else None)
    todo, config = campaign.todo(), engine or Engine()
    groups = by_program(todo)
    timing, run_seconds, disk = Timing(), 0.0, 0
    with jax.enable_x64(study.dtype == "float64"):
        for group in groups:
            run_seconds += _probe(group, study, config, timing)
            disk += sum(_file_bytes(cell, study) for cell in group)
    work = [cell.num_seeds * (cell.rounds[-1] - (cell.before.rounds[-1] if cell.before else 0)) for cell in todo]
    return Forecast(
        cells=len(todo),
        found=report.found,
        compiles=len({program(cell) for cell in todo}),
        lanes=sum(cell.num_seeds for cell in todo),
        seed_rounds=sum(work),
        compile_seconds=timing.compile_seconds,
        run_seconds=run_seconds,
        memory_bytes=_peak_bytes() + max((_working_bytes(group, study, config) for group in groups), default=0),
        disk_bytes=disk,
        at_least=any(game.precision is not None for game in campaign.games),
    )


def _probe(group: list[Cell], study: Study, config: Engine, timing: Timing) -> float:
    """Seconds that the cells of a group will take to play; books the compilation."""
    width = _block_lanes(group, study, config)
    cell_of = np.repeat(np.arange(len(group)), [cell.num_seeds for cell in group])
    seed_of = np.concatenate([np.arange(cell.first, cell.last) for cell in group])
    job = lane_job(group, cell_of[:width], seed_of[:width], study)
    horizon = group[0].rounds[-1]
    played = min(PROBE_ROUNDS, horizon)
    timing.compile_seconds += _played(job, played, config).compile_seconds
    seconds = _played(job, played, config).run_seconds
    if played < horizon and seconds < PROBE_SECONDS:
        played = int(min(horizon, played * max(2, PROBE_SECONDS / seconds)))
        seconds = _played(job, played, config).run_seconds
    rounds = [horizon - (cell.before.rounds[-1] if cell.before else 0) for cell in group]
    lane_rounds = sum(cell.num_seeds * left for cell, left in zip(group, rounds, strict=True))
    blocks = -(-lane_rounds // (width * max(rounds)))  # the last one counts as a whole one
    return seconds / played * blocks * max(rounds)


def _block_lanes(group: list[Cell], study: Study, config: Engine) -> int:
    num_lanes = sum(cell.num_seeds for cell in group)
    games, threads = config.games(lane_job([group[0]], np.zeros(1, int), np.zeros(1, int), study).shape())
    return config.lanes(games, threads, num_lanes) * threads


def _played(job: LaneJob, rounds: int, config: Engine) -> Timing:
    timing = Timing()
    short = dataclasses.replace(job, record=np.asarray([rounds]))
    run_job(short, config, lambda lanes, variables: None, lambda done, total: None, timing)
    return timing


def _file_bytes(cell: Cell, study: Study) -> int:
    num_arms, seeds = cell.game.environment.num_arms, cell.num_seeds
    per_seed = len(cell.rounds) * (8 * (2 + len(study.measures)) + 4 * num_arms) + 12
    if study.keep == "summary":
        values = len(cell.rounds) * 8 * (8 + num_arms + len(study.measures)) + 8 * seeds
    else:
        values = seeds * per_seed
    return FILE_BYTES + values + (seeds * _state_bytes(cell) if study.extendable else 0)


def _state_bytes(cell: Cell) -> int:
    """Of one game's last state in its file."""
    num_arms = cell.game.environment.num_arms
    return 4 * (state_size(cell.game.policy, num_arms) + num_arms + 3) + 8 * (num_arms + 1)


def _working_bytes(group: list[Cell], study: Study, config: Engine) -> int:
    """Results of a block on the way to the host, and of a cell on the way to its file."""
    num_arms = group[0].game.environment.num_arms
    per_seed = len(group[0].rounds) * 8 * (2 + len(study.measures) + num_arms)
    return per_seed * (2 * _block_lanes(group, study, config) + 3 * max(cell.num_seeds for cell in group))


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

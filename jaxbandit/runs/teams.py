"""Teams that play a study on many processes: an executor's workers, or processes that started together."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import jax

from jaxbandit.engine import Engine, Timing
from jaxbandit.runs.campaign import Campaign, Notice
from jaxbandit.runs.player import Player
from jaxbandit.runs.run_study import Team
from jaxbandit.runs.work import played_together
from jaxbandit.store import cellfile, cells, seal
from jaxbandit.store.cells import Cell
from jaxbandit.store.directory import Store, StoreError
from jaxbandit.studies.study import Study
from jaxbandit.version import __version__

TASK_LANES = 4096  # most games in a task of an executor, unless one cell has more
WHOLE_CELLS = 8  # pairs per process from which a single process plays each cell


class ExecutorTeam(Team):
    """The workers of an executor in the manner of ``concurrent.futures``; each worker writes its own cells.

    Workers need jaxbandit, and the store and the study's directory under the same paths. Cells of another platform are
    accepted; ``load`` warns about them.

    Attributes:
      executor: The executor that receives the tasks.
    """

    any_platform = True

    def __init__(self, executor: concurrent.futures.Executor):
        self.executor = executor

    def play(self, campaign: Campaign, todo: Sequence[Cell], engine: Engine, notice: Notice, stop) -> list[str]:
        """Submits the cells as tasks; if a worker dies, the executor has to give its task to another."""
        study, store = campaign.study, campaign.store
        content = study.model_dump(exclude_defaults=True)
        settings = {name: getattr(engine, name) for name in ("block", "chunk", "checkpoint", "way")}
        if isinstance(engine.devices, int | str):
            settings["devices"] = engine.devices
        data = None if study.data is None else str(study.data.resolve())
        settings |= {"data": data, "written_by": _writer()}
        place = str(study.directory), str(store.directory.resolve())
        tasks = [
            self.executor.submit(play_task, content, *place, [_spec(cell) for cell in task], settings)
            for task in _tasks(todo)
        ]
        total = sum(cell.num_seeds * cell.rounds[-1] for cell in todo)
        names: list[str] = []
        waiting = set(tasks)
        try:
            while waiting:
                done, waiting = concurrent.futures.wait(waiting, timeout=0.2)
                for task in done:
                    played, timing = _result(task)
                    names += played
                    campaign.add_time(Timing(*timing))
                share = len(names) / len(todo)
                notice(int(share * total), total, campaign.done + len(names), campaign.total)
                if stop is not None and stop.is_set():
                    raise KeyboardInterrupt
        finally:
            for task in waiting:
                task.cancel()
        campaign.done += len(names)
        return names


def play_task(content: dict[str, Any], directory: str, store: str, specs: list[dict], settings: dict) -> tuple:
    """Plays some cells of a study into the store, on a worker; returns their files' names and the times."""
    settings = dict(settings)
    if (leader := settings.pop("written_by")) != _writer():
        raise StoreError(f"a worker runs {_writer()}, but the study is played by {leader}; install the same there")
    study = Study.model_validate(content, context={"directory": directory, "data": settings.pop("data")})
    pairs = {pair.index: pair for pair in cells.pairs(study, settings["way"])}
    todo = [
        Cell(
            pair=pairs[tuple(spec["game"])],
            first=spec["first"],
            last=spec["last"],
            rounds=tuple(spec["rounds"]),
            before=cellfile.read_header(pathlib.Path(spec["before"])) if spec["before"] else None,
        )
        for spec in specs
    ]
    player = Player(study, Store(store), Engine(**settings), tag=cells.digest(specs))
    player.play(todo, lambda done, total: None)
    return [cell.name for cell in todo], (player.timing.compile_seconds, player.timing.run_seconds)


def _writer() -> str:
    return f"jaxbandit {__version__}, numerics {cells.NUMERICS}, format {cellfile.FORMAT}"


def _result(task: concurrent.futures.Future) -> tuple:
    """Returns a task's result; an error of the worker becomes one that says what to do."""
    try:
        return task.result()
    except (StoreError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise StoreError(
            f"a worker failed ({type(error).__name__}: {seal.first_line(error)}); finished cells are kept. Check that "
            "the workers have this jaxbandit and the same paths, then run the same command to continue"
        ) from error


class ProcessTeam(Team):
    """The processes of ``jax.distributed`` on a shared directory; each plays its share without waiting for the others.

    If the study has many pairs, a single process plays each cell. If it has few, every process plays some seeds of each
    cell, and the last one joins them.

    Args:
      number: Number of this process.
      count: Number of processes.
    """

    def __init__(self, number: int, count: int):
        self.number, self.count = number, count
        self.leads = number == 0

    def holding(self, store: Store) -> contextlib.AbstractContextManager[None]:
        """Returns a context in which the first process holds the store for all."""
        if self.leads:
            return super().holding(store)
        store.prepare()
        return contextlib.nullcontext()

    def play(self, campaign: Campaign, todo: Sequence[Cell], engine: Engine, notice: Notice, stop) -> list[str]:
        """Plays this process's share, then waits for the others'."""
        path = campaign.store.checkpoints / f"process-{self.number}.platform"
        campaign.store.write(path, json.dumps(_platforms(campaign)).encode())
        apart = len(campaign.pairs) >= WHOLE_CELLS * self.count
        share = (0, 1) if apart else (self.number, self.count)
        player = campaign.player(engine, notice, stop, share=share, tag=f"process-{self.number}")
        mine = [cell for cell in todo if not apart or self._owner(campaign, cell) == self.number]
        try:
            player.play(mine, campaign.progress(notice))
        finally:
            campaign.add_time(player.timing)
        while not all([player.assemble(cell) for cell in todo]):
            self._check_platforms(campaign)
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            time.sleep(0.2)
        return [cell.name for cell in todo]

    def _owner(self, campaign: Campaign, cell: Cell) -> int:
        policy, environment = cell.pair.index
        environments = 1 + max(pair.index[1] for pair in campaign.pairs)
        return (policy * environments + environment) % self.count

    def _check_platforms(self, campaign: Campaign) -> None:
        here = _platforms(campaign)
        for path in campaign.store.checkpoints.glob("process-*.platform"):
            with contextlib.suppress(OSError, ValueError):
                other = json.loads(path.read_text())
                if other != here:
                    raise StoreError(
                        f"the processes run on different platforms, so their last bits would differ: {path.stem} has "
                        f"{other}, this process has {here}; use equal machines, or --dask, which plays whole cells"
                    )


def _platforms(campaign: Campaign) -> dict[str, dict[str, str]]:
    """Returns the platform, on which the last bits depend, for each way in which the study's games are played."""
    return {way: cells.platform(way) for way in sorted({pair.way for pair in campaign.pairs})}


def dask_team(address: str) -> tuple[ExecutorTeam, Any]:
    """Returns a team of Dask workers, and the client that the caller has to close."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--dask needs Dask distributed: pip install 'jaxbandit[dask]'") from None
    try:
        client = Client(address, timeout="10s")
    except OSError as error:
        raise ValueError(f"no Dask scheduler answers at {address} ({error}); start one: dask scheduler") from None
    return ExecutorTeam(client.get_executor(pure=False, retries=3)), client


def process_team(coordinator: str | None, num_processes: int | None, process_id: int | None) -> ProcessTeam | None:
    """Starts ``jax.distributed`` with the flags' or a Slurm step's processes; returns None if this one is alone."""
    given = [value is not None for value in (coordinator, num_processes, process_id)]
    if any(given):
        if not all(given):
            raise ValueError("--coordinator, --num-processes and --process-id go together; give all three")
        jax.distributed.initialize(coordinator, num_processes, process_id)
    elif int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        jax.distributed.initialize()
    else:
        return None
    return ProcessTeam(jax.process_index(), jax.process_count())


def _tasks(todo: Sequence[Cell]) -> list[list[Cell]]:
    """Groups cells into tasks; the cells of a task share one program."""
    tasks: list[list[Cell]] = []
    for group in played_together(todo):
        tasks.append([])
        for cell in group:
            if tasks[-1] and sum(member.num_seeds for member in tasks[-1]) + cell.num_seeds > TASK_LANES:
                tasks.append([])
            tasks[-1].append(cell)
    return tasks


def _spec(cell: Cell) -> dict[str, Any]:
    return {
        "game": list(cell.pair.index),
        "first": cell.first,
        "last": cell.last,
        "rounds": list(cell.rounds),
        "before": str(cell.before.path.resolve()) if cell.before else None,
    }

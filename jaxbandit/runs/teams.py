"""Teams that play a study on many processes: an executor's workers, or processes that started together."""

import concurrent.futures
import contextlib
import logging
import os
import pathlib
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine import Engine, Timing
from jaxbandit.runs.campaign import Campaign, Notice
from jaxbandit.runs.player import Player
from jaxbandit.runs.presence import Presence
from jaxbandit.runs.run_study import Team
from jaxbandit.runs.work import played_together
from jaxbandit.store import cellfile, cells, seal
from jaxbandit.store.cells import Cell
from jaxbandit.store.directory import InUseError, Store, StoreError
from jaxbandit.studies.study import Study
from jaxbandit.version import __version__

TASK_LANES = 4096  # most games in a task of an executor, unless one cell has more
LOOK_AGAIN = 5.0  # seconds after which a waiting process looks whether its own share is still stored
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
    except concurrent.futures.CancelledError:
        raise StoreError(
            "the scheduler of the workers was lost, and finished cells are kept; start it and its workers again, then "
            "run the same command to continue"
        ) from None
    except Exception as error:
        raise StoreError(
            f"a worker failed ({type(error).__name__}: {seal.first_line(error)}); finished cells are kept. Check that "
            "the workers have this jaxbandit and the same paths, then run the same command to continue"
        ) from error


class ProcessTeam(Team):
    """Processes that share a results directory; each plays its share without waiting for the others.

    If the study has many pairs, a single process plays each cell. If it has few, every process plays some seeds of each
    cell, and the last one joins them. The processes see each other by signs of life in the directory. If one is lost,
    those that are left play its share. The first of them leads: it holds the directory and writes the manifest.

    Args:
      number: Number of this process, from 0.
      count: Number of processes.
    """

    def __init__(self, number: int, count: int):
        self.number, self.count = number, count
        self.leads = number == 0
        self._note = f", number {number} of {count} processes,"

    @contextlib.contextmanager
    def holding(self, store: Store) -> Iterator[None]:
        """Shows that this process is present; the first process also holds the store for all."""
        store.prepare()
        with contextlib.ExitStack() as self._held:
            if self.leads:
                self.leads = self._hold(store)
            with Presence(store.directory, self.number, self.count) as self._presence:
                yield

    def play(self, campaign: Campaign, todo: Sequence[Cell], engine: Engine, notice: Notice, stop) -> list[str]:
        """Plays this process's share and that of lost processes, until every cell has its file."""
        self._presence.about = _about(campaign)
        self._apart = len(campaign.pairs) >= WHOLE_CELLS * self.count
        self._environments = 1 + max(pair.index[1] for pair in campaign.pairs)
        player = campaign.player(engine, notice, stop, mine=self._mine, tag=f"process-{self.number}")
        left = list(todo)
        try:
            while left:
                self._here = self._presence.here()
                try:
                    player.play([cell for cell in left if self._mine(cell).any()], campaign.progress(notice))
                except FileNotFoundError:  # the leader removes earlier cells when others have played these
                    if not all([player.assemble(cell) for cell in left]):
                        raise
                until = time.monotonic() + LOOK_AGAIN
                while left := [cell for cell in left if not player.assemble(cell)]:
                    self._check_others()
                    if stop is not None and stop.is_set():
                        raise KeyboardInterrupt
                    if self._presence.here() != self._here or time.monotonic() > until:
                        break
                    time.sleep(0.2)
        finally:
            campaign.add_time(player.timing)
        return [cell.name for cell in todo]

    def conclude(self, campaign: Campaign) -> None:
        """Concludes the run if this process leads; else waits for the leader, or takes its place if it is lost."""
        while not self.leads and not self._presence.done():
            if self._presence.here()[0] == self.number:
                self._hold(campaign.store)
                self.leads = True
            else:
                time.sleep(0.2)
        if self.leads:
            super().conclude(campaign)

    def _hold(self, store: Store) -> bool:
        """Tries to hold the store; returns False if another of these processes holds it."""
        try:
            self._held.enter_context(store.locked(self._note))
        except InUseError as error:
            if not re.search(rf", number \d+ of {self.count} processes,", error.holder):
                raise
            return False
        return True

    def _mine(self, cell: Cell) -> np.ndarray:
        """Returns which seeds of a cell this process plays, [seeds] of bool.

        The shares of the processes depend on their numbers alone. Those that are present divide the shares of the
        others among themselves.
        """
        present = self._here
        if self._apart:
            policy, environment = cell.pair.index
            index = policy * self._environments + environment
            owner = index % self.count
            if owner not in present:
                owner = present[index // self.count % len(present)]
            return np.full(cell.num_seeds, owner == self.number)
        mine = np.zeros(cell.num_seeds, bool)
        for n in range(self.count):
            share = mine[_range(cell.num_seeds, n, self.count)]
            if n == self.number:
                share[:] = True
            elif n not in present:
                share[_range(share.size, present.index(self.number), len(present))] = True
        return mine

    def _check_others(self) -> None:
        """Raises ``StoreError`` if another process that plays would never finish the cells that this one waits for."""
        here = self._presence.about
        for n, other in self._presence.others().items():
            for name, value in here.items():
                if name in other and other[name] != value:
                    raise StoreError(
                        f"number {n} of {self.count} processes has another {name} than this process: {other[name]} "
                        f"instead of {value}, so they cannot share this study; stop it, and start it like this one "
                        "(for different machines use --dask, which plays whole cells)"
                    )


def _range(size: int, number: int, count: int) -> slice:
    return slice(size * number // count, size * (number + 1) // count)


def _about(campaign: Campaign) -> dict[str, Any]:
    """Returns what processes must have in common to share a study; the last bits depend on the platform."""
    platform = {way: cells.platform(way) for way in sorted({pair.way for pair in campaign.pairs})}
    study = cells.digest([[pair.key for pair in campaign.pairs], list(campaign.rounds)])
    return {"version": _writer(), "platform": platform, "study": study}


class DaskTeam(ExecutorTeam):
    """The workers of a Dask cluster.

    Args:
      client: The client of its scheduler, which ``close`` closes.
    """

    def __init__(self, client: Any):
        super().__init__(client.get_executor(pure=False, retries=3))
        self.client = client

    def close(self) -> None:
        """Closes the client without a word: if its scheduler is gone, it would log the errors of reconnecting."""
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self.client.close(timeout=2)


def dask_team(address: str) -> DaskTeam:
    """Returns a team of Dask workers; the caller has to close it."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--dask needs Dask distributed: pip install 'jaxbandit[dask]'") from None
    try:
        return DaskTeam(Client(address, timeout="10s"))
    except OSError as error:
        raise ValueError(f"no Dask scheduler answers at {address} ({error}); start one: dask scheduler") from None


def process_team(coordinator: str | None, num_processes: int | None, process_id: int | None) -> ProcessTeam | None:
    """Returns the team of the flags or of a Slurm step; None if this process is alone.

    The processes meet in the results directory, so the coordinator's address is not needed any more.
    """
    if num_processes is None and process_id is None and coordinator is None:
        if int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) <= 1:
            return None
        num_processes, process_id = int(os.environ["SLURM_STEP_NUM_TASKS"]), int(os.environ["SLURM_PROCID"])
    if num_processes is None or process_id is None:
        raise ValueError("--num-processes and --process-id go together; give both")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"--process-id is {process_id}, but with --num-processes {num_processes} it is one of 0 to "
            f"{num_processes - 1}; number the processes from 0"
        )
    return ProcessTeam(process_id, num_processes)


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

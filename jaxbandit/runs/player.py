"""The player of cells, which continues unfinished lanes and writes a whole file for each finished cell."""

import functools
import itertools
import os
import pathlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.engine import Engine, Job, Snapshot, Timing, join_snapshots, pack, run_job
from jaxbandit.progress import Progress
from jaxbandit.runs import unfinished
from jaxbandit.runs.work import job_of, played_together
from jaxbandit.store import cellfile
from jaxbandit.store.cells import Cell, platform
from jaxbandit.store.directory import Store
from jaxbandit.store.writing import Writing
from jaxbandit.studies.study import Study


class Player:
    """The player of a study's cells; it plays no finished games again.

    Args:
      study: The study.
      store: The store that receives the cells.
      config: Settings of the run.
      tag: Name of this process's checkpoint files.
      mine: Function that returns which seeds of a cell this process plays, [seeds] of bool; by default all.
      stop: Event; if it is set, the player saves unfinished games and raises ``KeyboardInterrupt``.
      finished: Function that is called with every finished cell.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        config: Engine,
        *,
        tag: str = "local",
        mine: Callable[[Cell], np.ndarray] = lambda cell: np.ones(cell.num_seeds, bool),
        stop: threading.Event | None = None,
        finished: Callable[[Cell], None] = lambda cell: None,
    ):
        self.study, self.store, self.config = study, store, config
        self.tag, self.mine, self.stop, self.finished = tag, mine, stop or threading.Event(), finished
        self.timing = Timing()
        self._lock = threading.Lock()
        self._encoding = threading.Lock()

    def play(self, cells: Sequence[Cell], progress: Progress) -> None:
        """Plays every cell; returns when all have their files or, if this process has a share, when that is played."""
        with jax.enable_x64(self.study.dtype == "float64"):
            parts = [part for group in played_together(cells) for part in self._left_to_play(group)]
            total = sum(part.job.seed_rounds for part in parts)
            done = 0
            with Writing() as writing:
                for part in parts:
                    keeper = _Keeper(self, part, writing)

                    def report(now: int, _: int, done: int = done) -> None:
                        progress(done + now, total)

                    run_job(part.job, self.config, keeper.sink, report, self.timing, keeper)
                    done += part.job.seed_rounds
            for cell in cells:
                self.assemble(cell)

    def assemble(self, cell: Cell) -> bool:
        """Joins a cell's parts into its file if all are stored; returns whether the file exists."""
        if (self.store.cells / cell.name).exists():
            return True
        paths = self._parts(cell)
        if sum(_part_count(path) for path in paths) < cell.num_seeds:
            return False
        parts = [part for path in paths if (part := unfinished.read_part(path, cell))]
        seeds, order = np.unique(np.concatenate([part[0] for part in parts] or [np.zeros(0)]), return_index=True)
        if seeds.size < cell.num_seeds:
            return False  # a damaged part has been removed: its seeds are played again
        variables = {name: np.concatenate([part[name] for _, part, _ in parts])[order] for name in parts[0][1]}
        self._write(cell, variables, join_snapshots([state for _, _, state in parts]).take(order))
        for path in paths:
            path.unlink(missing_ok=True)
        return True

    def _left_to_play(self, cells: Sequence[Cell]) -> "list[_Part]":
        """Returns the unplayed lanes by their start: a checkpoint, an earlier horizon, or round 1."""
        left = {cell.name: self._left(cell) for cell in cells}
        by_name = {cell.name: cell for cell in cells}
        parts: list[_Part] = []
        for snapshot, about in self._checkpoints():
            members = [by_name.get(name) for name in about["cells"]]
            lanes = []
            for lane, (n, seed) in enumerate(zip(about["cell_of"], about["seed_of"], strict=True)):
                cell = members[n]
                if cell and cell.first <= seed < cell.last and left[cell.name][seed - cell.first]:
                    left[cell.name][seed - cell.first] = False
                    lanes.append(lane)
            if lanes:
                known = [cell for cell in members if cell]
                place = np.cumsum([cell is not None for cell in members]) - 1
                cell_of = place[np.asarray(about["cell_of"])[lanes]]
                job = job_of(known, cell_of, np.asarray(about["seed_of"])[lanes], self.study, snapshot.t)
                parts.append(_Part(known, job, snapshot.take(lanes)))
        for start, group in itertools.groupby(sorted(cells, key=_start), key=_start):
            members = [cell for cell in group if left[cell.name].any()]
            if members:
                seeds = [cell.first + np.flatnonzero(left[cell.name]) for cell in members]
                cell_of = np.repeat(np.arange(len(members)), [entry.size for entry in seeds])
                parts.append(_Part(members, job_of(members, cell_of, np.concatenate(seeds), self.study, start)))
        return parts

    def _left(self, cell: Cell) -> np.ndarray:
        """Returns which seeds of a cell this process has to play, [seeds] of bool."""
        if (self.store.cells / cell.name).exists():
            return np.zeros(cell.num_seeds, bool)
        left = self.mine(cell)
        for path in self._parts(cell):
            part = unfinished.read_part(path, cell)
            if part:
                left[part[0] - cell.first] = False
        return left

    def _parts(self, cell: Cell) -> list:
        start = f"{cell.name.removesuffix('.nc')}."
        names = os.listdir(self.store.parts) if self.store.parts.is_dir() else []
        return sorted(self.store.parts / name for name in names if name.startswith(start) and name.endswith(".part"))

    def _checkpoints(self) -> list[tuple[Snapshot, dict[str, Any]]]:
        """Returns the stored checkpoints, the latest round first: a lane in several continues from the first."""
        found = map(unfinished.read_checkpoint, sorted(self.store.checkpoints.glob("*.ckpt")))
        return sorted(filter(None, found), key=lambda entry: -entry[0].t)

    def put(self, cell: Cell, seeds: np.ndarray, variables: dict[str, np.ndarray], state: Snapshot) -> None:
        """Writes the results of some seeds of a cell: the cell's file if these are all its seeds, else a part."""
        if seeds.size == cell.num_seeds:
            self._write(cell, variables, state)
            return
        arrays = {f"variable.{name}": values for name, values in variables.items()} | state.arrays() | {"seeds": seeds}
        name = f"{cell.name.removesuffix('.nc')}.{seeds[0]}.{seeds.size}.part"
        about = {"t": state.t, "reached": state.reached, "cells": [cell.name], "rounds": list(cell.rounds)}
        self.store.write(self.store.parts / name, pack(arrays, about))
        self.assemble(cell)

    def _write(self, cell: Cell, variables: dict[str, np.ndarray], state: Snapshot) -> None:
        infinite = int(np.isinf(variables["loss"][:, -1]).sum())
        final = cellfile.final_moments(variables["regret"][:, -1])
        variables = dict(variables)
        variables["pulls"] = variables["pulls"].astype(np.int32, copy=False)
        summary = self.study.keep == "summary"
        if summary:
            variables = _reduced(variables, lone=cell.before is not None and variables["regret"].shape[1] == 1)
        if cell.before:
            variables = _after(cellfile.read_variables(cell.before), variables, summary)
        header = {
            "game": cell.pair.key,
            "first": cell.first,
            "last": cell.last,
            "rounds": list(cell.rounds),
            "platform": platform(cell.pair.way),
            "about": cell.pair.about,
            "final": final,
            "infinite": infinite,
        }
        with self._encoding:  # one thread at a time: threads that alternate inside HDF5 need twice as long
            content = cellfile.encode(header, variables, state if self.study.extendable else None)
        self.store.write(self.store.cells / cell.name, content)
        with self._lock:
            self.finished(cell)


class _Part(NamedTuple):
    """A part of the work: cells, the job of their unplayed lanes, and the checkpoint they continue from, if any."""

    cells: Sequence[Cell]
    job: Job  # its pairs are those of the cells, in the same order
    start: Snapshot | None = None


class _Keeper:
    """The keeper of a job's lanes, which starts and checkpoints them and hands their results to the player."""

    def __init__(self, player: Player, part: _Part, writing: Writing):
        self.player, self.writing = player, writing
        self.cells, self.job, self.from_checkpoint = part
        self.saved_at: dict[int, float] = {}  # by the first lane of a block
        self.final: dict[int, Snapshot] = {}

    def start(self, lanes: np.ndarray) -> Snapshot | None:
        """Returns the lanes' state from the checkpoint, or from the files of an earlier horizon."""
        self.saved_at[int(lanes[0])] = time.monotonic()
        if self.from_checkpoint:
            return self.from_checkpoint.take(lanes)
        if not self.job.start:
            return None
        parts = []
        for c, seeds in self._by_cell(lanes):
            before = self.cells[c].before
            assert before is not None
            parts.append(cellfile.read_state(before).take(seeds - before.first))
        return join_snapshots(parts)

    def between(self, lanes: np.ndarray, take: Callable[[], Snapshot]) -> None:
        """Saves a checkpoint if the last one is too old or if ``stop`` is set."""
        stopping = self.player.stop.is_set()
        if stopping or time.monotonic() - self.saved_at[int(lanes[0])] > self.player.config.checkpoint:
            snapshot = take()
            present, cell_of = np.unique(self.job.pair_of[lanes], return_inverse=True)
            about = {
                "t": snapshot.t,
                "reached": snapshot.reached,
                "cells": [self.cells[c].name for c in present],
                "rounds": list(self.cells[0].rounds),
                "cell_of": cell_of.tolist(),
                "seed_of": self.job.seed_of[lanes].tolist(),
            }
            self.player.store.write(self._path(lanes), pack(snapshot.arrays(), about))
            self.saved_at[int(lanes[0])] = time.monotonic()
        if stopping:
            raise KeyboardInterrupt

    def finish(self, lanes: np.ndarray, snapshot: Snapshot) -> None:
        """Keeps the last state for the file; ``sink`` receives the recorded rows as variables."""
        self.final[int(lanes[0])] = Snapshot(snapshot.t, snapshot.reached, snapshot.carry, snapshot.running, {})

    def sink(self, lanes: np.ndarray, variables: dict[str, np.ndarray]) -> None:
        """Starts to write the results of a block; when they are stored, the block's checkpoint is removed."""
        final, runs = self.final.pop(int(lanes[0])), self._by_cell(lanes)
        ends = np.cumsum([seeds.size for _, seeds in runs])
        tasks = []
        for (c, seeds), end in zip(runs, ends.tolist(), strict=True):
            rows = slice(end - seeds.size, end)
            part = {name: values[rows] for name, values in variables.items()}
            tasks.append(functools.partial(self.player.put, self.cells[c], seeds, part, final.take(rows)))
        self.writing.begin(tasks, functools.partial(self._path(lanes).unlink, missing_ok=True))
        if self.player.stop.is_set():
            raise KeyboardInterrupt

    def _path(self, lanes: np.ndarray) -> pathlib.Path:
        """Returns the path of a block's checkpoint."""
        first = self.cells[int(self.job.pair_of[lanes[0]])].name.removesuffix(".nc")
        return self.player.store.checkpoints / f"{self.player.tag}.{first}.{self.job.seed_of[lanes[0]]}.ckpt"

    def _by_cell(self, lanes: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Splits lanes into consecutive runs of one cell each."""
        cell_of, seed_of = self.job.pair_of[lanes], self.job.seed_of[lanes]
        cuts = np.flatnonzero(np.diff(cell_of)) + 1
        return [(int(c[0]), s) for c, s in zip(np.split(cell_of, cuts), np.split(seed_of, cuts), strict=True)]


def _start(cell: Cell) -> int:
    return cell.before.rounds[-1] if cell.before else 0


def _part_count(path) -> int:
    return int(path.name.split(".")[-2])


def _reduced(variables: dict[str, np.ndarray], lone: bool) -> dict[str, np.ndarray]:
    """Returns a cell's summary. NumPy adds a lone column in another order than several, so it is doubled first."""
    from jaxbandit.dataset import results  # imports xarray, so it is loaded while games are played, not before

    if not lone:
        return results.reduce_cell(variables)
    doubled = {name: v if name == "failed" else np.repeat(v, 2, axis=1) for name, v in variables.items()}
    reduced = results.reduce_cell(doubled)
    return {
        name: v if name == "failed" else v[:, :1] if name == "regret_quantile" else v[:1] for name, v in reduced.items()
    }


def _after(old: dict[str, np.ndarray], new: dict[str, np.ndarray], summary: bool) -> dict[str, np.ndarray]:
    """Joins the variables of the earlier and the later rounds along the round axis."""
    joined = {}
    for name, values in new.items():
        if name == "failed":
            joined[name] = values
        else:
            axis = 1 if name == "regret_quantile" or not summary else 0
            joined[name] = np.concatenate([old[name], values], axis=axis)
    return joined

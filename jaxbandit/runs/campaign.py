"""The comparison of a study with its directory: wanted cells, stored cells, and the manifest."""

import contextlib
import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.dataset import labels
from jaxbandit.dataset.pairs import checked_pair
from jaxbandit.engine import Engine, Timing
from jaxbandit.runs import precision, unfinished
from jaxbandit.runs.player import Player
from jaxbandit.store import cellfile, cells
from jaxbandit.store.cellfile import Header
from jaxbandit.store.cells import Cell, Pair
from jaxbandit.store.cover import Piece, covered, missing
from jaxbandit.store.directory import Store, StoreError
from jaxbandit.studies import limits
from jaxbandit.studies.study import Study
from jaxbandit.theory import assumptions
from jaxbandit.version import __version__, commit

if TYPE_CHECKING:
    import xarray as xr

Notice = Callable[[int, int, int, int], None]  # seed-rounds done, seed-rounds in all, cells done, cells in all


@dataclasses.dataclass
class Report:
    """The record of what a run did.

    Attributes:
      played: Number of cells that the run played.
      found: Number of cells that the directory already held.
      aside: Number of cells of the same pairs from another platform or version; the run keeps them but ignores them.
      others: Number of cells of pairs that this study does not have; the run keeps them but ignores them.
      timing: Times spent on compiling and on playing.
    """

    played: int = 0
    found: int = 0
    aside: int = 0
    others: int = 0
    timing: Timing = dataclasses.field(default_factory=Timing)


class Campaign:
    """The state of a run: the pairs of a study, and the cells of them that its store holds."""

    def __init__(
        self,
        study: Study,
        store: Store,
        report: Report,
        any_platform: bool = False,
        way: str | None = None,
        mend: bool = False,
    ):
        self.study, self.store, self.report = study, store, report
        self.pairs = cells.pairs(study, way)
        self.rounds = _rounds(study, store.manifest(), {pair.key for pair in self.pairs})
        self.whole = study.keep == "summary"
        self.seeds = {pair.index: pair.num_seeds for pair in self.pairs}
        self.headers: dict[str, list[Header]] = {pair.key: [] for pair in self.pairs}
        self.done, self.total = 0, 0
        here = {pair.key: cells.platform(pair.way) for pair in self.pairs}
        for header in store.headers(mend):
            if header.pair in self.headers and (any_platform or header.platform == here[header.pair]):
                self.headers[header.pair].append(header)
            elif header.pair in self.headers or not _same_version(header):
                report.aside += 1
            else:
                report.others += 1
        self._look_at_precision()
        report.found = sum(len(self._pieces(pair)) for pair in self.pairs)
        checked = {pair.index: checked_pair(pair.policy, pair.environment) for pair in self.pairs}
        self.warnings = assumptions.sentences(checked.values())
        self.outside = [index for index, pair in checked.items() if assumptions.is_outside(pair)]
        assumptions.warn(self.warnings, (pair.environment for pair in self.pairs), stacklevel=4)

    def todo(self) -> list[Cell]:
        """Returns the cells that are missing."""
        found = []
        for pair in self.pairs:
            rounds = pair.rounds(self.rounds)
            at_most = cells.cell_seeds(pair, rounds, len(self.study.measures))
            headers, count = self.headers[pair.key], self.seeds[pair.index]
            found += missing(pair, headers, count, rounds, self.whole, at_most)
        named = {cell.name: cell for cell in found}  # two entries may name the same pair
        self.total = self.done + len(named)
        return list(named.values())

    def check_disk(self, todo: Sequence[Cell]) -> None:
        """Raises ``StoreError`` if the files of the missing cells do not fit into the free disk space.

        A cell that continues an earlier one is written whole, and the earlier one is deleted after the last cell. Parts
        and checkpoints are deleted as their cells are written, so their space counts as free.
        """
        free = limits.free_disk(self.store.directory) + sum(map(_size, unfinished.files(self.store)))
        needed = sum(
            limits.file_bytes(cell.pair.environment.num_arms, cell.num_seeds, len(cell.rounds), 1, self.whole)
            for cell in todo
        )
        if needed > free:
            games = sum(cell.num_seeds for cell in todo)
            raise StoreError(
                f"the {games:,} games in {len(todo):,} cells that are left need at least {limits.size(needed)}, but "
                f"{self.store.directory} has {limits.size(free)} of free disk space; make room, lower num_seeds or "
                "record, or give another directory with --out"
            )

    def set_aside_damaged(self) -> None:
        """Renames damaged files that have the names of missing cells."""
        for cell in self.todo():
            self.store.set_aside_damaged(self.store.cells / cell.name)

    def player(self, engine: Engine, notice: Notice, stop, **options) -> Player:
        """Returns the player of this study's cells in this process."""
        self._notice, self._rounds_done = notice, (0, 0)
        return Player(self.study, self.store, engine, stop=stop, finished=self._finished, **options)

    def progress(self, notice: Notice) -> Callable[[int, int], None]:
        """Returns a progress function for the runner that adds the numbers of cells."""

        def progress(done: int, total: int) -> None:
            self._rounds_done = (done, total)
            notice(done, total, self.done, self.total)

        return progress

    def _finished(self, cell: Cell) -> None:
        self.done += 1
        self._notice(*self._rounds_done, self.done, self.total)

    def take_up(self, todo: Sequence[Cell], names: Sequence[str]) -> None:
        """Registers the new files of ``names``; requests more seeds for pairs that have not reached their precision."""
        found = [cellfile.read_header(path) for name in names if (path := self.store.cells / name).exists()]
        for header in found:
            self.headers[header.pair].append(header)
        self.report.played += len(found)
        if not found:
            raise StoreError(
                f"none of {len(todo)} played cells was found in {self.store.cells}; check its disk, or pass another "
                "directory with --out"
            )
        if len(found) == len(todo):
            self._look_at_precision()

    def add_time(self, timing: Timing) -> None:
        """Adds the times of a player to the report."""
        self.report.timing.compile_seconds += timing.compile_seconds
        self.report.timing.run_seconds += timing.run_seconds

    def dataset(self) -> "xr.Dataset":
        """Returns all results as one dataset, whose values are read when they are used."""
        from jaxbandit.store.assemble import (
            assembled,  # imports xarray, which takes half as long as JAX: so after the games
        )

        manifest = self.store.manifest()
        assert manifest is not None
        return assembled(self.store, manifest, [header for headers in self.headers.values() for header in headers])

    def write_manifest(self) -> None:
        """Writes the manifest, which lists what the directory holds."""
        shape = tuple(np.max([pair.index for pair in self.pairs], axis=0) + 1)
        keys, seeds, stops = np.empty(shape, object), np.zeros(shape, int), np.zeros(shape, int)
        for pair in self.pairs:
            keys[pair.index], seeds[pair.index] = pair.key, self.seeds[pair.index]
            stops[pair.index] = pair.rounds(self.rounds)[-1]
        timing = self.report.timing
        self.store.write_manifest(
            {
                "rounds": list(self.rounds),
                "record": self.study.record,
                "keep": self.study.keep,
                "games": keys.tolist(),
                "seeds": seeds.tolist(),
                "stops": stops.tolist(),
                "coords": self._coords(),
                "attrs": {
                    "title": self.study.title,
                    **({} if self.study.held_tables() else {"study": self.study.toml()}),
                    **({} if self.study.data is None else {"tables": "--data"}),
                    "jaxbandit": __version__,
                    "commit": commit(),
                    **({"quick": 1} if self.study.is_quick else {}),
                    "numpy": np.__version__,
                    "dtype": self.study.dtype,
                    "seed": self.study.seed,
                    "num_seeds": int(seeds.max()),
                    "horizon": self.rounds[-1],
                    "prng": cells.PRNG,
                    "warnings": "\n".join(self.warnings),
                    "outside": self._outside(),
                    "compile_seconds": round(timing.compile_seconds, 3),
                    "run_seconds": round(timing.run_seconds, 3),
                    "written": time.strftime("%Y-%m-%d %H:%M:%S"),
                },
            }
        )

    def clean_up(self) -> None:
        """Removes files that are no longer needed: finished checkpoints and parts, cells that longer cells replace."""
        rounds = {pair.key: pair.rounds(self.rounds) for pair in self.pairs}
        for path in unfinished.files(self.store):
            if unfinished.is_done(path, self.store, rounds):
                unfinished.delete(path)
        for headers in self.headers.values():
            for old in list(headers):
                if any(_continues(new, old) for new in headers):
                    old.path.unlink(missing_ok=True)
                    headers.remove(old)

    def _outside(self) -> str:
        """Returns the labels of the pairs outside their assumptions, as an attribute."""
        coords = self._coords()
        policies, environments = coords["policy"]["values"], coords["environment"]["values"]
        return assumptions.as_attribute((policies[p], environments[e]) for p, e in self.outside)

    def _coords(self) -> dict[str, Any]:
        study = self.study.resolved
        arms = max(pair.environment.num_arms for pair in self.pairs)
        axes = labels.labelled_axes(study.labelled_policies(), study.labelled_environments())
        coords = {name: given if isinstance(given, tuple) else (name, given) for name, given in axes.items()}
        coords |= {"round": ("round", list(self.rounds)), "arm": ("arm", list(range(arms)))}
        declared = {
            "moment_order": [_number(one.moment_order) for one in study.declared],
            "moment_bound": [
                _number(one.moment_order and one.moment_bound(one.moment_order)) for one in study.declared
            ],
        }
        for name, values in declared.items():
            if name in coords and coords[name][0] == "policy":
                coords[f"policy_{name}"] = coords.pop(name)
                name = f"environment_{name}"
            coords.setdefault(name, ("environment", values))
        return {name: {"dims": [dim], "values": np.asarray(given).tolist()} for name, (dim, given) in coords.items()}

    def _pieces(self, pair: Pair) -> list[Piece]:
        return covered(self.headers[pair.key], self.seeds[pair.index], pair.rounds(self.rounds), self.whole)

    def _look_at_precision(self) -> None:
        """Raises the number of seeds of each pair that has all its seeds so far and whose band is too wide."""
        for pair in self.pairs:
            if pair.precision is not None:
                looks = functools.partial(self._moments, pair)
                needed = precision.seeds_needed(looks, pair.num_seeds, pair.precision, pair.max_seeds)
                self.seeds[pair.index] = max(pair.num_seeds, needed)

    def _moments(self, pair: Pair, count: int) -> precision.Moments | None:
        """Returns the moments of the final regrets of a pair's first ``count`` seeds; None if not all are stored."""
        rounds = pair.rounds(self.rounds)
        pieces = covered(self.headers[pair.key], count, rounds, self.whole)
        if sum(piece.last - piece.first for piece in pieces) < count:
            return None
        return precision.pooled(_moments(piece, rounds) for piece in pieces)


def _moments(piece: Piece, rounds: tuple[int, ...]) -> precision.Moments:
    """Returns the moments of a piece's final regret, from the header if that has them for these seeds and rounds."""
    header = piece.header
    if header.rounds == rounds and (piece.first, piece.last) == (header.first, header.last):
        return header.final
    if "regret" in header.variables:
        rows = slice(piece.first - header.first, piece.last - header.first)
        return cellfile.final_moments(cellfile.read_part(header, "regret", (rows, len(rounds) - 1)))
    raise StoreError(
        f"{header.path} holds a summary to round {header.rounds[-1]}, from which the precision at round {rounds[-1]} "
        "cannot be computed; use another directory (--out) for the shorter horizon"
    )


def _rounds(study: Study, manifest: dict[str, Any] | None, keys: set[str]) -> tuple[int, ...]:
    """Returns the rounds to record. A longer horizon keeps the rounds of stored cells and adds later ones."""
    fresh = study.rounds()
    if manifest is None or not isinstance(study.record, int) or manifest["record"] != study.record:
        return tuple(fresh)
    if not keys & {key for row in manifest["games"] for key in row}:
        return tuple(fresh)
    before = manifest["rounds"]
    if any(stop < before[-1] and stop not in before for stop in study.stops()):
        return tuple(fresh)
    if before[-1] == fresh[-1]:
        return tuple(before)
    return tuple(before + [n for n in fresh if n > before[-1]]) if fresh[-1] > before[-1] else tuple(fresh)


def _same_version(header: Header) -> bool:
    return header.about.get("numerics") == cells.NUMERICS


def _continues(new: Header, old: Header) -> bool:
    same = (new.first, new.last) == (old.first, old.last) and len(new.rounds) > len(old.rounds)
    return same and new.rounds[: len(old.rounds)] == old.rounds and new.has_state >= old.has_state


def _size(path: pathlib.Path) -> int:
    with contextlib.suppress(OSError):  # another process has just deleted it
        return path.stat().st_size
    return 0


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)

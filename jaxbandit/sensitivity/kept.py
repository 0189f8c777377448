"""Play of the points of a design in parts, each of which is stored when it is finished: a stopped run continues."""

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine import Engine, Timing
from jaxbandit.progress import bar
from jaxbandit.runs.coupled import Games, play_pairs
from jaxbandit.store.cells import digest
from jaxbandit.store.parts import Parts

LANES = 8192  # games of a part, enough for the cores of a large machine
ROUNDS = 100_000_000  # or as many as take about this many seed-rounds, some seconds of play


class Kept:
    """The finished points of one kind of sensitivity in a study's directory.

    Args:
      directory: The directory of the study.
      kind: ``"local"``, ``"sobol"`` or ``"morris"``.
      key: The digest of everything that determines the result.
    """

    def __init__(self, directory: pathlib.Path, kind: str, key: str):
        self._parts, self._key = Parts(directory), key
        self._prefix = f"sensitivity-{kind}-"

    def play(self, points: Sequence[tuple[Any, Any]], num_seeds: Sequence[int], first: int, **rest: Any) -> Games:
        """Plays a part, which begins at the point ``first`` of its design, unless it is stored."""
        way = rest["engine"].way
        name = self._prefix + digest({"key": self._key, "points": [first, first + len(points)], "way": way})
        if found := self._parts.read(name):
            return Games(found[0]["regret"], found[0]["failed"])
        timing = Timing()
        games = _play(points, num_seeds, timing=timing, **rest)
        self._parts.write(name, games._asdict(), timing.run_seconds)
        return games

    def forget(self) -> None:
        """Removes the parts when the result is stored."""
        self._parts.forget(self._prefix)


def play_points(
    points: Sequence[tuple[Any, Any]],
    num_seeds: int | Sequence[int],
    *,
    horizon: int,
    seed: int,
    dtype: str,
    engine: Engine | None,
    kept: Kept | None,
) -> Games:
    """Plays pairs of a policy and an environment as ``play_pairs`` does, in parts if they are to be kept.

    The parts do not change the numbers, which depend on the pair and the seed alone.
    """
    counts = np.broadcast_to(np.asarray(num_seeds), (len(points),)).tolist()
    common = {"record": [horizon], "seed": seed, "dtype": dtype}
    config = engine or Engine()
    if kept is None:
        return _play(points, counts, engine=config, **common)
    whole = Games(np.full((len(points), max(counts), 1), np.nan), np.zeros((len(points), max(counts)), np.int64))
    total, done = sum(counts) * horizon, 0
    with bar(config.progress) as progress:
        for part in _ranges(counts, horizon):
            quiet = dataclasses.replace(config, progress=lambda now, _, done=done: progress(done + now, total))
            games = kept.play(points[part], counts[part], part.start, engine=quiet, **common)
            for mine, values in zip(whole, games, strict=True):
                mine[part, : values.shape[1]] = values
            done += sum(counts[part]) * horizon
            progress(done, total)
    return whole


def _ranges(counts: Sequence[int], horizon: int) -> Iterator[slice]:
    """Yields the points of every part; they depend on the numbers of seeds and the horizon alone.

    Example:
      >>> list(_ranges([5_000] * 5, 100_000))
      [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    first = lanes = 0
    for last, count in enumerate(counts, start=1):
        lanes += count
        if lanes >= max(LANES, ROUNDS // horizon) or last == len(counts):
            yield slice(first, last)
            first, lanes = last, 0


def _play(points: Sequence[tuple[Any, Any]], num_seeds: Sequence[int], **rest: Any) -> Games:
    policies, environments = zip(*points, strict=True)
    return play_pairs(policies, environments, num_seeds=num_seeds, **rest)

"""Files of unfinished games, which belong to the cells they are part of, whatever study plays in the directory."""

import pathlib
from collections.abc import Iterator, Mapping

from jaxbandit.engine import unpack
from jaxbandit.store import seal
from jaxbandit.store.directory import Store


def files(store: Store) -> Iterator[pathlib.Path]:
    """Yields the checkpoints and parts of a store."""
    yield from sorted(store.checkpoints.glob("*.ckpt"))
    yield from sorted(store.parts.glob("*.part"))


def is_done(path: pathlib.Path, store: Store, rounds: Mapping[str, tuple[int, ...]]) -> bool:
    """Returns whether a file is needed no more after a run.

    It is, if its cells are finished, or if the run has played the same pairs to a later round. Games of other studies
    are kept, and so are games of these pairs that other recorded rounds were chosen for.

    Args:
      path: A checkpoint or part.
      store: The store.
      rounds: The rounds that the run has recorded for each of its pairs, by the pair's hash.
    """
    try:
        _, about = unpack(seal.read_bytes(path))
        names, recorded = about["cells"], tuple(about["rounds"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return path.name.split("-")[0].rpartition(".")[2] in rounds  # damaged: kept if it is another study's
    return all(
        (store.cells / name).exists() or recorded == rounds.get(name.split("-")[0], ())[: len(recorded)]
        for name in names
    )

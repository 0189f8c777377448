"""Files of unfinished games, which belong to the cells they are part of, whatever study plays in the directory."""

import contextlib
import pathlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.engine import Snapshot, unpack
from jaxbandit.store import seal
from jaxbandit.store.cells import Cell
from jaxbandit.store.directory import Store


class Part(NamedTuple):
    """Finished seeds of an unfinished cell."""

    seeds: np.ndarray
    variables: dict[str, np.ndarray]
    state: Snapshot


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
        names, recorded = _texts(about["cells"]), tuple(about["rounds"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return path.name.split("-")[0].rpartition(".")[2] in rounds  # damaged: kept if it is another study's
    return all(
        (store.cells / name).exists() or recorded == rounds.get(name.split("-")[0], ())[: len(recorded)]
        for name in names
    )


def read_part(path: pathlib.Path, cell: Cell) -> Part | None:
    """Reads a part of a cell. Deletes it with a warning if it is damaged or not this cell's; then it returns None."""
    try:
        arrays, about = unpack(seal.read_bytes(path))
        seeds = arrays.pop("seeds")
        if about["cells"] != [cell.name] or seeds.min() < cell.first or seeds.max() >= cell.last:
            raise ValueError("another cell's")
        variables = {name: arrays.pop(name) for name in list(arrays) if name.startswith("variable.")}
        named = {name.removeprefix("variable."): values for name, values in variables.items()}
        if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or not {"regret", "loss", "pulls"} <= set(named):
            raise ValueError("no seeds, or no results")
        if any(values.shape[:1] != seeds.shape or values.dtype.kind not in "iuf" for values in named.values()):
            raise ValueError("results of other seeds")
        _check_lanes(arrays, seeds.size)
        return Part(seeds, named, Snapshot.from_arrays(about["t"], about["reached"], arrays))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        warnings.warn(f"{path} is damaged; this run deletes it and plays its seeds again", stacklevel=2)
        delete(path)
        return None


def read_checkpoint(path: pathlib.Path) -> tuple[Snapshot, dict[str, Any]] | None:
    """Reads a checkpoint and its description. Deletes it with a warning if it is damaged; then it returns None."""
    try:
        arrays, about = unpack(seal.read_bytes(path))
        cells, cell_of, seed_of = _texts(about["cells"]), _wholes(about["cell_of"]), _wholes(about["seed_of"])
        if (
            max(cell_of) >= len(cells)
            or len(cell_of) != len(seed_of)
            or len(_wholes([about["t"], about["reached"]])) != 2
        ):
            raise ValueError("no checkpoint")
        _check_lanes(arrays, len(cell_of))
        return Snapshot.from_arrays(about["t"], about["reached"], arrays), about
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        warnings.warn(f"{path} is damaged; this run deletes it and starts its games again", stacklevel=2)
        delete(path)
        return None


def _check_lanes(arrays: Mapping[str, np.ndarray], count: int) -> None:
    """Raises ``ValueError`` unless arrays hold numbers and end in an axis of so many lanes."""
    if any(array.shape[-1:] != (count,) or array.dtype.kind not in "iufb" for array in arrays.values()):
        raise ValueError("arrays of other lanes")


def _texts(values: Any) -> list[str]:
    """Returns a list of text; raises ``ValueError`` if it is none."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("no list of text")
    return values


def _wholes(values: Any) -> list[int]:
    """Returns a list of whole numbers of at least 0; raises ``ValueError`` if it is none."""
    if not isinstance(values, list) or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError("no list of whole numbers")
    return values


def delete(path: pathlib.Path) -> None:
    """Deletes a file if that is possible."""
    with contextlib.suppress(OSError):  # a directory, for example: it is left where it is
        path.unlink(missing_ok=True)

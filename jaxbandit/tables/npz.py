"""Reader of archives of arrays: only the array that is asked for is unpacked, and never more than memory holds."""

import lzma
import pathlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit.checks import total_memory

COPIES = 3  # of a table in memory while it is read and checked


def read_npz(path: pathlib.Path, key: str | None) -> tuple[np.ndarray, Sequence[str], str]:
    """Returns one array of an archive, the names of its columns and its name; nothing else of it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
        with np.load(path, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise zipfile.BadZipFile
            key = key if key is not None else _only_table(path, arrays, sizes)
            if key not in arrays.files:
                listed = ", ".join(name for name in arrays.files[:100] if name != "arms")
                raise ValueError(f"{path} holds no array {key!r}; tables: {listed}; pass the name of one as key")
            check_bytes(path, sizes.get(key, 0), f"the array {key!r}")
            values = arrays[key]
            named = "arms" in arrays.files and key != "arms" and values.ndim == 2
            check_bytes(path, sizes.get("arms", 0), "the array 'arms'")
            names = arrays["arms"] if named else None
    except zipfile.BadZipFile:
        raise ValueError(
            f"{path} cannot be read: it is no whole .npz archive; a single array belongs in an .npy file"
        ) from None
    except (ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, KeyError) as error:
        why = "it is encrypted" if "encrypted" in str(error) else str(error)
        raise ValueError(why if str(path) in why else f"{path} cannot be read: {why}") from None
    fits = names is not None and names.shape == values.shape[1:]
    name = path.stem if key == "losses" else f"{path.stem}:{key}"
    return values, [str(arm) for arm in names] if fits and names is not None else [], name


def tables_in(path: pathlib.Path) -> list[str]:
    """Returns the names of an archive's tables: ``losses``, or all arrays with two axes; empty if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as arrays:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
            return _tables(path, arrays, sizes)
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        return []


def _tables(path: pathlib.Path, arrays: Any, sizes: Mapping[str, int]) -> list[str]:
    if "losses" in arrays.files:
        return ["losses"]
    for name in arrays.files:
        check_bytes(path, sizes.get(name, 0), f"the array {name!r}")
    return [name for name in arrays.files if arrays[name].ndim == 2]


def _only_table(path: pathlib.Path, arrays: Any, sizes: Mapping[str, int]) -> str:
    """Returns the name of the table to read: ``losses``, or the only array with two axes."""
    tables = _tables(path, arrays, sizes)
    if len(tables) != 1:
        raise ValueError(f"{path} holds tables: {', '.join(tables[:100]) or 'none'}; pass the name of one as key")
    return tables[0]


def check_bytes(path: pathlib.Path, count: float, what: str = "the table") -> None:
    """Refuses what does not fit into memory."""
    there = total_memory()
    if count * COPIES > there:
        raise ValueError(
            f"{path}: {what} of {count:,.0f} bytes needs about {count * COPIES:,.0f} bytes of memory, but this machine "
            f"has {there:,.0f}; cut it into smaller tables"
        )

"""Reader of arrays and of archives of arrays: headers come first, and nothing is unpacked that memory cannot hold."""

import lzma
import math
import pathlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from jaxbandit.checks import total_memory

COPIES = 3  # of a table in memory while it is read and checked
_ODD = (ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, KeyError, EOFError, SyntaxError)


class Head(NamedTuple):
    """The header of an array: its shape, and the bytes that it claims."""

    shape: tuple[int, ...]
    size: int


def read_npz(path: pathlib.Path, key: str | None) -> tuple[np.ndarray, Sequence[str], str]:
    """Returns one array of an archive, the names of its columns and its name; nothing else of it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            heads = _heads(archive)
            if key is None:
                key = _only_table(path, heads)
            if key not in heads:
                listed = ", ".join(name for name in list(heads)[:100] if name != "arms")
                raise ValueError(f"{path} holds no array {key!r}; tables: {listed}; pass the name of one as key")
            values = _array(path, archive, heads, key)
            named = "arms" in heads and key != "arms" and heads["arms"].shape == values.shape[1:]
            names = _array(path, archive, heads, "arms") if named and values.ndim == 2 else None
    except zipfile.BadZipFile:
        raise ValueError(
            f"{path} cannot be read: it is no whole .npz archive; a single array belongs in an .npy file"
        ) from None
    except _ODD as error:
        why = "it is encrypted" if "encrypted" in str(error) else str(error) or "it ends too early"
        raise ValueError(why if str(path) in why else f"{path} cannot be read: {why}") from None
    name = path.stem if key == "losses" else f"{path.stem}:{key}"
    return values, [] if names is None else [str(arm) for arm in names], name


def read_npy(path: pathlib.Path) -> np.ndarray:
    """Returns the array of an ``.npy`` file."""
    with path.open("rb") as file:
        try:
            check_bytes(path, head(file).size)
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
        except _ODD as error:
            why = str(error) or "it ends too early"
            raise ValueError(why if str(path) in why else f"{path} cannot be read: {why}") from None


def head(file: IO[bytes]) -> Head:
    """Reads the header of an array; raises ``ValueError`` if there is none."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if any(length < 0 for length in shape):
        raise ValueError(f"its header has the shape {shape}")
    return Head(shape, math.prod(shape) * dtype.itemsize)


def tables_in(path: pathlib.Path) -> list[str]:
    """Returns the names of an archive's tables: ``losses``, or all arrays with two axes; empty if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _tables(_heads(archive))
    except (OSError, zipfile.BadZipFile, *_ODD):
        return []


def _heads(archive: zipfile.ZipFile) -> dict[str, Head]:
    """Returns the header of every array of an archive; other members are left out, except one named ``losses``.

    If there is no array at all, then the error of the first member says why.
    """
    found, odd = {}, None
    for entry in archive.infolist():
        name = entry.filename.removesuffix(".npy")
        try:
            with archive.open(entry) as file:
                one = head(file)
        except _ODD as error:
            if name == "losses":
                raise
            odd = odd or error
            continue
        found[name] = Head(one.shape, max(one.size, entry.file_size))
    if odd and not found:
        raise odd
    return found


def _array(path: pathlib.Path, archive: zipfile.ZipFile, heads: Mapping[str, Head], name: str) -> Any:
    check_bytes(path, heads[name].size, f"the array {name!r}")
    member = name if name in archive.namelist() else f"{name}.npy"
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _tables(heads: Mapping[str, Head]) -> list[str]:
    return ["losses"] if "losses" in heads else [name for name, one in heads.items() if len(one.shape) == 2]


def _only_table(path: pathlib.Path, heads: Mapping[str, Head]) -> str:
    """Returns the name of the table to read: ``losses``, or the only array with two axes."""
    tables = _tables(heads)
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

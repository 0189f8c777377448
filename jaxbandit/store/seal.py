"""Seals of files: a digest of the whole file, which is compared before any library looks at the content.

A sealed netCDF file ends with the line ``jaxbandit sha256 DIGEST``. It stands behind the end that HDF5 records in the
file, so readers of netCDF do not see it. In ``store.json`` the digest is the last key. Files of earlier versions have
no seal. A netCDF file without one is accepted as *unverified* only if it has exactly the length that HDF5 recorded: a
sealed file whose seal was damaged has another length, so it never passes for an old one.

A seal finds damage. It is no signature: whoever writes a file can also seal it.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import stat
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbandit.checks import total_memory

if TYPE_CHECKING:
    import xarray as xr

_LINE = b"\njaxbandit sha256 "
_LENGTH = len(_LINE) + 64 + 1
_JSON_TAIL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\Z')
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # opens a pipe without waiting; Windows
_LINKS = 1_000  # most arrays of a file: this package writes a few dozen
_PACKED = 1_000  # bytes of an array for each byte of its file; compression saves no more
_END_AT = {0: 40, 1: 44, 2: 28, 3: 28}  # by version of HDF5's superblock: the place of the recorded length


class BadFileError(ValueError):
    """The error of a file that is damaged, foreign, or of another format; its message continues the file's name."""


class Sealed(NamedTuple):
    """The content of a file without its seal."""

    content: bytes
    digest: str  # SHA-256 of the content
    verified: bool  # False for a file of an earlier version, which has no seal


def sealed(content: bytes | memoryview) -> bytes:
    """Returns the bytes of a netCDF file with its seal."""
    return b"".join((content, _LINE, hashlib.sha256(content).hexdigest().encode(), b"\n"))


def sealed_json(said: Mapping[str, Any]) -> bytes:
    """Returns a table as JSON with its seal."""
    body = json.dumps(dict(said), indent=1).encode().removesuffix(b"\n}")
    return b'%s,\n "sha256": "%s"\n}' % (body, hashlib.sha256(body).hexdigest().encode())


def read(path: pathlib.Path) -> Sealed:
    """Reads a netCDF file and compares its digest; raises ``BadFileError`` if it is damaged."""
    data = read_bytes(path)
    content, line = data[:-_LENGTH], data[-_LENGTH:]
    if line.startswith(_LINE):
        digest = hashlib.sha256(content).hexdigest()
        if line[len(_LINE) :] != digest.encode() + b"\n":
            raise BadFileError("is damaged (its digest differs)")
        return Sealed(content, digest, verified=True)
    if not _is_whole(data):
        raise BadFileError("is damaged (it has no digest, and not the length that its content states)")
    return Sealed(data, hashlib.sha256(data).hexdigest(), verified=False)


def read_json(path: pathlib.Path) -> tuple[dict[str, Any], bool]:
    """Reads a table of JSON and returns whether it is sealed; raises ``BadFileError`` if it is damaged."""
    data = read_bytes(path)
    tail = _JSON_TAIL.search(data)
    if tail and hashlib.sha256(data[: tail.start()]).hexdigest().encode() != tail[1]:
        raise BadFileError("is damaged (its digest differs)")
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"is damaged ({error})") from None
    if not isinstance(said, dict):
        raise BadFileError("is damaged (it is no table)")
    said.pop("sha256", None)
    return said, tail is not None


def read_dataset(path: pathlib.Path) -> tuple["xr.Dataset", bool]:
    """Reads a dataset and returns whether it is sealed; raises ``BadFileError`` if it cannot be read."""
    import xarray as xr

    found = read(path)
    try:
        with opened(found.content):
            pass
        return xr.load_dataset(io.BytesIO(found.content), engine="h5netcdf"), found.verified
    except BadFileError:
        raise
    except Exception as error:  # the libraries below raise errors of many kinds for content that they do not know
        raise BadFileError(f"is no dataset ({first_line(error)})") from None


@contextlib.contextmanager
def opened(content: bytes) -> Iterator[Any]:
    """Opens verified bytes with HDF5, in memory, so that nothing can change between the comparison and the reading.

    Raises ``BadFileError`` if numbers lie outside of these bytes, or would take more memory than this machine has. An
    array of HDF5 may name any file of the machine as the place of its numbers, may be much larger than its file, and
    may lie in groups so deep that HDF5 ends the process. This package writes no such array.
    """
    import h5py

    with h5py.File(io.BytesIO(content), "r") as file:
        if wrong := next(_unusable(file.id, len(content)), None):
            raise BadFileError(f"cannot be used: {wrong}")
        yield file


def _unusable(file: Any, length: int) -> Iterator[str]:
    """Yields why an HDF5 file of that many bytes is not read: its numbers, its groups, or its links."""
    from h5py import h5d, h5g, h5l, h5o  # pyright: ignore[reportAttributeAccessIssue] (compiled)

    links: list[tuple[bytes, Any]] = []

    def look(group: bytes, before: bytes) -> None:
        """Appends the links of a group, until there are too many."""

        def add(name: bytes, info: Any) -> bool | None:
            links.append((before + name, info.type))
            return len(links) > _LINKS or None

        file.links.iterate(add, obj_name=group, info=True)

    look(b".", b"")
    total = 0
    for name, kind in links:  # which grows by the links of the groups
        shown = repr(name.decode(errors="replace"))
        if len(links) > _LINKS:
            yield f"it has more than {_LINKS:,} arrays"
        if kind != h5l.TYPE_HARD:
            yield f"{shown} in it is a link"
            continue
        array = h5o.open(file, name)
        if isinstance(array, h5g.GroupID):
            if b"/" in name:
                yield f"{shown} in it is a group inside a group"
            look(name, name + b"/")
        if not isinstance(array, h5d.DatasetID) or array.get_offset() is not None:  # a place in this file
            continue
        made = array.get_create_plist()
        if made.get_layout() == h5d.VIRTUAL or made.get_external_count():
            yield f"the numbers of {shown} lie in another file"
        total += array.get_space().get_simple_extent_npoints() * array.get_type().get_size()
    if total > total_memory():
        yield f"its arrays would take {total:,} bytes, and this machine has {total_memory():,.0f}"
    if total > _PACKED * length:
        yield f"its arrays would take {total:,} bytes, and the file has {length:,}"


def dataset_bytes(ds: "xr.Dataset") -> bytes:
    """Returns a dataset as the bytes of a sealed netCDF file."""
    return sealed(ds.to_netcdf(engine="h5netcdf"))


def read_bytes(path: pathlib.Path) -> bytes:
    """Reads a regular file; raises ``BadFileError`` for a pipe or device, and for a file larger than memory."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_WAIT)
        try:  # nobody can put a pipe in the place of an open file
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise BadFileError("is no regular file")
            if about.st_size > total_memory():
                raise MemoryError
            with open(handle, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except MemoryError:
        raise BadFileError("is larger than the memory of this process") from None
    except OSError as error:
        raise BadFileError(f"cannot be read ({error.strerror or error})") from None


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its kind if it has no message."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _is_whole(data: bytes) -> bool:
    """Returns whether data is an HDF5 file of the length that HDF5 recorded in it."""
    at = _END_AT.get(data[8]) if data.startswith(_SIGNATURE) and len(data) > 52 else None
    return at is not None and int.from_bytes(data[at : at + 8], "little") == len(data)

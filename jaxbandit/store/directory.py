"""The directory of a study, with its finished cells and its unfinished games.

    store.json      manifest: labels, coordinates, the pairs of the dataset
    cells/*.nc      finished cells
    parts/*.part    finished seeds of unfinished cells
    checkpoints/*   games between two rounds
    lock            lock file of the present run

Every file is written under a temporary name, synced and renamed, so a file with its final name is whole.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from jaxbandit.store import cellfile
from jaxbandit.store.cellfile import BadFileError, Header
from jaxbandit.version import __version__

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMAT = 1


class StoreError(Exception):
    """The error of a directory that cannot be used; its message has the cause and the remedy."""


class Store:
    """A study's directory; it is created when it is first written to."""

    def __init__(self, directory: str | os.PathLike):
        self.directory = pathlib.Path(directory)
        self.cells = self.directory / "cells"
        self.parts = self.directory / "parts"
        self.checkpoints = self.directory / "checkpoints"

    def prepare(self) -> None:
        """Creates the directories; raises ``StoreError`` if that fails or if they hold another version's files."""
        try:
            for path in (self.cells, self.parts, self.checkpoints):
                path.mkdir(parents=True, exist_ok=True)
            probe = self.directory / f".probe.{_writer()}.tmp"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise StoreError(
                f"{self.directory} cannot be written to ({error.strerror}); give another directory with --out"
            ) from None
        self.manifest()

    def manifest(self) -> dict[str, Any] | None:
        """Reads ``store.json``; returns None if it does not exist yet."""
        path = self.directory / "store.json"
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            found = said["format"]
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise StoreError(f"{self.directory} is not a directory; give another one with --out") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} cannot be read ({error}); the cells beside it are whole. Move {path.name} away and run the "
                "study again"
            ) from None
        if found != FORMAT:
            raise StoreError(
                f"{self.directory} was written by jaxbandit {said.get('jaxbandit', '?')} in format {found}, but this "
                f"is jaxbandit {__version__} with format {FORMAT}; nothing was changed. Use that version, or give "
                "another directory with --out"
            )
        return said

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Replaces ``store.json``."""
        said = {"format": FORMAT, "jaxbandit": __version__, **content}
        self.write(self.directory / "store.json", json.dumps(said, indent=1).encode())

    def headers(self) -> list[Header]:
        """Returns the header of every whole cell; warns about every other file and leaves it unchanged."""
        found = []
        for path in sorted(self.cells.glob("*.nc")):
            try:
                found.append(cellfile.read_header(path))
            except BadFileError as error:
                warnings.warn(f"{path} {error}; this file is not used", stacklevel=2)
        return found

    def write(self, path: pathlib.Path, content: bytes | memoryview) -> None:
        """Writes a file, either whole or not at all."""
        temporary = path.with_name(f".{path.name}.{_writer()}.tmp")
        try:
            try:
                with temporary.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
                _sync_directory(path.parent)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            free = _free_space(self.directory)
            raise StoreError(
                f"cannot write {path} ({len(content):,} bytes): {error.strerror or error}{free}. Finished cells are "
                "whole and kept. Make room and run the same command to continue"
            ) from None

    def clear_temporary(self) -> None:
        """Removes half-written files of killed processes, if these ran on this host or the files are a day old."""
        for folder in (self.directory, self.cells, self.parts, self.checkpoints):
            for path in folder.glob(".*.tmp"):
                process = path.name.removesuffix(".tmp").rpartition("-")[2]
                dead = f".{socket.gethostname()}-" in path.name and not _is_alive(int(process))
                with contextlib.suppress(OSError):
                    if dead or time.time() - path.stat().st_mtime > 86_400:
                        path.unlink()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the store, so that a second run is refused. If the process dies, the lock is released."""
        path = self.directory / "lock"
        with path.open("a+", encoding="utf-8") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    file.seek(0)
                    holder = file.read().strip() or "another process"
                    raise StoreError(
                        f"{self.directory} is in use by {holder}; wait for it, stop it, or give another directory "
                        "with --out"
                    ) from None
            file.truncate(0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {since}\n")
            file.flush()
            try:
                self.clear_temporary()
                yield
            finally:
                file.truncate(0)


def _writer() -> str:
    """Returns a name of this thread that is unique among all writers to one directory."""
    return f"{socket.gethostname()}-{threading.get_ident()}-{os.getpid()}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _free_space(directory: pathlib.Path) -> str:
    with contextlib.suppress(OSError):
        return f"; {shutil.disk_usage(directory).free:,} bytes are free there"
    return ""


def _sync_directory(directory: pathlib.Path) -> None:
    """Makes a rename survive a power failure, if the system supports that."""
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

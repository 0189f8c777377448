"""The directory of a study, with its finished cells and its unfinished games.

    store.json      manifest: labels, coordinates, the pairs of the dataset
    cells/*.nc      finished cells
    parts/*.part    finished seeds of unfinished cells
    checkpoints/*   games between two rounds
    team/*          signs of life of processes that share the directory
    lock            lock file of the present run

Every file is written under a temporary name, synced and renamed, so a file with its final name is whole. Every file has
a digest of its content, which is compared when the file is read. docs/store.md describes the whole.
"""

import contextlib
import itertools
import os
import pathlib
import shutil
import socket
import stat
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from jaxbandit import outputs
from jaxbandit.store import cellfile, seal
from jaxbandit.store.cellfile import FORMAT, UNSEALED, BadFileError, Header, MisnamedError
from jaxbandit.store.manifest import problem
from jaxbandit.version import __version__

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_REMEDY = "The cells beside it are kept. Move store.json away and run the study again"


class StoreError(Exception):
    """The error of a directory that cannot be used; its message has the cause and the remedy."""


class InUseError(StoreError):
    """The error of a directory that another run holds; ``holder`` describes that run."""

    def __init__(self, directory: pathlib.Path, holder: str):
        super().__init__(
            f"{directory} is in use by {holder}; wait for it, stop it, or give another directory with --out"
        )
        self.holder = holder


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
            for path in (self.cells, self.parts, self.checkpoints, self.directory / "team"):
                outputs.folder_in(self.directory, path.name)
        except ValueError as error:
            raise StoreError(str(error)) from None
        try:
            for path in (self.cells, self.parts, self.checkpoints):
                path.mkdir(parents=True, exist_ok=True)
            probe = self.directory / f".probe.{_writer()}.tmp"
            probe.unlink(missing_ok=True)
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise StoreError(
                f"{self.directory} cannot be written to ({error.strerror}); give another directory with --out"
            ) from None
        self.manifest()

    def manifest(self) -> dict[str, Any] | None:
        """Reads ``store.json``; returns None if it does not exist yet."""
        path = self.directory / "store.json"
        if self.directory.exists() and not self.directory.is_dir():
            raise StoreError(f"{self.directory} is not a directory; give another one with --out")
        try:
            said, verified = seal.read_json(path)
        except FileNotFoundError:
            return None
        except BadFileError as error:
            raise StoreError(f"{path} {error}. {_REMEDY}") from None
        found = said.get("format")
        if found != (FORMAT if verified else UNSEALED):
            if found == FORMAT:
                raise StoreError(f"{path} is damaged (its digest is missing). {_REMEDY}")
            raise StoreError(
                f"{self.directory} was written by jaxbandit {said.get('jaxbandit', '?')} in format {found}, but this "
                f"is jaxbandit {__version__} with format {FORMAT}; nothing was changed. Use that version, or give "
                "another directory with --out"
            )
        if wrong := problem(said):
            raise StoreError(f"{path} cannot be used: {wrong}. {_REMEDY}")
        return said

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Replaces ``store.json``."""
        said = {"format": FORMAT, "jaxbandit": __version__, **content}
        self.write(self.directory / "store.json", seal.sealed_json(said))

    def headers(self, mend: bool = False) -> list[Header]:
        """Returns the header of every whole cell; warns about every other file and leaves it unchanged.

        If ``mend`` is set, a whole cell under another cell's name gets its own name, or is set aside if that is taken.
        """
        try:
            os.listdir(self.cells)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(
                f"{self.cells} cannot be read ({error.strerror}); check its permissions, or give another directory"
            ) from None
        found, misnamed = [], {}
        for path in sorted(self.cells.glob("*.nc")):
            try:
                found.append(cellfile.read_header(path))
            except FileNotFoundError:  # another run has just replaced it by a longer one
                continue
            except BadFileError as error:
                warnings.warn(f"{path} {error}; this file is not used", stacklevel=2)
                if mend and isinstance(error, MisnamedError):
                    misnamed[path.rename(_aside(path))] = self.cells / error.name
        for path, right in misnamed.items():
            if not right.exists():
                found.append(cellfile.read_header(path.rename(right)))
        unverified = sum(not header.verified for header in found)
        if unverified:
            warnings.warn(
                f"{unverified} of {len(found)} cells in {self.directory} are unverified: an earlier jaxbandit wrote "
                "them without a digest, so damage would not be seen. To be sure, play them again in a new directory",
                stacklevel=2,
            )
        return found

    def set_aside_damaged(self, path: pathlib.Path) -> None:
        """Renames a file that is in the way of a cell, unless it is the whole cell; nothing is thrown away.

        Another process may write the whole cell at any moment, so a file other than the one read gets its name back.
        """
        try:
            read = path.lstat()
            try:
                cellfile.read_header(path)
            except BadFileError:
                aside = path.rename(_aside(path))
                if not os.path.samestat(read, aside.lstat()):
                    aside.rename(path)
        except FileNotFoundError:
            if path.is_symlink():  # to nowhere
                path.rename(_aside(path))

    def write(self, path: pathlib.Path, content: bytes | memoryview) -> None:
        """Writes a file, either whole or not at all."""
        temporary = path.with_name(f".{path.name}.{_writer()}.tmp")
        try:
            try:
                temporary.unlink(missing_ok=True)  # of an earlier process of this name, or a link that leads elsewhere
                with temporary.open("xb") as file:
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
                here = f".{socket.gethostname()}-" in path.name and process.isdecimal()
                dead = here and not _is_alive(int(process))
                with contextlib.suppress(OSError):
                    if dead or time.time() - path.stat().st_mtime > 86_400:
                        path.unlink()

    @contextlib.contextmanager
    def locked(self, note: str = "") -> Iterator[None]:
        """Holds the store, so that a second run is refused. If the process dies, the lock is released.

        Args:
          note: Words about this process for those that are refused.
        """
        path = self.directory / "lock"
        try:
            # A raw descriptor: a buffered file would write once more while it is closed.
            lock = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
            if not stat.S_ISREG(os.fstat(lock).st_mode):
                os.close(lock)
                raise OSError(0, "it is no regular file")
        except OSError as error:
            reason = "it is a link" if path.is_symlink() else error.strerror
            raise StoreError(f"cannot open {path} ({reason}); give another directory with --out") from None
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    holder = os.read(lock, 200).decode(errors="replace").strip()
                    raise InUseError(self.directory, holder or "another process") from None
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            try:
                os.ftruncate(lock, 0)
                os.write(lock, f"process {os.getpid()} on {socket.gethostname()}{note} since {since}\n".encode())
            except OSError as error:
                raise StoreError(
                    f"cannot write {path} ({error.strerror}){_free_space(self.directory)}; nothing was changed. Make "
                    "room and run the same command again"
                ) from None
            try:
                self.clear_temporary()
                yield
            finally:
                with contextlib.suppress(OSError):
                    os.ftruncate(lock, 0)
        finally:
            os.close(lock)


def _aside(path: pathlib.Path) -> pathlib.Path:
    """Returns a free name beside a file."""
    names = (path.with_name(f"{path.name}.damaged{n or ''}") for n in itertools.count())
    return next(name for name in names if not name.exists())


def _writer() -> str:
    """Returns a name of this thread that is unique among all writers to one directory."""
    return f"{socket.gethostname()}-{threading.get_ident()}-{os.getpid()}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OverflowError:  # no number of a process
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

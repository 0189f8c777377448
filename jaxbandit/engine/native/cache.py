"""The cache of compiled code on disk, so that a second process starts at once.

A file is named by everything that determines its content and carries a digest of it. Files appear by renaming, so
that a reader never sees half of one. A file that does not verify is removed and compiled anew. The folder is private
to the user: machine code is not loaded from a folder that others may write to.
"""

import contextlib
import hashlib
import os
import pathlib
import tempfile
import time

from jaxbandit.engine import machine

LIMIT = 256 << 20  # bytes kept; the files that were not used for longest are removed first


def name(*parts: str) -> str:
    """Returns the name of the code that these texts determine."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(key: str) -> bytes | None:
    """Returns the code with this name, if it is there and whole."""
    directory = _directory()
    if directory is None:
        return None
    path = directory / f"{key}.o"
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, content = data[:32], data[32:]
    if hashlib.sha256(key.encode() + content).digest() != digest:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def write(key: str, content: bytes) -> None:
    """Stores code under a name; does nothing if the folder cannot be written to."""
    directory = _directory(make=True)
    if directory is None:
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=directory, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(key.encode() + content).digest() + content)
        os.replace(temporary, directory / f"{key}.o")
        _shrink(directory)
    except OSError:
        return


def status() -> str:
    """Returns the place and the size of the stored code, or the reason why no code is stored."""
    directory = machine.cache_directory()
    if directory is None:
        return "off (JAXBANDIT_CACHE=off, or no home directory)"
    if found := problem():
        return f"not used: {found}"
    sizes = [path.stat().st_size for path in directory.glob("*.o")]
    return f"{directory}, {len(sizes)} programs, {sum(sizes) / 2**20:.1f} MiB"


def problem() -> str:
    """Returns the reason why code cannot be stored, with the remedy; empty if it can be, or if the user wants none."""
    directory = machine.cache_directory()
    if directory is None or _directory(make=True) is not None:
        return ""
    remedy = "set JAXBANDIT_CACHE to a folder of your own"
    try:
        if directory.is_dir() and not _is_private(directory):
            return f"{directory} may be written by others; {remedy}"
        if directory.exists() and not directory.is_dir():
            return f"{directory} is no folder; {remedy}"
    except OSError:
        pass
    return f"{directory} cannot be written; {remedy}"


def _directory(make: bool = False) -> pathlib.Path | None:
    directory = machine.cache_directory()
    if directory is None:
        return None
    try:
        if make:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not directory.is_dir() or not _is_private(directory) or (make and not os.access(directory, os.W_OK)):
            return None
    except OSError:
        return None
    return directory


def _is_private(directory: pathlib.Path) -> bool:
    """Returns whether the folder belongs to this user and nobody else may write to it."""
    if not hasattr(os, "getuid"):
        return True
    about = directory.stat()
    return about.st_uid == os.getuid() and not about.st_mode & 0o022


def _shrink(directory: pathlib.Path) -> None:
    found = []
    for path in directory.iterdir():
        with contextlib.suppress(OSError):
            about = path.stat()
            if path.suffix == ".tmp" and time.time() - about.st_mtime > 3600:
                path.unlink()
            else:
                found.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found, key=lambda entry: entry[0]):
        if total <= LIMIT:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size

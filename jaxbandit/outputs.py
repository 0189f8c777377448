"""Files that commands write: each appears whole under its name, and none is written through a link."""

import contextlib
import os
import pathlib
import secrets
import stat
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yields a temporary path beside a file, which takes the file's place at the end.

    If the file is a link, for example in a results directory from somebody else, then the link is replaced and the
    file that it names stays as it is. A device such as ``/dev/null`` is written to directly.
    """
    path = pathlib.Path(path)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISCHR(path.lstat().st_mode):
            yield path
            return
        if path.exists() and not path.is_file():
            raise OSError(0, "it is no regular file", str(path))
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a text file; names of files that are not UTF-8 get a question mark for each byte that is not."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def folder_in(directory: pathlib.Path, name: str) -> pathlib.Path:
    """Returns a folder of a results directory; raises ``ValueError`` if it is a link that leads out of the directory.

    Example:
      >>> folder_in(pathlib.Path("mine"), "figures").as_posix()
      'mine/figures'
    """
    path = directory / name
    if path.is_symlink() and not path.resolve().is_relative_to(directory.resolve()):
        raise ValueError(
            f"{path} is a link to {path.resolve()}, outside of {directory}, so nothing is written there; remove the "
            "link, or give another directory with --out"
        )
    return path

"""The version, read by the build and written into every result, and the commit of a checkout."""

import functools
import pathlib

__version__ = "0.1.0"


@functools.cache
def commit() -> str:
    """Returns the commit of the checkout that the package runs from, 12 digits; "" if it is installed."""
    git = pathlib.Path(__file__).parents[1] / ".git"
    try:
        if git.is_file():  # of a worktree: it names the directory
            git = pathlib.Path(git.read_text().removeprefix("gitdir:").strip())
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:12]
        name = head.removeprefix("ref: ")
        if (git / name).exists():
            return (git / name).read_text().strip()[:12]
        packed = (git / "packed-refs").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split()[0][:12] for line in packed if line.endswith(f" {name}")), "")

"""Outputs and figures of the pages whose code runs: ``python -m benchmarks.pages`` plays and writes them.

Blocks of a page run in order, in one process and one directory. Python has the names of the blocks before it. TOML is
saved under the name in its first comment. ``jaxbandit`` commands go to the command line. Python whose first comment
names another package runs in the environment of that package (``benchmarks.peers``). A ``text`` block holds what the
block before it printed. ``python -m benchmarks.pages PAGE ...`` runs some pages only. The notebook of the tutorial
is written too.
"""

import contextlib
import io
import linecache
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from typer.testing import CliRunner

from benchmarks import notebook, peers
from jaxbandit.cli.entry import app

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGES = [
    DOCS.parent / "README.md",
    *(DOCS / f"{name}.md" for name in ("index", "tutorial", "faq", "replay", "coming_from", "own")),
]
IMAGES = {"heat.png": "tutorial-heat.png", "results/first/figures/regret.png": "tutorial-regret.png"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PEER = re.compile(rf"# ({'|'.join(peers.NAMES.values())}) [\d.]+\n")


def played(page: str, directory: pathlib.Path, sizes: Mapping[str, str], with_peers: bool = False) -> str:
    """Returns the page with the outputs of its code.

    Args:
      page: The text of a page.
      directory: Where its code runs.
      sizes: Numbers to replace in the code that runs; the page keeps its own.
      with_peers: Whether to run the code of other packages; otherwise their outputs stay as they are.
    """
    names: dict = {"__name__": "page"}
    printed: str | None = ""

    def run(found: re.Match) -> str:
        nonlocal printed
        language, code = found[1], found[2]
        if language == "text" and printed is None:
            return found[0]
        if language == "text":
            assert printed is not None
            return "\n".join(["```text", *(line.rstrip() for line in printed.rstrip().splitlines()), "```"])
        for size, other in sizes.items():
            code = code.replace(size, other)
        if language == "python" and (peer := PEER.match(found[2])):
            printed = _peer(peer[1], code) if with_peers else None
        else:
            printed = _run(language, code, names)
        return found[0]

    with contextlib.chdir(directory):
        return BLOCK.sub(run, page)


def _run(language: str, code: str, names: dict) -> str:
    if language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            name = f"<page {len(linecache.cache)}>"  # as a notebook does: classes of a page have a source to be read
            linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
            exec(compile(code, name, "exec"), names)
        return out.getvalue()
    if language == "toml":
        name = re.match(r"# (\S+\.toml)\b", code)
        if name is None:
            raise ValueError("a TOML block starts with a comment that names its file")
        pathlib.Path(name[1]).write_text(code, encoding="utf-8")
        return ""
    return "".join(_command(line) for line in code.splitlines() if line.startswith("jaxbandit "))


def _peer(name: str, code: str) -> str:
    """Returns the last line that code prints in the environment of another package; its imports may print more."""
    (key,) = [key for key, known in peers.NAMES.items() if known == name]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(peers.environment(key)), "-c", code], capture_output=True, text=True, check=True, env=clean
    )
    return done.stdout.splitlines()[-1]


def _command(line: str) -> str:
    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:], catch_exceptions=False)
    if done.exit_code:
        raise RuntimeError(f"{line} ended with {done.exit_code}: {done.output}")
    lines = done.stdout.splitlines()
    return "".join(f"{text}\n" for text in lines if not text.startswith("compiled "))  # times are of one machine


def main() -> None:
    for path in [path for path in PAGES if path.stem in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as directory:
            page = played(path.read_text(encoding="utf-8"), pathlib.Path(directory), {}, with_peers=True)
            for made, kept in IMAGES.items():
                if (pathlib.Path(directory) / made).exists():
                    shutil.copy(pathlib.Path(directory) / made, DOCS / "img" / kept)
        path.write_text(page, encoding="utf-8")
    notebook.write()


if __name__ == "__main__":
    main()

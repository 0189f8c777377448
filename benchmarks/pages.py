"""The outputs and figures of the tutorial, FAQ and replay pages: ``python -m benchmarks.pages`` plays and writes them.

Blocks of a page run in order, in one process and one directory: Python with the names of the blocks before, TOML is
saved under the name in its first comment, ``jaxbandit`` commands go to the command line. A ``text`` block after one of
them holds what it printed.
"""

import contextlib
import io
import pathlib
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping

from typer.testing import CliRunner

from jaxbandit.cli.entry import app

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "tutorial.md", DOCS / "faq.md", DOCS / "replay.md"]
IMAGES = {"heat.png": "tutorial-heat.png", "results/first/figures/regret.png": "tutorial-regret.png"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def played(page: str, directory: pathlib.Path, sizes: Mapping[str, str]) -> str:
    """The page with the outputs of its code; ``sizes`` are replaced in what is run, not in what is shown."""
    names: dict = {"__name__": "page"}
    printed = ""

    def run(found: re.Match) -> str:
        nonlocal printed
        language, code = found[1], found[2]
        if language == "text":
            return "\n".join(["```text", *(line.rstrip() for line in printed.rstrip().splitlines()), "```"])
        for size, other in sizes.items():
            code = code.replace(size, other)
        printed = _run(language, code, names)
        return found[0]

    with contextlib.chdir(directory):
        return BLOCK.sub(run, page)


def _run(language: str, code: str, names: dict) -> str:
    if language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "<page>", "exec"), names)
        return out.getvalue()
    if language == "toml":
        name = re.match(r"# (\S+\.toml)\b", code)
        if name is None:
            raise ValueError("a TOML block starts with a comment that names its file")
        pathlib.Path(name[1]).write_text(code, encoding="utf-8")
        return ""
    return "".join(_command(line) for line in code.splitlines() if line.startswith("jaxbandit "))


def _command(line: str) -> str:
    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:], catch_exceptions=False)
    if done.exit_code:
        raise RuntimeError(f"{line} ended with {done.exit_code}: {done.output}")
    lines = done.stdout.splitlines()
    return "".join(f"{text}\n" for text in lines if not text.startswith("compiled "))  # times are of one machine


def main() -> None:
    for path in PAGES:
        with tempfile.TemporaryDirectory() as directory:
            page = played(path.read_text(encoding="utf-8"), pathlib.Path(directory), {})
            for made, kept in IMAGES.items():
                if (pathlib.Path(directory) / made).exists():
                    shutil.copy(pathlib.Path(directory) / made, DOCS / "img" / kept)
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The first steps: what bare ``jaxbandit`` prints, and the command ``jaxbandit init``."""

import pathlib
import shlex
from typing import Annotated

import typer

from jaxbandit.checks import check_choice
from jaxbandit.cli import layout
from jaxbandit.version import __version__

TEMPLATES = pathlib.Path(__file__).with_name("templates")
# The templates, and the command that plays each.
KINDS = {"quickstart": "run", "sweep": "run", "sensitivity": "sensitivity", "tune": "tune"}
FIRST = {
    "jaxbandit run quickstart": "plays a shipped study",
    "jaxbandit init": "writes a study file with comments",
    "jaxbandit list": "lists policies and environments",
}


def greet() -> None:
    """Prints three commands to begin with."""
    console = layout.make_console()
    layout.say(console, f"jaxbandit {__version__} compares bandit algorithms under heavy-tailed losses. To begin:")
    width = max(map(len, FIRST))
    for command, about in FIRST.items():
        layout.say(console, f"  {command.ljust(width)}  {about}")
    layout.say(console, "All commands: jaxbandit --help")


def init(
    kind: Annotated[str, typer.Argument(help="The study to begin with: quickstart, sweep, sensitivity or tune.")] = (
        "quickstart"
    ),
    out: Annotated[
        pathlib.Path | None, typer.Option(help="File to write, not a directory; default KIND.toml in this directory.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Writes a commented study file to change and to run."""
    check_choice("the kind of study", kind, tuple(KINDS))
    path = out or pathlib.Path(f"{kind}.toml")
    if path.exists() and not force:
        raise ValueError(f"{path} exists; choose another file with --out, or overwrite it with --force")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((TEMPLATES / f"{kind}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}; choose another file with --out") from None
    console = layout.make_console()
    layout.say_place(console, "study", path)
    layout.say_next(console, shlex.join(["jaxbandit", KINDS[kind], str(path)]))

"""Commands as ``jaxbandit --help`` groups them; Ctrl-C stops each of them with code 130 and one line."""

import enum
import functools
import inspect
import os
import pathlib
import shlex
import sys
import typing
from collections.abc import Callable
from typing import Any, NoReturn

import typer
import typer.core
import typer.models
from rich.console import Console

from jaxbandit.interrupt import InterruptedRunError, interruptible

CODE = 130  # the exit code of a command that Ctrl-C stopped


class Panel(enum.StrEnum):
    """The groups of commands."""

    RUN = "Run"
    LOOK = "Look at results"
    SEARCH = "Search parameters"
    REFERENCE = "Reference"


class PlainHelp:
    """The help of a command without the names of Python's types: no ``<bool>`` at a flag, no ``<path>`` at a file."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters with the names that the help prints."""
        found = super().get_params(ctx)  # pyright: ignore[reportAttributeAccessIssue]
        for one in found:
            if one.param_type_name == "argument":
                one.display_type_rich = lambda ctx: None  # its name says what it is
            elif one.metavar is None and one.is_flag:
                one.metavar = ""
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the parts of the usage line, with required arguments bare."""
        pieces = super().collect_usage_pieces(ctx)  # pyright: ignore[reportAttributeAccessIssue]
        return [piece.removeprefix("{").removesuffix("}") for piece in pieces]


class Command(PlainHelp, typer.core.TyperCommand):
    """A command with plain help."""


class Group(PlainHelp, typer.core.TyperGroup):
    """The command line with plain help."""


def add_command(
    app: typer.Typer, work: Callable[..., None], panel: Panel, *, name: str | None = None, kept: str = ""
) -> None:
    """Adds a command to ``app``.

    The command runs in a thread, so that Ctrl-C also stops it while it compiles or imports.

    Args:
      app: The command line.
      work: The function of the command. If it has a parameter ``stop``, it receives an event that Ctrl-C sets.
      panel: The group of the command.
      name: The name of the command; default that of the function.
      kept: The results that an interrupted command keeps, if the same command continues from them.
    """
    signature = inspect.signature(work)
    for parameter in signature.parameters.values():
        _name_value(parameter)
    shown = [parameter for parameter in signature.parameters.values() if parameter.name != "stop"]

    @functools.wraps(work)
    def command(**given: Any) -> None:
        try:
            interruptible(lambda stop: work(**given, **({"stop": stop} if "stop" in signature.parameters else {})))
        except InterruptedRunError:
            leave(kept)

    command.__signature__ = signature.replace(parameters=shown)  # pyright: ignore[reportAttributeAccessIssue]
    app.command(name, cls=Command, help=_unwrapped(work.__doc__ or ""), rich_help_panel=panel)(command)


def _unwrapped(text: str) -> str:
    """Joins the lines of each paragraph, so that the terminal's width alone breaks them."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _name_value(parameter: inspect.Parameter) -> None:
    """Names the value of an option or argument in the help, unless it has a name: nothing for a flag, N for a count."""
    kind, *about = typing.get_args(parameter.annotation) or (parameter.annotation,)
    for info in about:
        if isinstance(info, typer.models.ArgumentInfo) and info.metavar is None:
            info.metavar = parameter.name.upper()
        elif isinstance(info, typer.models.OptionInfo) and info.metavar is None:
            kinds = {bool: "", int: "N", float: "X", pathlib.Path: "PATH"}
            info.metavar = next((name for one, name in kinds.items() if one in (kind, *typing.get_args(kind))), "TEXT")


def leave(kept: str = "") -> NoReturn:
    """Ends the process after Ctrl-C and prints how to continue, or how to start again if nothing is kept."""
    again = shlex.join(["jaxbandit", *sys.argv[1:]])
    sys.stdout.flush()
    Console(stderr=True).show_cursor()  # a progress bar hides it
    said = f"{kept}. To continue: {again}" if kept else f"no results are kept. To start again: {again}"
    print(f"\nstopped; {said}", file=sys.stderr, flush=True)
    os._exit(CODE)  # does not wait for the thread, which may be inside the compiler

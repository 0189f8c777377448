"""Errors and warnings on the terminal: the problem, then a line that says what to do."""

import re
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbandit.cli import layout
from jaxbandit.grid import suggest

# A message is "problem; remedy". A remedy begins with one of these words.
_VERBS = (
    "add|ask|call|check|choose|cut|declare|delete|did you mean|drop|e.g.|find|free|give|if you|increase|install|keep|"
    "known:|leave|let|lower|make|move|name|open|pass|play|put|raise|read|remove|rename|run|see|set|shorten|start|"
    "tables are|try|upgrade|use|wait|write"
)
_REMEDY = re.compile(rf"; (?=(?:{_VERBS})(?:\W|$))")


def parts(message: str) -> tuple[str, str]:
    """Returns the problem and the remedy of a message; an empty remedy if it names none.

    Example:
      >>> parts("a.toml does not exist; give the path of a study file; write one with init")
      ('a.toml does not exist', 'give the path of a study file; write one with init')
      >>> parts("the mean is 0; the median is 1")
      ('the mean is 0; the median is 1', '')
    """
    problem, *remedy = _REMEDY.split(message, maxsplit=1)
    return problem, remedy[0] if remedy else ""


def of_usage(error: Any, commands: Sequence[str]) -> str:
    """Returns the message of a command line that cannot be read, with the command that shows its options."""
    problem = error.format_message().rstrip(".").replace("\n", " ")
    problem = problem[:1].lower() + problem[1:]
    if wrong := re.match(r"no such command '(.*?)'", problem):
        return f"there is no command {wrong[1]!r}; {suggest(wrong[1], commands)}"
    context = getattr(error, "ctx", None)
    command = getattr(context, "info_name", None) if getattr(context, "parent", None) is not None else None
    return f"{problem}; see: jaxbandit {f'{command} ' if command else ''}--help"


def show_error(message: str) -> None:
    """Prints an error, and its remedy on a line of its own that starts with ``help:``."""
    problem, remedy = parts(message)
    _print("error: ", problem, "bold red")
    if remedy:
        _print("help:  ", remedy, "bold cyan")


def show_warning(message: str) -> None:
    """Prints a warning."""
    _print("warning: ", message, "yellow")


def _print(head: str, sentence: str, style: str) -> None:
    """Prints a sentence behind its head; a terminal wraps it at words, a pipe does not wrap it."""
    text = Text.assemble((head, style), layout.harmless(sentence))
    Console(stderr=True).print(text, highlight=False, soft_wrap=not sys.stderr.isatty())

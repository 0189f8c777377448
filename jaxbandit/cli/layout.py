"""Tables in the width there is: boxed if they fit the terminal, one value a line if not, plain text if piped.

No form cuts a word. A pipe gets one line per row without boxes, so that other programs can search and sort it.
"""

import importlib.util
import json
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

FOLDED = 30  # least columns of a description, which is wrapped at words
PIPED = 10_000  # columns of a pipe: nothing is wrapped there


def make_console(silent: bool = False) -> Console:
    """Returns the console for results."""
    return Console(width=None if on_terminal() else PIPED, quiet=silent)


def on_terminal() -> bool:
    """Returns whether results go to a terminal."""
    return sys.stdout.isatty()


def harmless(text: str) -> str:
    """Returns text without characters that control a terminal, which labels and file names of others may have."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


class PlainTable(Table):
    """A table whose cells are text: rich would read brackets in them as markup."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Adds a row."""
        super().add_row(*(_cell(cell) for cell in cells), **options)


def _cell(cell: Any) -> Any:
    """Returns a cell as text without characters that control a terminal; a style that it has is kept."""
    if isinstance(cell, Text):
        return Text(harmless(cell.plain), style=cell.style, spans=cell.spans)
    return Text(harmless(cell)) if isinstance(cell, str) else cell


def new_table(*columns: str, title: str = "", right: Sequence[str] = ()) -> Table:
    """Returns an empty table; columns in ``right`` are numbers, which are aligned to the right."""
    table = PlainTable(title=title or None)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left", no_wrap=True)
    return table


def facts_table(facts: dict[str, str]) -> Table:
    """Returns a table of names and values without headings; long values are wrapped at words."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(harmless(name), style="bold"), Text(harmless(value)))
    return table


def show(console: Console, table: Table, keys: int = 1) -> None:
    """Prints a table in the form that fits.

    Args:
      console: The console.
      table: The table.
      keys: The number of leading columns that tell rows apart; they head the rows if there is a line for each value.
    """
    if not on_terminal():
        for line in plain(table):
            say(console, line)
        return
    title, caption = (_text(part) for part in (table.title, table.caption))
    table.title = table.caption = None  # rich would wrap them at the width of the table
    if table.show_header:  # every table has one form, whichever package made it
        table.box, table.show_edge, table.pad_edge = box.SIMPLE_HEAD, False, False
    if title:
        say(console, title, style="bold")
    if table.show_header and _needed(table) > console.width:
        for line in _long(table, keys):
            console.print(line, highlight=False)
    else:
        for column in table.columns:
            column.no_wrap = column.overflow != "fold"
        console.print(table)
    if caption:
        say(console, caption, style="dim")
    if table.show_header:
        console.print()


def say(console: Console, sentence: str, style: str = "") -> None:
    """Prints a sentence as it is: no markup, no colours of numbers; a terminal wraps it at words."""
    console.print(Text(harmless(sentence), style=style), highlight=False, soft_wrap=not on_terminal())


def say_verbatim(console: Console, text: str) -> None:
    """Prints text to be copied; a terminal may break its lines, but no line end is put into them."""
    console.print(Text(harmless(text)), highlight=False, soft_wrap=True)


def say_place(console: Console, kind: str, path: object) -> None:
    """Prints where a file is."""
    say_verbatim(console, f"{kind:<8}{path}")


def report_of(directory: object) -> str:
    """Returns the command that makes the report on a results directory, after that which installs what it lacks."""
    install = "" if importlib.util.find_spec("jinja2") else "pip install 'jaxbandit[report]' && "
    return install + shlex.join(["jaxbandit", "report", str(directory)])


def say_next(console: Console, command: str) -> None:
    """Prints the command that usually follows."""
    console.print(Text.assemble(("next: ", "bold"), harmless(command)), highlight=False, soft_wrap=True)


def print_json(
    title: str, directory: pathlib.Path, horizon: int, seed: int, results: list[dict[str, Any]], **more: Any
) -> None:
    """Prints the results of a command for programs: one object with the same first keys in every command."""
    about = {"title": title, "directory": str(directory), "horizon": horizon, "seed": seed}
    print(json.dumps(about | more | {"results": results}, indent=1))


def plain(table: Table) -> list[str]:
    """Returns a table as lines of aligned text without boxes."""
    heads = [_text(column.header) for column in table.columns]
    rows = _rows(table)
    body = [heads, *rows] if table.show_header else rows
    widths = [max(len(row[n]) for row in body) for n in range(len(heads))] if body else []
    right = [column.justify == "right" for column in table.columns]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in body
    ]
    notes = [_text(part) for part in (table.title, table.caption)]
    return [*filter(None, notes[:1]), *lines, *filter(None, notes[1:])]


def _needed(table: Table) -> int:
    """Returns the least width of a table whose cells are not wrapped, except those of descriptions."""
    lines = [
        [line for cell in (column.header, *column.cells) for line in _raw(cell).split("\n")] for column in table.columns
    ]
    widths = [
        FOLDED if column.overflow == "fold" else max(map(cell_len, part))
        for column, part in zip(table.columns, lines, strict=True)
    ]
    return sum(widths) + 3 * len(widths) - 2 + (3 if table.show_edge else 0)


def _long(table: Table, keys: int) -> list[Text]:
    """Returns a table with one value a line; the columns that tell rows apart head the values."""
    heads = [_text(column.header) for column in table.columns]
    width = max((len(head) for head in heads[keys:]), default=0)
    lines = []
    for row in _rows(table):
        lines.append(Text(", ".join(filter(None, row[:keys])), style="bold"))
        pairs = zip(heads[keys:], row[keys:], strict=True)
        lines += [Text(f"  {head.ljust(width)}  {value}") for head, value in pairs if value]
    return lines


def _rows(table: Table) -> list[list[str]]:
    return [
        list(row) for row in zip(*([_text(cell) for cell in column.cells] for column in table.columns), strict=True)
    ]


def _text(part: object) -> str:
    first, *rest = _raw(part).split("\n")
    return " ".join([first, *(line.strip() for line in rest)]).rstrip()


def _raw(part: object) -> str:
    if part is None:
        return ""
    return part.plain if isinstance(part, Text) else Text.from_markup(str(part)).plain

"""The command ``jaxbandit reproduce``."""

import pathlib
import threading
from typing import Annotated

import typer
from rich.table import Table

from jaxbandit.cli import layout
from jaxbandit.cli.options import RESULTS, Data
from jaxbandit.progress import bar


def reproduce(
    name: Annotated[str | None, typer.Argument(help="A study or a table of the docs; default all of them.")] = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="Compare digit for digit and change no page.")] = False,
    small: Annotated[bool, typer.Option("--small", help="Only studies that play in a minute or two.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the tables and play nothing.")] = False,
    root: Annotated[
        pathlib.Path | None,
        typer.Option("--root", help="A checkout; default the current directory, else that of the package."),
    ] = None,
    out: Annotated[
        pathlib.Path | None,
        typer.Option("--out", help="Directory for the results, with one directory for each study; default results."),
    ] = None,
    data: Data = None,
    stop: threading.Event,
) -> None:
    """Plays the study behind a table of README or docs and rewrites its numbers, or compares them with --check.

    Cells that the results directory already holds are used. To play a study from nothing, name a new directory with
    --out. The pages and study files are part of a checkout, not of the installed package.
    """
    from jaxbandit.published import reproduce as published
    from jaxbandit.studies.study import DataNeededError

    console, place = layout.make_console(), published.checkout(root)
    if show:
        layout.show(console, _listed(place), keys=2)
        return
    different = 0
    for study in published.studies(name):
        try:
            wanted = not small or published.is_small(place, study, data)
        except DataNeededError as needed:
            if name:
                raise
            layout.say(console, f"{study}: skipped, {needed}")
            continue
        if not wanted:
            continue
        with bar(True) as progress:
            outcomes = list(
                published.reproduce(
                    place,
                    study,
                    (out or RESULTS) / study,
                    check=check,
                    data=data,
                    notice=lambda done, total, cells, of, progress=progress: progress(
                        done, total, f"{cells}/{of} cells"
                    ),
                    stop=stop,
                )
            )
        for outcome in outcomes:
            page = outcome.block.page.relative_to(place).as_posix()
            state = (
                ("differs" if check else "written, changed")
                if outcome.difference
                else ("the same" if check else "written, the same numbers")
            )
            layout.say(console, f"{outcome.block.name} on {page}: {state}")
            for line in outcome.difference:
                layout.say_verbatim(console, line)
            different += bool(outcome.difference)
    if check and different:
        raise typer.Exit(1)


def _listed(root: pathlib.Path) -> Table:
    """Returns a table of the published tables: where each is, and how it was made."""
    from jaxbandit.published import blocks

    table = layout.new_table("table", "page", "study", "size", "version", "numerics", "platform", "digest")
    for block in blocks.find(root):
        made = (block.made.get(part, "") for part in ("study", "size", "version", "numerics", "platform", "digest"))
        table.add_row(block.name, block.page.relative_to(root).as_posix(), *made)
    return table

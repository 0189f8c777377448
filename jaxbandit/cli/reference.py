"""The commands ``jaxbandit list``, ``jaxbandit inspect`` and ``jaxbandit doctor``."""

import pathlib
from typing import Annotated

import typer

from jaxbandit.checks import safe_name
from jaxbandit.cli.options import RESULTS, make_console


def list_() -> None:
    """Lists the policies and environments that a study may use, with their keys."""
    from jaxbandit.cli import tables
    from jaxbandit.studies import entries

    console = make_console()
    for section in entries.REGISTRIES:
        console.print(tables.registry_table(section))


def inspect(
    table: Annotated[pathlib.Path, typer.Argument(help="A .npy, .npz, .csv or .parquet file, or an ASlib folder.")],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="File of the figure, not a directory; default results/inspect-NAME.png."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Name of the array in an .npz file.")] = None,
    rewards: Annotated[bool, typer.Option("--rewards", help="The table holds rewards: negate its entries.")] = False,
) -> None:
    """Inspects a table of measured losses: tails, gap, scale, assumptions; writes a figure."""
    from jaxbandit.cli import tables
    from jaxbandit.plots.tails import tails
    from jaxbandit.tables import inspection
    from jaxbandit.tables.readers import read_table

    console = make_console()
    read = read_table(table, key=key, missing=True)
    losses = -read.losses if rewards or read.rewards else read.losses
    found = inspection.inspect(losses, read.arms)
    path = out or RESULTS / f"inspect-{safe_name(read.name.replace(':', '-'))}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in tables.inspection_tables(read.name, found):
        console.print(part)
    tails(losses, found, path, read.name)
    console.print(f"figure  {path}", markup=False)


def doctor() -> None:
    """Shows versions, cores, devices, the cache of compiled code, and how each policy is played, and why."""
    from jaxbandit.cli import tables
    from jaxbandit.policies import POLICIES

    console = make_console()
    console.print(tables.machine_table())
    console.print()
    console.print(tables.ways_table(POLICIES))

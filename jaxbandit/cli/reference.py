"""The commands ``jaxbandit list``, ``jaxbandit inspect`` and ``jaxbandit doctor``."""

import pathlib
from typing import Annotated

import typer

from jaxbandit.checks import safe_name
from jaxbandit.cli import layout
from jaxbandit.cli.options import RESULTS


def list_(
    entry: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A policy or an environment to describe; default all.")
    ] = None,
) -> None:
    """Lists the policies, environments and shipped studies; with a NAME, prints its keys and an entry to paste."""
    from jaxbandit.cli import cards
    from jaxbandit.studies import entries
    from jaxbandit.studies.shipped import shipped

    console = layout.make_console()
    if entry is not None:
        title, facts, pasted = cards.card(entry)
        required = "keys with * are required; " * ("*" in "".join(map(str, facts.columns[0].cells)))
        layout.say(console, title, style="bold")
        layout.show(console, facts)
        layout.say(console, f"{required}an entry to paste into a study file:")
        layout.say_verbatim(console, pasted)
        return
    for section in entries.REGISTRIES:
        layout.show(console, cards.registry_table(section, console.width if layout.on_terminal() else None))
    layout.say(console, f"shipped studies: {', '.join(shipped())}")
    layout.say_next(console, "jaxbandit list uniinf")


def inspect(
    table: Annotated[
        pathlib.Path, typer.Argument(help="A .npy, .npz, .csv, .tsv or .parquet file, or an ASlib folder.")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="File of the figure, not a directory; default results/inspect-NAME.png."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Name of the array in an .npz file.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Sign between the entries of a .csv file.")] = None,
    index: Annotated[str | None, typer.Option(help="Column that numbers the rounds and is no arm.")] = None,
    rewards: Annotated[bool, typer.Option("--rewards", help="The table holds rewards: negate its entries.")] = False,
) -> None:
    """Inspects a table of measured losses: tails, gap, scale, assumptions; writes a figure."""
    from jaxbandit.cli.inspection_tables import inspection_tables
    from jaxbandit.plots.tails import tails
    from jaxbandit.tables import inspection
    from jaxbandit.tables.readers import read_table

    console = layout.make_console()
    read = read_table(table, key=key, delimiter=delimiter, index=index, missing=True)
    losses = -read.losses if rewards or read.rewards else read.losses
    found = inspection.inspect(losses, read.arms)
    path = out or RESULTS / f"inspect-{safe_name(read.name.replace(':', '-'))}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in inspection_tables(read.name, found):
        layout.show(console, part)
    tails(losses, found, path, read.name)
    layout.say_place(console, "figure", path)


def doctor() -> None:
    """Says whether everything works here, and shows versions, cores, devices and how each policy is played.

    It also compares the bits of the cores and of NVIDIA cards with recorded ones, and exits with 1 if they differ.
    """
    from jaxbandit.cli import machine_facts
    from jaxbandit.engine import checked
    from jaxbandit.policies import POLICIES

    console = layout.make_console()
    ways = machine_facts.ways_of(POLICIES)
    devices = checked("cpu"), checked("gpu")
    good, sentence = machine_facts.verdict(ways, devices)
    layout.say(console, sentence, style="bold green" if good else "bold yellow")
    layout.show(console, machine_facts.machine_table(*devices))
    layout.show(console, machine_facts.ways_table(ways))
    if any(device.differing for device in devices):
        raise typer.Exit(1)

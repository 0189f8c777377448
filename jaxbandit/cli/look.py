"""The commands ``jaxbandit plot`` and ``jaxbandit report``, which execute nothing that results name."""

import pathlib
import shlex
import warnings
from typing import Annotated

import typer

from jaxbandit import outputs
from jaxbandit.cli import layout
from jaxbandit.cli.options import BAND, FORMATS, Band, Data, Formats, Simultaneous, Source, Trust, endings
from jaxbandit.studies import figures, recorded


def plot(
    source: Source,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Directory for the figures; default `figures` beside the data.")
    ] = None,
    formats: Formats = FORMATS,
    band: Band = BAND,
    simultaneous: Simultaneous = False,
    venue: Annotated[
        str, typer.Option("--for", help="Size the figures for a venue: neurips, icml, jmlr or slides.")
    ] = "",
    title: Annotated[
        bool | None,
        typer.Option("--title/--no-title", help="Write titles inside the figures; default not for papers (--for)."),
    ] = None,
    data: Data = None,
    trust: Trust = False,
) -> None:
    """Draws the figures that the study names; by default regret, growth, heat maps, tails, decomposition."""
    from jaxbandit import plots
    from jaxbandit.store.assemble import opened

    ds = opened(source)
    environments = plots.environments_of(ds, data, trust=trust)
    text = str(ds.attrs.get("study", ""))
    named = figures.listed(text)
    if not environments and (lacking := figures.lacking(named)):
        again, why = shlex.join(["jaxbandit", "plot", str(source)]), ""
        if (foreign := recorded.foreign_environments(text)) and not trust:
            why = (
                f"a figure needs the study's environments, and {', '.join(foreign)} is no class of jaxbandit; if you "
                f"trust the results, let them import it: {again} --trust"
            )
        elif data is None:
            why = (
                "cannot rebuild the study's environments: its data tables were not found; "
                f"pass their directory with --data: {again} --data TABLES"
            )
        if why and len(lacking) == len(named):
            raise ValueError(why)
        if why:
            warnings.warn(f"{len(lacking)} of {len(named)} figures are not drawn: {why}", stacklevel=2)
            named = [entry for entry in named if entry not in lacking]
    made = plots.draw(
        ds,
        out or outputs.folder_in(source if source.is_dir() else source.parent, "figures"),
        formats=endings(formats),
        environments=environments,
        figures=named or None,
        method=band,
        simultaneous=simultaneous,
        venue=venue,
        titled=title,
    )
    console = layout.make_console()
    for figure in made:
        layout.say_place(console, "figure", figure)


def report(
    source: Source,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="File to write, not a directory; default report.html beside the data.")
    ] = None,
    band: Band = BAND,
    simultaneous: Simultaneous = False,
    data: Data = None,
    trust: Trust = False,
) -> None:
    """Writes one HTML page that works offline: ranking with tests, curves, growth, sensitivity, provenance."""
    from jaxbandit.report import write

    page = write(source, out, method=band, simultaneous=simultaneous, data=data, trust=trust)
    layout.say_place(layout.make_console(), "report", page)

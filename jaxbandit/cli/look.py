"""The commands ``jaxbandit plot`` and ``jaxbandit report``."""

import pathlib
import shlex
from typing import Annotated

import typer

from jaxbandit.cli.options import BAND, FORMATS, Band, Data, Formats, Simultaneous, Source, endings, make_console
from jaxbandit.studies import figures


def plot(
    source: Source,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Directory for the figures; default `figures` beside the data.")
    ] = None,
    formats: Formats = FORMATS,
    band: Band = BAND,
    simultaneous: Simultaneous = False,
    data: Data = None,
) -> None:
    """Draws the figures that the study names; by default regret, growth, heat maps, tails, decomposition."""
    from jaxbandit import plots
    from jaxbandit.store.assemble import opened

    ds = opened(source)
    environments = plots.environments_of(ds, data)
    if not environments and data is None and figures.need_environments(ds.attrs.get("study", "")):
        raise ValueError(
            "cannot rebuild the study's environments: its data tables were not found; "
            f"pass their directory with --data: {shlex.join(['jaxbandit', 'plot', str(source), '--data', 'TABLES'])}"
        )
    made = plots.draw(
        ds,
        out or (source if source.is_dir() else source.parent) / "figures",
        formats=endings(formats),
        environments=environments,
        method=band,
        simultaneous=simultaneous,
    )
    for figure in made:
        make_console().print(f"figure  {figure}")


def report(
    source: Source,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="File to write, not a directory; default report.html beside the data.")
    ] = None,
    band: Band = BAND,
    simultaneous: Simultaneous = False,
    data: Data = None,
) -> None:
    """Writes one HTML page that works offline: ranking with tests, curves, growth, sensitivity, provenance."""
    from jaxbandit.report import write

    page = write(source, out, method=band, simultaneous=simultaneous, data=data)
    make_console().print(f"report  {page}", soft_wrap=True)

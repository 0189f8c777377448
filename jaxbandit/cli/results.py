"""The commands ``jaxbandit plot`` and ``jaxbandit report``, which read results and execute nothing that they name."""

import pathlib
import shlex
from typing import Annotated

import typer
from rich.console import Console

from jaxbandit.studies import figures, recorded

DATA_HELP = "Directory of the study's data tables; default the directory of the study file."
TRUST_HELP = "Import classes that the results name; without it, results execute nothing."


def plot(
    source: Annotated[pathlib.Path, typer.Argument(help="A results directory of `run`, or a dataset (.nc).")],
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Directory for the figures; default `figures` beside the data.")
    ] = None,
    formats: Annotated[str, typer.Option("--format", help="File endings of the figures, comma-separated.")] = "pdf,png",
    band: Annotated[str, typer.Option(help="Method of the confidence bands: normal or bootstrap.")] = "normal",
    simultaneous: Annotated[bool, typer.Option("--simultaneous", help="Draw bands that cover whole curves.")] = False,
    data: Annotated[pathlib.Path | None, typer.Option(help=DATA_HELP)] = None,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
) -> None:
    """Draws the figures that the study names; by default regret, growth, heat maps, tails, decomposition."""
    from jaxbandit import plots
    from jaxbandit.store.assemble import opened

    ds = opened(source)
    environments = plots.environments_of(ds, data, trust=trust)
    text = str(ds.attrs.get("study", ""))
    if not environments and figures.need_environments(text):
        again = shlex.join(["jaxbandit", "plot", str(source)])
        if (foreign := recorded.foreign_environments(text)) and not trust:
            raise ValueError(
                f"a figure needs the study's environments, and {', '.join(foreign)} is no class of jaxbandit; if you "
                f"trust the results, let them import it: {again} --trust"
            )
        if data is None:
            raise ValueError(
                "cannot rebuild the study's environments: its data tables were not found; "
                f"pass their directory with --data: {again} --data TABLES"
            )
    made = plots.draw(
        ds,
        out or (source if source.is_dir() else source.parent) / "figures",
        formats=[ending.strip() for ending in formats.split(",")],
        environments=environments,
        method=band,
        simultaneous=simultaneous,
    )
    for figure in made:
        Console().print(f"figure  {figure}", markup=False, soft_wrap=True)


def report(
    source: Annotated[
        pathlib.Path, typer.Argument(help="Results directory of `run`, `sensitivity`, `tune` or `worst`; or a .nc.")
    ],
    out: Annotated[pathlib.Path | None, typer.Option(help="The file; default report.html beside the data.")] = None,
    band: Annotated[str, typer.Option(help="Method of the confidence bands: normal or bootstrap.")] = "normal",
    simultaneous: Annotated[bool, typer.Option("--simultaneous", help="Draw bands that cover whole curves.")] = False,
    data: Annotated[pathlib.Path | None, typer.Option(help=DATA_HELP)] = None,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
) -> None:
    """Writes one HTML page that works offline: ranking with tests, curves, growth, sensitivity, provenance."""
    from jaxbandit import report as reports

    page = reports.write(source, out, method=band, simultaneous=simultaneous, data=data, trust=trust)
    Console().print(f"report  {page}", soft_wrap=True, markup=False)

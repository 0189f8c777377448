"""Options that several commands share, each with one name, one help text and one default."""

import pathlib
import sys
from typing import Annotated

import typer
from rich.console import Console

RESULTS = pathlib.Path("results")  # the parent of all default directories
FORMATS, BAND = "pdf,png", "normal"

StudyFile = Annotated[pathlib.Path, typer.Argument(help="A study file (TOML).")]
Source = Annotated[
    pathlib.Path,
    typer.Argument(help="A results directory, or a dataset (.nc)."),
]
Out = Annotated[
    pathlib.Path | None,
    typer.Option("--out", help="Results directory; default results/STUDY, or results/STUDY-quick with --quick."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Play a cut-down version with fewer rounds and seeds.")]
Data = Annotated[
    pathlib.Path | None,
    typer.Option("--data", help="Directory of the study's data tables; default the directory of the study file."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print only the results, as JSON.")]
Formats = Annotated[str, typer.Option("--format", help="File endings of the figures, comma-separated.")]
Band = Annotated[str, typer.Option("--band", help="Method of the confidence bands: normal or bootstrap.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import classes that the results name; without it, results execute nothing.")
]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="Draw bands that cover whole curves.")]


def results_directory(study: pathlib.Path, out: pathlib.Path | None, quick: bool) -> pathlib.Path:
    """Returns the results directory; the default of a quick run is its own, because it plays other rounds."""
    return out or RESULTS / (f"{study.stem}-quick" if quick else study.stem)


def endings(formats: str) -> list[str]:
    """Returns the file endings of ``--format``."""
    return [ending.strip() for ending in formats.split(",")]


def make_console(silent: bool = False) -> Console:
    """Returns the console for results; if the output is piped, rich assumes 80 columns, too few for a table."""
    return Console(width=None if sys.stdout.isatty() else 160, quiet=silent)

"""Options that several commands share, each with one name, one help text and one default."""

import functools
import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import typer

from jaxbandit.studies.shipped import shipped

RESULTS = pathlib.Path("results")  # the parent of all default directories
FORMATS, BAND = "pdf,png", "normal"

StudyFile = Annotated[pathlib.Path, typer.Argument(help="A study file (TOML), or the name of a shipped study.")]
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
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the study, as in policies.0.initial_scale=1,4; repeatable.",
    ),
]
Horizon = Annotated[int | None, typer.Option("--horizon", help="Rounds of each game.")]
NumSeeds = Annotated[int | None, typer.Option("--num-seeds", help="Seeds, that is games, per pair.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Study seed, from which all games draw.")]
Formats = Annotated[str, typer.Option("--format", help="File endings of the figures, comma-separated.")]
Band = Annotated[str, typer.Option("--band", help="Method of the confidence bands: normal or bootstrap.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import classes that the results name; without it, results execute nothing.")
]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="Draw bands that cover whole curves.")]


def results_directory(study: pathlib.Path, out: pathlib.Path | None, quick: bool) -> pathlib.Path:
    """Returns the results directory; the default of a quick run is its own, because it plays other rounds."""
    name = study.stem.lower() if not study.exists() and study.stem.lower() in shipped() else study.stem
    return out or RESULTS / (f"{name}-quick" if quick else name)


def endings(formats: str) -> list[str]:
    """Returns the file endings of ``--format``."""
    return [ending.strip() for ending in formats.split(",")]


def changes(
    assigned: list[str] | None, horizon: int | None, num_seeds: int | None, seed: int | None, section: str = ""
) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """Returns the function that changes a study's content as the options say; None if they say nothing.

    A command that plays a section of the study names it: its own number of seeds and horizons change too.
    """
    from jaxbandit.cli.overrides import overridden

    values = {"horizon": horizon, "num_seeds": num_seeds, "seed": seed}
    if not assigned and all(value is None for value in values.values()):
        return None
    return functools.partial(overridden, changes=assigned or (), section=section, **values)

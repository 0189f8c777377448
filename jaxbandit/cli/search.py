"""The commands ``jaxbandit tune`` and ``jaxbandit worst``."""

import json
import os
import pathlib
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from jaxbandit.checks import safe_name
from jaxbandit.engine import Engine
from jaxbandit.interrupt import InterruptedRunError, interruptible
from jaxbandit.studies.study import Study

if TYPE_CHECKING:
    from jaxbandit.search.study import Found

StudyFile = Annotated[pathlib.Path, typer.Argument(help="A study file (TOML).")]
Out = Annotated[pathlib.Path | None, typer.Option(help="Results directory; default results/STUDY.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run a cut-down version that takes seconds.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print only the results, as JSON.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to ``app``."""
    app.command()(tune)
    app.command()(worst)


def tune(study: StudyFile, out: Out = None, quick: Quick = False, quiet: Quiet = False, as_json: Json = False) -> None:
    """Tunes the policies of a study as its section `tune` says; continues a search that was stopped."""
    from jaxbandit.search import study as searches
    from jaxbandit.search import tables
    from jaxbandit.search.figures import search_curves

    found, directory, console = _searched("tune", study, out, quick, quiet or as_json, searches.tune_study)
    for one in found:
        search_curves(one.ds, one.path.with_suffix(".png"), f"{one.policy}, tuned")
    if as_json:
        _print_json(study, directory, tables.tune_json(found))
    if not (quiet or as_json):
        console.print(tables.tune_table(found))
        for one in found:
            console.print(f"{one.policy}: {one.ds.attrs['verdict']}", markup=False)
        _say_the_rest(console, found)


def worst(study: StudyFile, out: Out = None, quick: Quick = False, quiet: Quiet = False, as_json: Json = False) -> None:
    """Searches for the worst instances as a study's section `worst` says; continues a search that was stopped."""
    from jaxbandit.search import study as searches
    from jaxbandit.search import tables
    from jaxbandit.search.figures import search_curves, worst_curves

    found, directory, console = _searched("worst", study, out, quick, quiet or as_json, searches.worst_study)
    figures = []
    for environment in dict.fromkeys(one.environment for one in found):
        here = [one for one in found if one.environment == environment]
        if "horizon" in here[0].ds.dims:
            path = directory / f"worst-{safe_name(environment)}.png"
            figures.append(
                worst_curves({one.policy: one.ds for one in here}, path, f"worst cases around {environment}")
            )
        else:
            titles = [f"{one.policy}: worst case around {environment}" for one in here]
            paths = [one.path.with_suffix(".png") for one in here]
            figures += [search_curves(one.ds, p, t) for one, p, t in zip(here, paths, titles, strict=True)]
    if as_json:
        _print_json(study, directory, tables.worst_json(found))
    if not (quiet or as_json):
        console.print(tables.worst_table(found))
        for one in found:
            if "slope" in one.ds:
                low, high = float(one.ds.slope_low), float(one.ds.slope_high)
                text = f"grows as T^{float(one.ds.slope):.3f} [{low:.3f}, {high:.3f}]"
                console.print(f"{one.policy} around {one.environment}: {text}", markup=False)
        for figure in figures:
            console.print(f"figure  {figure}", markup=False)
        _say_the_rest(console, found)


def _searched(
    name: str, path: pathlib.Path, out: pathlib.Path | None, quick: bool, silent: bool, search: Callable[..., Iterator]
) -> tuple[list["Found"], pathlib.Path, Console]:
    """Runs all searches of a study with a progress bar for each; Ctrl-C ends them and keeps the steps so far."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    study = Study.load(path, quick=quick)
    directory = out or pathlib.Path("results") / (f"{path.stem}-quick" if quick else path.stem)
    directory.mkdir(parents=True, exist_ok=True)
    if not silent:
        console.print(Text(study.title, style="bold"))

    def work(stop: threading.Event) -> list["Found"]:
        return list(search(study, directory, engine=Engine(progress=not silent), stop=stop))

    try:
        return interruptible(work), directory, console
    except InterruptedRunError:
        _say_how_to_go_on([name, str(path), *(["--out", str(out)] if out else []), *(["--quick"] if quick else [])])


def _print_json(study: pathlib.Path, directory: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    print(json.dumps({"study": str(study), "directory": str(directory), "results": rows}, indent=1))


def _say_the_rest(console: Console, found: list["Found"]) -> None:
    failed = sum(int(one.ds.attrs["failed"]) for one in found)
    if failed:
        console.print(f"{failed} games failed: their state was not finite", style="red")
    console.print(f"bands: {found[0].ds.attrs['band']}", markup=False)
    for one in found:
        console.print(f"trace   {one.path}", markup=False)


def _say_how_to_go_on(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    again = shlex.join(["jaxbandit", *command])
    print(f"\nstopped; the steps so far are kept. To continue: {again}", file=sys.stderr, flush=True)
    os._exit(130)  # does not wait for the thread, which may be inside the compiler

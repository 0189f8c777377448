"""The command line: ``jaxbandit run``, ``plan``, ``plot``, ``report``, ``sensitivity``, ``tune`` and others."""

import dataclasses
import json
import os
import pathlib
import shlex
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from jaxbandit.checks import safe_name
from jaxbandit.cli import commands, results
from jaxbandit.cli import search as searches
from jaxbandit.cli.results import DATA_HELP
from jaxbandit.interrupt import InterruptedRunError, interruptible
from jaxbandit.progress import bar
from jaxbandit.runs import run_study, teams
from jaxbandit.runs.campaign import Report
from jaxbandit.store.directory import StoreError
from jaxbandit.studies.study import DataNeededError, Study
from jaxbandit.version import __version__

# The commands import xarray, and the modules that need it, late: the import takes a third as long as that of JAX.
if TYPE_CHECKING:
    import xarray as xr

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Simulates heavy-tailed bandits. Each policy class with each environment class is one compiled call.",
)
# If the output is piped, rich assumes 80 columns, which are too few for a table.
console = Console(width=None if sys.stdout.isatty() else 160)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"jaxbandit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def run(
    study: Annotated[pathlib.Path, typer.Argument(help="A study file (TOML).")],
    out: Annotated[pathlib.Path | None, typer.Option(help="Results directory; default results/STUDY.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a cut-down version that takes seconds.")] = False,
    data: Annotated[pathlib.Path | None, typer.Option(help=DATA_HELP)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the results, as JSON.")] = False,
    precision: Annotated[
        float | None, typer.Option(help="Add seeds until half the 95 % band is at most this share of the mean.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Play on the workers of this Dask scheduler (HOST:PORT).")] = None,
    coordinator: Annotated[str | None, typer.Option(help="HOST:PORT of the first of several processes.")] = None,
    num_processes: Annotated[int | None, typer.Option(help="Number of processes; default that of Slurm.")] = None,
    process_id: Annotated[int | None, typer.Option(help="Number of this process, from 0.")] = None,
) -> None:
    """Plays the missing cells of a study, writes a dataset and figures, and prints a table of regret."""
    try:
        plan = _read(study, quick, precision, data)
    except DataNeededError as needed:
        if not quick:
            raise
        console.print(f"skipped: {needed}", markup=False)
        return
    directory = out or _directory(study, quick)
    team = _team(dask, coordinator, num_processes, process_id)
    talk = not (quiet or as_json) and team.leads
    if talk:
        console.print(_heading(plan))
    began = time.perf_counter()
    report = Report()

    def work(stop: threading.Event) -> "xr.Dataset":
        with bar(talk) as show:
            return run_study.run(
                plan,
                directory,
                notice=lambda done, total, cells, of: show(done, total, f"{cells}/{of} cells"),  # pyright: ignore[reportCallIssue]
                stop=stop,
                report=report,
                team=team,
            )

    try:
        ds = interruptible(work)
    except InterruptedRunError as interrupted:
        _say_how_to_resume(study, out, quick, data, directory, interrupted.saved)
    if not team.leads:
        return
    from jaxbandit.analysis import final
    from jaxbandit.cli import outcome, tables

    stats = final.final_summary(ds)
    written = outcome.write(ds, directory)
    timing = report.timing
    if as_json:
        about = {
            "title": plan.title,
            "directory": str(directory),
            "horizon": plan.horizon,
            "seed": plan.seed,
            "cells_played": report.played,
            "cells_found": report.found,
            "compile_seconds": round(timing.compile_seconds, 3),
            "run_seconds": round(timing.run_seconds, 3),
        }
        print(json.dumps(about | {"results": tables.results_json(stats)}, indent=1))
    if talk:
        console.print(tables.regret_table(stats))
        for sentence in final.failures(stats):
            console.print(sentence, style="red", markup=False)
        aside = f"; {_count(report.aside, 'cell')} of another platform or version not used" if report.aside else ""
        console.print(f"{_count(report.played, 'cell')} played, {report.found} found{aside}")
        if report.others:
            console.print(
                f"This directory also holds {_count(report.others, 'cell')} of another study. "
                "They are kept but not shown."
            )
        console.print(written, markup=False)
    drawn = outcome.draw(plan, ds, stats, directory)
    if talk:
        for figure in drawn:
            console.print(f"figure  {figure}", markup=False)
        seconds = time.perf_counter() - began
        console.print(
            f"compiled {timing.compile_seconds:.1f} s, played {timing.run_seconds:.1f} s, {seconds:.1f} s in all"
        )


@app.command()
def plan(
    study: Annotated[pathlib.Path, typer.Argument(help="A study file (TOML).")],
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Results directory; cells already there are left out of the estimate.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Estimate the cut-down version.")] = False,
    data: Annotated[pathlib.Path | None, typer.Option(help=DATA_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimate as JSON.")] = False,
) -> None:
    """Estimates the time, memory and disk space of a study from a short probe; writes no results."""
    from jaxbandit.cli import tables
    from jaxbandit.runs import forecast

    planned = _read(study, quick, None, data)
    place = out or _directory(study, quick)
    found = forecast.plan(planned, place)
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=1))
        return
    console.print(_heading(planned))
    console.print(tables.plan_table(found, place))


app.command("plot")(results.plot)
app.command("report")(results.report)
app.command("certify")(commands.certify)
app.command("sensitivity")(commands.sensitivity)
searches.register(app)


@app.command("list")
def list_() -> None:
    """Lists the policies and environments that a study may use, with their keys."""
    from jaxbandit.cli import tables
    from jaxbandit.studies import entries

    for section in entries.REGISTRIES:
        console.print(tables.registry_table(section))


@app.command()
def inspect(
    table: Annotated[pathlib.Path, typer.Argument(help="A .npy, .npz, .csv or .parquet file, or an ASlib folder.")],
    out: Annotated[pathlib.Path | None, typer.Option(help="Figure to write; default results/inspect-NAME.png.")] = None,
    key: Annotated[str | None, typer.Option(help="Name of the array in an .npz file.")] = None,
    rewards: Annotated[bool, typer.Option("--rewards", help="The table holds rewards: negate its entries.")] = False,
) -> None:
    """Inspects a table of measured losses: tails, gap, scale, assumptions; writes a figure."""
    from jaxbandit.cli import tables
    from jaxbandit.plots.tails import tails
    from jaxbandit.tables import inspection
    from jaxbandit.tables.readers import read_table

    read = read_table(table, key=key, missing=True)
    losses = -read.losses if rewards or read.rewards else read.losses
    found = inspection.inspect(losses, read.arms)
    path = out or pathlib.Path("results") / f"inspect-{safe_name(read.name.replace(':', '-'))}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in tables.inspection_tables(read.name, found):
        console.print(part)
    console.print(f"figure  {tails(losses, found, path, read.name)}", markup=False)


@app.command()
def doctor() -> None:
    """Shows versions, cores, devices, the cache of compiled code, and how each policy is played, and why."""
    from jaxbandit.cli import tables
    from jaxbandit.policies import POLICIES

    console.print(tables.machine_table())
    console.print()
    console.print(tables.ways_table(POLICIES))


def _read(path: pathlib.Path, quick: bool, precision: float | None, data: pathlib.Path | None) -> Study:
    study = Study.load(path, data, quick=quick)
    return study if precision is None else study.changed(precision=precision)


def _heading(study: Study) -> Text:
    """Returns title and size of a study; as text, because rich would read brackets as markup."""
    return Text.assemble((study.title, "bold"), f"  ({study.horizon:,} rounds, {_count(study.num_seeds, 'seed')})")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _team(
    dask: str | None, coordinator: str | None, num_processes: int | None, process_id: int | None
) -> run_study.Team:
    if dask is not None:
        return teams.dask_team(dask)[0]
    return teams.process_team(coordinator, num_processes, process_id) or run_study.Team()


def _directory(study: pathlib.Path, quick: bool) -> pathlib.Path:
    """Returns the default results directory; a quick run has its own, because it plays other rounds."""
    return pathlib.Path("results") / (f"{study.stem}-quick" if quick else study.stem)


def _say_how_to_resume(
    study: pathlib.Path,
    out: pathlib.Path | None,
    quick: bool,
    data: pathlib.Path | None,
    directory: pathlib.Path,
    saved: bool,
) -> NoReturn:
    command = ["jaxbandit", "run", str(study), *(["--out", str(out)] if out else []), *(["--quick"] if quick else [])]
    command += ["--data", str(data)] if data else []
    kept = "finished cells and games under way are kept" if saved else "finished cells and checkpoints are kept"
    sys.stdout.flush()
    print(f"\nstopped; {kept} in {directory}. To continue: {shlex.join(command)}", file=sys.stderr, flush=True)
    os._exit(130)  # does not wait for the thread, which may be inside the compiler


def main() -> None:
    """Runs the command line; if the input is invalid, prints the error and exits with code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except (ValueError, StoreError) as error:
        Console(stderr=True).print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
        raise SystemExit(2) from None


def _show_warning(message: Warning | str, category, filename, lineno, file=None, line=None) -> None:
    Console(stderr=True).print(f"warning: {message}", style="yellow", highlight=False, markup=False, soft_wrap=True)

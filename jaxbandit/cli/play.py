"""The commands ``jaxbandit run`` and ``jaxbandit plan``."""

import dataclasses
import json
import pathlib
import threading
import time
from typing import Annotated

import typer
from rich.text import Text

from jaxbandit.cli import options
from jaxbandit.cli.options import Data, Json, Out, Quick, Quiet, StudyFile
from jaxbandit.engine import Engine
from jaxbandit.progress import bar
from jaxbandit.runs import run_study, teams
from jaxbandit.runs.campaign import Report
from jaxbandit.studies.study import DataNeededError, Study

KEPT = "finished cells and checkpoints of games under way are kept"


def run(
    study: StudyFile,
    *,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    quiet: Quiet = False,
    as_json: Json = False,
    device: Annotated[
        str | None,
        typer.Option(help="Devices that play: cpu, or gpu for all NVIDIA cards; default by JAX's default device."),
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="Add seeds until half the 95 % band is at most this share of the mean.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Play on the workers of this Dask scheduler (HOST:PORT).")] = None,
    coordinator: Annotated[
        str | None, typer.Option(help="Not needed any more: processes meet in the directory.")
    ] = None,
    num_processes: Annotated[
        int | None, typer.Option(help="Number of processes that share the study; default Slurm's.")
    ] = None,
    process_id: Annotated[int | None, typer.Option(help="Number of this process, from 0.")] = None,
    stop: threading.Event,
) -> None:
    """Plays the missing cells of a study, writes a dataset and figures, and prints a table of regret."""
    try:
        plan = _read(study, quick, data, precision)
    except DataNeededError as needed:
        if not quick:
            raise
        options.make_console().print(f"skipped: {needed}", markup=False)
        return
    directory, console = options.results_directory(study, out, quick), options.make_console()
    team = _team(dask, coordinator, num_processes, process_id)
    talk = not (quiet or as_json) and team.leads
    if talk:
        console.print(_heading(plan))
    began = time.perf_counter()
    report = Report()

    with bar(talk) as show:
        ds = run_study.run(
            plan,
            directory,
            engine=Engine(devices=device),
            notice=lambda done, total, cells, of: show(done, total, f"{cells}/{of} cells"),  # pyright: ignore[reportCallIssue]
            stop=stop,
            report=report,
            team=team,
        )
    if not team.leads:
        return
    talk = not (quiet or as_json)  # this process may have taken the place of one that was lost
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
        console.print(tables.regret_table(stats, outcome.multiples_of(plan, stats)))
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


def plan(study: StudyFile, out: Out = None, quick: Quick = False, data: Data = None, as_json: Json = False) -> None:
    """Estimates the time, memory and disk space of what a results directory lacks; writes no results."""
    from jaxbandit.cli import tables
    from jaxbandit.runs import forecast

    planned, console = _read(study, quick, data), options.make_console()
    place = options.results_directory(study, out, quick)
    found = forecast.plan(planned, place)
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=1))
        return
    console.print(_heading(planned))
    console.print(tables.plan_table(found, place))


def _read(path: pathlib.Path, quick: bool, data: pathlib.Path | None, precision: float | None = None) -> Study:
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

"""The commands ``jaxbandit run`` and ``jaxbandit plan``."""

import contextlib
import dataclasses
import json
import threading
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from jaxbandit.cli import layout, options
from jaxbandit.cli.options import Data, Horizon, Json, NumSeeds, Out, Quick, Quiet, Seed, Set, StudyFile
from jaxbandit.engine import Engine
from jaxbandit.progress import bar
from jaxbandit.runs import run_study, teams
from jaxbandit.runs.campaign import Report
from jaxbandit.studies.shipped import study_path
from jaxbandit.studies.study import DataNeededError, Study

KEPT = "finished cells and checkpoints of games under way are kept"


def run(
    study: StudyFile,
    *,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    assigned: Set = None,
    horizon: Horizon = None,
    num_seeds: NumSeeds = None,
    seed: Seed = None,
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
        str | None, typer.Option(hidden=True, help="Not needed any more: processes meet in the directory.")
    ] = None,
    num_processes: Annotated[
        int | None, typer.Option(help="Number of processes that share the study; default Slurm's.")
    ] = None,
    process_id: Annotated[int | None, typer.Option(help="Number of this process, from 0.")] = None,
    stop: threading.Event,
) -> None:
    """Plays the missing cells of a study, writes a dataset and figures, and prints a table of regret."""
    try:
        change = options.changes(assigned, horizon, num_seeds, seed)
        plan = Study.load(study_path(study), data, quick=quick, change=change)
        plan = plan if precision is None else plan.changed(precision=precision)
    except DataNeededError as needed:
        if not quick:
            raise
        layout.say(layout.make_console(), f"skipped: {needed}")
        return
    directory, console = options.results_directory(study, out, quick), layout.make_console()
    team = _team(dask, coordinator, num_processes, process_id)
    talk = not (quiet or as_json) and team.leads
    if talk:
        console.print(_heading(plan))
    began = time.perf_counter()
    report = Report()

    with contextlib.closing(team), bar(talk) as show:
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
    from jaxbandit.analysis import final, outcomes
    from jaxbandit.cli import outcome

    stats = final.final_summary(ds)
    written = outcome.write(ds, directory)
    if as_json:
        about = {
            "cells_played": report.played,
            "cells_found": report.found,
            "compile_seconds": round(report.timing.compile_seconds, 3),
            "run_seconds": round(report.timing.run_seconds, 3),
        }
        rows = [one.row() for one in outcomes.outcomes(ds, stats, outcome.environments_of(plan, stats))]
        layout.print_json(plan.title, directory, plan.horizon, plan.seed, rows, **about)
    if talk:
        outcome.show_regret(console, plan, ds, stats, directory)
        _say_cells(console, report)
        layout.say_place(console, *written)
    drawn = outcome.draw(plan, ds, stats, directory)
    if talk:
        for figure in drawn:
            layout.say_place(console, "figure", figure)
        timing, seconds = report.timing, time.perf_counter() - began
        layout.say(
            console,
            f"compiled {timing.compile_seconds:.1f} s, played {timing.run_seconds:.1f} s, {seconds:.1f} s in all",
        )
        layout.say_next(console, layout.report_of(directory))


def plan(
    study: StudyFile,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    assigned: Set = None,
    horizon: Horizon = None,
    num_seeds: NumSeeds = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Estimates the time, memory and disk space of what a results directory lacks; writes no results."""
    from jaxbandit.cli import tables
    from jaxbandit.runs import forecast

    change = options.changes(assigned, horizon, num_seeds, seed)
    planned, console = Study.load(study_path(study), data, quick=quick, change=change), layout.make_console()
    place = options.results_directory(study, out, quick)
    found = forecast.plan(planned, place)
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=1))
        return
    console.print(_heading(planned))
    layout.show(console, tables.plan_table(found, place))


def _say_cells(console: Console, report: Report) -> None:
    aside = f"; {_count(report.aside, 'cell')} of another platform or version not used" if report.aside else ""
    layout.say(console, f"{_count(report.played, 'cell')} played, {report.found} found{aside}")
    if report.others:
        others = _count(report.others, "cell")
        layout.say(console, f"This directory also holds {others} of another study. They are kept but not shown.")


def _heading(study: Study) -> Text:
    """Returns title and size of a study; as text, because rich would read brackets as markup."""
    return Text.assemble(
        (layout.harmless(study.title), "bold"), f"  ({study.horizon:,} rounds, {_count(study.num_seeds, 'seed')})"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _team(
    dask: str | None, coordinator: str | None, num_processes: int | None, process_id: int | None
) -> run_study.Team:
    if dask is not None:
        return teams.dask_team(dask)
    return teams.process_team(coordinator, num_processes, process_id) or run_study.Team()

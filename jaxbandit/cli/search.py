"""The commands ``jaxbandit sensitivity``, ``jaxbandit tune`` and ``jaxbandit worst``."""

import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from jaxbandit import outputs
from jaxbandit.checks import safe_name
from jaxbandit.cli import layout
from jaxbandit.cli.options import (
    FORMATS,
    Data,
    Formats,
    Horizon,
    Json,
    NumSeeds,
    Out,
    Quick,
    Quiet,
    Seed,
    Set,
    StudyFile,
    changes,
    endings,
    results_directory,
)
from jaxbandit.dataset.labels import shown
from jaxbandit.engine import Engine
from jaxbandit.studies.limits import duration
from jaxbandit.studies.shipped import study_path
from jaxbandit.studies.study import Study

if TYPE_CHECKING:
    from jaxbandit.search.study import Found

KEPT_STEPS = "the steps so far are kept"
KEPT_POINTS = "finished points are kept"


def sensitivity(
    study: StudyFile,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    assigned: Set = None,
    horizon: Horizon = None,
    num_seeds: NumSeeds = None,
    seed: Seed = None,
    quiet: Quiet = False,
    as_json: Json = False,
    formats: Formats = FORMATS,
) -> None:
    """Measures how parameters change regret: derivatives, Sobol' indices, screening; writes datasets and figures."""
    from jaxbandit import sensitivity as asked
    from jaxbandit.sensitivity import tables

    directory, console = results_directory(study, out, quick), layout.make_console(silent=quiet or as_json)
    began, change = time.perf_counter(), changes(assigned, horizon, num_seeds, seed, "sensitivity")
    plan = Study.load(study_path(study), data, quick=quick, change=change)
    results = asked.run(
        plan,
        directory,
        engine=Engine(progress=not (quiet or as_json)),
        notice=lambda kind, there: layout.say(console, f"{asked.KINDS[kind]}: {'found' if there else 'playing'}"),
    )
    figures = asked.draw(results, outputs.folder_in(directory, "figures"), formats=endings(formats))
    if as_json:
        by_kind = {kind: tables.rows(ds) for kind, ds in results.items()}
        rows = [{"kind": kind} | row for kind, some in by_kind.items() for row in some]
        layout.print_json(plan.title, directory, plan.horizon, plan.seed, rows, **by_kind)  # as up to 0.1 too
    for kind, ds in results.items():
        layout.show(console, tables.table(ds), keys=3)
        for sentence in tables.remarks(ds):
            layout.say(console, sentence)
        layout.say_place(console, "dataset", f"{directory / 'sensitivity' / kind}.nc")
    for figure in figures:
        layout.say_place(console, "figure", figure)
    _say_how_long(console, directory, began)


def tune(
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
    stop: threading.Event,
) -> None:
    """Tunes the policies of a study as its section `tune` says; continues a search that was stopped."""
    from jaxbandit.search import study as searches
    from jaxbandit.search import tables
    from jaxbandit.search.figures import search_curves

    directory, console = results_directory(study, out, quick), layout.make_console(silent=quiet or as_json)
    began, change = time.perf_counter(), changes(assigned, horizon, num_seeds, seed, "tune")
    plan = Study.load(study_path(study), data, quick=quick, change=change)
    found = _searched(plan, directory, console, stop, searches.tune_study)
    for one in found:
        search_curves(one.ds, one.path.with_suffix(".png"), f"{shown(one.policy)}, tuned")
    if as_json:
        rows = tables.tune_json(found)
        layout.print_json(plan.title, directory, plan.horizon, plan.seed, rows, study=str(study))
    if not (quiet or as_json):
        layout.show(console, tables.tune_table(found), keys=2)
        for one in found:
            layout.say(console, f"{shown(one.policy)}: {one.ds.attrs['verdict']}")
        _say_the_rest(console, found)
        _say_how_long(console, directory, began)


def worst(
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
    stop: threading.Event,
) -> None:
    """Searches for the worst instances as a study's section `worst` says; continues a search that was stopped."""
    from jaxbandit.analysis import growth
    from jaxbandit.search import study as searches
    from jaxbandit.search import tables
    from jaxbandit.search.figures import search_curves, worst_curves

    directory, console = results_directory(study, out, quick), layout.make_console(silent=quiet or as_json)
    began, change = time.perf_counter(), changes(assigned, horizon, num_seeds, seed, "worst")
    plan = Study.load(study_path(study), data, quick=quick, change=change)
    found = _searched(plan, directory, console, stop, searches.worst_study)
    figures = []
    for environment in dict.fromkeys(one.environment for one in found):
        here = [one for one in found if one.environment == environment]
        if "horizon" in here[0].ds.dims:
            path = directory / f"worst-{safe_name(environment)}.png"
            figures.append(
                worst_curves({one.policy: one.ds for one in here}, path, f"worst cases around {shown(environment)}")
            )
        else:
            titles = [f"{shown(one.policy)}: worst case around {shown(environment)}" for one in here]
            paths = [one.path.with_suffix(".png") for one in here]
            figures += [search_curves(one.ds, p, t) for one, p, t in zip(here, paths, titles, strict=True)]
    if as_json:
        rows = tables.worst_json(found)
        layout.print_json(plan.title, directory, plan.horizon, plan.seed, rows, study=str(study))
    if not (quiet or as_json):
        layout.show(console, tables.worst_table(found), keys=3)
        for one in found:
            if "slope" in one.ds:
                value, low, high = (float(one.ds[f"slope{end}"]) for end in ("", "_low", "_high"))
                text = growth.exponent_text(value, low, high, 0.0)
                if text:
                    around = f"{shown(one.policy)} around {shown(one.environment)}"
                    layout.say(console, f"{around}: the worst regret found grows like {text}")
        if tables.any_on_edge(found):
            layout.say(console, "(edge): a worse instance may lie outside this range; widen it under [worst]")
        for figure in figures:
            layout.say_place(console, "figure", figure)
        _say_the_rest(console, found)
        _say_how_long(console, directory, began)


def _searched(
    study: Study, directory: pathlib.Path, console: Console, stop: threading.Event, search: Callable[..., Iterator]
) -> list["Found"]:
    """Runs all searches of a study with a progress bar for each, and says how long each took."""
    directory.mkdir(parents=True, exist_ok=True)
    layout.say(console, study.title, style="bold")
    found, began = [], time.perf_counter()
    for one in search(study, directory, engine=Engine(progress=not console.quiet), stop=stop):
        found.append(one)
        around = f" around {shown(one.environment)}" if one.environment else ""
        layout.say(console, f"{shown(one.policy)}{around}: searched in {duration(time.perf_counter() - began)}")
        began = time.perf_counter()
    return found


def _say_the_rest(console: Console, found: list["Found"]) -> None:
    failed = sum(int(one.ds.attrs["failed"]) for one in found)
    if failed:
        layout.say(console, f"broken games: {failed:,}, whose state was not finite", style="red")
    layout.say(console, f"bands: {found[0].ds.attrs['band']}")
    for one in found:
        layout.say_place(console, "trace", one.path)


def _say_how_long(console: Console, directory: pathlib.Path, began: float) -> None:
    layout.say(console, f"{duration(time.perf_counter() - began)} in all")
    layout.say_next(console, layout.report_of(directory))

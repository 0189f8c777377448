"""The commands ``jaxbandit sensitivity``, ``jaxbandit tune`` and ``jaxbandit worst``."""

import json
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from jaxbandit.checks import safe_name
from jaxbandit.cli.options import (
    FORMATS,
    Data,
    Formats,
    Json,
    Out,
    Quick,
    Quiet,
    StudyFile,
    endings,
    make_console,
    results_directory,
)
from jaxbandit.engine import Engine
from jaxbandit.studies.study import Study

if TYPE_CHECKING:
    from jaxbandit.search.study import Found

KEPT_STEPS = "the steps so far are kept"
KEPT_RESULTS = "finished results are kept"


def sensitivity(
    study: StudyFile,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    quiet: Quiet = False,
    as_json: Json = False,
    formats: Formats = FORMATS,
) -> None:
    """Measures how parameters change regret: derivatives, Sobol' indices, screening; writes datasets and figures."""
    from jaxbandit import sensitivity as asked
    from jaxbandit.sensitivity import tables

    directory, console = results_directory(study, out, quick), make_console(silent=quiet or as_json)
    results = asked.run(
        Study.load(study, data, quick=quick),
        directory,
        engine=Engine(progress=not (quiet or as_json)),
        notice=lambda kind, there: console.print(f"{kind}: {'found' if there else 'playing'}", highlight=False),
    )
    figures = asked.draw(results, directory / "figures", formats=endings(formats))
    if as_json:
        print(json.dumps({kind: tables.rows(ds) for kind, ds in results.items()}, indent=1))
    for kind, ds in results.items():
        console.print(tables.table(ds))
        for sentence in tables.remarks(ds):
            console.print(sentence, markup=False, highlight=False)
        console.print(f"dataset {directory / 'sensitivity' / kind}.nc", markup=False, highlight=False)
    for figure in figures:
        console.print(f"figure  {figure}", markup=False, highlight=False)


def tune(
    study: StudyFile,
    *,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    quiet: Quiet = False,
    as_json: Json = False,
    stop: threading.Event,
) -> None:
    """Tunes the policies of a study as its section `tune` says; continues a search that was stopped."""
    from jaxbandit.search import study as searches
    from jaxbandit.search import tables
    from jaxbandit.search.figures import search_curves

    directory, console = results_directory(study, out, quick), make_console(silent=quiet or as_json)
    found = _searched(Study.load(study, data, quick=quick), directory, console, stop, searches.tune_study)
    for one in found:
        search_curves(one.ds, one.path.with_suffix(".png"), f"{one.policy}, tuned")
    if as_json:
        _print_json(study, directory, tables.tune_json(found))
    if not (quiet or as_json):
        console.print(tables.tune_table(found))
        for one in found:
            console.print(f"{one.policy}: {one.ds.attrs['verdict']}", markup=False)
        _say_the_rest(console, found)


def worst(
    study: StudyFile,
    *,
    out: Out = None,
    quick: Quick = False,
    data: Data = None,
    quiet: Quiet = False,
    as_json: Json = False,
    stop: threading.Event,
) -> None:
    """Searches for the worst instances as a study's section `worst` says; continues a search that was stopped."""
    from jaxbandit.search import study as searches
    from jaxbandit.search import tables
    from jaxbandit.search.figures import search_curves, worst_curves

    directory, console = results_directory(study, out, quick), make_console(silent=quiet or as_json)
    found = _searched(Study.load(study, data, quick=quick), directory, console, stop, searches.worst_study)
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
    study: Study, directory: pathlib.Path, console: Console, stop: threading.Event, search: Callable[..., Iterator]
) -> list["Found"]:
    """Runs all searches of a study with a progress bar for each."""
    directory.mkdir(parents=True, exist_ok=True)
    console.print(Text(study.title, style="bold"))
    return list(search(study, directory, engine=Engine(progress=not console.quiet), stop=stop))


def _print_json(study: pathlib.Path, directory: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    print(json.dumps({"study": str(study), "directory": str(directory), "results": rows}, indent=1))


def _say_the_rest(console: Console, found: list["Found"]) -> None:
    failed = sum(int(one.ds.attrs["failed"]) for one in found)
    if failed:
        console.print(f"{failed} games failed: their state was not finite", style="red")
    console.print(f"bands: {found[0].ds.attrs['band']}", markup=False)
    for one in found:
        console.print(f"trace   {one.path}", markup=False)

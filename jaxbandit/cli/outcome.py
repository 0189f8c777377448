"""The outcome of a run: its table on the terminal, and the dataset in one file and figures beside its cells."""

import pathlib
import warnings
from typing import Any

import xarray as xr
from rich.console import Console

from jaxbandit import outputs
from jaxbandit.analysis import final
from jaxbandit.analysis.outcomes import outcomes
from jaxbandit.cli import layout, tables
from jaxbandit.store import seal
from jaxbandit.store.directory import Store, StoreError
from jaxbandit.studies.study import Study

DATASET_BYTES = 1 << 30  # a dataset up to this size is also written as one file


def show_regret(console: Console, study: Study, ds: xr.Dataset, stats: xr.Dataset, directory: pathlib.Path) -> None:
    """Prints final regret for every environment, and sentences about its columns and about broken games."""
    environments = environments_of(study, stats)
    found = outcomes(ds, stats, environments)
    shown = tables.regret_tables(found, stats, grouped=layout.on_terminal())
    layout.say(console, f"pseudo-regret after {int(stats['round'][-1]):,} rounds")
    for table in shown:
        layout.show(console, table)
    for note in tables.notes(shown, stats.sizes["environment"], directory):
        layout.say(console, note, style="dim")
    for sentence in final.failures(stats):
        layout.say(console, sentence, style="red")


def write(ds: xr.Dataset, directory: pathlib.Path) -> tuple[str, str]:
    """Writes the dataset to one file, unless it is large; returns the word and the text that say where it is."""
    path = directory / "dataset.nc"
    if ds.nbytes > DATASET_BYTES:
        path.unlink(missing_ok=True)
        size = tables.size(ds.nbytes)
        return "dataset", f"{size}, too large for one file: open it with jb.load({str(directory)!r})"
    try:
        content = seal.dataset_bytes(ds.load())
    except OSError as error:  # HDF5 also takes disk space for a file in memory
        raise StoreError(f"cannot write {path}: {error}; all cells are stored, jb.load opens their directory") from None
    Store(directory).write(path, content)
    return "dataset", str(path)


def environments_of(study: Study, stats: xr.Dataset) -> dict[str, Any]:
    """Returns the environments of a study by label."""
    labels, points = [str(label) for label in stats.environment.values], study.resolved.points
    return dict(zip(labels, points, strict=True)) if len(labels) == len(points) else {}


def draw(study: Study, ds: xr.Dataset, stats: xr.Dataset, directory: pathlib.Path) -> list[pathlib.Path]:
    """Draws the study's figures, by default regret. If a figure cannot be drawn, warns: results never depend on it."""
    from jaxbandit import plots

    try:
        if not study.figures:
            regret = {"name": "regret", "title": study.title}
            return plots.draw(stats, directory, formats=("png",), figures=[regret], strict=False)
        environments = environments_of(study, stats)
        folder = outputs.folder_in(directory, "figures")
        return plots.draw(ds, folder, formats=("png",), environments=environments, strict=False)
    except (OSError, ValueError) as error:
        warnings.warn(f"cannot write the figures in {directory}: {error}", stacklevel=2)
        return []

"""Files that a run writes beside its cells: the dataset in one file, and figures."""

import pathlib
import warnings

import xarray as xr

from jaxbandit.analysis.multiples import Multiples, multiples
from jaxbandit.cli import tables
from jaxbandit.store import seal
from jaxbandit.store.directory import Store, StoreError
from jaxbandit.studies.study import Study

DATASET_BYTES = 1 << 30  # a dataset up to this size is also written as one file


def write(ds: xr.Dataset, directory: pathlib.Path) -> str:
    """Writes the dataset to one file, unless it is large; returns a line that says where the dataset is."""
    path = directory / "dataset.nc"
    if ds.nbytes > DATASET_BYTES:
        path.unlink(missing_ok=True)
        return f"dataset {tables.size(ds.nbytes)}, too large for one file: open it with jb.load({str(directory)!r})"
    try:
        content = seal.dataset_bytes(ds.load())
    except OSError as error:  # HDF5 also takes disk space for a file in memory
        raise StoreError(f"cannot write {path}: {error}; all cells are stored, jb.load opens their directory") from None
    Store(directory).write(path, content)
    return f"dataset {path}"


def multiples_of(study: Study, stats: xr.Dataset) -> Multiples:
    """Returns final regret as multiples of asymptotic lower bounds, for the pairs of a study that have one."""
    labels, points = [str(label) for label in stats.environment.values], study.resolved.points
    return multiples(stats, dict(zip(labels, points, strict=True))) if len(labels) == len(points) else {}


def draw(study: Study, ds: xr.Dataset, stats: xr.Dataset, directory: pathlib.Path) -> list[pathlib.Path]:
    """Draws the study's figures, by default regret. If a figure cannot be drawn, warns: results never depend on it."""
    from jaxbandit import plots

    try:
        if not study.figures:
            regret = {"name": "regret", "title": study.title}
            return plots.draw(stats, directory, formats=("png",), figures=[regret], strict=False)
        points = study.resolved.points
        environments = dict(zip(map(str, ds.environment.values), points, strict=True))
        return plots.draw(ds, directory / "figures", formats=("png",), environments=environments, strict=False)
    except OSError as error:
        warnings.warn(f"cannot write the figures in {directory}: {error}", stacklevel=2)
        return []

"""What a run leaves beside its cells: the dataset in one file, and figures."""

import pathlib

import xarray as xr

from jaxbandit import tables
from jaxbandit.store import Store, StoreError
from jaxbandit.study import Study

DATASET_BYTES = 1 << 30  # a dataset up to this size is also written as one file


def write(study: Study, ds: xr.Dataset, stats: xr.Dataset, directory: pathlib.Path) -> list[str]:
    """Writes the dataset, unless it is large, and the study's figures, by default regret; says what it wrote."""
    figures = [f"figure  {path}" for path in _draw(study, ds, stats, directory)]
    path = directory / "dataset.nc"
    if ds.nbytes > DATASET_BYTES:
        path.unlink(missing_ok=True)
        return [f"dataset {tables.size(ds.nbytes)}: open it with jb.load({str(directory)!r})", *figures]
    try:
        content = ds.load().to_netcdf(engine="h5netcdf")
    except OSError as error:  # HDF5 takes room on disk for a file in memory too
        raise StoreError(f"cannot write {path}: {error}; the cells are whole") from None
    Store(directory).write(path, content)
    return [f"dataset {path}", *figures]


def _draw(study: Study, ds: xr.Dataset, stats: xr.Dataset, directory: pathlib.Path) -> list[pathlib.Path]:
    from jaxbandit import plots

    try:
        if not study.figures:
            return [plots.regret_curves(stats, directory / "regret.png", study.title)]
        points = [point for grid in study.environment_grids() for point in grid.points]
        worlds = dict(zip(map(str, ds.environment.values), points, strict=True))
        return plots.draw(ds, directory / "figures", formats=("png",), worlds=worlds)
    except OSError as error:
        raise StoreError(f"cannot write the figures in {directory}: {error}; the cells are whole") from None

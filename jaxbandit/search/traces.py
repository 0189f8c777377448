"""The trace of a search: a row per step, in a netCDF file that is complete or absent, and that a search continues from.

The state of a search is a function of its rows, so the file stores only rows. A search that continues reads them again
and reaches the same state, to the bit.
"""

import json
import pathlib
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.store import seal
from jaxbandit.store.directory import Store
from jaxbandit.studies.renamed import first_names
from jaxbandit.version import __version__, commit

SECONDS = 5.0  # between two writes of a running search
DONE = "done"  # the attribute of a file whose search has ended
VERSIONS = ("numerics", "evolution")  # what a search says of its version, and not of its settings

Dims = Mapping[str, tuple[str, ...]]


class Trace:
    """The rows of a search and their file.

    Args:
      path: The file; None keeps the trace in memory.
      about: Everything that determines the rows, in JSON types. A file with other values is refused.
      dims: The dimensions of every variable of a row.
      parameters: Names along ``parameter``.

    Attributes:
      rows: The rows so far.
      finished: The dataset of a search that had ended, if the file holds one.
    """

    def __init__(self, path: pathlib.Path | None, about: Mapping[str, Any], dims: Dims, parameters: Sequence[str]):
        self.path, self.rows, self.finished = path, [], None
        self._about = first_names(dict(about))
        self._dims, self._parameters = dims, list(parameters)
        self._saved = time.monotonic()
        if path is not None and path.exists():
            self._load(path)

    def add(self, **row: Any) -> None:
        """Adds a step, and writes the file every few seconds."""
        self.rows.append({name: np.asarray(row[name], np.float64) for name in self._dims})
        if time.monotonic() - self._saved > SECONDS:
            self.save()

    def dataset(self) -> xr.Dataset:
        """Returns the rows as a labelled dataset."""
        columns = {name: [row[name] for row in self.rows] for name in self._dims}
        variables = {name: (("step", *self._dims[name]), np.stack(rows)) for name, rows in columns.items() if rows}
        coords = {"step": np.arange(len(self.rows)), "parameter": self._parameters}
        attrs = {"jaxbandit": __version__, "commit": commit(), "about": json.dumps(self._about), DONE: 0}
        return xr.Dataset(variables, coords=coords, attrs=attrs)

    def save(self, ds: xr.Dataset | None = None) -> None:
        """Writes the rows, or the final dataset; the file gets its name when it is complete."""
        if self.path is None:
            return
        write(self.dataset() if ds is None else ds, self.path)
        self._saved = time.monotonic()

    def _load(self, path: pathlib.Path) -> None:
        try:
            ds = read(path)
            said = json.loads(ds.attrs["about"])
            if not isinstance(said, dict):
                raise ValueError("its settings are no table")
            if wrong := self._misfit(ds):
                raise ValueError(f"`{wrong}` is missing or has other dimensions")
        except (OSError, KeyError, ValueError, TypeError, RecursionError) as error:
            reason = seal.first_line(error)
            raise ValueError(
                f"{path} is not the trace of a search ({reason}); choose another directory (--out), or move the file"
            ) from None
        differing = sorted(key for key in {*said, *self._about} if said.get(key) != self._about.get(key))
        older = [key for key in differing if key in VERSIONS]
        if older:
            raise ValueError(
                f"{path} was made by another version of jaxbandit ({ds.attrs.get('jaxbandit')}), whose searches have "
                f"other numbers ({older[0]} = {said.get(older[0])!r}, now {self._about.get(older[0])!r}); "
                "choose another directory (--out), or delete the file"
            )
        if differing:
            key = differing[0]
            raise ValueError(
                f"{path} was made with other settings ({key} = {said.get(key)!r}, now {self._about.get(key)!r}); "
                "choose another directory (--out), or delete the file"
            )
        if ds.attrs.get(DONE):
            self.finished = ds
        elif not seal.read(path).verified:
            raise ValueError(
                f"{path} is unverified: an earlier jaxbandit wrote it without a digest, so no search continues from "
                "it; choose another directory (--out), or delete the file"
            )
        self.rows = [{name: ds[name].values[n] for name in self._dims} for n in range(ds.sizes.get("step", 0))]

    def _misfit(self, ds: xr.Dataset) -> str | None:
        """Returns a variable of the rows that a dataset with steps does not hold in the form that ``add`` takes."""
        if not ds.sizes.get("step"):
            return None
        wanted = {name: ("step", *dims) for name, dims in self._dims.items()}
        return next((name for name, dims in wanted.items() if name not in ds or ds[name].dims != dims), None)


def read(path: pathlib.Path) -> xr.Dataset:
    """Reads the dataset of a search; names that it had up to 0.1 become today's."""
    ds, verified = seal.read_dataset(path)
    if not verified:
        warnings.warn(f"{path} is unverified: it has no digest, so damage would not be seen", stacklevel=2)
    names = {name: str(name).replace("world", "environment") for name in [*ds.variables, *ds.dims]}
    ds = ds.rename({name: current for name, current in names.items() if name != current})
    attrs = {key.replace("world", "environment"): value for key, value in ds.attrs.items()}
    return ds.drop_attrs(deep=False).assign_attrs(attrs)


def write(ds: xr.Dataset, path: pathlib.Path) -> None:
    """Writes a dataset as a netCDF file, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Store(path.parent).write(path, seal.dataset_bytes(ds))

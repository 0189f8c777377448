"""Parts of a long computation in a directory: arrays of finished games, so that a killed run continues."""

import pathlib
import warnings

import numpy as np
import xarray as xr

from jaxbandit.store import seal
from jaxbandit.store.directory import Store

Arrays = dict[str, np.ndarray]


class Parts:
    """The parts in a directory; the name of a part says everything that determines its numbers."""

    def __init__(self, directory: str | pathlib.Path):
        self._store = Store(directory)
        self._store.prepare()

    def read(self, name: str) -> tuple[Arrays, float] | None:
        """Returns the arrays of a part and the seconds that its games took; None if there is no whole file."""
        path = self._path(name)
        try:
            ds, verified = seal.read_dataset(path)
        except FileNotFoundError:
            return None
        except seal.BadFileError as error:
            warnings.warn(f"{path} {error}; its games are played again", stacklevel=3)
            return None
        seconds = ds.attrs.get("run_seconds")
        if not verified or ds.attrs.get("name") != name or not isinstance(seconds, int | float | np.number):
            warnings.warn(f"{path} does not hold what its name says; its games are played again", stacklevel=3)
            return None
        return {str(key): values.values for key, values in ds.items()}, float(seconds)

    def write(self, name: str, arrays: Arrays, seconds: float) -> None:
        """Writes a part, either whole or not at all."""
        variables = {key: ([f"{key}_{n}" for n in range(np.ndim(values))], values) for key, values in arrays.items()}
        ds = xr.Dataset(variables, attrs={"name": name, "run_seconds": seconds})
        self._store.write(self._path(name), seal.dataset_bytes(ds))

    def forget(self, prefix: str) -> None:
        """Removes the parts whose names begin with a prefix, when a whole result holds their numbers."""
        for path in self._store.parts.glob(f"{prefix}*.nc"):
            path.unlink(missing_ok=True)

    def _path(self, name: str) -> pathlib.Path:
        return self._store.parts / f"{name}.nc"

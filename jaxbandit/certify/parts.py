"""Parts of a certificate in a directory: games of some seeds in one environment, so that a killed run continues."""

import functools
import hashlib
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.random import PRNG
from jaxbandit.store import seal
from jaxbandit.store.cells import NUMERICS, describe, digest
from jaxbandit.store.directory import Store
from jaxbandit.version import __version__

ROUNDS = 2_000_000  # seed-rounds of a part, some seconds of play
LANES = 64  # the seeds of a part are a multiple of this

Arrays = dict[str, np.ndarray]


def seed_ranges(horizon: int, num_seeds: int) -> Iterator[tuple[int, int]]:
    """Yields the first and the last seed, exclusive, of every part; they do not depend on the number of seeds.

    Example:
      >>> list(seed_ranges(10_000, 400))
      [(0, 192), (192, 384), (384, 400)]
    """
    each = max(LANES, ROUNDS // horizon // LANES * LANES)
    return ((first, min(first + each, num_seeds)) for first in range(0, num_seeds, each))


class Parts:
    """The parts of a certificate in a directory; each file is named by everything that determines its numbers."""

    def __init__(self, directory: pathlib.Path):
        self._store = Store(directory)
        self._store.prepare()
        self._folder = self._store.directory / "parts"
        self._folder.mkdir(exist_ok=True)

    def read(self, name: str) -> tuple[Arrays, float] | None:
        """Returns the arrays of a part and the seconds that its games took; None if there is no whole file."""
        path = self._folder / f"{name}.nc"
        try:
            ds, verified = seal.read_dataset(path)
        except FileNotFoundError:
            return None
        except seal.BadFileError as error:
            warnings.warn(f"{path} {error}; its games are played again", stacklevel=3)
            return None
        if not verified or ds.attrs.get("name") != name:
            warnings.warn(f"{path} is no part of this certificate; its games are played again", stacklevel=3)
            return None
        return {str(key): values.values for key, values in ds.items()}, float(ds.attrs["run_seconds"])

    def write(self, name: str, arrays: Arrays, seconds: float) -> None:
        """Writes a part, either whole or not at all."""
        variables = {key: ([f"{key}_{n}" for n in range(np.ndim(values))], values) for key, values in arrays.items()}
        ds = xr.Dataset(variables, attrs={"name": name, "run_seconds": seconds})
        self._store.write(self._folder / f"{name}.nc", seal.dataset_bytes(ds))


def part_name(policy: Any, environment: Any, **rest: Any) -> str:
    """Returns the name of a part: a digest of the pair, the checks, and the rest that determines its numbers."""
    about = {"policy": describe(policy), "environment": describe(environment), "checks": _checks(), **rest}
    return digest(about | {"numerics": NUMERICS, "prng": PRNG, "version": __version__})


@functools.cache
def _checks() -> str:
    """Returns a digest of the code of the checks: an edited check is another check."""
    files = [pathlib.Path(__file__).with_name(name).read_bytes() for name in ("facts.py", "statements.py")]
    return hashlib.sha256(b"".join(files)).hexdigest()

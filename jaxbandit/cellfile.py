"""The file of a cell: a netCDF that says what it holds, with the last state of its games beside the results."""

import dataclasses
import io
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from jaxbandit import checkpoint
from jaxbandit.checkpoint import Snapshot
from jaxbandit.labels import LONG_NAMES, QUANTILES, variable_dims

FORMAT = 1
_MARK = "jaxbandit_cell"
_STATE = "state"
_CHUNK_BYTES = 1 << 20  # about what is read and checked at once: larger variables are cut along their rounds


class BadFileError(ValueError):
    """A file that is not a whole cell of this format."""


@dataclasses.dataclass(frozen=True)
class Header:
    """What a file says about itself, without its numbers."""

    path: pathlib.Path
    game: str
    first: int
    last: int
    rounds: tuple[int, ...]
    platform: dict[str, str]
    about: dict[str, Any]
    final: tuple[float, float, float, float]  # count, mean, and central sums of squares and cubes of the last regret
    infinite: int  # games that suffered an infinite loss
    variables: tuple[str, ...]
    has_state: bool

    @property
    def num_seeds(self) -> int:
        """Seeds in it."""
        return self.last - self.first


def encode(header: dict[str, Any], variables: dict[str, np.ndarray], state: Snapshot | None) -> bytes:
    """A cell as the bytes of a netCDF-4 file, every block of numbers with its checksum.

    Args:
      header: The fields of ``Header`` that are not in the file anyway.
      variables: [seed, round, ...] each, or their summary.
      state: Where the games stood after the last round.
    """
    # In memory first: HDF5 does not survive a full disk in the middle of a file; bytes do.
    # With h5py, whose dimension scales are netCDF-4's: h5netcdf takes ten times as long for a small file.
    memory = io.BytesIO()
    summary = "regret" not in variables
    coords = {"round": np.asarray(header["rounds"], np.int64), "seed": np.arange(header["first"], header["last"])}
    if summary:
        coords["quantile"] = np.asarray(QUANTILES)
    with h5py.File(memory, "w") as file:
        file.attrs[_MARK] = FORMAT
        file.attrs["header"] = json.dumps(header | {"variables": list(variables)})
        scales: dict[str, h5py.Dataset] = {}
        for name, values in coords.items():
            scales[name] = _scale(file, name, values)
        for name, values in variables.items():
            dims = variable_dims(name, values.ndim, not summary)
            variable = file.create_dataset(name, data=values, **_checked(dims, values))
            variable.attrs["long_name"] = LONG_NAMES.get(name, name)
            for axis, (dim, size) in enumerate(zip(dims, values.shape, strict=True)):
                if dim not in scales:
                    scales[dim] = _scale(file, dim, np.arange(size))
                variable.dims[axis].attach_scale(scales[dim])
        if state is not None:
            about = {"t": state.t, "reached": state.reached}
            packed = np.frombuffer(checkpoint.pack(state.arrays(), about), np.uint8)
            group = file.create_group(_STATE)  # apart, so that a reader of results does not meet it
            _scale(group, "packed", packed)
    return memory.getvalue()


def _scale(place: h5py.Group, name: str, values: np.ndarray) -> h5py.Dataset:
    """A coordinate: the variable of a dimension."""
    made = place.create_dataset(name, data=values)
    made.make_scale(name)
    return made


def read_header(path: pathlib.Path) -> Header:
    """What a file says about itself; ``BadFileError`` if it is cut, foreign or of another format."""
    try:
        with h5py.File(path, "r") as file:
            if _MARK not in file.attrs:
                raise BadFileError("is no cell of a jaxbandit study")
            if int(np.asarray(file.attrs[_MARK]).ravel()[0]) != FORMAT:
                raise BadFileError(f"has format {file.attrs[_MARK]}, this jaxbandit reads {FORMAT}")
            said = json.loads(str(file.attrs["header"]))
            return Header(
                path=path,
                game=said["game"],
                first=said["first"],
                last=said["last"],
                rounds=tuple(said["rounds"]),
                platform=said["platform"],
                about=said["about"],
                final=tuple(said["final"]),
                infinite=said["infinite"],
                variables=tuple(said["variables"]),
                has_state=_STATE in file,
            )
    except BadFileError:
        raise
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise BadFileError(f"is damaged ({str(error).splitlines()[0]})") from None


def read_variables(header: Header) -> dict[str, np.ndarray]:
    """All variables of a file."""
    return {name: read_part(header, name) for name in header.variables}


def read_part(header: Header, name: str, key: Any = ...) -> np.ndarray:
    """A variable of a file, or the part of it at ``key``."""
    try:
        with h5py.File(header.path, "r") as file:
            return np.asarray(file[name][key])  # pyright: ignore[reportIndexIssue]
    except (OSError, KeyError) as error:
        raise BadFileError(
            f"{header.path} is damaged ({str(error).splitlines()[0]}); delete it and run the study again"
        ) from None


def read_shapes(header: Header) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shape and dtype of every variable."""
    with h5py.File(header.path, "r") as file:
        return {name: (file[name].shape, file[name].dtype) for name in header.variables}  # pyright: ignore[reportAttributeAccessIssue]


def read_state(header: Header) -> Snapshot:
    """Where a cell's games stood after its last round."""
    try:
        arrays, about = checkpoint.unpack(read_part(header, f"{_STATE}/packed").tobytes())
    except ValueError as error:
        raise BadFileError(f"the states in {header.path} are damaged ({error}); delete it and run again") from None
    return Snapshot.from_arrays(about["t"], about["reached"], arrays)


def final_moments(regret: np.ndarray) -> tuple[float, float, float, float]:
    """Count, mean, and central sums of squares and cubes of regrets after the last round."""
    mean = float(regret.mean())
    centred = regret - mean
    return float(regret.size), mean, float((centred**2).sum()), float((centred**3).sum())


def _checked(dims: Sequence[str], values: np.ndarray) -> dict[str, Any]:
    """Storage with checksums; nothing for a scalar or an empty array, which cannot have them."""
    if not values.size or not values.ndim:
        return {}
    pieces = {"round": -(-values.nbytes // _CHUNK_BYTES)}
    chunks = tuple(-(-size // pieces.get(dim, 1)) for dim, size in zip(dims, values.shape, strict=True))
    return {"chunks": chunks, "fletcher32": True}

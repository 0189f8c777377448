"""The file of a cell: a netCDF that says what it holds, with the last state of its games beside the results."""

import dataclasses
import functools
import io
import json
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5s, h5t  # pyright: ignore[reportAttributeAccessIssue] (compiled)

from jaxbandit.dataset.labels import LONG_NAMES, QUANTILES, variable_dims
from jaxbandit.engine import Snapshot, pack, unpack

FORMAT = 1
_MARK = "jaxbandit_cell"
_HEADER = "header"
_STATE = "state"
_PACKED = f"{_STATE}/packed"  # in a group, so that a reader of results does not meet it
_WRITABLE = 1  # H5LT_FILE_IMAGE_OPEN_RW
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
    summary = "regret" not in variables
    coords = {"round": np.asarray(header["rounds"], np.int64), "seed": np.arange(header["first"], header["last"])}
    if summary:
        coords["quantile"] = np.asarray(QUANTILES)
    dims = {name: variable_dims(name, values.ndim, not summary) for name, values in variables.items()}
    for name, values in variables.items():
        for dim, size in zip(dims[name], values.shape, strict=True):
            coords.setdefault(dim, np.arange(size))
    content = {name: np.asarray(values, order="C") for name, values in (coords | variables).items()}
    if state is not None:
        about = {"t": state.t, "reached": state.reached}
        content[_PACKED] = np.frombuffer(pack(state.arrays(), about), np.uint8)
    layout = tuple((name, dims.get(name), values.shape, values.dtype) for name, values in content.items())
    # In memory first: HDF5 does not survive a full disk in the middle of a file; bytes do.
    file = h5f.open_file_image(_empty(layout), _WRITABLE)
    text = h5a.create(file, _HEADER.encode(), h5t.py_create(h5py.string_dtype(), logical=True), h5s.create(h5s.SCALAR))
    text.write(np.asarray(json.dumps(header | {"variables": list(variables)}), object))
    for name, values in content.items():
        h5d.open(file, name.encode()).write(h5s.ALL, h5s.ALL, values)
    h5f.flush(file)
    return file.get_file_image()


@functools.lru_cache(64)
def _empty(layout: tuple[tuple[str, tuple[str, ...] | None, tuple[int, ...], np.dtype], ...]) -> bytes:
    """A file with everything but the numbers, a few kB.

    Cells of a sweep differ in those alone: filling in a file takes a third of making it, most of which is h5py's.

    Args:
      layout: Name, dimensions (None: it is one itself), shape and dtype of every array.
    """
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        file.attrs[_MARK] = FORMAT
        for name, dims, shape, dtype in layout:
            made = file.create_dataset(name, shape, dtype, **_checked(dims or (), shape, dtype))
            if dims is None:
                made.make_scale(name.rpartition("/")[2])
                continue
            made.attrs["long_name"] = LONG_NAMES.get(name, name)
            for axis, dim in enumerate(dims):
                made.dims[axis].attach_scale(file[dim])
    return memory.getvalue()


def read_header(path: pathlib.Path) -> Header:
    """What a file says about itself; ``BadFileError`` if it is cut, foreign or of another format."""
    try:
        with h5py.File(path, "r") as file:
            if _MARK not in file.attrs:
                raise BadFileError("is no cell of a jaxbandit study")
            if int(np.asarray(file.attrs[_MARK]).ravel()[0]) != FORMAT:
                raise BadFileError(f"has format {file.attrs[_MARK]}, this jaxbandit reads {FORMAT}")
            said = json.loads(str(file.attrs[_HEADER]))
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
        arrays, about = unpack(read_part(header, _PACKED).tobytes())
    except ValueError as error:
        raise BadFileError(f"the states in {header.path} are damaged ({error}); delete it and run again") from None
    return Snapshot.from_arrays(about["t"], about["reached"], arrays)


def final_moments(regret: np.ndarray) -> tuple[float, float, float, float]:
    """Count, mean, and central sums of squares and cubes of regrets after the last round."""
    mean = float(regret.mean())
    centred = regret - mean
    return float(regret.size), mean, float((centred**2).sum()), float((centred**3).sum())


def _checked(dims: Sequence[str], shape: tuple[int, ...], dtype: np.dtype) -> dict[str, Any]:
    """Storage with checksums; nothing for a coordinate, and for an empty array, which cannot have them."""
    size = math.prod(shape)
    if not dims or not size:
        return {}
    pieces = {"round": -(-size * dtype.itemsize // _CHUNK_BYTES)}
    chunks = tuple(-(-length // pieces.get(dim, 1)) for dim, length in zip(dims, shape, strict=True))
    return {"chunks": chunks, "fletcher32": True}

"""The file of a cell: a netCDF file with a header, the results and the last state of the games."""

import dataclasses
import functools
import io
import json
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.dataset.labels import LONG_NAMES, QUANTILES, variable_dims
from jaxbandit.engine import Snapshot, pack, unpack

FORMAT = 1
_MARK = "jaxbandit_cell"
_HEADER = "header"
_STATE = "state"
_PACKED = f"{_STATE}/packed"  # in a group, so that readers of the results do not see it
_WRITABLE = 1  # H5LT_FILE_IMAGE_OPEN_RW
_CHUNK_BYTES = 1 << 20  # about the size read and checked at once: larger variables are cut along their rounds


class BadFileError(ValueError):
    """The error of a file that is not a whole cell of this format."""


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of a file: its description without its numbers."""

    path: pathlib.Path
    pair: str
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
        """The number of seeds in the file."""
        return self.last - self.first


def encode(header: dict[str, Any], variables: dict[str, np.ndarray], state: Snapshot | None) -> bytes:
    """Encodes a cell as the bytes of a netCDF-4 file, in which every block of numbers has a checksum.

    Args:
      header: The fields of ``Header`` that the other arguments do not determine.
      variables: Arrays [seed, round, ...], or their summary.
      state: The state of the games after the last round; None to leave it out.
    """
    import h5py  # after the first rounds, as everywhere here: a new study reads no file
    from h5py import h5a, h5d, h5f, h5s, h5t  # pyright: ignore[reportAttributeAccessIssue] (compiled)

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
    # The file is made in memory first, because HDF5 cannot handle a disk that fills up in the middle of a file.
    file = h5f.open_file_image(_empty(layout), _WRITABLE)
    text = h5a.create(file, _HEADER.encode(), h5t.py_create(h5py.string_dtype(), logical=True), h5s.create(h5s.SCALAR))
    text.write(np.asarray(json.dumps(header | {"variables": list(variables)}), object))
    for name, values in content.items():
        h5d.open(file, name.encode()).write(h5s.ALL, h5s.ALL, values)
    h5f.flush(file)
    return file.get_file_image()


@functools.lru_cache(64)
def _empty(layout: tuple[tuple[str, tuple[str, ...] | None, tuple[int, ...], np.dtype], ...]) -> bytes:
    """Returns the bytes of a file without its numbers, a few kB.

    Cells of a sweep differ in their numbers alone. Filling in such a file takes a third of the time of making one.

    Args:
      layout: Name, dimensions (None if the array is a dimension itself), shape and dtype of every array.
    """
    import h5py

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
    """Reads the header of a file; raises ``BadFileError`` if the file is cut, foreign or of another format."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if _MARK not in file.attrs:
                raise BadFileError("is no cell of a jaxbandit study")
            if int(np.asarray(file.attrs[_MARK]).ravel()[0]) != FORMAT:
                raise BadFileError(f"has format {file.attrs[_MARK]}, but this jaxbandit reads format {FORMAT}")
            said = json.loads(str(file.attrs[_HEADER]))
            return Header(
                path=path,
                pair=said["game"],
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
    """Reads all variables of a file."""
    return {name: read_part(header, name) for name in header.variables}


def read_part(header: Header, name: str, key: Any = ...) -> np.ndarray:
    """Reads a variable of a file, or its part at ``key``."""
    import h5py

    try:
        with h5py.File(header.path, "r") as file:
            return np.asarray(file[name][key])  # pyright: ignore[reportIndexIssue]
    except (OSError, KeyError) as error:
        raise BadFileError(
            f"{header.path} is damaged ({str(error).splitlines()[0]}); delete it and run the study again"
        ) from None


def read_shapes(header: Header) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Reads the shape and dtype of every variable."""
    import h5py

    with h5py.File(header.path, "r") as file:
        return {name: (file[name].shape, file[name].dtype) for name in header.variables}  # pyright: ignore[reportAttributeAccessIssue]


def read_state(header: Header) -> Snapshot:
    """Reads the state of a cell's games after its last round."""
    try:
        arrays, about = unpack(read_part(header, _PACKED).tobytes())
    except ValueError as error:
        raise BadFileError(
            f"the states in {header.path} are damaged ({error}); delete it and run the study again"
        ) from None
    return Snapshot.from_arrays(about["t"], about["reached"], arrays)


def final_moments(regret: np.ndarray) -> tuple[float, float, float, float]:
    """Returns count, mean, and central sums of squares and cubes of regrets after the last round."""
    mean = float(regret.mean())
    centred = regret - mean
    return float(regret.size), mean, float((centred**2).sum()), float((centred**3).sum())


def _checked(dims: Sequence[str], shape: tuple[int, ...], dtype: np.dtype) -> dict[str, Any]:
    """Returns storage options with checksums; none for coordinates and for empty arrays, which cannot have them."""
    size = math.prod(shape)
    if not dims or not size:
        return {}
    pieces = {"round": -(-size * dtype.itemsize // _CHUNK_BYTES)}
    chunks = tuple(-(-length // pieces.get(dim, 1)) for dim, length in zip(dims, shape, strict=True))
    return {"chunks": chunks, "fletcher32": True}

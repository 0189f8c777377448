"""The file of a cell: a netCDF file with a header, the results and the last state of the games."""

import dataclasses
import functools
import hashlib
import io
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxbandit.dataset.labels import LONG_NAMES, QUANTILES, variable_dims
from jaxbandit.engine import Snapshot, pack, unpack
from jaxbandit.store import seal
from jaxbandit.store.seal import BadFileError as BadFileError

FORMAT = 2  # of the whole directory; cells of format 1 have no digest
UNSEALED = 1
MARK = "jaxbandit_cell"
_HEADER = "header"
_STATE = "state"
_PACKED = f"{_STATE}/packed"  # in a group, so that readers of the results do not see it
_WRITABLE = 1  # H5LT_FILE_IMAGE_OPEN_RW


class MisnamedError(BadFileError):
    """The error of a whole cell under another cell's name; ``name`` is its own."""

    def __init__(self, name: str):
        super().__init__(f"holds another cell, {name}")
        self.name = name


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
    has_state: bool  # whether a longer horizon can continue from it; never if the file is unverified
    verified: bool
    digest: str  # of the file's content, which is compared whenever numbers are read

    @property
    def num_seeds(self) -> int:
        """The number of seeds in the file."""
        return self.last - self.first


def encode(header: dict[str, Any], variables: dict[str, np.ndarray], state: Snapshot | None) -> bytes:
    """Encodes a cell as the bytes of a sealed netCDF-4 file.

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
    return seal.sealed(file.get_file_image())


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
        file.attrs[MARK] = FORMAT
        for name, dims, shape, dtype in layout:
            made = file.create_dataset(name, shape, dtype)
            if dims is None:
                made.make_scale(name.rpartition("/")[2])
                continue
            made.attrs["long_name"] = LONG_NAMES.get(name, name)
            for axis, dim in enumerate(dims):
                made.dims[axis].attach_scale(file[dim])
    return memory.getvalue()


def digest(content: Any) -> str:
    """Returns a short hash of JSON content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def file_name(pair: str, first: int, last: int, rounds: Sequence[int], platform: dict[str, str]) -> str:
    """Returns the name of a cell's file, which everything that determines its numbers is part of."""
    content = {"game": pair, "platform": platform, "seeds": [first, last], "rounds": list(rounds)}
    return f"{pair}-{first}-{last}-{digest(content)}.nc"


def read_header(path: pathlib.Path) -> Header:
    """Reads the header of a whole, verified file and compares it with the file's name and content.

    Raises ``BadFileError`` if the file is damaged, foreign or of another format, ``MisnamedError`` if it is another
    cell.
    """
    found = seal.read(path)
    try:
        with seal.opened(found.content) as file:
            if MARK not in file.attrs:
                raise BadFileError("is no cell of a jaxbandit study")
            expected = FORMAT if found.verified else UNSEALED
            if (stored := int(np.asarray(file.attrs[MARK]).ravel()[0])) != expected:
                if stored == FORMAT:
                    raise BadFileError("is damaged (its digest is missing)")
                raise BadFileError(f"has format {stored}, but this jaxbandit reads format {FORMAT}")
            said = json.loads(str(file.attrs[_HEADER]))
            header = Header(
                path=path,
                pair=said["game"],
                first=said["first"],
                last=said["last"],
                rounds=tuple(said["rounds"]),
                platform=said["platform"],
                about=said["about"],
                final=tuple(map(float, said["final"])),  # pyright: ignore[reportArgumentType]
                infinite=int(said["infinite"]),
                variables=tuple(said["variables"]),
                has_state=_STATE in file and found.verified,
                verified=found.verified,
                digest=found.digest,
            )
            if wrong := next(_contradictions(header, file), None):
                raise BadFileError(f"is damaged ({wrong})")
    except BadFileError:
        raise
    except Exception as error:  # whatever HDF5 and JSON say to content that jaxbandit did not write
        raise BadFileError(f"is damaged ({seal.first_line(error)})") from None
    own = file_name(header.pair, header.first, header.last, header.rounds, header.platform)
    if path.name != own:
        raise MisnamedError(own)
    return header


def _contradictions(header: Header, file: Any) -> Iterator[str]:
    """Yields what does not fit in a header, or between the header and the arrays of its file."""
    if digest(header.about) != header.pair:
        yield "its description does not fit its hash"
    if not (type(header.first) is type(header.last) is int and 0 <= header.first < header.last):
        yield f"its seeds are {header.first} to {header.last}"
    rounds = np.asarray(header.rounds)
    if rounds.dtype.kind != "i" or not rounds.size or rounds[0] < 1 or (np.diff(rounds) <= 0).any():
        yield "its rounds do not increase"
    if len(header.final) != 4 or not {"regret", "regret_mean"} & set(header.variables):
        yield "it has no regret"
    if not np.array_equal(file["round"][:], rounds):
        yield "its rounds are not those of its header"
    seeds = file["seed"]
    if seeds.shape != (header.num_seeds,) or (seeds[:] != np.arange(header.first, header.last)).any():
        yield "its seeds are not those of its header"
    levels = file["quantile"][:].tolist() if "quantile" in file else []
    if levels != list(QUANTILES[: len(levels)]):
        yield f"its quantiles are {levels}"
    sizes = {"seed": header.num_seeds, "round": rounds.size, "quantile": len(levels)}
    for name in header.variables:
        shape = file[name].shape
        dims = variable_dims(name, len(shape), "regret" in header.variables)
        if len(dims) != len(shape) or any(sizes.get(dim, n) != n for dim, n in zip(dims, shape, strict=True)):
            yield f"{name} has shape {shape}"
        if file[name].dtype.kind not in "iuf":
            yield f"{name} holds no numbers"


def _read(header: Header, take: Any) -> Any:
    """Returns ``take(file)`` of a cell, if its content is still the one that the header was read from."""
    import h5py

    try:
        found = seal.read(header.path)
        if found.digest != header.digest:
            raise BadFileError("has changed since it was opened")
        with h5py.File(io.BytesIO(found.content), "r") as file:  # checked when its header was read
            return take(file)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        said = str(error) if isinstance(error, BadFileError) else f"is damaged ({seal.first_line(error)})"
        raise BadFileError(f"{header.path} {said}; delete it and run the study again") from None


def read_variables(header: Header) -> dict[str, np.ndarray]:
    """Reads all variables of a file."""
    return _read(header, lambda file: {name: _values(name, file[name][...]) for name in header.variables})


def read_part(header: Header, name: str, key: Any = ...) -> np.ndarray:
    """Reads a variable of a file, or its part at ``key``."""
    return _read(header, lambda file: _values(name, file[name][key]))


def _values(name: str, values: np.ndarray) -> np.ndarray:
    """Returns values as they are now kept: earlier versions kept fewer levels of quantiles, the others are NaN."""
    values = np.asarray(values)
    missing = len(QUANTILES) - len(values) if name == "regret_quantile" else 0
    return np.concatenate([values, np.full((missing, *values.shape[1:]), np.nan)]) if missing else values


def read_shapes(header: Header) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Reads the shape and dtype of every variable."""
    return _read(header, lambda file: {name: (file[name].shape, file[name].dtype) for name in header.variables})


def read_state(header: Header) -> Snapshot:
    """Reads the state of a cell's games after its last round."""
    try:
        arrays, about = unpack(read_part(header, _PACKED).tobytes())
        return Snapshot.from_arrays(about["t"], about["reached"], arrays)
    except BadFileError:
        raise
    except (ValueError, KeyError) as error:
        raise BadFileError(
            f"the states in {header.path} are damaged ({error}); delete it and run the study again"
        ) from None


def final_moments(regret: np.ndarray) -> tuple[float, float, float, float]:
    """Returns count, mean, and central sums of squares and cubes of regrets after the last round."""
    mean = float(regret.mean())
    centred = regret - mean
    return float(regret.size), mean, float((centred**2).sum()), float((centred**3).sum())

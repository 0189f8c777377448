"""Readers of measured tables, one loss per round and arm: NumPy, CSV, TSV and Parquet files, ASlib scenarios."""

import dataclasses
import os
import pathlib
import stat
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit.environments.measured import arm_names, as_table
from jaxbandit.environments.replay import Replay
from jaxbandit.tables import aslib, delimited, npz

TABLE_FIELDS = {"replay": "losses", "scheduled": "means"}  # the field that an entry's ``table`` file holds
TABLE_OPTIONS = ("key", "arms", "header", "delimiter", "index")  # keys of such an entry that ``read_table`` receives
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ""}  # a .txt file has no usual one
_ENDINGS = (".npy", ".npz", ".csv", ".tsv", ".parquet")
_KINDS = ".npy, .npz, .csv, .tsv, .parquet, .txt with a delimiter, or an ASlib scenario folder"


@dataclasses.dataclass(frozen=True)
class Table:
    """A measured table, as read from its file.

    Attributes:
      losses: [T, K] float64; one row per round, one column per arm.
      arms: Names of the columns.
      name: The table's name in results: the file's name without its ending, and the key of the array.
      rewards: Whether the source declares that larger is better.
    """

    losses: np.ndarray
    arms: tuple[str, ...]
    name: str
    rewards: bool = False

    def replay(self, **options: Any) -> Replay:
        """Returns the environment that replays this table; ``options`` are fields of ``Replay``."""
        return Replay(losses=self.losses, **{"name": self.name, "rewards": self.rewards} | options)


def read_table(
    path: str | pathlib.Path,
    *,
    key: str | None = None,
    arms: Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    index: str | bool | None = None,
    missing: bool = False,
) -> Table:
    r"""Reads a whole table of losses; raises ``ValueError`` if any part of it is invalid.

    Args:
      path: A ``.npy``, ``.npz``, ``.csv``, ``.tsv`` or ``.parquet`` file, or a ``.txt`` file with a ``delimiter``, with
        one row per round and one column per arm; or an ASlib scenario folder. Of a scenario, rounds are the instances
        and arms the algorithms in order of appearance, runs that did not end with status ok count as ten times the
        cutoff (PAR10), and repetitions are averaged.
      key: The array of an ``.npz`` file; default ``losses``, or the only table in it.
      arms: The columns to keep, by name and in this order; default all.
      header: Whether a ``.csv``, ``.tsv`` or ``.txt`` starts with the arms' names. By default it must, and a first line
        of numbers is an error, because the numbers could be names or a round.
      delimiter: The sign between entries of a ``.csv``, ``.tsv`` or ``.txt``; default a comma, or a tab in a ``.tsv``.
      index: The column that numbers or names the rounds and is no arm: its name, or True for the first column.
      missing: Whether missing, NaN and infinite entries are read as NaN; otherwise they are errors.

    Example:
      >>> import pathlib, tempfile, jaxbandit as jb
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "latency.csv"
      >>> _ = path.write_text("paris,tokyo\n0.25,0.5\n2.25,0.5\n")
      >>> jb.read_table(path).arms
      ('paris', 'tokyo')
      >>> jb.read_table(path).replay(order="resampled").means(1).tolist()
      [1.25, 0.5]
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"read_table reads a file, got {type(path).__name__}; replay an array: jb.Replay(losses=...)")
    path = pathlib.Path(path)
    where = str(path)
    suffix = path.suffix.lower()
    if key is not None and suffix != ".npz":
        raise ValueError(f"key={key!r} names an array of an .npz file, but {where} is not one; leave key out")
    for option, value in (("header", header), ("delimiter", delimiter)):
        if value is not None and suffix not in _DELIMITERS:
            raise ValueError(
                f"{option}={value!r} is for .csv, .tsv and .txt files, but {where} is none of them; leave {option} out"
            )
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f'delimiter must be one sign such as ";", got {delimiter!r}; leave it out for the default')
    if suffix == ".txt" and delimiter is None:
        raise ValueError(f'{where} does not say what is between its entries; pass delimiter, e.g. delimiter=";"')
    try:
        found = _read(path, suffix, key, header, delimiter or _DELIMITERS.get(suffix, ""))
    except FileNotFoundError:
        raise ValueError(f"{where} does not exist; give the path of a table: {_KINDS}") from None
    except (OSError, EOFError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise ValueError(f"{where} cannot be read: {error}") from None
    names = found.arms or arm_names(np.shape(found.values)[-1] if np.ndim(found.values) else 0)
    values = found.values
    if index is not None and index is not False:
        names, values = _without_index(where, names, values, index)
    _check_names(where, names)
    if arms is not None:
        place = {name: n for n, name in enumerate(names)}
        chosen = [_index(where, place, arm) for arm in arms]
        values = as_table(where, values, names, missing=True)[:, chosen]  # dropped columns may have missing entries
        names = tuple(names[n] for n in chosen)
    losses = as_table(where, values, names, missing=missing)
    losses.flags.writeable = False
    return Table(losses, tuple(names), found.name, found.rewards)


def replay_fields(values: dict[str, Any], directory: pathlib.Path) -> dict[str, Any]:
    """Returns the fields of a study's ``replay`` entry; ``table`` names a file relative to the study's directory."""
    read, values = _named_table("replay", values, directory)
    if read is None:
        return values
    scale = values.get("scale")
    if scale is not None:
        swept = [_scale(entry, read) for entry in scale] if isinstance(scale, list) else _scale(scale, read)
        values = values | {"scale": swept}
    return {"losses": read.losses, "name": read.name, "rewards": read.rewards} | values


def each_table(entry: Mapping[str, Any], directory: pathlib.Path, rounds: int) -> list[dict[str, Any]]:
    """Expands a ``replay`` entry whose ``table`` is a pattern such as ``*.npz`` into an entry for each table.

    The label is the file's name, with the name of the array if an archive has several tables. A table that cannot be
    read, or that has fewer rows than ``rounds`` in stored order, is left out with a warning.
    """
    pattern = entry.get("table")
    if entry.get("name") != "replay" or not isinstance(pattern, str) or not set(pattern) & set("*?["):
        return [dict(entry)]
    options = {option: entry[option] for option in TABLE_OPTIONS if option in entry}
    found, whole = [], pathlib.Path(pattern)
    if whole.is_absolute():
        directory, pattern = pathlib.Path(whole.anchor), str(whole.relative_to(whole.anchor))
    for path in sorted(directory.glob(pattern)):
        if path.suffix.lower() not in _ENDINGS and not (path / "description.txt").is_file():
            continue
        several = npz.tables_in(path) if path.suffix.lower() == ".npz" and "key" not in entry else []
        for key in several if len(several) > 1 else [None]:
            name, more = (path.name, "") if key is None else (f"{path.name}, {key},", f":{key}")
            read: dict[str, Any] = options if key is None else options | {"key": key}
            try:
                rows = read_table(path, **read).losses.shape[0]
                if entry.get("order", "stored") == "stored" and rows < rounds:
                    raise ValueError(f"in stored order its {rows} rows are too few for {rounds} rounds")
            except ValueError as error:
                warnings.warn(f"{name} is left out: {error}", stacklevel=2)
                continue
            label = {} if "label" in entry else {"label": path.stem + more}
            place = path if whole.is_absolute() else path.relative_to(directory)
            found.append({**entry, **read, **label, "table": str(place)})
    if not found:
        raise ValueError(f"no usable table of {rounds} rounds matches {pattern!r} in {directory}; tables are {_KINDS}")
    return found


def _scale(scale: Any, table: Table) -> Any:
    """Returns a number unchanged, and for ``"99%"`` the scale that makes that share of the losses at most 1 in size."""
    if not isinstance(scale, str):
        return scale
    try:
        share = float(scale.rstrip("% ")) / 100
    except ValueError:
        share = 0.0
    if not (scale.endswith("%") and 0 < share < 1):
        raise ValueError(f'replay.scale must be a number or a share such as "99%", got {scale!r}')
    size = float(np.quantile(np.abs(table.losses), share))
    if not size:
        raise ValueError(f"replay.scale = {scale!r}: that share of losses of {table.name} is 0; give scale a number")
    return 1 / size


def scheduled_fields(values: dict[str, Any], directory: pathlib.Path) -> dict[str, Any]:
    """Returns the fields of a study's ``scheduled`` entry; ``table`` may name a file of means."""
    read, values = _named_table("scheduled", values, directory)
    return values if read is None else {"means": read.losses} | values


def _named_table(name: str, values: dict[str, Any], directory: pathlib.Path) -> tuple[Table | None, dict[str, Any]]:
    """Returns the table that an entry names (None if it names none) and the entry's other values."""
    field = TABLE_FIELDS[name]
    if "table" not in values:
        if field not in values:
            raise ValueError(f'{name} needs table = "path of a file", or {field} = [[...], ...]')
        return None, values
    values = dict(values)
    path = values.pop("table")
    if not isinstance(path, str):
        raise ValueError(f"{name}: table must be the path of one file, got {path!r}; give every table its own entry")
    if field in values:
        raise ValueError(f"{name}: both {field} and table ({path}) are given; keep one")
    options = {option: values.pop(option) for option in TABLE_OPTIONS if option in values}
    return read_table(directory / path, **options), values


@dataclasses.dataclass(frozen=True)
class _Found:
    """The unchecked result of a reader."""

    values: Any
    arms: Sequence[str]
    name: str
    rewards: bool = False


def _read(path: pathlib.Path, suffix: str, key: str | None, header: bool | None, delimiter: str) -> _Found:
    if not path.is_dir():
        _check_file(path)
    else:
        runs = aslib.read_scenario(path)
        return _Found(runs.values, runs.algorithms, path.resolve().name, runs.maximise)
    match suffix:
        case ".npy":
            return _Found(npz.read_npy(path), (), path.stem)
        case ".npz":
            return _Found(*npz.read_npz(path, key))
        case ".csv" | ".tsv" | ".txt":
            names, rows = delimited.read(path, header, delimiter)
            return _Found(rows, names, path.stem)
        case ".parquet":
            return _from_parquet(path)
    path.stat()
    raise ValueError(f"{path} is not a table file of a known kind; tables are {_KINDS}")


def _from_parquet(path: pathlib.Path) -> _Found:
    path.stat()
    try:
        import pandas
        import pyarrow.parquet
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        raise ValueError(
            f"{path}: reading .parquet needs {package}; install it: pip install 'jaxbandit[data]'"
        ) from None
    try:
        about = pyarrow.parquet.read_metadata(path)
        unpacked = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
        npz.check_bytes(path, max(unpacked, about.num_rows * about.num_columns * 8))
        frame = pandas.read_parquet(path, engine="pyarrow")
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    numeric = all(pandas.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)
    values = frame.to_numpy(dtype=float, na_value=np.nan) if numeric else frame.to_numpy(dtype=object, na_value=None)
    return _Found(values, [str(name) for name in frame.columns], path.stem)


def _check_names(where: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for n, name in enumerate(names):
        if not name:
            raise ValueError(
                f"{where}: column {n + 1} has no name; name every arm, or pass index=True if it numbers the rounds"
            )
        if name in seen:
            raise ValueError(f"{where}: two columns are named {name!r}; name every arm differently")
        seen.add(name)


def _without_index(where: str, names: Sequence[str], values: Any, index: str | bool) -> tuple[list[str], np.ndarray]:
    """Returns names and values of a table without the column that numbers the rounds."""
    if np.ndim(values) != 2 or len(names) < 2:
        raise ValueError(f"{where} has no column besides an index; leave index out")
    at = 0 if index is True else _index(where, {name: n for n, name in enumerate(names)}, str(index))
    return [name for n, name in enumerate(names) if n != at], np.delete(np.asarray(values), at, axis=1)


def _index(where: str, place: Mapping[str, int], arm: str) -> int:
    if arm not in place:
        listed = [*list(place)[:100], *(["..."] if len(place) > 100 else [])]
        raise ValueError(f"{where} has no arm {arm!r}; it has {', '.join(listed)}")
    return place[arm]


def _check_file(path: pathlib.Path) -> None:
    """Refuses pipes and devices, which may never end, and files larger than memory."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{path} is no regular file; give the path of a table: {_KINDS}")
    npz.check_bytes(path, about.st_size)

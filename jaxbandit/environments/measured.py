"""Checks of tables of measured losses, with messages for invalid ones, and the sign of their tails."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


def as_table(where: str, values: Any, arms: Sequence[str] = (), *, missing: bool = False) -> np.ndarray:
    """Returns ``values`` as a float64 table [T, K], one row per round and one column per arm.

    Args:
      where: The beginning of error messages: a file or a field.
      values: Anything that NumPy converts to a table.
      arms: Names of the columns, for messages.
      missing: Whether NaN and infinite entries become NaN; otherwise they are errors.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{where} has rows of different lengths; give every round one loss per arm") from None
    if array.ndim != 2:
        raise ValueError(f"{where} must be a table [rounds, arms], got shape {array.shape}; give every arm a column")
    if 0 in array.shape:
        raise ValueError(f"{where} is empty, of shape {array.shape}; give at least one round and one arm")
    table = _numbers(where, array, arms)
    finite = np.isfinite(table)
    if finite.all():
        return table
    if missing:
        return np.where(finite, table, np.nan)
    place = tuple(np.argwhere(~finite)[0])
    count = table.size - int(finite.sum())
    others = f" and at {count - 1} more places" if count > 1 else ""
    raise ValueError(
        f"{where} holds {table[place]} in {_place(place, array.shape, arms)}{others}; "
        "a replay needs every loss, so fill in such entries, or drop their rounds or arms"
    )


def arm_names(count: int) -> tuple[str, ...]:
    """Returns names for columns without names: ``arm0``, ``arm1``, ..."""
    return tuple(f"arm{n}" for n in range(count))


class Truncated(NamedTuple):
    """The least value of ``E[l 1{|l| > M}]`` over M >= 0, under the empirical law."""

    least: float  # at most 0, which is the value at M = max |l|
    threshold: float  # the M of the least value
    z: float  # the least of sum / sqrt(sum of squares) over the losses beyond M


def truncated_mean(values: np.ndarray) -> Truncated:
    """Returns the least truncated mean over all M: the mean of the losses beyond M, with the others as 0."""
    order = np.argsort(-np.abs(values), kind="stable")
    size, beyond = np.abs(values)[order], values[order]
    # M lies between two different sizes: losses of equal size are truncated together.
    cut = np.append(size[1:] < size[:-1], True) & (size > 0)
    sums, squares = np.cumsum(beyond)[cut], np.cumsum(beyond**2)[cut]
    if sums.size == 0 or sums.min() >= 0:
        return Truncated(0.0, float(size[0]), 0.0)
    worst = int(np.argmin(sums))
    return Truncated(
        sums[worst] / values.size, float(np.append(size[1:], 0.0)[cut][worst]), (sums / np.sqrt(squares)).min()
    )


def _numbers(where: str, array: np.ndarray, arms: Sequence[str]) -> np.ndarray:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind not in "USO":
        raise ValueError(f"{where} holds entries of type {array.dtype}; give real numbers")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        pass  # some entry is text or missing: look at each
    table = np.empty(array.shape)
    for place, entry in np.ndenumerate(array):
        table[place] = _number(where, entry, place, array.shape, arms)
    return table


def _number(where: str, entry: Any, place: tuple[int, ...], shape: tuple[int, ...], arms: Sequence[str]) -> float:
    if entry is None or (isinstance(entry, str) and entry.strip().lower() in ("", "?", "na", "null")):
        return np.nan
    try:
        return float(entry)
    except (TypeError, ValueError):
        index = f" (index={arms[0]!r} leaves that column out)" if arms and place[-1] == 0 else ""
        problem = f"{where} holds {str(entry)[:40]!r} in {_place(place, shape, arms)}"
        raise ValueError(f"{problem}; give a number, or drop its row or column{index}") from None


def _place(place: tuple[int, ...], shape: tuple[int, ...], arms: Sequence[str]) -> str:
    """Returns row and column of an entry as text; rows count from 1, as rounds do."""
    row, column = place
    name = f" ({arms[column]!r})" if arms else ""
    return f"row {row + 1} of {shape[0]}, column {column + 1} of {shape[1]}{name}"

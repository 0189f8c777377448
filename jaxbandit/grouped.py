"""Primitives on grouped values: a large array over arms as groups of arms, with an entry of every group side by side.

An array of 100 arms is 4 groups of 25, held as 25 entries [4, lanes]: a loop over groups and lanes then unrolls
25 arms, however many there are. A sum over arms is one over entries inside the loop and, after it, one over
groups. Arrays [groups, ...] are grouped by their leading axis. A rule returns None where it does not apply.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from jaxbandit.arms import UNGROUPED, grouping
from jaxbandit.types import Array
from jaxbandit.unrolled import ELEMENTWISE, REDUCTIONS, fold, map_entries, object_array


@dataclasses.dataclass
class Grouped:
    """A value per lane of shape [n] or [groups, ...]; arm ``i`` of [n] is entry ``i % entries`` of its group.

    The last group of [n] may end with arms that do not exist: reductions leave them out.
    """

    entries: np.ndarray  # of [groups, lanes]
    shape: tuple[int, ...]

    @property
    def num_groups(self) -> int:
        """How many groups."""
        return self.entries.flat[0].shape[-2]


@dataclasses.dataclass
class Partial:
    """A reduction over groups of what is done within each."""

    entries: np.ndarray  # of [groups, lanes]
    combine: Callable

    def over_groups(self, vectors: np.ndarray) -> np.ndarray:
        """The reduction, given its entries."""
        return map_entries(lambda vector: fold(self.combine, list(vector)), vectors)


def families(shapes: Sequence[tuple[int, ...]]) -> set[int]:
    """The numbers of groups into which large vectors of these shapes fall."""
    return {grouping(shape[0])[0] for shape in shapes if len(shape) == 1 and shape[0] > UNGROUPED}


def entries_shape(shape: tuple[int, ...], groups: int) -> tuple[int, ...] | None:
    """The shape of a value's entries; None if it does not fall into so many groups."""
    if len(shape) == 1 and shape[0] > UNGROUPED and grouping(shape[0])[0] == groups:
        return (grouping(shape[0])[1],)
    return shape[1:] if shape[0] == groups and math.prod(shape[1:]) <= UNGROUPED else None


def split(array: Array, shape: tuple[int, ...], groups: int) -> np.ndarray:
    """The entries of an array ``shape + [lanes]``."""
    inner = entries_shape(shape, groups)
    assert inner is not None
    array = array.reshape(-1, array.shape[-1])
    missing = groups * math.prod(inner) - array.shape[0]
    if missing:
        array = jnp.pad(array, [(0, missing), (0, 0)])
    array = array.reshape(groups, -1, array.shape[-1])
    return object_array(inner, (array[:, n] for n in range(array.shape[1])))


def whole(value: Grouped) -> Array:
    """The array ``shape + [lanes]``."""
    array = jnp.stack(list(value.entries.flat), axis=1)
    array = array.reshape(-1, array.shape[-1])
    return array[: math.prod(value.shape)].reshape(*value.shape, array.shape[-1])


def apply_grouped(eqn, operands: Sequence[np.ndarray], groups: int) -> Grouped | Partial | None:
    """Evaluates an equation whose arrays fall into groups; operands of shape () are single entries."""
    name, shape = eqn.primitive.name, eqn.outvars[0].aval.shape
    shapes = [var.aval.shape for var in eqn.invars]
    if name in REDUCTIONS:
        return _reduced(eqn, operands[0], shapes[0], groups)
    inner = entries_shape(shape, groups) if shape else None
    if len(eqn.outvars) > 1 or inner is None:
        return None
    if name in ELEMENTWISE and all(other in ((), shape) for other in shapes):
        bind = functools.partial(eqn.primitive.bind, **eqn.params)
        return Grouped(np.broadcast_to(map_entries(bind, *operands), inner), shape)
    if name in _RULES:
        entries = _RULES[name](eqn.params, shapes, shape, groups, *operands)
        return None if entries is None else Grouped(entries, shape)
    return None


def _reduced(eqn, entries: np.ndarray, shape: tuple[int, ...], groups: int) -> Grouped | Partial:
    combine, identity = REDUCTIONS[eqn.primitive.name]
    if len(shape) == 1 and shape[0] != groups:
        axes = (0,)
        entries = _filled(entries, shape, groups, identity(entries.flat[0].dtype))
    else:
        axes = tuple(axis - 1 for axis in eqn.params["axes"] if axis)
    kept = tuple(axis for axis in range(entries.ndim) if axis not in axes)
    rows = entries.transpose(*kept, *axes).reshape(*(entries.shape[axis] for axis in kept), -1)
    out = object_array(rows.shape[:-1], (fold(combine, list(rows[index])) for index in np.ndindex(rows.shape[:-1])))
    return Partial(out, combine) if 0 in eqn.params["axes"] else Grouped(out, eqn.outvars[0].aval.shape)


def _filled(entries: np.ndarray, shape: tuple[int, ...], groups: int, fill) -> np.ndarray:
    """Entries with ``fill`` for the arms that do not exist."""
    place = np.arange(groups)[:, None] * entries.size + np.arange(entries.size)  # of each arm
    exists = place < math.prod(shape)
    vectors = entries.flat
    return object_array(
        entries.shape,
        (
            vector if here.all() else jnp.where(here[:, None], vector, jnp.asarray(fill, vector.dtype))
            for vector, here in zip(vectors, exists.T, strict=True)
        ),
    )


def _is_same_order(shapes: Sequence[tuple[int, ...]], shape: tuple[int, ...], groups: int) -> bool:
    """Whether the first operand's arms are where the result's are."""
    inner = [entries_shape(each, groups) for each in (shapes[0], shape)]
    return None not in inner and math.prod(inner[0]) == math.prod(inner[1])  # type: ignore[arg-type]


def _broadcast(params: dict, shapes, shape, groups: int, entries: np.ndarray) -> np.ndarray | None:
    inner, dims = entries_shape(shape, groups), params["broadcast_dimensions"]
    assert inner is not None
    if shapes[0] == ():
        return np.broadcast_to(entries, inner)
    if dims[0] != 0 or shapes[0][0] != shape[0]:
        return None
    sizes = [1] * len(inner)
    for axis, size in zip(dims[1:], shapes[0][1:], strict=True):
        sizes[axis - 1] = size
    return np.broadcast_to(entries.reshape(sizes) if len(shape) > 1 else entries, inner)


def _reshape(params: dict, shapes, shape, groups: int, entries: np.ndarray) -> np.ndarray | None:
    if params["dimensions"] is not None or not _is_same_order(shapes, shape, groups):
        return None
    return entries.reshape(entries_shape(shape, groups))  # type: ignore[arg-type]


def _slice(params: dict, shapes, shape, groups: int, entries: np.ndarray) -> np.ndarray | None:
    strides = params["strides"] or (1,) * len(shape)
    ranges = list(map(slice, params["start_indices"], params["limit_indices"], strides))
    if len(shape) == 1 and shape != (groups,):
        starts = ranges[0].start == 0 and strides[0] == 1
        return entries if starts and _is_same_order(shapes, shape, groups) else None
    if shapes[0][0] != groups or shape[0] != groups:
        return None
    return entries[tuple(ranges[1:])]


def _pad(params: dict, shapes, shape, groups: int, entries: np.ndarray, fill: np.ndarray) -> np.ndarray | None:
    (low, high, between), *others = params["padding_config"]
    if others or low or between or high < 0 or not _is_same_order(shapes, shape, groups):
        return None
    return _filled(entries, shapes[0], groups, fill[()])


def _squeeze(params: dict, shapes, shape, groups: int, entries: np.ndarray) -> np.ndarray | None:
    if 0 in params["dimensions"]:
        return None
    return entries.squeeze(tuple(axis - 1 for axis in params["dimensions"]))


def _concatenate(params: dict, shapes, shape, groups: int, *parts: np.ndarray) -> np.ndarray | None:
    return np.concatenate(parts, params["dimension"] - 1) if params["dimension"] else None


def _stack(params: dict, shapes, shape, groups: int, *parts: np.ndarray) -> np.ndarray | None:
    return np.stack(parts, params["axis"] - 1) if params["axis"] else None


_RULES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "pad": _pad,
    "reshape": _reshape,
    "slice": _slice,
    "squeeze": _squeeze,
    "stack": _stack,
}

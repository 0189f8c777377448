"""Values of many games, lanes last, and one equation of a jaxpr evaluated on them.

A value is the same in every lane (``Shared``), one array with the lanes last (``Stacked``), or, if it is
small, taken apart into vectors over lanes (``Unrolled``; its rules are in ``unrolled``), or, if it is a large
vector, into vectors over groups and lanes (``Grouped``, in ``grouped``).
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core
from jax.lax import GatherScatterMode

from jaxbandit import fusion, grouped
from jaxbandit.grouped import Grouped
from jaxbandit.types import Array
from jaxbandit.unrolled import ARGS, ELEMENTWISE, MOVES, REDUCTIONS, RULES, fold, map_entries, object_array

UNROLL = 32  # arrays of up to this many entries are taken apart
DEAR = 20  # additions that a division or a logarithm costs, about
_DEAR = frozenset(("div", "exp", "exp2", "expm1", "log", "log1p", "pow", "rsqrt", "sinh", "cosh", "sqrt", "tanh"))


@functools.partial(jax.tree_util.register_dataclass, data_fields=["array"], meta_fields=[])
@dataclasses.dataclass
class Shared:
    """A value that is the same in every lane; an array of the game's shape."""

    array: Any


@dataclasses.dataclass
class Stacked:
    """A value per lane in one array of the game's shape, lanes last."""

    array: Array
    work: int = 0  # operations per entry since the last kernel: XLA may repeat them wherever the value is used


@dataclasses.dataclass
class Unrolled:
    """A value per lane as a NumPy array of the game's shape whose entries are vectors [lanes]."""

    entries: np.ndarray


Value = Shared | Stacked | Unrolled | Grouped


def is_shared(leaf: Any) -> bool:
    """Whether a tree leaf is the same in every lane."""
    return isinstance(leaf, Shared)


def example(leaf: Shared | Array) -> jax.ShapeDtypeStruct:
    """Shape and dtype of an argument of ``over_lanes`` in one game."""
    if isinstance(leaf, Shared):
        return jax.ShapeDtypeStruct(leaf.array.shape, leaf.array.dtype)
    return jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype)


class NotUnrolledError(Exception):
    """A value inside a loop would have to stay whole."""


def apply(eqn, operands: list[Value], vector: tuple[int, ...]) -> list[Value]:
    """Evaluates an equation; ``vector`` is the shape of one scalar of the game, ``(2, lanes)`` inside a loop."""
    name, bind = eqn.primitive.name, functools.partial(_bind, eqn)
    operands = [_empty(var) or operand for var, operand in zip(eqn.invars, operands, strict=True)]
    if eqn.outvars and all(map(_empty, eqn.outvars)):
        return [out for out in map(_empty, eqn.outvars) if out]
    shared = [operand.array for operand in operands if isinstance(operand, Shared)]
    if len(shared) == len(operands):
        return [Shared(out) for out in bind(*shared)]
    small = len(vector) > 1 or all(is_small(var.aval.shape) for var in (*eqn.invars, *eqn.outvars))
    elementwise = name in ELEMENTWISE and _keeps_shape(eqn)
    if small and elementwise:
        unrolled = [entries(operand, vector) for operand in operands]
        return [Unrolled(map_entries(lambda *vectors: bind(*vectors)[0], *unrolled))]
    moves = name in MOVES and not any(isinstance(operand, Stacked | Grouped) for operand in operands)
    if (small or moves) and name in RULES:
        out = RULES[name](eqn, *(entries(operand, vector) for operand in operands))
        if out is not None:
            return [Unrolled(out)]
    if len(vector) > 1:
        raise NotUnrolledError(name)
    if elementwise:
        rank = len(eqn.outvars[0].aval.shape) + 1
        aligned = [_align(spread(operand, vector), rank) for operand in operands]
        work = sum(operand.work for operand in operands if isinstance(operand, Stacked))
        return [Stacked(bind(*jnp.broadcast_arrays(*aligned))[0], work + (DEAR if name in _DEAR else 1))]
    if name == "broadcast_in_dim":
        shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
        array = _done(operands[0], vector, 3)
        return [Stacked(lax.broadcast_in_dim(array, (*shape, *vector), (*dims, len(shape))))]
    if name in REDUCTIONS:
        return [Stacked(_reduced(name, _done(operands[0], vector, DEAR), eqn.params["axes"]))]
    if name in ("scatter", "scatter-add") and _writes_once(eqn):
        return [Stacked(_write_once(eqn, *(spread(operand, vector) for operand in operands)))]
    if name == "dynamic_slice":
        return [Stacked(_read_once(eqn.params["slice_sizes"], *(spread(operand, vector) for operand in operands)))]
    if name in _MOVED:
        work = max(operand.work if isinstance(operand, Stacked) else 0 for operand in operands)
        return [Stacked(_MOVED[name](eqn.params, *(spread(operand, vector) for operand in operands)), work)]
    return _by_vmap(eqn, operands, vector)


def written_out(eqn) -> core.ClosedJaxpr | None:
    """What finds a place in a large vector or writes to one, in terms of what falls into groups; None for all else."""
    name, vector = eqn.primitive.name, eqn.invars[0].aval if eqn.invars else None
    if vector is None or len(vector.shape) != 1 or is_small(vector.shape):
        return None
    if name in ARGS:
        written = functools.partial(_arg, name, eqn.params["index_dtype"])
    elif name in ("scatter", "scatter-add") and _writes_a_row(eqn):
        written = functools.partial(_write, name)
    else:
        return None
    return jax.make_jaxpr(written)(*(var.aval for var in eqn.invars))


# What moves entries of a large value about; ``vmap`` would put the lanes first and turn them back.
_MOVED = {
    "concatenate": lambda params, *arrays: fusion.once(lax.concatenate(arrays, params["dimension"])),
    "reshape": lambda params, array: array.reshape(*params["new_sizes"], array.shape[-1]),
    "rev": lambda params, array: lax.rev(array, params["dimensions"]),
    "slice": lambda params, array: array[_slices(**params)],
    "squeeze": lambda params, array: lax.squeeze(array, params["dimensions"]),
    "transpose": lambda params, array: lax.transpose(array, (*params["permutation"], array.ndim - 1)),
}


def _slices(start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None) -> tuple:
    return tuple(map(slice, start_indices, limit_indices, strides or [None] * len(start_indices)))


def _arg(name: str, dtype, values: Array) -> Array:
    """The first place of the extreme value, or of a NaN."""
    best = values == (jnp.max if name == "argmax" else jnp.min)(values)
    if jnp.issubdtype(values.dtype, jnp.floating):
        best = best | jnp.isnan(values)
    return jnp.min(jnp.where(best, jnp.arange(values.size, dtype=dtype), values.size)).astype(dtype)


def _write(name: str, values: Array, index: Array, update: Array) -> Array:
    here = jnp.arange(values.size, dtype=index.dtype) == index[0]
    return jnp.where(here, values + update if name == "scatter-add" else update, values)


def _reduced(name: str, array: Array, axes: Sequence[int]) -> Array:
    """A reduction as additions of slices, UNROLL at a time: XLA's own leaves the vector unit."""
    combine, identity = REDUCTIONS[name]
    array = jnp.moveaxis(array, axes, range(len(axes)))
    array = array.reshape(-1, *array.shape[len(axes) :])
    if array.shape[0] == 0:
        return jnp.full(array.shape[1:], identity(array.dtype), array.dtype)
    over = []  # rows that do not fill a slice come last: padding would be asked about at every entry
    while array.shape[0] > UNROLL:
        rows = array.shape[0] // UNROLL
        over += list(array[rows * UNROLL :])
        array = fold(combine, [array[first : first + rows] for first in range(0, rows * UNROLL, rows)])
    return fusion.once(fold(combine, [*array, *over]))


def _done(value: Value, vector: tuple[int, ...], limit: int) -> Array:
    """The stacked form; in a kernel of its own if so much work went into it."""
    array = spread(value, vector)
    return fusion.once(array) if isinstance(value, Stacked) and value.work >= limit and array.ndim > 1 else array


def _writes_a_row(eqn) -> bool:
    """Whether a scatter writes ``table[index]``, one index into the leading axis."""
    table, index, update = (var.aval.shape for var in eqn.invars)
    dims = eqn.params["dimension_numbers"]
    leading = dims.inserted_window_dims == dims.scatter_dims_to_operand_dims == (0,)
    return index == (1,) and update == table[1:] and leading and eqn.params["mode"] != GatherScatterMode.CLIP


def _read_once(sizes: tuple[int, ...], table: Array, *starts: Array) -> Array:
    """An entry or a row of a table, the lane a further index: ``vmap`` would put the lanes first and turn them back."""
    lane = table.ndim - 1
    indexed = [axis for axis, size in enumerate(sizes) if size < table.shape[axis]]
    dims = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(lane)), collapsed_slice_dims=(lane,), start_index_map=(*indexed, lane)
    )
    lanes = jnp.arange(table.shape[-1], dtype=jnp.int32)
    here = jnp.stack([*(starts[axis].astype(jnp.int32) for axis in indexed), lanes], axis=-1)
    read = lax.gather(table, here, dims, (*sizes, 1), mode=GatherScatterMode.CLIP)
    return fusion.once(read) if read.ndim > 1 else read


def _writes_once(eqn) -> bool:
    """Whether a scatter writes to one place: an entry or a row of a table."""
    return len(eqn.invars[1].aval.shape) == 1


def _write_once(eqn, table: Array, index: Array, update: Array) -> Array:
    """In place, the lane a further index: of the table, only what is written is touched."""
    lane = table.ndim - 1
    dims = eqn.params["dimension_numbers"]
    dims = dims._replace(
        inserted_window_dims=(*dims.inserted_window_dims, lane),
        scatter_dims_to_operand_dims=(*dims.scatter_dims_to_operand_dims, lane),
    )
    here = jnp.stack([*index, jnp.arange(table.shape[-1], dtype=index.dtype)], axis=-1)
    write = lax.scatter_add if eqn.primitive.name == "scatter-add" else lax.scatter
    written = write(table, here, update, dims, unique_indices=True, mode=eqn.params["mode"])
    # Two scatters in one multi-output fusion would end the process in XLA (jaxlib 0.10.2).
    return lax.optimization_barrier(written)


def _bind(eqn, *arrays):
    out = eqn.primitive.bind(*arrays, **eqn.params)
    return out if eqn.primitive.multiple_results else [out]


def _empty(var) -> Shared | None:
    """A value without entries: it is the same in every lane. None for all others."""
    return Shared(np.zeros(var.aval.shape, var.aval.dtype)) if 0 in var.aval.shape else None


def _keeps_shape(eqn) -> bool:
    """Whether results and operands meet entry by entry (a bitcast to another width does not)."""
    return np.broadcast_shapes(*(var.aval.shape for var in eqn.invars)) == eqn.outvars[0].aval.shape


def is_small(shape: Sequence[int]) -> bool:
    """Whether an array of this shape is taken apart."""
    return 0 < math.prod(shape) <= UNROLL


def spread(value: Value, vector: tuple[int, ...]) -> Array:
    """The stacked form, ``shape + [lanes]``."""
    if isinstance(value, Stacked):
        return value.array
    if isinstance(value, Grouped):
        return grouped.whole(value)
    if isinstance(value, Shared):
        array = jnp.asarray(value.array)
        return jnp.broadcast_to(array[..., None], (*array.shape, *vector))
    if value.entries.shape == ():
        return value.entries.item()
    flat = jnp.stack(list(value.entries.flat))
    return flat.reshape(*value.entries.shape, flat.shape[-1])


def entries(value: Value, vector: tuple[int, ...]) -> np.ndarray:
    """The unrolled form."""
    if isinstance(value, Unrolled):
        return value.entries
    if isinstance(value, Stacked | Grouped):
        array = spread(value, vector)
        return object_array(array.shape[:-1], (array[index] for index in np.ndindex(*array.shape[:-1])))
    array = jnp.asarray(value.array)
    return object_array(array.shape, (jnp.broadcast_to(array[i], vector) for i in np.ndindex(*array.shape)))


def _align(array: Array, rank: int) -> Array:
    """Inserts the axes that let a scalar of the game, [lanes], meet an array of higher rank."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _by_vmap(eqn, operands: list[Value], vector: tuple[int, ...]) -> list[Value]:
    arrays = [operand.array if isinstance(operand, Shared) else spread(operand, vector) for operand in operands]
    axes = [None if isinstance(operand, Shared) else -1 for operand in operands]
    out = jax.vmap(functools.partial(_bind, eqn), in_axes=axes, out_axes=-1)(*arrays)
    return [Stacked(array) for array in out]

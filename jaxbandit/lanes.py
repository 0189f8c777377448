"""Many games at once: a batching transform that keeps the lane axis last and takes the arms apart.

``jax.vmap`` would put the games first and reduce over the short arm axis, which XLA on a CPU turns
into many small kernels. This transform reads the jaxpr of one game and evaluates it with every
scalar of the game held as a vector ``[lanes]``. A small array over arms is *unrolled* into such
vectors, so that a sum over arms is ``r[0] + r[1] + ...``; when every result is of this form, the whole
function is one loop over the lanes (``fusion``). A larger array stays *stacked*, ``[K, lanes]``. A
primitive without a rule falls back on ``vmap`` with the lanes last. Policies and worlds never see
any of this.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core
from jax.lax import GatherScatterMode

from jaxbandit import fusion
from jaxbandit.types import Array
from jaxbandit.unrolled import ARGS, ELEMENTWISE, MOVES, REDUCTIONS, RULES, fold, map_entries, object_array

# A game of up to this many vectors is one loop (uniINF computes 1900 for 10 arms, 5900 for 32): LLVM takes 2 s
# for the former, 5 s for the latter, and much beyond does not vectorise. In a larger game arrays of up to UNROLL
# entries are taken apart.
ONE_LOOP = 6500
UNROLL = 32

# Primitives that hold a jaxpr to be evaluated in place.
_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


@functools.partial(jax.tree_util.register_dataclass, data_fields=["array"], meta_fields=[])
@dataclasses.dataclass
class Shared:
    """A value that is the same in every lane; an array of the game's shape."""

    array: Array


@dataclasses.dataclass
class Stacked:
    """A value per lane in one array of the game's shape, lanes last."""

    array: Array


@dataclasses.dataclass
class Unrolled:
    """A value per lane as a NumPy array of the game's shape whose entries are vectors [lanes]."""

    entries: np.ndarray


Value = Shared | Stacked | Unrolled


def over_lanes(fn: Callable, num_lanes: int) -> Callable:
    """Batches ``fn(*trees) -> tree``, written for one game, over a trailing axis of lanes.

    Args:
      fn: A pure function of pytrees of arrays.
      num_lanes: Length of the lane axis.

    Returns:
      A function of the same trees with every leaf ``shape + [lanes]``, or wrapped in ``Shared`` if it is
      the same in all lanes; its results all end in the lane axis.
    """

    def batched(*trees):
        leaves, structure = jax.tree.flatten(trees, is_leaf=is_shared)
        values = [leaf if is_shared(leaf) else Stacked(leaf) for leaf in leaves]
        closed, out_shape = jax.make_jaxpr(lambda *flat: fn(*jax.tree.unflatten(structure, flat)), return_shape=True)(
            *map(example, leaves)
        )
        program = _inlined(closed)
        out = _in_one_loop(program, values, num_lanes) or _evaluate(program, values, (num_lanes,))
        return jax.tree.unflatten(jax.tree.structure(out_shape), [_spread(value, (num_lanes,)) for value in out])

    return batched


def is_shared(leaf: Any) -> bool:
    """Whether a tree leaf is the same in every lane."""
    return isinstance(leaf, Shared)


def example(leaf: Shared | Array) -> jax.ShapeDtypeStruct:
    """Shape and dtype of an argument of ``over_lanes`` in one game."""
    if isinstance(leaf, Shared):
        return jax.ShapeDtypeStruct(leaf.array.shape, leaf.array.dtype)
    return jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype)


@dataclasses.dataclass
class _Program:
    """A jaxpr with the calls in it replaced by what they hold."""

    eqns: list[tuple[Any, list, list]]  # equation, operands, results
    consts: dict
    invars: list
    outvars: list


class _NotUnrolledError(Exception):
    """A value of the program has to stay whole."""


def _in_one_loop(program: _Program, values: Sequence[Value], num_lanes: int) -> list[Value] | None:
    """Evaluates a program whose every value can be unrolled, as one kernel; None if it has others."""
    if not fusion.pays() or _size(program, values) > ONE_LOOP:
        return None
    inside = [_entered(value) if isinstance(value, Stacked) else value for value in values]
    try:
        out = _evaluate(program, inside, (2, num_lanes))
    except _NotUnrolledError:
        return None
    unrolled = [value.entries for value in out if isinstance(value, Unrolled)]
    vectors = iter(fusion.leave([vector for entries in unrolled for vector in entries.flat]) if unrolled else ())
    return [
        Unrolled(map_entries(lambda _: next(vectors), value.entries)) if isinstance(value, Unrolled) else value
        for value in out
    ]


def _size(program: _Program, values: Sequence[Value]) -> int:
    """How many vectors are computed when everything is unrolled; what is the same in every lane is no vector."""
    per_lane = {var for var, value in zip(program.invars, values, strict=True) if not is_shared(value)}
    size = 0
    for eqn, operands, results in program.eqns:
        if not any(not isinstance(atom, core.Literal) and atom in per_lane for atom in operands):
            continue
        per_lane.update(results)
        if eqn.primitive.name not in MOVES:
            size += sum(math.prod(var.aval.shape) for var in (*eqn.invars, *eqn.outvars))
    return size


def _entered(value: Stacked) -> Unrolled:
    return Unrolled(map_entries(fusion.enter, _entries(value, ())))


def _evaluate(program: _Program, values: Sequence[Value], vector: tuple[int, ...]) -> list[Value]:
    """Evaluates a program on lane values; ``vector`` is the shape of one scalar of the game."""
    env: dict[Any, Value] = {var: Shared(const) for var, const in program.consts.items()}
    env.update(zip(program.invars, values, strict=True))

    def read(atom) -> Value:
        return Shared(jnp.asarray(atom.val)) if isinstance(atom, core.Literal) else env[atom]

    for eqn, operands, results in program.eqns:
        out = _apply(eqn, [read(atom) for atom in operands], vector)
        env.update(zip(results, out, strict=True))
    return [read(atom) for atom in program.outvars]


def _inlined(closed: core.ClosedJaxpr) -> _Program:
    eqns: list[tuple[Any, list, list]] = []
    consts: dict = {}

    def walk(closed: core.ClosedJaxpr, arguments: Sequence | None) -> list:
        names: dict = {}
        for var, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            names[var] = object()
            consts[names[var]] = const
        for var, argument in zip(closed.jaxpr.invars, arguments or closed.jaxpr.invars, strict=True):
            names[var] = argument

        def rename(atom):
            return atom if isinstance(atom, core.Literal) else names[atom]

        for eqn in closed.jaxpr.eqns:
            operands = [rename(atom) for atom in eqn.invars]
            if eqn.primitive.name in _CALLS:
                inner = eqn.params["call_jaxpr" if "call_jaxpr" in eqn.params else "jaxpr"]
                names.update(zip(eqn.outvars, walk(inner, operands), strict=True))
            else:
                results = [object() for _ in eqn.outvars]
                names.update(zip(eqn.outvars, results, strict=True))
                eqns.append((eqn, operands, results))
        return [rename(atom) for atom in closed.jaxpr.outvars]

    invars = [object() for _ in closed.jaxpr.invars]
    return _Program(eqns, consts, invars, walk(closed, invars))


def _apply(eqn, operands: list[Value], vector: tuple[int, ...]) -> list[Value]:
    name, bind = eqn.primitive.name, functools.partial(_bind, eqn)
    shared = [operand.array for operand in operands if isinstance(operand, Shared)]
    if len(shared) == len(operands):
        return [Shared(out) for out in bind(*shared)]
    small = len(vector) > 1 or all(is_small(var.aval.shape) for var in (*eqn.invars, *eqn.outvars))
    elementwise = name in ELEMENTWISE and _keeps_shape(eqn)
    if small and elementwise:
        unrolled = [_entries(operand, vector) for operand in operands]
        return [Unrolled(map_entries(lambda *vectors: bind(*vectors)[0], *unrolled))]
    moves = name in MOVES and not any(isinstance(operand, Stacked) for operand in operands)
    if (small or moves) and name in RULES:
        out = RULES[name](eqn, *(_entries(operand, vector) for operand in operands))
        if out is not None:
            return [Unrolled(out)]
    if len(vector) > 1:
        raise _NotUnrolledError(name)
    if elementwise:
        rank = len(eqn.outvars[0].aval.shape) + 1
        aligned = [_align(_spread(operand, vector), rank) for operand in operands]
        return [Stacked(bind(*jnp.broadcast_arrays(*aligned))[0])]
    if name == "broadcast_in_dim":
        shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
        array = _spread(operands[0], vector)
        return [Stacked(lax.broadcast_in_dim(array, (*shape, *vector), (*dims, len(shape))))]
    if name in REDUCTIONS:
        return [Stacked(_reduced(name, _spread(operands[0], vector), eqn.params["axes"]))]
    if name in ARGS and len(eqn.invars[0].aval.shape) == 1:
        return [Stacked(_arg(name, _spread(operands[0], vector), eqn.params["index_dtype"]))]
    if name in ("scatter", "scatter-add") and _writes_a_row(eqn):
        return [Stacked(_write_row(eqn, *(_spread(operand, vector) for operand in operands)))]
    return _by_vmap(eqn, operands, vector)


def _reduced(name: str, array: Array, axes: Sequence[int]) -> Array:
    """A reduction as additions of slices, UNROLL at a time: XLA's own leaves the vector unit."""
    combine, identity = REDUCTIONS[name]
    array = jnp.moveaxis(array, axes, range(len(axes)))
    array = array.reshape(-1, *array.shape[len(axes) :])
    if array.shape[0] == 0:
        return jnp.full(array.shape[1:], identity(array.dtype), array.dtype)
    while array.shape[0] > 1:
        rows = -(-array.shape[0] // UNROLL)
        missing = -array.shape[0] % rows
        if missing:
            fill = jnp.full((missing, *array.shape[1:]), identity(array.dtype), array.dtype)
            array = jnp.concatenate([array, fill])
        array = fold(combine, [array[first : first + rows] for first in range(0, array.shape[0], rows)])
    # A table of results is ended like a loop: XLA would take the reduction into what spreads them, and repeat it there.
    return fusion.leave([fusion.enter(array[0])])[0] if fusion.pays() and array.ndim > 2 else array[0]


def _arg(name: str, array: Array, dtype) -> Array:
    """The first place of the extreme value, or of a NaN, along the leading axis."""
    best = array == _reduced(ARGS[name], array, (0,))[None]
    if jnp.issubdtype(array.dtype, jnp.floating):
        best = best | jnp.isnan(array)
    places = lax.broadcasted_iota(dtype, array.shape, 0)
    return _reduced("reduce_min", jnp.where(best, places, array.shape[0]), (0,))


def _writes_a_row(eqn) -> bool:
    """Whether a scatter writes ``table[index]``, one index into the leading axis."""
    table, index, update = (var.aval.shape for var in eqn.invars)
    dims = eqn.params["dimension_numbers"]
    leading = dims.inserted_window_dims == dims.scatter_dims_to_operand_dims == (0,)
    return index == (1,) and update == table[1:] and leading and eqn.params["mode"] != GatherScatterMode.CLIP


def _write_row(eqn, table: Array, index: Array, update: Array) -> Array:
    # As a select: a scatter per lane leaves the vector unit, and two of them in one multi-output
    # fusion end the process in XLA (jaxlib 0.10.2).
    here = lax.broadcasted_iota(index.dtype, table.shape, 0) == index.reshape((1,) * (table.ndim - 1) + (-1,))
    written = (
        update[None] + table if eqn.primitive.name == "scatter-add" else jnp.broadcast_to(update[None], table.shape)
    )
    return jnp.where(here, written.astype(table.dtype), table)


def _bind(eqn, *arrays):
    out = eqn.primitive.bind(*arrays, **eqn.params)
    return out if eqn.primitive.multiple_results else [out]


def _keeps_shape(eqn) -> bool:
    """Whether results and operands meet entry by entry (a bitcast to another width does not)."""
    return np.broadcast_shapes(*(var.aval.shape for var in eqn.invars)) == eqn.outvars[0].aval.shape


def is_small(shape: Sequence[int]) -> bool:
    """Whether an array of this shape is taken apart."""
    return 0 < math.prod(shape) <= UNROLL


def _spread(value: Value, vector: tuple[int, ...]) -> Array:
    """The stacked form, ``shape + [lanes]``."""
    if isinstance(value, Stacked):
        return value.array
    if isinstance(value, Shared):
        array = jnp.asarray(value.array)
        return jnp.broadcast_to(array[..., None], (*array.shape, *vector))
    if value.entries.shape == ():
        return value.entries.item()
    flat = jnp.stack(list(value.entries.flat))
    return flat.reshape(*value.entries.shape, flat.shape[-1])


def _entries(value: Value, vector: tuple[int, ...]) -> np.ndarray:
    """The unrolled form."""
    if isinstance(value, Unrolled):
        return value.entries
    if isinstance(value, Stacked):
        shape = value.array.shape[:-1]
        return object_array(shape, (value.array[index] for index in np.ndindex(*shape)))
    array = jnp.asarray(value.array)
    return object_array(array.shape, (jnp.broadcast_to(array[i], vector) for i in np.ndindex(*array.shape)))


def _align(array: Array, rank: int) -> Array:
    """Inserts the axes that let a scalar of the game, [lanes], meet an array of higher rank."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _by_vmap(eqn, operands: list[Value], vector: tuple[int, ...]) -> list[Value]:
    arrays = [operand.array if isinstance(operand, Shared) else _spread(operand, vector) for operand in operands]
    axes = [None if isinstance(operand, Shared) else -1 for operand in operands]
    out = jax.vmap(functools.partial(_bind, eqn), in_axes=axes, out_axes=-1)(*arrays)
    return [Stacked(array) for array in out]

"""Many games at once: a batching transform that keeps the lane axis last and the arms apart.

``jax.vmap`` would put the games first and reduce over the short arm axis, which XLA on a CPU turns
into many small kernels. This transform reads the jaxpr of one game and evaluates it with every
scalar of the game held as a vector ``[lanes]``: an array over arms becomes a NumPy array of such
vectors, so a sum over arms is ``r[0] + r[1] + ...`` and moving data between arms costs nothing.
Arrays of more than ``UNROLL`` entries stay whole, ``shape + [lanes]``; a primitive without a rule
here falls back on ``vmap`` with the lanes last. Policies and worlds never see any of this.
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from jaxbandit.types import Array

# Unrolling 32 arms still compiles in seconds; beyond, one array per quantity is as fast (see
# benchmarks/arms.py).
UNROLL = 32


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

# As pytrees the three can be carried through lax loops and across jit.
for _cls in (Shared, Stacked):
    jax.tree_util.register_dataclass(_cls, data_fields=["array"], meta_fields=[])
jax.tree_util.register_pytree_node(
    Unrolled,
    lambda value: (tuple(value.entries.flat), value.entries.shape),
    lambda shape, vectors: Unrolled(_object_array(shape, vectors)),
)


def over_lanes(fn: Callable, num_lanes: int) -> Callable:
    """Batches ``fn(*trees) -> tree``, written for one game, over a trailing axis of lanes.

    Args:
      fn: A pure function of pytrees of arrays.
      num_lanes: Length of the lane axis.

    Returns:
      A function from trees of values (see ``enter``) to a tree of values, none of them shared.
    """

    def batched(*trees):
        leaves, structure = jax.tree.flatten(trees, is_leaf=is_value)
        examples = [example(leaf) for leaf in leaves]
        closed, out_shape = jax.make_jaxpr(
            lambda *flat: fn(*jax.tree.unflatten(structure, flat)), return_shape=True
        )(*examples)
        out = _evaluate(closed, leaves, num_lanes)
        out = [enter(_spread(value, num_lanes)) if isinstance(value, Shared) else value for value in out]
        return jax.tree.unflatten(jax.tree.structure(out_shape), out)

    return batched


def is_value(leaf: object) -> bool:
    """Whether a tree leaf is one of the three forms of a lane value."""
    return isinstance(leaf, Shared | Stacked | Unrolled)


def example(value: Value) -> jax.ShapeDtypeStruct:
    """Shape and dtype of the value in one game."""
    if isinstance(value, Shared):
        return jax.ShapeDtypeStruct(value.array.shape, value.array.dtype)
    if isinstance(value, Stacked):
        return jax.ShapeDtypeStruct(value.array.shape[:-1], value.array.dtype)
    return jax.ShapeDtypeStruct(value.entries.shape, value.entries.flat[0].dtype)


def enter(array: Array) -> Value:
    """The value of an array ``shape + [lanes]``: unrolled when small, stacked otherwise."""
    value = Stacked(array)
    return Unrolled(_entries(value, array.shape[-1])) if _is_small(array.shape[:-1]) else value


def leave(value: Value) -> Array:
    """The array of a value: ``shape + [lanes]``, or ``shape`` if it is shared."""
    return value.array if isinstance(value, Shared) else _spread(value, 0)


def _is_small(shape: Sequence[int]) -> bool:
    return 0 < math.prod(shape) <= UNROLL


def _object_array(shape: Sequence[int], vectors: Iterable) -> np.ndarray:
    out = np.empty(tuple(shape), dtype=object)
    for index, vector in zip(np.ndindex(*shape), vectors, strict=True):
        out[index] = vector
    return out


def _spread(value: Value, num_lanes: int) -> Array:
    """The stacked form, ``shape + [lanes]``."""
    if isinstance(value, Stacked):
        return value.array
    if isinstance(value, Shared):
        array = jnp.asarray(value.array)
        return jnp.broadcast_to(array[..., None], (*array.shape, num_lanes))
    if value.entries.shape == ():
        return value.entries[()]
    flat = jnp.stack(list(value.entries.flat))
    return flat.reshape(*value.entries.shape, flat.shape[-1])


def _entries(value: Value, num_lanes: int) -> np.ndarray:
    """The unrolled form."""
    if isinstance(value, Unrolled):
        return value.entries
    if isinstance(value, Stacked):
        shape = value.array.shape[:-1]
        return _object_array(shape, (value.array[index] for index in np.ndindex(*shape)))
    array = jnp.asarray(value.array)
    return _object_array(array.shape, (jnp.broadcast_to(array[i], (num_lanes,)) for i in np.ndindex(*array.shape)))


def _map(fn: Callable, *operands: np.ndarray) -> np.ndarray:
    """Applies ``fn`` entry by entry; a scalar operand meets every entry."""
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    operands = tuple(np.broadcast_to(operand, shape) for operand in operands)
    return _object_array(shape, (fn(*(operand[index] for operand in operands)) for index in np.ndindex(*shape)))


def _evaluate(closed: core.ClosedJaxpr, values: Sequence[Value], num_lanes: int) -> list[Value]:
    env: dict = {}

    def read(atom) -> Value:
        return Shared(jnp.asarray(atom.val, atom.aval.dtype)) if isinstance(atom, core.Literal) else env[atom]

    env.update(zip(closed.jaxpr.constvars, map(Shared, closed.consts), strict=True))
    env.update(zip(closed.jaxpr.invars, values, strict=True))
    for eqn in closed.jaxpr.eqns:
        out = _apply(eqn, [read(atom) for atom in eqn.invars], num_lanes)
        env.update(zip(eqn.outvars, out, strict=True))
    return [read(atom) for atom in closed.jaxpr.outvars]


def _apply(eqn, operands: list[Value], num_lanes: int) -> list[Value]:
    name = eqn.primitive.name
    if name in _CALLS:
        inner = eqn.params["call_jaxpr" if "call_jaxpr" in eqn.params else "jaxpr"]
        return _evaluate(inner, operands, num_lanes)
    bind = functools.partial(_bind, eqn)
    if all(isinstance(operand, Shared) for operand in operands):
        return [Shared(out) for out in bind(*(operand.array for operand in operands))]
    small = all(_is_small(var.aval.shape) for var in (*eqn.invars, *eqn.outvars))
    if name in _ELEMENTWISE:
        if small:
            unrolled = [_entries(operand, num_lanes) for operand in operands]
            return [Unrolled(_map(lambda *vectors: bind(*vectors)[0], *unrolled))]
        rank = len(eqn.outvars[0].aval.shape) + 1
        aligned = [_align(_spread(operand, num_lanes), rank) for operand in operands]
        return [Stacked(bind(*jnp.broadcast_arrays(*aligned))[0])]
    if small and name in _RULES:
        unrolled = [_entries(operand, num_lanes) for operand in operands]
        out = _RULES[name](eqn, *unrolled)
        if out is not None:
            return [Unrolled(out)]
    if not small and name == "broadcast_in_dim":
        return [_broadcast_stacked(eqn, _spread(operands[0], num_lanes), num_lanes)]
    return _by_vmap(eqn, operands, num_lanes)


def _bind(eqn, *arrays):
    out = eqn.primitive.bind(*arrays, **eqn.params)
    return out if eqn.primitive.multiple_results else [out]


def _align(array: Array, rank: int) -> Array:
    """Inserts the axes that let a scalar of the game, [lanes], meet an array of higher rank."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _broadcast_stacked(eqn, array: Array, num_lanes: int) -> Stacked:
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    return Stacked(lax.broadcast_in_dim(array, (*shape, num_lanes), (*dims, len(shape))))


def _by_vmap(eqn, operands: list[Value], num_lanes: int) -> list[Value]:
    arrays = [operand.array if isinstance(operand, Shared) else _spread(operand, num_lanes) for operand in operands]
    axes = [None if isinstance(operand, Shared) else -1 for operand in operands]
    out = jax.vmap(functools.partial(_bind, eqn), in_axes=axes, out_axes=-1)(*arrays)
    return [enter(array) for array in out]


def _moved(move: Callable) -> Callable:
    """Data movement with static indices: NumPy moves the entries, no code is emitted."""
    return lambda eqn, *operands: move(eqn.params, *operands)


def _broadcast(params: dict, operand: np.ndarray) -> np.ndarray:
    shape = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], operand.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(operand.reshape(shape), params["shape"])


def _slice(params: dict, operand: np.ndarray) -> np.ndarray:
    strides = params["strides"] or (1,) * operand.ndim
    return operand[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _scalar(vector: Array) -> np.ndarray:
    return _object_array((), [vector])


def _reduced(combine: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray) -> np.ndarray:
        axes = tuple(eqn.params["axes"])
        kept = tuple(axis for axis in range(operand.ndim) if axis not in axes)
        rows = operand.transpose(*kept, *axes).reshape(*(operand.shape[axis] for axis in kept), -1)
        shape = rows.shape[:-1]
        return _object_array(shape, (functools.reduce(combine, rows[index]) for index in np.ndindex(*shape)))

    return rule


def _arg(better: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray) -> np.ndarray | None:
        if operand.ndim != 1:
            return None
        dtype = eqn.params["index_dtype"]
        best, where = operand[0], jnp.zeros_like(operand[0], dtype)
        for position, entry in enumerate(operand[1:], start=1):
            improves = better(entry, best)  # strict: ties go to the lowest index
            best = jnp.where(improves, entry, best)
            where = jnp.where(improves, jnp.asarray(position, dtype), where)
        return _scalar(where)

    return rule


def _accumulated(combine: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray) -> np.ndarray | None:
        if operand.ndim != 1:
            return None
        out = operand.copy()
        order = range(operand.size)[:: -1 if eqn.params["reverse"] else 1]
        for before, position in zip(order, order[1:], strict=False):
            out[position] = combine(out[before], operand[position])
        return out

    return rule


def _dynamic_slice(eqn, operand: np.ndarray, *starts: np.ndarray) -> np.ndarray | None:
    if operand.ndim != 1 or eqn.params["slice_sizes"] != (1,):
        return None
    index = jnp.clip(starts[0][()], 0, operand.size - 1)
    picked = operand[0]
    for position, entry in enumerate(operand[1:], start=1):
        picked = jnp.where(index == position, entry, picked)
    return _scalar(picked).reshape(1)


def _scattered(combine: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray, index: np.ndarray, update: np.ndarray) -> np.ndarray | None:
        if operand.ndim != 1 or index.shape != (1,) or update.shape != ():
            return None
        out = operand.copy()
        for position, entry in enumerate(operand):
            out[position] = jnp.where(index[0] == position, combine(entry, update[()]), entry)
        return out

    return rule


_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}

_ELEMENTWISE = set(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e "
    "bitcast_convert_type cbrt ceil clamp clz convert_element_type copy copy_p cos cosh digamma div "
    "eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac integer_pow is_finite le lgamma "
    "log log1p logistic lt max min mul ne neg nextafter not or population_count pow "
    "reduce_precision regularized_incomplete_beta rem round rsqrt select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh "
    "xor".split()
)

_RULES: dict[str, Callable] = {
    "broadcast_in_dim": _moved(_broadcast),
    "concatenate": _moved(lambda params, *parts: np.concatenate(parts, params["dimension"])),
    "reshape": _moved(lambda params, operand: operand.reshape(params["new_sizes"])),
    "rev": _moved(lambda params, operand: np.flip(operand, params["dimensions"])),
    "slice": _moved(_slice),
    "squeeze": _moved(lambda params, operand: operand.squeeze(params["dimensions"])),
    "stack": _moved(lambda params, *parts: np.stack(parts, params["axis"])),
    "transpose": _moved(lambda params, operand: operand.transpose(params["permutation"])),
    "reduce_sum": _reduced(operator.add),
    "reduce_prod": _reduced(operator.mul),
    "reduce_max": _reduced(jnp.maximum),
    "reduce_min": _reduced(jnp.minimum),
    "reduce_and": _reduced(operator.and_),
    "reduce_or": _reduced(operator.or_),
    "argmax": _arg(operator.gt),
    "argmin": _arg(operator.lt),
    "cumsum": _accumulated(operator.add),
    "cumprod": _accumulated(operator.mul),
    "cummax": _accumulated(jnp.maximum),
    "cummin": _accumulated(jnp.minimum),
    "dynamic_slice": _dynamic_slice,
    "scatter": _scattered(lambda _, update: update),
    "scatter-add": _scattered(operator.add),
}

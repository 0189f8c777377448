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
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from jaxbandit.types import Array
from jaxbandit.unrolled import ELEMENTWISE, RULES, map_entries, object_array

# Unrolling 32 arms still compiles in seconds; beyond, one array per quantity is as fast (see
# benchmarks/arms.py).
UNROLL = 32

# Primitives that hold a jaxpr to be evaluated in place.
_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


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
    lambda shape, vectors: Unrolled(object_array(shape, vectors)),
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
        closed, out_shape = jax.make_jaxpr(lambda *flat: fn(*jax.tree.unflatten(structure, flat)), return_shape=True)(
            *examples
        )
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


def _spread(value: Value, num_lanes: int) -> Array:
    """The stacked form, ``shape + [lanes]``."""
    if isinstance(value, Stacked):
        return value.array
    if isinstance(value, Shared):
        array = jnp.asarray(value.array)
        return jnp.broadcast_to(array[..., None], (*array.shape, num_lanes))
    if value.entries.shape == ():
        return value.entries.item()
    flat = jnp.stack(list(value.entries.flat))
    return flat.reshape(*value.entries.shape, flat.shape[-1])


def _entries(value: Value, num_lanes: int) -> np.ndarray:
    """The unrolled form."""
    if isinstance(value, Unrolled):
        return value.entries
    if isinstance(value, Stacked):
        shape = value.array.shape[:-1]
        return object_array(shape, (value.array[index] for index in np.ndindex(*shape)))
    array = jnp.asarray(value.array)
    return object_array(array.shape, (jnp.broadcast_to(array[i], (num_lanes,)) for i in np.ndindex(*array.shape)))


def _evaluate(closed: core.ClosedJaxpr, values: Sequence[Value], num_lanes: int) -> list[Value]:
    env: dict = {}

    def read(atom) -> Value:
        return Shared(jnp.asarray(atom.val)) if isinstance(atom, core.Literal) else env[atom]

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
    shared = [operand.array for operand in operands if isinstance(operand, Shared)]
    if len(shared) == len(operands):
        return [Shared(out) for out in bind(*shared)]
    small = all(_is_small(var.aval.shape) for var in (*eqn.invars, *eqn.outvars))
    if name in ELEMENTWISE:
        if small:
            unrolled = [_entries(operand, num_lanes) for operand in operands]
            return [Unrolled(map_entries(lambda *vectors: bind(*vectors)[0], *unrolled))]
        rank = len(eqn.outvars[0].aval.shape) + 1
        aligned = [_align(_spread(operand, num_lanes), rank) for operand in operands]
        return [Stacked(bind(*jnp.broadcast_arrays(*aligned))[0])]
    if small and name in RULES:
        unrolled = [_entries(operand, num_lanes) for operand in operands]
        out = RULES[name](eqn, *unrolled)
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

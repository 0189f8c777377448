"""Primitives on unrolled values: NumPy arrays of the game's shape whose entries are vectors [lanes].

Moving data is NumPy's work at tracing time and emits nothing; reductions become chains of vector
operations. A rule returns None where it does not apply, and ``lanes`` falls back on ``vmap``.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence

import jax.numpy as jnp
import numpy as np
from jax.lax import GatherScatterMode

from jaxbandit.types import Array


def object_array(shape: Sequence[int], vectors: Iterable) -> np.ndarray:
    """An array of the given shape with these entries, in order."""
    out = np.empty(tuple(shape), dtype=object)
    for index, vector in zip(np.ndindex(*shape), vectors, strict=True):
        out[index] = vector
    return out


def map_entries(fn: Callable, *operands: np.ndarray) -> np.ndarray:
    """Applies ``fn`` entry by entry; a scalar operand meets every entry."""
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    operands = tuple(np.broadcast_to(operand, shape) for operand in operands)
    return object_array(shape, (fn(*(operand[index] for operand in operands)) for index in np.ndindex(*shape)))


def _moved(move: Callable) -> Callable:
    """Data movement with static indices: NumPy moves the entries, no code is emitted."""
    return lambda eqn, *operands: move(eqn.params, *operands)


def _broadcast(params: dict, operand: np.ndarray) -> np.ndarray:
    shape = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], operand.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(operand.reshape(shape), params["shape"])


def _reshape(params: dict, operand: np.ndarray) -> np.ndarray:
    order = params["dimensions"]
    return (operand if order is None else operand.transpose(order)).reshape(params["new_sizes"])


def _slice(params: dict, operand: np.ndarray) -> np.ndarray:
    strides = params["strides"] or (1,) * operand.ndim
    return operand[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _pad(params: dict, operand: np.ndarray, fill: np.ndarray) -> np.ndarray | None:
    if any(low < 0 or high < 0 or between for low, high, between in params["padding_config"]):
        return None
    widths = [(low, high) for low, high, _ in params["padding_config"]]
    shape = [low + size + high for (low, high), size in zip(widths, operand.shape, strict=True)]
    out = object_array(shape, itertools.repeat(fill[()], math.prod(shape)))
    out[tuple(slice(low, low + size) for (low, _), size in zip(widths, operand.shape, strict=True))] = operand
    return out


def _scalar(vector: Array) -> np.ndarray:
    return object_array((), [vector])


def fold(combine: Callable, entries: list):
    """Folds neighbours: a chain of K dependent operations would leave the vector unit waiting."""
    while len(entries) > 1:
        pairs = [combine(*entries[n : n + 2]) for n in range(0, len(entries) - 1, 2)]
        entries = pairs + entries[len(pairs) * 2 :]
    return entries[0]


def _reduced(combine: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray) -> np.ndarray | None:
        if operand.size == 0:
            return None
        axes = tuple(eqn.params["axes"])
        kept = tuple(axis for axis in range(operand.ndim) if axis not in axes)
        rows = operand.transpose(*kept, *axes).reshape(*(operand.shape[axis] for axis in kept), -1)
        shape = rows.shape[:-1]
        return object_array(shape, (fold(combine, list(rows[index])) for index in np.ndindex(*shape)))

    return rule


def _arg(better: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray) -> np.ndarray | None:
        if operand.ndim != 1:
            return None
        dtype = eqn.params["index_dtype"]

        def winner(left, right):
            improves = better(right[0], left[0])  # strict: ties go to the lowest index, and so do NaNs
            if jnp.issubdtype(operand[0].dtype, jnp.floating):
                improves = (improves | jnp.isnan(right[0])) & ~jnp.isnan(left[0])
            return tuple(jnp.where(improves, new, old) for old, new in zip(left, right, strict=True))

        entries = [(entry, jnp.full_like(entry, n, dtype)) for n, entry in enumerate(operand)]
        return _scalar(fold(winner, entries)[1])

    return rule


def _accumulated(combine: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray) -> np.ndarray | None:
        if operand.ndim != 1:
            return None
        out = operand.copy()
        order = range(operand.size)[:: -1 if eqn.params["reverse"] else 1]
        for before, position in itertools.pairwise(order):
            out[position] = combine(out[before], operand[position])
        return out

    return rule


def _dynamic_slice(eqn, operand: np.ndarray, *starts: np.ndarray) -> np.ndarray | None:
    """An entry, or all there is, along every axis."""
    for axis, (size, start) in enumerate(zip(eqn.params["slice_sizes"], starts, strict=True)):
        if size == operand.shape[axis]:
            continue
        if size != 1:
            return None
        index = jnp.clip(start[()], 0, operand.shape[axis] - 1)
        picked, *others = np.split(operand, operand.shape[axis], axis)
        for position, entry in enumerate(others, start=1):
            here = object_array((), [index == position])
            picked = map_entries(jnp.where, here, entry, picked)
        operand = picked
    return operand


def _scattered(combine: Callable) -> Callable:
    def rule(eqn, operand: np.ndarray, index: np.ndarray, update: np.ndarray) -> np.ndarray | None:
        dims = eqn.params["dimension_numbers"]
        axes = dims.scatter_dims_to_operand_dims
        others = [axis for axis in range(operand.ndim) if axis not in axes]
        whole = update.shape == tuple(operand.shape[axis] for axis in others)
        clips = eqn.params["mode"] == GatherScatterMode.CLIP
        if index.shape != (len(axes),) or tuple(sorted(axes)) != dims.inserted_window_dims or not whole or clips:
            return None
        out = operand.copy()
        for place in np.ndindex(*operand.shape):
            hits = [number == place[axis] for number, axis in zip(index, axes, strict=True)]
            new = combine(operand[place], update[tuple(place[axis] for axis in others)])
            out[place] = jnp.where(fold(operator.and_, hits), new, operand[place])
        return out

    return rule


# fmt: off
ELEMENTWISE = frozenset((
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e",
    "bessel_i1e", "bitcast_convert_type", "cbrt", "ceil", "clamp", "clz", "convert_element_type", "copy",
    "copy_p", "cos", "cosh", "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor",
    "ge", "gt", "igamma", "igammac", "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic",
    "lt", "max", "min", "mul", "ne", "neg", "nextafter", "not", "or", "population_count", "pow",
    "reduce_precision", "regularized_incomplete_beta", "rem", "round", "rsqrt", "select_n", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient",
    "sub", "tan", "tanh", "xor",
))
# fmt: on

# Emits nothing, whatever the size.
MOVES = frozenset(("concatenate", "reshape", "reshard", "slice", "squeeze"))


def _extreme(which: str) -> Callable:
    def identity(dtype):
        if jnp.issubdtype(dtype, jnp.floating):
            return -jnp.inf if which == "min" else jnp.inf
        if dtype == jnp.bool_:
            return which == "max"
        return getattr(jnp.iinfo(dtype), which)

    return identity


# How two meet, and what changes nothing.
REDUCTIONS: dict[str, tuple[Callable, Callable]] = {
    "reduce_sum": (operator.add, lambda _: 0),
    "reduce_prod": (operator.mul, lambda _: 1),
    "reduce_max": (jnp.maximum, _extreme("min")),
    "reduce_min": (jnp.minimum, _extreme("max")),
    "reduce_and": (operator.and_, lambda dtype: True if dtype == jnp.bool_ else -1),
    "reduce_or": (operator.or_, lambda _: 0),
}

ARGS = frozenset(("argmax", "argmin"))

RULES: dict[str, Callable] = {
    "broadcast_in_dim": _moved(_broadcast),
    "concatenate": _moved(lambda params, *parts: np.concatenate(parts, params["dimension"])),
    "pad": _moved(_pad),
    "reshape": _moved(_reshape),
    "reshard": _moved(lambda params, operand: operand),  # of strided slices inside shard_map
    "rev": _moved(lambda params, operand: np.flip(operand, params["dimensions"])),
    "slice": _moved(_slice),
    "squeeze": _moved(lambda params, operand: operand.squeeze(params["dimensions"])),
    "stack": _moved(lambda params, *parts: np.stack(parts, params["axis"])),
    "transpose": _moved(lambda params, operand: operand.transpose(params["permutation"])),
    **{name: _reduced(combine) for name, (combine, _) in REDUCTIONS.items()},
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

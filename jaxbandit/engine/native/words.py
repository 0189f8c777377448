"""JAX's own random primitives: keys are pairs of words, and the cipher, written out, makes the bits."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.engine.native import program
from jaxbandit.engine.native.arrays import Array
from jaxbandit.random import threefry2x32


def threefry() -> Any:
    """Returns JAX's own cipher; its module takes a while to import and only rounds with JAX keys need it."""
    from jax.extend import random

    return random.threefry_prng_impl


def _inlined(low, function, *operands: Array) -> list[Array]:
    """Returns the results of a JAX function of arrays, written out here."""
    examples = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in operands]
    inner, _ = program.traced(function, *examples)
    nested = low.inner(inner, low.scope.mask)
    nested.scope.mask = low.scope.mask
    results = nested.run([low.handed_in(a, nested) for a in operands])
    return [nested.export(result, low.scope) for result in results]


def _threefry(low, equation, *operands: Array):
    def cipher(k0, k1, c0, c1):
        return threefry2x32((k0, k1), (c0, c1))

    return _inlined(low, cipher, *operands)


def _same(low, equation, operand: Array):
    return [operand]


def _bits(low, equation, key: Array):
    _check(equation)
    shape, width = tuple(equation.params["shape"]), equation.params["bit_width"]
    lead = key.shape[:-1]

    def bits(data):
        draw = lambda one: threefry().random_bits(one, width, shape)  # noqa: E731
        for _ in lead:
            draw = jax.vmap(draw)
        return draw(data)

    return _inlined(low, bits, key)


def _split(low, equation, key: Array):
    _check(equation)
    shape = tuple(equation.params["shape"])

    def split(data):
        divide = lambda one: threefry().split(one, shape)  # noqa: E731
        for _ in key.shape[:-1]:
            divide = jax.vmap(divide)
        return divide(data)

    return _inlined(low, split, key)


def _fold_in(low, equation, key: Array, number: Array):
    _check(equation)

    def fold_in(data, number):
        return threefry().fold_in(data, number.astype(jnp.uint32))

    return _inlined(low, fold_in, key, number)


def _seed(low, equation, seed: Array):
    def words(number):
        low_word = lax.convert_element_type(number, jnp.uint32)
        wide = number.dtype.itemsize > 4
        high = lax.convert_element_type(lax.shift_right_logical(number, 32), jnp.uint32) if wide else low_word * 0
        return jnp.stack([high, low_word], axis=-1)

    return _inlined(low, words, seed)


def _gamma(low, equation, key: Array, shape: Array):
    """Draws from gamma laws by JAX's own rejection sampler, entry by entry."""
    _check(equation)

    def gamma(data, shape):
        return equation.primitive.impl(jax.random.wrap_key_data(data, impl="threefry2x32"), shape, **equation.params)

    return _inlined(low, gamma, key, shape)


def _check(equation) -> None:
    impl = getattr(getattr(equation.invars[0].keys, "_impl", None), "name", "fry")
    if "fry" not in impl:
        raise KeyError(f"random bits of the generator {impl}")


def _holds_keys(atom: Any) -> bool:
    return getattr(atom, "keys", None) is not None


# Primitives whose parameters are the same for keys as for their words.
_SAME_FOR_KEYS = (
    *("squeeze", "reshape", "unstack", "concatenate", "stack", "expand_dims", "rev", "split", "copy", "copy_p"),
    *("select_n", "cond", "while", "scan"),
)


def stored(equation: program.Equation) -> program.Equation:
    """Returns the equation for stored keys: an array of keys has a last axis of two words."""
    name, params, invars = equation.primitive.name, dict(equation.params), list(equation.invars)
    if not any(_holds_keys(atom) for atom in equation.outvars) or name.startswith("random_"):
        return equation
    zero = program.Literal(np.int32(0), jax.ShapeDtypeStruct((), np.int32))
    rank = len(equation.outvars[0].aval.shape) - 1
    if name == "slice":
        params["start_indices"], params["limit_indices"] = (*params["start_indices"], 0), (*params["limit_indices"], 2)
        params["strides"] = params["strides"] and (*params["strides"], 1)
    elif name == "broadcast_in_dim":
        params["shape"], params["broadcast_dimensions"] = (*params["shape"], 2), (*params["broadcast_dimensions"], rank)
    elif name == "transpose":
        params["permutation"] = (*params["permutation"], rank)
    elif name == "dynamic_slice":
        params["slice_sizes"], invars = (*params["slice_sizes"], 2), [*invars, zero]
    elif name == "dynamic_update_slice":
        invars = [*invars, zero]
    elif name == "gather":
        numbers = params["dimension_numbers"]
        params["dimension_numbers"] = numbers._replace(offset_dims=(*numbers.offset_dims, rank))
        params["slice_sizes"] = (*params["slice_sizes"], 2)
    elif name == "scatter":
        numbers, last = params["dimension_numbers"], len(invars[2].aval.shape) - 1
        params["dimension_numbers"] = numbers._replace(update_window_dims=(*numbers.update_window_dims, last))
    elif name not in _SAME_FOR_KEYS:
        raise KeyError(f"{name} of keys")
    return dataclasses.replace(equation, params=params, invars=invars)


def _counts(low, equation):
    """Returns the counters of random bits: the number of each entry, in two words."""
    shape = tuple(equation.params["shape"])

    def count() -> tuple:
        number = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
        return jnp.zeros_like(number), number

    return _inlined(low, count)


RULES = {
    "iota_2x32_shape": _counts,
    "threefry2x32": _threefry,
    "random_wrap": _same,
    "random_unwrap": _same,
    "random_bits": _bits,
    "random_split": _split,
    "random_fold_in": _fold_in,
    "random_seed": _seed,
    "random_clone": _same,
    "random_gamma": _gamma,
}

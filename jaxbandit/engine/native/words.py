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


def _check(equation) -> None:
    aval = equation.invars[0].aval
    impl = getattr(getattr(aval.dtype, "_impl", None), "name", "fry")
    if "fry" not in impl:
        raise KeyError(f"random bits of the generator {impl}")


def is_key(atom: Any) -> bool:
    """Returns whether a variable holds JAX keys."""
    return jnp.issubdtype(atom.aval.dtype, jax.dtypes.prng_key)


def stored(equation: program.Equation) -> program.Equation:
    """Returns the equation for stored keys: an array of keys has a last axis of two words."""
    name, params = equation.primitive.name, dict(equation.params)
    if not any(is_key(atom) for atom in equation.outvars) or name.startswith("random_"):
        return equation
    if name == "slice":
        params["start_indices"], params["limit_indices"] = (*params["start_indices"], 0), (*params["limit_indices"], 2)
        params["strides"] = params["strides"] and (*params["strides"], 1)
    elif name == "broadcast_in_dim":
        rank = len(params["shape"])
        params["shape"], params["broadcast_dimensions"] = (*params["shape"], 2), (*params["broadcast_dimensions"], rank)
    elif name == "transpose":
        params["permutation"] = (*params["permutation"], len(params["permutation"]))
    elif name == "dynamic_slice":
        params["slice_sizes"] = (*params["slice_sizes"], 2)
        zero = program.Literal(np.int32(0), jax.ShapeDtypeStruct((), np.int32))
        equation = dataclasses.replace(equation, invars=[*equation.invars, zero])
    elif name not in ("squeeze", "reshape", "unstack", "concatenate", "stack", "expand_dims"):
        raise KeyError(f"{name} of keys")
    for atom in equation.outvars:
        if is_key(atom):
            atom.aval = jax.ShapeDtypeStruct((*atom.aval.shape, 2), np.uint32)
    return dataclasses.replace(equation, params=params)


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
}

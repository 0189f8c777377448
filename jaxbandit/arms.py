"""Functions on the arm axis: they pick an arm, sum over the others, draw one.

They are written for one game; arrays over arms are ``[K]``.
"""

import functools

import jax.numpy as jnp
from jax import lax

from jaxbandit import random
from jaxbandit.types import Array

FEW = 32  # arms up to which sums and choices are written out, arm by arm
OFF_SIMPLEX = 1e-3  # how far the sum of probabilities, or that of a sure arm, may be from 1


def one_hot(arm: Array, num_arms: int) -> Array:
    """Returns whether each arm is ``arm``: bool [K]."""
    return jnp.arange(num_arms, dtype=jnp.int32) == arm


def pick(values: Array, arm: Array) -> Array:
    """Returns ``values[arm]``; few arms are compiled to selects, which are faster than an access per game."""
    if values.shape[0] > FEW:
        return values[arm]
    return functools.reduce(lambda picked, i: jnp.where(arm == i, values[i], picked), range(1, len(values)), values[0])


def least(values: Array) -> Array:
    """Returns the smallest of ``values``, [K], in half the operations of ``jnp.min``; it may ignore a NaN."""
    if values.shape[0] > FEW:
        return jnp.min(values)
    while values.shape[0] > 1:
        half = values.shape[0] // 2
        a, b = values[:half], values[half : 2 * half]
        values = jnp.concatenate([jnp.where(a < b, a, b), values[2 * half :]])
    return values[0]


def rest(values: Array, arm: Array) -> Array:
    """Returns the sum of ``values`` over every arm but ``arm``, without cancellation."""
    return jnp.sum(jnp.where(one_hot(arm, values.shape[0]), 0, values))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns ``a + b`` rounded, and its rounding error (Knuth), which is exact whichever term is larger."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def kahan_add(total: Array, term: Array) -> tuple[Array, Array]:
    """Returns ``total + term`` rounded, and its rounding error, which is exact if ``total`` is the larger."""
    rounded = total + term
    return rounded, term - (rounded - total)


def accumulate(total: Array, lost: Array, terms: Array) -> tuple[Array, Array]:
    """Adds ``terms`` to the unevaluated sum ``total + lost`` and shifts its minimum to 0, all [K].

    FTRL depends on differences only, so the shift keeps cumulative losses small. The rounding error is
    carried, so that a small common term still counts against a large ``total``.
    """
    total, lost = kahan_add(total, lost + terms)
    shifted, shift_lost = kahan_add(total, -least(total))  # a NaN stays in the total
    return shifted, lost + shift_lost


def sure_arm(x: Array) -> Array:
    """Returns the arm with probability 1, int32; -1 if there is none, or if ``x`` is not a probability vector."""
    numbers = jnp.arange(1, x.shape[0] + 1, dtype=jnp.int32)
    arm = jnp.sum(jnp.where(x >= 1 - OFF_SIMPLEX, numbers, 0), dtype=jnp.int32) - 1  # at most one term is not 0
    return jnp.where(_is_law(x, jnp.sum(x)), arm, -1)


def draw(x: Array, key: random.Key) -> Array:
    """Returns an arm drawn with probabilities ``x / sum(x)``, int32; -1 if ``x`` is not a probability vector.

    A rare arm keeps its probability to relative precision, whatever its index: the uniform has 48
    bits, the prefix sums carry their rounding errors, and the uniform is stretched to ``sum(x)``, so that
    no arm has to take the remainder. An arm with ``x = 0`` is never drawn.
    """
    w0, w1 = random.words(key, 2)
    scale = 2.0**-24
    high = (w0 >> jnp.uint32(8)).astype(x.dtype) * scale
    low = (((w0 & jnp.uint32(0xFF)) << jnp.uint32(16)) | (w1 >> jnp.uint32(16))).astype(x.dtype) * scale**2

    end, end_lost = _fold(_add_pair, (x[0], jnp.zeros((), x.dtype)), x[1:])
    excess = (end - 1) + end_lost  # sum(x) - 1, exactly: sum(x) is near 1
    low = low + high * excess
    # If rounding lifts the largest uniforms to sum(x), they are put back just below it.
    beyond = (high - end) + (low - end_lost)
    low = jnp.where(beyond >= 0, low - beyond - 2.0**-36, low)

    def pass_arm(carry, probability):  # U sum(x) >= x[0] + ... + x[i]; never so for the last arm
        total, lost, passed = carry
        passed = jnp.where(low - lost >= total - high, passed + 1, passed)
        return *_add_pair((total, lost), probability), passed

    *_, passed = _fold(pass_arm, (x[0], jnp.zeros((), x.dtype), jnp.int32(0)), x[1:])
    return jnp.where(_is_law(x, end), passed, -1)


def prefix_sums(values: Array) -> tuple[Array, Array]:
    """Returns prefix sums along the last axis, as unevaluated pairs (rounded sum, rounding error)."""
    sums = [(values[..., 0], jnp.zeros_like(values[..., 0]))]
    for column in range(1, values.shape[-1]):
        sums.append(_add_pair(sums[-1], values[..., column]))
    total, lost = (jnp.stack(part, axis=-1) for part in zip(*sums, strict=True))
    return total, lost


def _add_pair(pair: tuple[Array, Array], term: Array) -> tuple[Array, Array]:
    """Adds a term to an unevaluated sum."""
    total, error = two_sum(pair[0], term)
    return total, pair[1] + error


def _fold(step, carry, values: Array):
    """Folds ``step`` over values [N]: unrolled if they are few, else in a loop."""
    if values.shape[0] < FEW:
        return functools.reduce(step, [values[i] for i in range(values.shape[0])], carry)
    return lax.scan(lambda carry, value: (step(carry, value), None), carry, values)[0]


def _is_law(x: Array, total: Array) -> Array:
    """Returns whether ``x`` with this sum is on the simplex; the sum shows a NaN or an infinity."""
    return (jnp.abs(total - 1) <= OFF_SIMPLEX) & (least(x) >= 0)

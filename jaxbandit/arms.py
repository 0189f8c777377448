"""The arm axis: picking an arm, summing over the others, drawing one.

Written for one game, arrays over arms ``[K]`` first.
"""

import jax.numpy as jnp

from jaxbandit import random
from jaxbandit.types import Array

GROUP = 32  # arms whose prefix sums are unrolled


def one_hot(arm: Array, num_arms: int) -> Array:
    """Whether each arm is ``arm``: bool [K]."""
    return jnp.arange(num_arms, dtype=jnp.int32) == arm


def pick(values: Array, arm: Array) -> Array:
    """``values[arm]``, as a select: a gather per lane would leave the vector unit."""
    return jnp.sum(jnp.where(one_hot(arm, values.shape[0]), values, 0)).astype(values.dtype)


def rest(values: Array, arm: Array) -> Array:
    """The sum of ``values`` over every arm but ``arm``, without cancellation."""
    return jnp.sum(jnp.where(one_hot(arm, values.shape[0]), 0, values))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` rounded, and what the rounding lost (Knuth): exact for any order of size."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def kahan_add(total: Array, term: Array) -> tuple[Array, Array]:
    """``total + term`` rounded, and what the rounding lost (exact where ``total`` is the larger)."""
    rounded = total + term
    return rounded, term - (rounded - total)


def accumulate(total: Array, lost: Array, terms: Array) -> tuple[Array, Array]:
    """Adds ``terms`` to the unevaluated sum ``total + lost`` and shifts its minimum to 0, all [K].

    FTRL sees differences only: the shift keeps cumulative losses small, and what rounding took is
    carried, so that a small common term still counts against a large ``total``.
    """
    total, lost = kahan_add(total, lost + terms)
    shifted, shift_lost = kahan_add(total, -jnp.min(total))
    return shifted, lost + shift_lost


def draw(x: Array, key: random.Key) -> Array:
    """An arm with probabilities ``x / sum(x)``, int32.

    A rare arm keeps its probability to relative precision, wherever it stands: the uniform has 48
    bits, the prefix sums carry what they lose, and the uniform is stretched to ``sum(x)``, so that
    no arm has to take the remainder. An arm with ``x = 0`` is never drawn.
    """
    w0, w1 = random.words(key, 2)
    scale = 2.0**-24
    high = (w0 >> jnp.uint32(8)).astype(x.dtype) * scale
    low = (((w0 & jnp.uint32(0xFF)) << jnp.uint32(16)) | (w1 >> jnp.uint32(16))).astype(x.dtype) * scale**2

    total, lost = prefix_sums(x)
    excess = (total[-1] - 1) + lost[-1]  # sum(x) - 1, exactly: sum(x) is near 1
    low = low + high * excess
    # Where rounding lifts the largest uniforms to sum(x), they are put back just below it.
    beyond = (high - total[-1]) + (low - lost[-1])
    low = jnp.where(beyond >= 0, low - beyond - 2.0**-36, low)
    passed = (high - total) + (low - lost) >= 0  # U sum(x) >= x[0] + ... + x[i]
    return jnp.minimum(jnp.sum(passed, dtype=jnp.int32), x.shape[0] - 1)


def prefix_sums(values: Array) -> tuple[Array, Array]:
    """Prefix sums as unevaluated pairs (rounded sum, what it lost), each [K]."""
    num_arms = values.shape[0]
    groups = -(-num_arms // GROUP)
    table = jnp.pad(values, (0, groups * GROUP - num_arms)).reshape(groups, GROUP) if groups > 1 else values[None]

    within = [(table[:, 0], jnp.zeros_like(table[:, 0]))]
    for column in range(1, table.shape[1]):
        total, lost = within[-1]
        total, error = two_sum(total, table[:, column])
        within.append((total, lost + error))
    total, lost = (jnp.stack(part, axis=1) for part in zip(*within, strict=True))
    if groups == 1:
        return total[0], lost[0]

    before = [(jnp.zeros_like(values[0]), jnp.zeros_like(values[0]))]
    for group in range(groups - 1):
        so_far, error = two_sum(before[-1][0], total[group, -1])
        before.append((so_far, lost[group, -1] + before[-1][1] + error))  # in the order of the sums below
    offset, offset_lost = (jnp.stack(part)[:, None] for part in zip(*before, strict=True))
    total, error = two_sum(jnp.broadcast_to(offset, total.shape), total)
    lost = lost + offset_lost + error
    return total.reshape(-1)[:num_arms], lost.reshape(-1)[:num_arms]

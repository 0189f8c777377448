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
    return jnp.sum(jnp.where(one_hot(arm, values.shape[0]), values, 0))


def rest(values: Array, arm: Array) -> Array:
    """The sum of ``values`` over every arm but ``arm``, without cancellation."""
    return jnp.sum(jnp.where(one_hot(arm, values.shape[0]), 0, values))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` rounded, and what the rounding lost (Knuth): exact for any order of size."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def draw(x: Array, key: random.Key) -> Array:
    """An arm with probabilities ``x``, int32.

    A rare arm keeps its probability to relative precision: the uniform has 48 bits, the prefix
    sums carry what they lose, and the likeliest arm is left out of them and takes the remainder,
    so that it absorbs the rounding of ``sum(x)`` too. An arm with ``x = 0`` is never drawn.
    """
    num_arms = x.shape[0]
    likeliest = jnp.argmax(x).astype(jnp.int32)
    others = jnp.where(one_hot(likeliest, num_arms), 0, x)

    w0, w1 = random.words(key, 2)
    scale = 2.0**-24
    high = (w0 >> jnp.uint32(8)).astype(x.dtype) * scale
    low = (((w0 & jnp.uint32(0xFF)) << jnp.uint32(16)) | (w1 >> jnp.uint32(16))).astype(x.dtype) * scale**2

    total, lost = prefix_sums(others)
    passed = (high - total) + (low - lost) >= 0  # U >= others[0] + ... + others[i]
    arm = jnp.sum(passed, dtype=jnp.int32)
    return jnp.where(arm == num_arms, likeliest, arm)


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
        before.append((so_far, before[-1][1] + error + lost[group, -1]))
    offset, offset_lost = (jnp.stack(part)[:, None] for part in zip(*before, strict=True))
    total, error = two_sum(jnp.broadcast_to(offset, total.shape), total)
    lost = lost + offset_lost + error
    return total.reshape(-1)[:num_arms], lost.reshape(-1)[:num_arms]

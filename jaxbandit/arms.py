"""The arm axis: picking an arm, summing over the others, drawing one.

Written for one game, arrays over arms ``[K]`` first.
"""

import functools

import jax.numpy as jnp
from jax import lax

from jaxbandit import random
from jaxbandit.types import Array

UNGROUPED = 32  # arms that one loop takes apart; more go in groups
GROUP = 10  # arms of a group


def grouping(num_arms: int) -> tuple[int, int]:
    """How many groups the arms are taken in, and how many arms a group has; the last may have fewer."""
    fewest = 1 if num_arms <= UNGROUPED else -(-num_arms // GROUP)
    even = (groups for groups in range(fewest, 2 * fewest + 1) if num_arms % groups == 0)
    groups = next(even, fewest)
    return groups, -(-num_arms // groups)


def in_groups(values: Array, fill: float) -> Array:
    """``values`` as a table [groups, arms of a group], ``fill`` for arms that do not exist."""
    groups, size = grouping(values.shape[0])
    return jnp.pad(values, (0, groups * size - values.shape[0]), constant_values=fill).reshape(groups, size)


def one_hot(arm: Array, num_arms: int) -> Array:
    """Whether each arm is ``arm``: bool [K]."""
    return jnp.arange(num_arms, dtype=jnp.int32) == arm


def pick(values: Array, arm: Array) -> Array:
    """``values[arm]``, as selects: a gather per lane would leave the vector unit."""
    if values.shape[0] > UNGROUPED:
        return jnp.sum(jnp.where(one_hot(arm, values.shape[0]), values, 0)).astype(values.dtype)
    return functools.reduce(lambda picked, i: jnp.where(arm == i, values[i], picked), range(1, len(values)), values[0])


def least(values: Array) -> Array:
    """The smallest of ``values``, [K], in half the operations of ``jnp.min``; a NaN may be passed over."""
    if values.shape[0] > UNGROUPED:
        return jnp.min(values)
    while values.shape[0] > 1:
        half = values.shape[0] // 2
        a, b = values[:half], values[half : 2 * half]
        values = jnp.concatenate([jnp.where(a < b, a, b), values[2 * half :]])
    return values[0]


def add_at(table: Array, place: tuple, terms: Array) -> Array:
    """``table.at[place].add(terms)``, for tables of which several are written at one place.

    XLA (jaxlib 0.10.2, with multi-output fusion) ends the process where it joins two such scatters under ``vmap``.
    """
    return lax.optimization_barrier(table.at[place].add(terms))


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
    shifted, shift_lost = kahan_add(total, -least(total))  # a NaN stays in the total
    return shifted, lost + shift_lost


def sure_arm(x: Array) -> Array:
    """The arm that has all of ``x``, int32."""
    return jnp.sum(jnp.where(x > 0, jnp.arange(x.shape[0], dtype=jnp.int32), 0), dtype=jnp.int32)


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

    table = in_groups(x, 0)
    total, lost = prefix_sums(table)
    end, end_lost = _over_groups(total[:, -1], lost[:, -1])
    excess = (end[-1] - 1) + end_lost[-1]  # sum(x) - 1, exactly: sum(x) is near 1
    low = low + high * excess
    # Where rounding lifts the largest uniforms to sum(x), they are put back just below it.
    beyond = (high - end[-1]) + (low - end_lost[-1])
    low = jnp.where(beyond >= 0, low - beyond - 2.0**-36, low)

    def count_passed(total, lost):  # U sum(x) >= x[0] + ... + x[i]; never so for the last
        return jnp.sum(low - lost[:-1] >= total[:-1] - high, dtype=jnp.int32)

    groups, size = table.shape
    if groups == 1:
        return count_passed(total[0], lost[0])
    # First the group, then the arm in it. Sums are added in the order of `_over_groups`, so that both meet at the ends.
    group = count_passed(end, end_lost)
    own = jnp.sum(jnp.where(one_hot(group, groups)[:, None], table, 0), axis=0)
    before = (jnp.concatenate([jnp.zeros(1, x.dtype), part[:-1]]) for part in (end, end_lost))
    start, start_lost = (pick(part, group) for part in before)
    total, lost = prefix_sums(own)
    total, error = two_sum(jnp.broadcast_to(start, total.shape), total)
    passed = count_passed(total, lost + start_lost + error)
    return jnp.minimum(group * size + passed, x.shape[0] - 1)


def prefix_sums(values: Array) -> tuple[Array, Array]:
    """Prefix sums along the last axis, as unevaluated pairs (rounded sum, what it lost)."""
    sums = [(values[..., 0], jnp.zeros_like(values[..., 0]))]
    for column in range(1, values.shape[-1]):
        total, error = two_sum(sums[-1][0], values[..., column])
        sums.append((total, sums[-1][1] + error))
    total, lost = (jnp.stack(part, axis=-1) for part in zip(*sums, strict=True))
    return total, lost


def _over_groups(totals: Array, losts: Array) -> tuple[Array, Array]:
    """Prefix sums of unevaluated pairs [groups]."""
    sums = [(totals[0], losts[0])]
    for group in range(1, totals.shape[0]):
        total, error = two_sum(sums[-1][0], totals[group])
        sums.append((total, losts[group] + sums[-1][1] + error))
    total, lost = map(jnp.stack, zip(*sums, strict=True))
    return total, lost

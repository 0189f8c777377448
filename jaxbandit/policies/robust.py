"""Means that outliers do not move: truncated, median of means, Catoni's; of one arm, or a row per arm."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.types import Array

LARGEST = 1e15  # its square is still a float32
BISECTIONS, NEWTON_STEPS = 30, 3
SETTLED = 1e-3  # of 1 / rate: the last Newton step, at most


def confidence_grid(max_rounds: int, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns values of 2 log t from t = 2, each ``ratio`` times the one before, and the last round each one covers."""
    octaves = max(math.log2(max_rounds), 1.0)
    count = math.ceil(math.log(octaves) / math.log(ratio) - 1e-9) + 1
    values = 2 * math.log(2) * ratio ** np.arange(count)
    last = np.floor(np.exp(np.minimum(values / 2, 21.0)) * (1 + 1e-12)).astype(np.int32)
    _, first = np.unique(last, return_index=True)  # a value that covers no further round is left out
    return values[first], last[first]


def truncated_mean(rewards: Array, pulls: Array, log_term: Array, order: Array | float, moment: Array) -> Array:
    """Returns the truncated mean of each arm, [K]: sample j becomes 0 if |X_j|^order > moment * j / log_term."""
    j = jnp.arange(1, rewards.shape[1] + 1).astype(rewards.dtype)
    threshold = jnp.exp(jnp.log(moment * j / log_term) / order)
    kept = (j[None, :] <= pulls[:, None]) & (jnp.abs(rewards) <= threshold[None, :])
    return jnp.sum(jnp.where(kept, rewards, 0), axis=1) / jnp.maximum(pulls, 1)


def median_of_means(rewards: Array, pulls: Array, log_term: Array, max_blocks: int) -> Array:
    """Returns the median of the means of min(1 + 8 log_term, n/2) consecutive blocks; rewards [K, N], pulls [K]."""
    num_arms = rewards.shape[0]
    blocks = jnp.maximum(jnp.floor(jnp.minimum(1 + 8 * log_term, pulls / 2)), 1).astype(jnp.int32)  # k
    size = jnp.maximum(pulls.astype(jnp.int32) // blocks, 1)  # N
    sums = jnp.concatenate([jnp.zeros((num_arms, 1)), jnp.cumsum(rewards, axis=1)], axis=1)
    block = jnp.arange(max_blocks + 1, dtype=jnp.int32)
    ends = jnp.take_along_axis(sums, jnp.minimum(block[None, :] * size[:, None], rewards.shape[1]), axis=1)
    means = jnp.where(
        block[None, :-1] < blocks[:, None], jnp.diff(ends, axis=1) / size[:, None].astype(sums.dtype), jnp.inf
    )
    ordered = jnp.sort(means, axis=1)
    middle = [jnp.take_along_axis(ordered, rank[:, None], axis=1)[:, 0] for rank in ((blocks - 1) // 2, blocks // 2)]
    return (middle[0] + middle[1]) / 2


def middle_two(values: Array, count: Array) -> tuple[Array, Array]:
    """Returns the two middle values of ``values[:count]``, [N], without a sort: their bits are found from the top."""
    bits = jnp.finfo(values.dtype).bits
    unsigned = jnp.uint32 if bits == 32 else jnp.uint64
    sign = np.array(1 << (bits - 1), unsigned)
    raw = lax.bitcast_convert_type(values, unsigned)
    key = jnp.where(raw >= sign, ~raw, raw | sign)  # ordered as the values are
    inside = jnp.arange(values.shape[0], dtype=jnp.int32) < count
    key = jnp.where(inside, key, ~np.array(0, unsigned))
    rank = (count + 1) // 2

    def fix_bit(n, found):
        candidate = found | lax.shift_right_logical(sign, n.astype(unsigned))
        return jnp.where(jnp.sum(key < candidate, dtype=jnp.int32) < rank, candidate, found)

    lower = lax.fori_loop(0, bits, fix_bit, jnp.zeros((), unsigned))
    shared = jnp.sum(key <= lower, dtype=jnp.int32) > count // 2
    upper = jnp.where(shared, lower, jnp.min(jnp.where(key > lower, key, ~np.array(0, unsigned))))
    lower, upper = (
        lax.bitcast_convert_type(jnp.where(half >= sign, half & ~sign, ~half), values.dtype) for half in (lower, upper)
    )
    return lower, upper


def middle_with(lower: Array, upper: Array, count: Array, new: Array) -> Array:
    """Returns the median of ``new`` and an even number of values with the middle two ``lower`` and ``upper``."""
    return jnp.where(count == 0, new, jnp.clip(new, lower, upper))


def middle_two_with(values: Array, count: Array, median: Array, new: Array) -> tuple[Array, Array]:
    """Returns the two middle values of ``values[:count]`` with ``new`` added.

    ``count`` is odd, and ``median`` is the median of ``values[:count]``. ``new`` takes a place beside the
    median, or the neighbour on its side does.
    """
    inside = jnp.arange(values.shape[0], dtype=jnp.int32) < count
    rank = (count + 1) // 2  # of the median
    least_above = jnp.min(jnp.where(inside & (values > median), values, jnp.inf))
    most_below = jnp.max(jnp.where(inside & (values < median), values, -jnp.inf))
    above = jnp.where(jnp.sum(inside & (values <= median), dtype=jnp.int32) > rank, median, least_above)
    below = jnp.where(jnp.sum(inside & (values < median), dtype=jnp.int32) < rank - 1, median, most_below)
    return (
        jnp.where(new < median, jnp.maximum(new, below), median),
        jnp.where(new < median, median, jnp.minimum(new, above)),
    )


def influence(x: Array) -> tuple[Array, Array]:
    """Returns Catoni's widest psi, sign(x) log(1 + |x| + x^2/2), and its derivative."""
    size = jnp.minimum(jnp.abs(x), LARGEST)
    square = size + size * size / 2
    return jnp.sign(x) * jnp.log1p(square), (1 + size) / (1 + square)


def catoni(
    points: Array,
    weights: Array,
    rate: Array,
    scale: Array | float,
    near: Array | None = None,
    matter: Array | bool = True,
) -> Array:
    """Returns the theta with sum_j weights_j psi(rate (points_j - theta)) = 0; points and weights [N].

    From ``near``, Newton's method: one step, and more of them if it does not settle and does ``matter``. Where they do
    not settle either, bisection of theta = scale * sinh(s) first: a point at 1e30 widens the bracket in s to 70 only.
    """

    def total(theta: Array) -> tuple[Array, Array]:
        value, slope = influence(rate * (points - theta))
        return jnp.sum(weights * value), rate * jnp.sum(weights * slope)

    def newton(theta: Array) -> tuple[Array, Array]:
        value, slope = total(theta)
        step = value / jnp.maximum(slope, 1e-30)
        return theta + step, step

    def more_steps(theta: Array, count: int) -> tuple[Array, Array]:
        return lax.fori_loop(0, count, lambda _, now: newton(now[0]), (theta, jnp.zeros_like(theta)))

    def settled(step: Array) -> Array:
        # The error after a step is less than rate * step^2: of the next order.
        return ~(jnp.abs(step) * rate > SETTLED)

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        above = total(scale * jnp.sinh(middle))[0] > 0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    def from_afar() -> Array:
        reach = jnp.max(jnp.where(weights > 0, jnp.abs(points), 0)) / scale
        high = jnp.arcsinh(jnp.minimum(reach, 1e30)) + 1e-3
        low, high = lax.fori_loop(0, BISECTIONS, halve, (-high, high))
        theta, _ = more_steps(scale * jnp.sinh((low + high) / 2), NEWTON_STEPS)
        return jnp.clip(theta, scale * jnp.sinh(low - 1e-6), scale * jnp.sinh(high + 1e-6))

    if near is None:
        return from_afar()
    theta, step = newton(near)

    def go_on() -> Array:
        closer, last = more_steps(theta, NEWTON_STEPS - 1)
        return lax.cond(settled(last), lambda: closer, from_afar)

    return lax.cond(settled(step) | ~jnp.asarray(matter), lambda: theta, go_on)


def catoni_rate(pulls: Array, log_term: Array, variance: Array) -> Array:
    """Returns Catoni's alpha_delta. If n <= 4 L, returns its value at n = 4 L, which no index uses."""
    n = jnp.maximum(pulls, 4 * log_term)
    return jnp.sqrt(2 * log_term / (n * (variance + 2 * variance * log_term / (n - 2 * log_term))))

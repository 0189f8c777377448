"""JAX without the engine."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike, DTypeLike, NDArray

from benchmarks.competitors.common import (
    INITIAL_SCALE,
    OFF_BY,
    SEED,
    SMALLEST_REST,
    Run,
    num_steps,
    real_of,
    regret_of,
)


def plain_vmap_scan(
    means: ArrayLike, tail_index: float, horizon: int, num_seeds: int, dtype: DTypeLike, num_threads: int
) -> Run:
    """Returns a run by plain JAX: ``jit(vmap(scan(step)))``, with ``jax.random`` in every step.

    Args and return value as for ``cpp``; XLA's thread pool is its own, whatever ``num_threads``.
    """
    del num_threads
    host_means = np.asarray(means, np.float64)
    num_arms = host_means.size
    real = real_of(dtype)
    newton_steps = num_steps(num_arms, real)
    factor = (host_means * (tail_index - 1) / tail_index).astype(real)
    exponent, scaling = real(-1 / tail_index), real(num_arms * math.log(horizon))

    def two_sum(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = a + b
        part = total - a
        return total, (a - (total - part)) + (b - part)

    def kahan(total: jax.Array, term: jax.Array) -> tuple[jax.Array, jax.Array]:
        rounded = total + term
        return rounded, term - (rounded - total)

    def solve(u: jax.Array) -> jax.Array:
        y = jnp.ones((), real)
        for _ in range(newton_steps):
            inverse = 1 / (u + y)
            phi = jnp.sum(inverse)
            y = y + phi * (phi - 1) / jnp.sum(inverse * inverse)
        return 1 / (u + y)

    def draw_arm(x: jax.Array, w0: jax.Array, w1: jax.Array) -> jax.Array:
        high = (w0 >> 8).astype(real) * real(2.0**-24)
        low = (((w0 & 0xFF) << 16) | (w1 >> 16)).astype(real) * real(2.0**-48)
        likeliest = jnp.argmax(x)
        others = x.at[likeliest].set(0)
        prefixes = [(others[0], jnp.zeros((), real))]
        for other in others[1:]:
            total, error = two_sum(prefixes[-1][0], other)
            prefixes.append((total, prefixes[-1][1] + error))
        total, lost = (jnp.stack(part) for part in zip(*prefixes, strict=True))
        arm = jnp.sum((high - total) + (low - lost) >= 0)
        is_law = (jnp.abs(jnp.sum(x) - 1) <= real(OFF_BY)) & (jnp.min(x) >= 0)
        return jnp.where(is_law, jnp.where(arm == num_arms, likeliest, arm), -1)

    def draw_loss(arm: jax.Array, *words: jax.Array) -> jax.Array:
        w0, w1, w2 = (word.astype(real) for word in words)
        uniform = w0 * real(2.0**-32) + (w1 * real(2.0**-64) + (w2 * real(2.0**-96) + real(2.0**-97)))
        return jnp.where(arm >= 0, jnp.asarray(factor)[arm], real(np.nan)) * uniform**exponent

    def step(state: tuple, t: jax.Array) -> tuple[tuple, None]:
        key, L, L_lost, S, S_lost, pulls, loss_sum, loss_lost, failed = state
        w0, spare, w2, w3 = jax.random.bits(jax.random.fold_in(key, t), (4,), jnp.uint32)
        x = solve(L / S)
        arm = draw_arm(x, w0, spare)
        loss = draw_loss(arm, w2, w3, spare << 16)

        x_rest = jnp.maximum(jnp.sum(x.at[arm].set(0)), real(SMALLEST_REST))
        threshold = S / (4 * x_rest)
        skipped = jnp.where(jnp.abs(loss) < threshold, loss, 0)
        growth = (jnp.clip(loss, -threshold, threshold) * x_rest) ** 2 / scaling
        growth = growth / (S + jnp.sqrt(S * S + growth))

        S, S_lost = kahan(S, S_lost + growth)
        L, L_lost = kahan(L, L_lost.at[arm].add(skipped / x[arm]))
        L, shift_lost = kahan(L, -jnp.min(L))
        L_lost = L_lost + shift_lost

        loss_sum, error = two_sum(loss_sum, loss)
        finite = jnp.isfinite(L).all() & jnp.isfinite(L_lost).all() & jnp.isfinite(S) & jnp.isfinite(S_lost)
        failed = jnp.where((failed == 0) & ~finite, t, failed)
        return (
            key,
            L,
            L_lost,
            S,
            S_lost,
            pulls.at[arm].add((arm >= 0).astype(jnp.int32)),
            loss_sum,
            loss_lost + error,
            failed,
        ), None

    def game(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        zero, zeros = jnp.zeros((), real), jnp.zeros(num_arms, real)
        scale, pulls = jnp.asarray(INITIAL_SCALE, real), jnp.zeros(num_arms, jnp.int32)
        state = (key, zeros, zeros, scale, zero, pulls, zero, zero, jnp.int32(0))
        state, _ = lax.scan(step, state, jnp.arange(1, horizon + 1, dtype=jnp.int32))
        *_, pulls, loss_sum, loss_lost, failed = state
        return pulls, loss_sum + loss_lost, failed

    play = jax.jit(jax.vmap(game))

    def run() -> NDArray[np.float64]:
        with jax.enable_x64(real is np.float64):
            keys = jax.random.split(jax.random.key(SEED), num_seeds)
            pulls, _, _ = jax.block_until_ready(play(keys))
        return regret_of(np.asarray(pulls).T, host_means, horizon)

    run()
    return run

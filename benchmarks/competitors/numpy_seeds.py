"""NumPy: arrays over seeds."""

import math

import numpy as np
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


def numpy_seeds(
    means: ArrayLike, tail_index: float, horizon: int, num_seeds: int, dtype: DTypeLike, num_threads: int
) -> Run:
    """Returns a run by NumPy: a Python loop over the rounds, and every quantity an array over seeds, arms first.

    Args and return value as for ``cpp``; NumPy works in one thread whatever ``num_threads``.
    """
    del num_threads
    means = np.asarray(means, np.float64)
    num_arms, real = means.size, real_of(dtype)
    newton_steps = num_steps(num_arms, real)
    factor = (means * (tail_index - 1) / tail_index).astype(real)
    scaling, exponent = real(num_arms * math.log(horizon)), real(-1 / tail_index)
    seeds = np.arange(num_seeds)

    def two_sum(a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
        total = a + b
        part = total - a
        return total, (a - (total - part)) + (b - part)

    def solve(u: NDArray) -> NDArray:
        y = np.ones(num_seeds, real)
        for _ in range(newton_steps):
            inverse = 1 / (u + y)
            phi = inverse.sum(axis=0)
            y += phi * (phi - 1) / (inverse * inverse).sum(axis=0)
        return 1 / (u + y)

    def draw_arm(x: NDArray, words: NDArray) -> NDArray:
        high = (words[0] >> 8).astype(real) * real(2.0**-24)
        low = (((words[0] & 0xFF) << 16) | (words[1] >> 16)).astype(real) * real(2.0**-48)
        likeliest = x.argmax(axis=0)
        others = x.copy()
        others[likeliest, seeds] = 0
        total, lost = others[0], np.zeros(num_seeds, real)
        arm = (high - total + low >= 0).astype(np.int64)
        for other in others[1:]:
            total, error = two_sum(total, other)
            lost += error
            arm += (high - total) + (low - lost) >= 0
        is_law = (np.abs(x.sum(axis=0) - 1) <= real(OFF_BY)) & (x.min(axis=0) >= 0)
        return np.where(is_law, np.where(arm == num_arms, likeliest, arm), -1)

    def draw_loss(arm: NDArray, words: NDArray) -> NDArray:
        w0, w1, w2 = words[2].astype(real), words[3].astype(real), (words[1] << 16).astype(real)
        uniform = w0 * real(2.0**-32) + (w1 * real(2.0**-64) + (w2 * real(2.0**-96) + real(2.0**-97)))
        return np.where(arm >= 0, factor[arm], real(np.nan)) * uniform**exponent

    def run() -> NDArray[np.float64]:
        rng = np.random.default_rng(SEED)
        L, L_lost = np.zeros((num_arms, num_seeds), real), np.zeros((num_arms, num_seeds), real)
        S, S_lost = np.full(num_seeds, INITIAL_SCALE, real), np.zeros(num_seeds, real)
        loss_sum, loss_lost = np.zeros(num_seeds, real), np.zeros(num_seeds, real)
        pulls, failed = np.zeros((num_arms, num_seeds), np.int32), np.zeros(num_seeds, np.int32)
        for t in range(1, horizon + 1):
            words = rng.integers(0, 1 << 32, (4, num_seeds), np.uint32)
            x = solve(L / S)
            arm = draw_arm(x, words[:2])
            loss = draw_loss(arm, words)

            x_arm = x[arm, seeds]
            x[arm, seeds] = 0
            x_rest = np.maximum(x.sum(axis=0), real(SMALLEST_REST))
            threshold = S / (4 * x_rest)
            skipped = np.where(np.abs(loss) < threshold, loss, 0)
            growth = (np.clip(loss, -threshold, threshold) * x_rest) ** 2 / scaling
            growth /= S + np.sqrt(S * S + growth)

            S_term = S_lost + growth
            S_next = S + S_term
            S, S_lost = S_next, S_term - (S_next - S)
            L_lost[arm, seeds] += skipped / x_arm
            added = L + L_lost
            L_lost -= added - L
            least = added.min(axis=0)
            L = added - least
            L_lost += -least - (L - added)

            pulls[arm, seeds] += arm >= 0
            loss_sum, error = two_sum(loss_sum, loss)
            loss_lost += error
            finite = np.isfinite(L).all(axis=0) & np.isfinite(L_lost).all(axis=0)
            finite &= np.isfinite(S) & np.isfinite(S_lost)
            failed[(failed == 0) & ~finite] = t
        return regret_of(pulls, means, horizon)

    return run

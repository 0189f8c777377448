"""Numba: a scalar loop, compiled."""

import functools
import math
from collections.abc import Callable

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


def numba_prange(
    means: ArrayLike, tail_index: float, horizon: int, num_seeds: int, dtype: DTypeLike, num_threads: int
) -> Run:
    """Returns a run by Numba: one game is a scalar loop, with ``prange`` over the seeds.

    Args and return value as for ``cpp``.
    """
    import numba

    means = np.asarray(means, np.float64)
    real = real_of(dtype)
    play = _numba_player(real)
    newton_steps = num_steps(means.size, real)

    def run() -> NDArray[np.float64]:
        numba.set_num_threads(num_threads)
        pulls, _, _ = play(means.astype(real), real(tail_index), horizon, num_seeds, newton_steps)
        return regret_of(pulls, means, horizon)

    run()
    return run


@functools.cache
def _numba_player(real: type) -> Callable:
    from numba import njit, prange, uint32

    zero, one, nan, tiny, off_by = real(0), real(1), real(np.nan), real(SMALLEST_REST), real(OFF_BY)
    seed_hi, seed_lo = np.uint32(SEED >> 32), np.uint32(SEED & 0xFFFFFFFF)

    @njit(inline="always")
    def rounds(x0, x1, rotations):
        for rotation in rotations:
            x0 = uint32(x0 + x1)
            x1 = uint32(uint32(x1 << uint32(rotation)) | uint32(x1 >> uint32(32 - rotation))) ^ x0
        return x0, x1

    @njit
    def threefry(k0, k1, x0, x1):
        k2 = uint32(k0 ^ k1 ^ uint32(0x1BD11BDA))
        x0, x1 = rounds(uint32(x0 + k0), uint32(x1 + k1), (13, 15, 26, 6))
        x0, x1 = rounds(uint32(x0 + k1), uint32(x1 + k2 + uint32(1)), (17, 29, 16, 24))
        x0, x1 = rounds(uint32(x0 + k2), uint32(x1 + k0 + uint32(2)), (13, 15, 26, 6))
        x0, x1 = rounds(uint32(x0 + k0), uint32(x1 + k1 + uint32(3)), (17, 29, 16, 24))
        x0, x1 = rounds(uint32(x0 + k1), uint32(x1 + k2 + uint32(4)), (13, 15, 26, 6))
        return uint32(x0 + k2), uint32(x1 + k0 + uint32(5))

    @njit
    def two_sum(a, b):
        total = a + b
        part = total - a
        return total, (a - (total - part)) + (b - part)

    @njit(error_model="numpy")
    def solve(L, S, newton_steps, u, x):
        for i in range(L.size):
            u[i] = L[i] / S
        y = one
        for _ in range(newton_steps):
            phi, slope = zero, zero
            for i in range(L.size):
                inverse = one / (u[i] + y)
                phi += inverse
                slope += inverse * inverse
            y += phi * (phi - one) / slope
        for i in range(L.size):
            x[i] = one / (u[i] + y)

    @njit
    def draw_arm(x, w0, w1):
        high = real(w0 >> uint32(8)) * real(2.0**-24)
        low = real(uint32((w0 & uint32(0xFF)) << uint32(16)) | uint32(w1 >> uint32(16))) * real(2.0**-48)
        whole, least = zero, x[0]
        for i in range(x.size):
            whole += x[i]
            least = min(least, x[i])
        if not (abs(whole - one) <= off_by and least >= zero):  # a NaN is in the sum
            return -1
        likeliest = np.argmax(x)
        total, lost, arm = zero, zero, 0
        for i in range(x.size):
            total, error = two_sum(total, zero if i == likeliest else x[i])
            lost += error
            if (high - total) + (low - lost) < zero:
                break
            arm += 1
        return likeliest if arm == x.size else arm

    @njit(error_model="numpy")
    def draw_loss(mean, tail_index, w0, w1, w2):
        tail = real(w2) * real(2.0**-96) + real(2.0**-97)
        uniform = real(w0) * real(2.0**-32) + (real(w1) * real(2.0**-64) + tail)
        return mean * (tail_index - one) / tail_index * math.exp(-math.log(uniform) / tail_index)

    @njit(parallel=True, error_model="numpy")
    def play(means, tail_index, horizon, num_seeds, newton_steps):
        num_arms = means.size
        scaling = real(num_arms * math.log(horizon))
        pulls = np.zeros((num_arms, num_seeds), np.int32)
        losses = np.zeros(num_seeds)
        failed = np.zeros(num_seeds, np.int32)
        for n in prange(num_seeds):
            k0, k1 = threefry(seed_hi, seed_lo, uint32(0), uint32(n))
            L, L_lost = np.zeros(num_arms, real), np.zeros(num_arms, real)
            u, x = np.empty(num_arms, real), np.empty(num_arms, real)
            pulled = np.zeros(num_arms, np.int32)
            S, S_lost, loss_sum, loss_lost = real(INITIAL_SCALE), zero, zero, zero
            for t in range(1, horizon + 1):
                solve(L, S, newton_steps, u, x)
                w0, spare = threefry(k0, k1, uint32(t), uint32(1 << 24))
                arm = draw_arm(x, w0, spare)
                w0, w1 = threefry(k0, k1, uint32(t), uint32(2 << 24))
                drawn = draw_loss(means[max(arm, 0)], tail_index, w0, w1, uint32(spare << uint32(16)))
                loss = drawn if arm >= 0 else nan

                x_rest = zero
                for i in range(num_arms):
                    if i != arm:
                        x_rest += x[i]
                x_rest = max(x_rest, tiny)
                threshold = S / (real(4) * x_rest)
                skipped = loss if abs(loss) < threshold else zero
                clipped = max(-threshold, min(threshold, drawn)) if arm >= 0 else nan  # S turns NaN
                growth = (clipped * x_rest) * (clipped * x_rest) / scaling
                growth /= S + real(math.sqrt(S * S + growth))

                S_term = S_lost + growth
                S_next = S + S_term
                S, S_lost = S_next, S_term - (S_next - S)
                least = real(np.inf)
                for i in range(num_arms):
                    term = L_lost[i] + (skipped / x[i] if i == arm else zero)
                    added = L[i] + term
                    L[i], L_lost[i] = added, term - (added - L[i])
                    least = min(least, added)
                finite = math.isfinite(S) and math.isfinite(S_lost)
                for i in range(num_arms):
                    shifted = L[i] - least
                    L_lost[i] += -least - (shifted - L[i])
                    L[i] = shifted
                    finite = finite and math.isfinite(L[i]) and math.isfinite(L_lost[i])

                if arm >= 0:
                    pulled[arm] += 1
                loss_sum, error = two_sum(loss_sum, loss)
                loss_lost += error
                if failed[n] == 0 and not finite:
                    failed[n] = t
            pulls[:, n] = pulled
            losses[n] = np.float64(loss_sum) + np.float64(loss_lost)
        return pulls, losses, failed

    return play

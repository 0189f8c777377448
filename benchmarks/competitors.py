"""What the package is timed against: the same game, uniINF on Pareto losses, written the other ways.

Each function takes the world and the size of the run, does whatever is done once (compiling, warming
up), and returns ``run``: no arguments, a whole run, the regret of every seed ``[N]`` in float64. All
play the same algorithm with the same compensated sums and keep the same tallies (pulls, suffered
loss, first failure), from 128 random bits a round. ``cpp`` and ``numba_prange`` draw the package's own bits.
"""

import ctypes
import functools
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike, DTypeLike, NDArray

Run = Callable[[], NDArray[np.float64]]

INITIAL_SCALE = 4.0
SEED = 0
SMALLEST_REST = 2.0**-100  # of 1 - x, where x rounds to 1
FLAGS = ("-O3", "-march=native", "-std=gnu++17", "-shared", "-fPIC", "-pthread")


def cpp(
    means: ArrayLike,
    tail_index: float,
    horizon: int,
    num_seeds: int,
    dtype: DTypeLike,
    num_threads: int,
    *,
    halley: bool = False,
) -> Run:
    """Hand-vectorised C++, ``uniinf.cpp``, compiled on the spot: the limit.

    Args:
      means: Expected loss of each arm, [K].
      tail_index: Index of the Pareto law.
      horizon: Rounds.
      num_seeds: Games.
      dtype: float32 or float64.
      num_threads: Threads, each with its own games.
      halley: The package's own solver instead of Newton's method.

    Returns:
      The function to time.

    Raises:
      RuntimeError: If there is no g++, or it does not compile the source for this machine.
    """
    means = np.ascontiguousarray(means, np.float64)
    play = getattr(_library(halley), f"play_{_real(dtype).__name__}")
    regret, loss = np.empty(num_seeds), np.empty(num_seeds)
    pulls = np.empty((means.size, num_seeds), np.int64)
    failed = np.empty(num_seeds, np.int32)
    sizes = (ctypes.c_int(means.size), ctypes.c_int64(num_seeds), ctypes.c_int64(horizon), ctypes.c_int(num_threads))
    key = (ctypes.c_uint32(SEED >> 32), ctypes.c_uint32(SEED & 0xFFFFFFFF))
    law = (_address(means), ctypes.c_double(tail_index), ctypes.c_double(INITIAL_SCALE))

    def run() -> NDArray[np.float64]:
        play(*sizes, *key, *law, *map(_address, (regret, loss, pulls, failed)))
        return regret.copy()

    run()
    return run


@functools.cache
def _library(halley: bool) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        raise RuntimeError("the C++ competitor needs g++, which was not found; install g++ (apt install g++)")
    source = Path(__file__).with_name("uniinf.cpp")
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "uniinf.so")
        command = [compiler, *FLAGS, f"-DHALLEY={int(halley)}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"g++ could not compile {source} (it needs x86 with AVX2):\n{done.stderr}")
        return ctypes.CDLL(str(target))


def _address(array: NDArray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def numba_prange(
    means: ArrayLike, tail_index: float, horizon: int, num_seeds: int, dtype: DTypeLike, num_threads: int
) -> Run:
    """Numba: one game as a scalar loop, ``prange`` over seeds.

    Args and return value as for ``cpp``.
    """
    import numba

    means = np.asarray(means, np.float64)
    real = _real(dtype)
    play = _numba_player(real)
    newton_steps = _num_steps(means.size, real)

    def run() -> NDArray[np.float64]:
        numba.set_num_threads(num_threads)
        pulls, _, _ = play(means.astype(real), real(tail_index), horizon, num_seeds, newton_steps)
        return _regret(pulls, means)

    run()
    return run


@functools.cache
def _numba_player(real: type) -> Callable:
    from numba import njit, prange, uint32

    zero, one, tiny = real(0), real(1), real(SMALLEST_REST)
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
                loss = draw_loss(means[arm], tail_index, w0, w1, uint32(spare << uint32(16)))

                x_rest = zero
                for i in range(num_arms):
                    if i != arm:
                        x_rest += x[i]
                x_rest = max(x_rest, tiny)
                threshold = S / (real(4) * x_rest)
                skipped = loss if abs(loss) < threshold else zero
                clipped = max(-threshold, min(threshold, loss))
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

                pulled[arm] += 1
                loss_sum, error = two_sum(loss_sum, loss)
                loss_lost += error
                if failed[n] == 0 and not finite:
                    failed[n] = t
            pulls[:, n] = pulled
            losses[n] = np.float64(loss_sum) + np.float64(loss_lost)
        return pulls, losses, failed

    return play


def numpy_seeds(
    means: ArrayLike, tail_index: float, horizon: int, num_seeds: int, dtype: DTypeLike, num_threads: int
) -> Run:
    """NumPy: a Python loop over rounds, every quantity an array over seeds, arms first.

    Args and return value as for ``cpp``; NumPy works in one thread whatever ``num_threads``.
    """
    del num_threads
    means = np.asarray(means, np.float64)
    num_arms, real = means.size, _real(dtype)
    newton_steps = _num_steps(num_arms, real)
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
        return np.where(arm == num_arms, likeliest, arm)

    def draw_loss(arm: NDArray, words: NDArray) -> NDArray:
        w0, w1, w2 = words[2].astype(real), words[3].astype(real), (words[1] << 16).astype(real)
        uniform = w0 * real(2.0**-32) + (w1 * real(2.0**-64) + (w2 * real(2.0**-96) + real(2.0**-97)))
        return factor[arm] * uniform**exponent

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

            pulls[arm, seeds] += 1
            loss_sum, error = two_sum(loss_sum, loss)
            loss_lost += error
            finite = np.isfinite(L).all(axis=0) & np.isfinite(L_lost).all(axis=0)
            finite &= np.isfinite(S) & np.isfinite(S_lost)
            failed[(failed == 0) & ~finite] = t
        return _regret(pulls, means)

    return run


def plain_vmap_scan(
    means: ArrayLike, tail_index: float, horizon: int, num_seeds: int, dtype: DTypeLike, num_threads: int
) -> Run:
    """JAX, the obvious way: ``jit(vmap(scan(step)))``, ``jax.random`` in every step.

    Args and return value as for ``cpp``; XLA's thread pool is its own, whatever ``num_threads``.
    """
    del num_threads
    host_means = np.asarray(means, np.float64)
    num_arms = host_means.size
    real = _real(dtype)
    newton_steps = _num_steps(num_arms, real)
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
        return jnp.where(arm == num_arms, likeliest, arm)

    def draw_loss(arm: jax.Array, *words: jax.Array) -> jax.Array:
        w0, w1, w2 = (word.astype(real) for word in words)
        uniform = w0 * real(2.0**-32) + (w1 * real(2.0**-64) + (w2 * real(2.0**-96) + real(2.0**-97)))
        return jnp.asarray(factor)[arm] * uniform**exponent

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
        return (key, L, L_lost, S, S_lost, pulls.at[arm].add(1), loss_sum, loss_lost + error, failed), None

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
        return _regret(np.asarray(pulls).T, host_means)

    run()
    return run


def _real(dtype: DTypeLike) -> type[np.float32] | type[np.float64]:
    return {"float32": np.float32, "float64": np.float64}[np.dtype(dtype).name]


def _num_steps(num_arms: int, real: type) -> int:
    """Newton steps after which the residual is at rounding level."""
    decades = math.ceil(math.log10(max(num_arms, 2) / 2) - 1e-9)
    return (4 if real is np.float64 else 3) + decades


def _regret(pulls: NDArray, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pseudo-regret [N] from pulls [K, N]."""
    return (means - means.min()) @ pulls.astype(np.float64)

"""Laws drawn from a stream or a JAX key."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxbandit.random.bits import Key, Stream, words
from jaxbandit.types import Array


def uniform(key: Key, shape: tuple[int, ...] = ()) -> Array:
    """Draws uniforms on [0, 1) of 24 bits (32 in float64), for laws without a tail."""
    return _fraction(words(key, math.prod(shape))).reshape(shape)


def deep_uniform(key: Key, shape: tuple[int, ...] = ()) -> Array:
    """Draws uniforms on (0, 1] from at least 80 bits: float32's full relative precision down to 2^-56.

    Quantile functions need them: a 24-bit uniform would cut a tail at probability 2^-24.
    """
    if shape == ():
        return _deep(*_deep_words(key))
    return _deep(*words(key, 3 * math.prod(shape)).reshape(3, *shape))


def below(key: Key, count: int | Array, shape: tuple[int, ...] = ()) -> Array:
    """Draws whole numbers from 0 to ``count - 1``, int32, from 64 bits: all are equally likely up to 2^-64."""
    w0, w1 = words(key, 2 * math.prod(shape)).reshape(2, *shape)
    low = w0 * (jnp.uint32(count) if isinstance(count, int) else count)
    carry = low + _high_product(w1, count) < low
    return (_high_product(w0, count) + carry.astype(jnp.uint32)).astype(jnp.int32)


def randint(key: Key, shape: tuple[int, ...], minval: int | Array, maxval: int | Array) -> Array:
    """Draws whole numbers from ``minval`` to ``maxval - 1``, int32, all equally likely up to 2^-64."""
    if isinstance(minval, int) and isinstance(maxval, int) and minval >= maxval:
        raise ValueError(f"randint needs minval < maxval, got {minval} and {maxval}; maxval itself is never drawn")
    if isinstance(minval, int) and isinstance(maxval, int):
        return minval + below(key, maxval - minval, shape)
    low = jnp.asarray(minval, jnp.int32)
    return low + below(key, (jnp.asarray(maxval, jnp.int32) - low).astype(jnp.uint32), shape)


def bernoulli(key: Key, p: float | Array = 0.5, shape: tuple[int, ...] | None = None) -> Array:
    """Draws True with probability ``p``, to relative precision: a ``p`` of 1e-12 is not rounded to 0."""
    return deep_uniform(key, jnp.shape(p) if shape is None else shape) <= jnp.asarray(p, _dtype())


def gumbel(key: Key, shape: tuple[int, ...] = ()) -> Array:
    """Draws standard Gumbel variables; both of their tails are deep."""
    return -jnp.log(_both_ends(key, shape))


def choice(
    key: Key, a: int | Array, shape: tuple[int, ...] = (), replace: bool = True, p: Array | None = None
) -> Array:
    """Draws entries of ``a``, or of 0, ..., ``a - 1`` if it is a number, as ``jax.random.choice`` does.

    With ``p`` or without replacement, exponential clocks with the rates ``p`` race (one per entry and draw), so that a
    rare entry keeps its probability to relative precision. An entry with ``p = 0`` is drawn only without replacement,
    after all others.

    Args:
      key: A stream or a JAX key.
      a: The entries [n], or their number n.
      shape: Shape of the result.
      replace: Whether an entry may be drawn again.
      p: Probabilities [n], or any rates proportional to them; by default all entries are equally likely.
    """
    entries = None if isinstance(a, int | np.integer) else jnp.asarray(a)
    n, draws = int(a) if entries is None else entries.shape[0], math.prod(shape)
    p = None if p is None else jnp.asarray(p, _dtype())
    if not replace and draws > n:
        raise ValueError(f"choice without replacement cannot draw {draws} of {n} entries; draw at most {n}")
    if p is not None and p.shape != (n,):
        raise ValueError(f"choice needs one probability for each of {n} entries, got p of shape {p.shape}")
    if replace and p is None:
        index = below(key, n, shape)
    else:
        times = _both_ends(key, (draws, n) if replace else (n,))
        rates = jnp.broadcast_to(1.0 if p is None else p, times.shape)
        times = jnp.where(rates > 0, times / jnp.where(rates > 0, rates, 1), jnp.inf)
        index = jnp.argmin(times, axis=-1) if replace else jnp.argsort(times)[:draws]
        index = index.astype(jnp.int32).reshape(shape)
    return index if entries is None else entries[index]


def signed_uniform(key: Key) -> tuple[Array, Array]:
    """Draws a fair sign and an independent deep uniform, for both tails of a symmetric law."""
    w0, w1, w2, w3 = _deep_words(key, more=1)
    return jnp.where(w3 >> jnp.uint32(31) == 0, 1.0, -1.0).astype(_dtype()), _deep(w0, w1, w2)


def signed_uniforms(key: Key) -> tuple[Array, Array, Array]:
    """Draws a fair sign, a deep uniform, and a uniform on (0, 1) of 63 bits, all independent."""
    w0, w1, w2, w3, w4 = _deep_words(key, more=2)
    dtype = _dtype()
    second = w3.astype(dtype) * 2.0**-32 + ((w4 >> jnp.uint32(1)).astype(dtype) * 2.0**-63 + 2.0**-64)
    return jnp.where(w4 & jnp.uint32(1) == 0, 1.0, -1.0).astype(dtype), _deep(w0, w1, w2), second


def polar(key: Key, shape: tuple[int, ...] = ()) -> tuple[Array, Array]:
    """Draws a deep uniform and the cosine of an independent uniform angle (the two parts of Box-Muller)."""
    if shape == ():
        w0, w1, w2, w3 = _deep_words(key, more=1)
    else:
        w0, w1, w2, w3 = words(key, 4 * math.prod(shape)).reshape(4, *shape)
    return _deep(w0, w1, w2), jnp.cos(2 * math.pi * _fraction(w3))


def normal(key: Key, shape: tuple[int, ...] = ()) -> Array:
    """Draws standard normals by Box-Muller; their tails are as deep as those of the deep uniform."""
    radius, cosine = polar(key, shape)
    return jnp.sqrt(-2 * jnp.log(radius)) * cosine


def exponential(key: Key, shape: tuple[int, ...] = ()) -> Array:
    """Draws standard exponentials."""
    return -jnp.log(deep_uniform(key, shape))


def minus_log_of_rest(u: Array) -> Array:
    """Returns -log(1 - u) to relative precision for small u, in a quarter of the time of ``log1p``."""
    rest = 1 - u
    return (u - (1 - rest)) - jnp.log(rest)  # the rounding error of the rest, and the rest


def _both_ends(key: Key, shape: tuple[int, ...]) -> Array:
    """Draws standard exponentials that keep their relative precision near 0 as well as in the tail.

    One bit chooses the half of the law; a deep uniform over 2 is the distance to its end.
    """
    if shape == ():
        w0, w1, w2, w3 = _deep_words(key, more=1)
    else:
        w0, w1, w2, w3 = words(key, 4 * math.prod(shape)).reshape(4, *shape)
    end, far = _deep(w0, w1, w2) / 2, w3 >> jnp.uint32(31) == 0
    rest = jnp.where(far, end, 1 - end)
    return jnp.where(far, 0, end - (1 - rest)) - jnp.log(rest)  # the rounding error of the rest, and the rest


def _deep_words(key: Key, more: int = 0) -> Sequence[Array]:
    return key.deep_words(more) if isinstance(key, Stream) else list(words(key, 3 + more))


def _dtype():
    return jnp.result_type(float)


def _fraction(word: Array) -> Array:
    """Returns the leading bits of a word as a number in [0, 1), exactly."""
    if _dtype() == jnp.float64:
        return word.astype(jnp.float64) * 2.0**-32
    return (word >> jnp.uint32(8)).astype(jnp.float32) * 2.0**-24


def _high_product(word: Array, count: int | Array) -> Array:
    """Returns the upper 32 of a product's 64 bits, from halves of 16: without x64 JAX has no 64-bit integers."""
    high, low = word >> jnp.uint32(16), word & jnp.uint32(0xFFFF)
    if isinstance(count, int):
        count_high, count_low = map(jnp.uint32, divmod(count, 1 << 16))
    else:
        count_high, count_low = count >> jnp.uint32(16), count & jnp.uint32(0xFFFF)
    first = high * count_low + ((low * count_low) >> jnp.uint32(16))
    second = low * count_high + (first & jnp.uint32(0xFFFF))
    return high * count_high + (first >> jnp.uint32(16)) + (second >> jnp.uint32(16))


def _deep(w0: Array, w1: Array, w2: Array) -> Array:
    # The bits as a sum from the small end: each conversion rounds relatively, so leading zeros
    # cost no precision. The half unit at the end keeps the sum positive.
    dtype = _dtype()
    low = w2.astype(dtype) * 2.0**-96 + 2.0**-97
    return w0.astype(dtype) * 2.0**-32 + (w1.astype(dtype) * 2.0**-64 + low)

"""Random numbers as functions of counters.

The bits of game n at round t are threefry2x32(key of the game, (t, stream, draw)). They depend on
nothing else, so a result is the same whatever the block, the device or the point of resumption.
A policy or environment receives a *stream*, the words of its own round; a JAX key may replace it
if a policy is called by hand. A stream or key passed to a function here is consumed, so use
``split`` to draw twice.
"""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.types import Array

# The consumers of a round's bits, in the second word of the counter.
POLICY, ARM, LOSS, UPDATE = 0, 1, 2, 3
DRAWS = 1 << 24  # draws a stream may make in one round
PRNG = "threefry2x32-20, counter (round, consumer, pair), key fold_in(key(seed), n)"

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def seed_words(seed: int) -> np.ndarray:
    """Returns the key words of a seed, uint32 [2]; on the host float32 and float64 read the same 64 bits of it."""
    seed = int(seed)
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be a whole number from 0 to 2^64 - 1, got {seed}")
    return np.asarray([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def game_words(key: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns the key words of the games with these numbers, uint32 [2, games]: those of ``game_key``, on the host."""
    numbers = np.asarray(numbers, np.uint32)
    with np.errstate(over="ignore"):
        return np.stack(_cipher((key[0], key[1]), (np.zeros_like(numbers), numbers), np))


def threefry2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Applies Threefry-2x32 with 20 rounds (Salmon et al., SC 2011), the cipher behind ``jax.random``.

    It is written out because ``jax.random`` lowers to a rolled loop on a CPU. It acts elementwise on uint32.
    """
    return _traced_once(key, counter)


def _cipher(key: tuple, counter: tuple, numpy) -> tuple:
    """Applies the cipher to arrays of JAX or NumPy."""
    word = numpy.uint32
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ word(0x1BD11BDA))
    x0, x1 = counter[0] + k0, counter[1] + k1
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << word(rotation)) | (x1 >> word(32 - rotation))
            x1 = x0 ^ x1
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + word(group + 1)
    return x0, x1


# JAX traces its hundred operations once, not for every stream of every round that is compiled.
_traced_once = jax.jit(functools.partial(_cipher, numpy=jnp))


class Stream:
    """The random words of one (game, round, consumer).

    ``draw(first, count)`` returns pairs of words number ``first``, ``first + 1``, ... as two arrays [count].
    ``spare`` returns a word whose low 16 bits have no other use. They lengthen a deep uniform, which would
    otherwise cost a second pair.
    """

    def __init__(
        self,
        draw: Callable[[int, int], tuple[Array, Array]],
        first: int = 0,
        last: int = DRAWS,
        spare: Callable[[], Array] | None = None,
    ):
        self._draw, self._first, self._last, self._spare = draw, first, last, spare

    def words(self, count: int) -> Array:
        """Returns the first ``count`` words of the stream, uint32 [count]."""
        return jnp.concatenate(self._draw(self._first, -(-count // 2)))[:count]

    def deep_words(self, more: int = 0) -> list[Array]:
        """Returns three words for a deep uniform, and ``more`` further words."""
        if self._spare is None:
            return list(self.words(3 + more))
        words = list(self.words(2 + more))
        return [*words[:2], self._spare() << jnp.uint32(16), *words[2:]]

    def split(self, count: int) -> list["Stream"]:
        """Returns ``count`` streams that share no words."""
        width = (self._last - self._first) // count
        starts = [self._first + n * width for n in range(count)]
        return [Stream(self._draw, start, start + width) for start in starts]


Key = Stream | Array

Draw = Callable[[int, int, int], tuple[Array, Array]]  # (consumer, first pair, count) -> two arrays [count]


class Streams(NamedTuple):
    """The streams of one round, in the order of their consumers' numbers."""

    policy: Stream  # for ``policy.probabilities``
    arm: Stream
    loss: Stream
    update: Stream  # for a ``policy.update`` that draws


def streams(draw: Draw) -> Streams:
    """Returns the streams of a round for its policy, its arm, its loss and the policy's update."""

    def of(consumer: int, spare: Callable[[], Array] | None = None) -> Stream:
        return Stream(lambda first, count: draw(consumer, first, count), spare=spare)

    # Drawing an arm takes 48 of its 64 bits; the other 16 go to the loss.
    return Streams(of(POLICY), of(ARM), of(LOSS, spare=lambda: draw(ARM, 0, 1)[1][0]), of(UPDATE))


def round_streams(key: Array, t: Array) -> Streams:
    """Returns the streams of round ``t`` of the game with this JAX key."""
    return word_streams(jax.random.key_data(key), t)


def word_streams(key_words: Array, t: Array) -> Streams:
    """Returns the streams of round ``t`` of the game whose key has these two words."""
    k0, k1 = key_words[0], key_words[1]
    drawn: dict[tuple[int, int, int], tuple[Array, Array]] = {}  # the spare bits are read twice

    def draw(consumer: int, first: int, count: int) -> tuple[Array, Array]:
        if (consumer, first, count) not in drawn:
            rounds = jnp.full(count, jnp.asarray(t).astype(jnp.uint32))
            counters = pair_counters(consumer, first, count)
            drawn[consumer, first, count] = threefry2x32((k0, k1), (rounds, counters))
        return drawn[consumer, first, count]

    return streams(draw)


def pair_counters(consumer: int, first: int, count: int) -> Array:
    """Returns the second word of the cipher's input for each pair; the first word is the round."""
    return jnp.uint32(consumer * DRAWS + first) + jnp.arange(count, dtype=jnp.uint32)


def takes_key(method: Callable) -> bool:
    """Returns whether a method declares the argument ``key``."""
    return "key" in inspect.signature(method).parameters


def words(key: Key, count: int) -> Array:
    """Returns ``count`` uint32 words of a stream or JAX key."""
    return key.words(count) if isinstance(key, Stream) else jax.random.bits(key, (count,), jnp.uint32)


def split(key: Key, count: int = 2) -> Sequence[Key]:
    """Returns ``count`` streams or keys that share no words."""
    return key.split(count) if isinstance(key, Stream) else list(jax.random.split(key, count))


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


def below(key: Key, count: int) -> Array:
    """Draws a whole number from 0 to ``count - 1``, int32, from 64 bits: all are equally likely up to 2^-64."""
    w0, w1 = words(key, 2)
    low = w0 * jnp.uint32(count)
    carry = low + _high_product(w1, count) < low
    return (_high_product(w0, count) + carry.astype(jnp.uint32)).astype(jnp.int32)


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


def _deep_words(key: Key, more: int = 0) -> Sequence[Array]:
    return key.deep_words(more) if isinstance(key, Stream) else list(words(key, 3 + more))


def _dtype():
    return jnp.result_type(float)


def _fraction(word: Array) -> Array:
    """Returns the leading bits of a word as a number in [0, 1), exactly."""
    if _dtype() == jnp.float64:
        return word.astype(jnp.float64) * 2.0**-32
    return (word >> jnp.uint32(8)).astype(jnp.float32) * 2.0**-24


def _high_product(word: Array, count: int) -> Array:
    """Returns the upper 32 of a product's 64 bits, from halves of 16: without x64 JAX has no 64-bit integers."""
    high, low = word >> jnp.uint32(16), word & jnp.uint32(0xFFFF)
    count_high, count_low = map(jnp.uint32, divmod(count, 1 << 16))
    first = high * count_low + ((low * count_low) >> jnp.uint32(16))
    second = low * count_high + (first & jnp.uint32(0xFFFF))
    return high * count_high + (first >> jnp.uint32(16)) + (second >> jnp.uint32(16))


def _deep(w0: Array, w1: Array, w2: Array) -> Array:
    # The bits as a sum from the small end: each conversion rounds relatively, so leading zeros
    # cost no precision. The half unit at the end keeps the sum positive.
    dtype = _dtype()
    low = w2.astype(dtype) * 2.0**-96 + 2.0**-97
    return w0.astype(dtype) * 2.0**-32 + (w1.astype(dtype) * 2.0**-64 + low)

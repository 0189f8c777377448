"""Streams of random words, which are functions of counters: the cipher, and what a round reads."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.types import Array

# The consumers of a round's bits, in the second word of the counter.
POLICY, ARM, LOSS, UPDATE = 0, 1, 2, 3
LAWS = ("uniform", "normal", "exponential", "gumbel", "bernoulli", "randint", "choice")  # that a message offers
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

    @property
    def __jax_array__(self):
        """Raises: ``jax.random`` and ``jax.numpy`` look for this attribute in an argument that is no array."""
        raise TypeError(
            "the key of a round is a stream of jaxbandit, which jax.random and jax.numpy cannot read; draw from "
            f"jaxbandit.random: {', '.join(LAWS)}; for another law of jax.random pass it jaxbandit.random.jax_key(key)"
        )


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


def jax_key(key: Key) -> Array:
    """Returns a JAX key for the laws of ``jax.random`` that are not here; a key that is one already is unchanged."""
    return jax.random.wrap_key_data(key.words(2), impl="threefry2x32") if isinstance(key, Stream) else key

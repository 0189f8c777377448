"""Random bits: the cipher, what a stream depends on, and the laws drawn from it.

Every statistical assertion has a fixed seed and a false-alarm rate of at most 1e-6: ``RARE`` for
p-values, z = 5 (6e-7) for means and counts.
"""

import functools
import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend.random import threefry_2x32

import jaxbandit as jb
from jaxbandit import arms, random
from tests.support.helpers import RARE, assert_mean, some, stream_from, stream_of, stream_of_pairs
from tests.support.policies import quick_jit

DRAWS = 100_000
WORD = st.integers(0, 2**32 - 1)
CONSUMERS = (random.POLICY, random.ARM, random.LOSS)


@functools.partial(quick_jit, static_argnums=(2, 3))
def _stream_words(key, t, consumer, count):
    return random.round_streams(key, t)[consumer].words(count)


def stream_words(key, t, consumer, count=4):
    return tuple(_stream_words(key, jnp.int32(t), consumer, count).tolist())


# The cipher


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_known_answers(key, counter, expected):
    out = random.threefry2x32(tuple(map(jnp.uint32, key)), tuple(map(jnp.uint32, counter)))
    assert tuple(map(int, out)) == expected


def test_threefry_is_that_of_jax_bit_for_bit():
    k0, k1, c0, c1 = np.random.default_rng(0).integers(0, 2**32, (4, 200), dtype=np.uint32)
    ours = quick_jit(random.threefry2x32)((k0, k1), (c0, c1))
    theirs = jax.vmap(threefry_2x32)(jnp.stack([k0, k1], axis=1), jnp.stack([c0, c1], axis=1))
    np.testing.assert_array_equal(np.stack(ours, axis=1), theirs)


def test_threefry_is_what_jax_random_bits_are_made_of():
    k0, k1 = jax.random.key_data(jax.random.key(7, impl="threefry2x32"))
    high, low = random.threefry2x32((k0, k1), (jnp.zeros(64, jnp.uint32), jnp.arange(64, dtype=jnp.uint32)))
    expected = jax.random.bits(jax.random.key(7, impl="threefry2x32"), (64,), jnp.uint32)
    np.testing.assert_array_equal(high ^ low, expected)


# Streams


def test_round_streams_are_a_function_of_key_round_consumer_and_pair():
    for n, t, consumer in itertools.product((0, 5), (1, 2, 2**31 - 1), CONSUMERS):
        key = jb.game_key(3, n)
        counters = [jnp.array([t, consumer * random.DRAWS + pair], dtype=jnp.uint32) for pair in (0, 1, 2)]
        expected = np.concatenate([threefry_2x32(jax.random.key_data(key), counter) for counter in counters])
        assert sorted(stream_words(key, t, consumer, 6)) == sorted(expected.tolist())


def test_round_streams_do_not_depend_on_batching_or_on_what_was_drawn_before():
    key = jb.game_key(0, 0)
    rounds = jnp.arange(1, 9, dtype=jnp.int32)

    def loss_words(t):
        policy, arm, loss, update = random.round_streams(key, t)
        policy.words(7), arm.words(2), update.words(3)
        return loss.words(4)

    batched = quick_jit(jax.vmap(loss_words))(rounds)
    alone = [stream_words(key, t, random.LOSS) for t in rounds.tolist()]
    np.testing.assert_array_equal(batched, alone)


def test_streams_of_different_consumers_rounds_and_games_differ():
    pairs = [
        words[i : i + 2]
        for seed, n, t, consumer in itertools.product((0, 1), (0, 1, 2), (1, 2, 3, 1000), CONSUMERS)
        for words in [stream_words(jb.game_key(seed, n), t, consumer)]
        for i in (0, 2)
    ]
    assert len(set(pairs)) == len(pairs) == 144  # a coincidence of 64-bit words: 6e-16


def test_a_stream_gives_the_words_it_is_asked_for_in_order():
    stream = stream_of(10, 11, 12, 13, 14, 15)
    for count in (1, 4, 5):
        assert stream.words(count).tolist() == list(range(10, 10 + count))
    assert [int(word) for word in stream.deep_words(1)] == [10, 11, 12, 13]
    lengthened = stream_of(10, 11, 12, 13, spare=0xABCD1234).deep_words(2)
    assert [int(word) for word in lengthened] == [10, 11, 0x12340000, 12, 13]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_split_streams_share_no_words(count):
    drawn = []

    def draw(first, count):
        drawn.extend(range(first, first + count))
        return jnp.zeros(count, jnp.uint32), jnp.zeros(count, jnp.uint32)

    used = []
    for part in random.split(random.Stream(draw), count):
        for piece in random.split(part, 3):
            drawn.clear()
            piece.words(9)
            piece.deep_words(4)
            used.append(set(drawn))
    assert len(used) == 3 * count
    for one, other in itertools.combinations(used, 2):
        assert not one & other
    assert all(0 <= pair < random.DRAWS for pairs in used for pair in pairs)


def test_split_keys_share_no_words():
    parts = random.split(jax.random.key(0), 5)
    words = [int(word) for part in parts for word in random.words(part, 8)]
    assert len(set(words)) == 40  # a coincidence of 32-bit words: 2e-7


def test_the_loss_reads_only_the_bits_that_drawing_an_arm_leaves():
    w0, w1, noise = np.random.default_rng(1).integers(0, 2**32, (3, 500), dtype=np.uint32)
    draw = quick_jit(jax.vmap(lambda *words: arms.draw(jnp.full(5, 0.2), stream_from(jnp.stack(words)))))
    np.testing.assert_array_equal(draw(w0, w1), draw(w0, w1 & 0xFFFF0000 | noise & 0xFFFF))
    deep = quick_jit(jax.vmap(lambda spare: random.deep_uniform(stream_of(0, 0, spare=spare))))
    np.testing.assert_array_equal(deep(w1), deep(w1 & 0xFFFF | noise << 16))
    assert len(np.unique(deep(w1))) > 400  # of 65,536 values; 498 expected


def test_the_spare_word_of_the_loss_is_the_second_of_the_arm():
    _, arm, loss, _ = random.round_streams(jb.game_key(0, 3), jnp.int32(17))
    assert int(loss.deep_words()[2]) == (int(arm.words(2)[1]) << 16) % 2**32


# Uniforms


def deep_reference(w0, w1, w2):
    """The middle of the cell of 2^-96 that the bits name."""
    return Fraction(2 * (w0 << 64 | w1 << 32 | w2) + 1, 2**97)


@quick_jit
def deep_uniforms(words):
    """Deep uniforms of rows of four words."""
    return jax.vmap(lambda words: random.deep_uniform(stream_from(words)))(words)


@quick_jit
def deep_uniforms_with_spare(words, spares):
    """Deep uniforms of rows of two words and a spare one."""
    return jax.vmap(lambda words, spare: random.deep_uniform(stream_from(words, spare)))(words, spares)


def assert_deep(values, words):
    """Two roundings of the significand: at most one unit in the last place."""
    assert values.dtype == jnp.result_type(float)
    precision = {"float32": 2.0**-23, "float64": 2.0**-52}[values.dtype.name] * (1 + 2**-16)
    for value, (w0, w1, w2) in zip(np.asarray(values).tolist(), words, strict=True):
        assert 0 < value <= 1
        assert abs(Fraction(value) / deep_reference(w0, w1, w2) - 1) <= precision, (value, w0, w1, w2)


def three_words(bits):
    return bits >> 64, bits >> 32 & 0xFFFFFFFF, bits & 0xFFFFFFFF


def words_behind(zeros):
    """Triples of words whose first ``zeros`` bits are 0 and the next is 1: the least, the largest, and 20 others."""
    rng = np.random.default_rng(zeros)
    rest = [0, 2 ** (95 - zeros) - 1, *(int.from_bytes(rng.bytes(12)) >> zeros + 1 for _ in range(20))]
    return [three_words(1 << 95 - zeros | low) for low in rest]


@pytest.mark.parametrize("zeros", [0, 1, 7, 23, 24, 25, 31, 32, 33, 40, 48, 55, 56])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_deep_uniform_keeps_full_precision_behind_leading_zeros(zeros, dtype):
    with jax.enable_x64(dtype == "float64"):
        words = words_behind(zeros)
        assert_deep(deep_uniforms(np.array([(*w, 0) for w in words], np.uint32)), words)
        words = [(w0, w1, w2 & 0xFFFF0000) for w0, w1, w2 in words]
        spares = np.array([w2 >> 16 | 0xBEEF0000 for _, _, w2 in words], np.uint32)
        assert_deep(deep_uniforms_with_spare(np.array([w[:2] for w in words], np.uint32), spares), words)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.integers(0, 2**96 - 1), st.integers(0, 96))
def test_deep_uniform_is_exact_to_rounding(bits, zeros):
    words = [three_words(bits >> zeros)]
    assert_deep(deep_uniforms(np.array([(*words[0], 0)], np.uint32)), words)
    with jax.enable_x64(True):
        assert_deep(deep_uniforms(np.array([(*words[0], 0)], np.uint32)), words)


def test_deep_uniform_at_the_extremes(x64):
    ones = 2**32 - 1
    assert float(random.deep_uniform(stream_of(0, 0, 0, 0))) == 2.0**-97
    assert float(random.deep_uniform(stream_of(0, 0, spare=0))) == 2.0**-97
    assert float(random.deep_uniform(stream_of(ones, ones, ones, ones))) <= 1
    with jax.enable_x64(False):
        assert float(random.deep_uniform(stream_of(0, 0, 0, 0))) == 2.0**-97
        assert float(random.deep_uniform(stream_of(ones, ones, ones, ones))) == 1
        assert float(random.deep_uniform(stream_of(ones, ones, spare=ones))) == 1


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.one_of(WORD, st.sampled_from([0, 0xFF, 0x100, 2**32 - 1])))
def test_uniform_is_the_leading_bits_exactly(word):
    value = random.uniform(stream_of(word, 0))
    assert value.dtype == jnp.float32
    assert Fraction(float(value)) == Fraction(word >> 8, 2**24) < 1
    with jax.enable_x64(True):
        assert Fraction(float(random.uniform(stream_of(word, 0)))) == Fraction(word, 2**32) < 1


def test_signed_uniform_reads_sign_and_size_from_different_bits():
    for w3, sign in ((0, 1.0), (2**31 - 1, 1.0), (2**31, -1.0), (2**32 - 1, -1.0)):
        got, size = random.signed_uniform(stream_of(3, 4, 5, w3))
        assert float(got) == sign
        assert_deep(size[None], [(3, 4, 5)])
        got, size = random.signed_uniform(stream_of(3, 4, w3, 9, spare=5))
        assert float(got) == sign
        assert_deep(size[None], [(3, 4, 5 << 16)])


def test_signed_uniforms_read_sign_and_sizes_from_different_bits(x64):
    for w4, sign in ((6, 1.0), (7, -1.0)):
        got, first, second = random.signed_uniforms(stream_of(3, 4, 5, 2**31, w4, 9))
        assert (float(got), float(second)) == (sign, 0.5 + 2.0**-63 * 3 + 2.0**-64)
        assert_deep(first[None], [(3, 4, 5)])
    assert float(random.signed_uniforms(stream_of(3, 4, 5, 0, 0, 9))[2]) == 2.0**-64


@pytest.mark.parametrize(("draw", "width"), [(random.uniform, 1), (random.deep_uniform, 3), (random.normal, 4)])
def test_each_of_many_draws_reads_words_of_its_own(draw, width):
    count = 12 * width
    words = 2**31 * np.eye(count + 1, count, dtype=np.uint32)  # one bit after the other, and none
    values = np.asarray(quick_jit(jax.vmap(lambda words: draw(stream_from(words), (3, 4))))(words))
    assert values.shape == (count + 1, 3, 4)
    changed = values[:-1] != values[-1]
    assert (changed.sum(axis=(1, 2)) == 1).all()
    assert (changed.sum(axis=0) == width).all()


# Laws


def sample(fn, source):
    """1e5 independent values of ``fn(key)`` from the keys of one kind of source."""
    if source == "key":
        keys = jax.random.split(jax.random.key(11), DRAWS)
        return quick_jit(jax.vmap(fn))(keys)
    pairs, spare = drawn_words({"stream": random.POLICY, "spare": random.LOSS}[source])
    if source == "spare":
        pairs = (*pairs, spare)
    return quick_jit(jax.vmap(lambda words: fn(stream_of_pairs(*words))))(pairs)


@functools.cache
def drawn_words(consumer):
    """Eight pairs of words of each of 1e5 rounds, and the word that a loss has to spare."""

    def words(t):
        streams = random.round_streams(jb.game_key(11, 0), t)
        return tuple(streams[consumer].words(16).reshape(2, 8)), streams[random.ARM].words(2)[1]

    return quick_jit(jax.vmap(words))(jnp.arange(1, DRAWS + 1, dtype=jnp.int32))


def assert_law(samples, law):
    samples = np.asarray(samples, np.float64).ravel()
    assert scipy.stats.kstest(samples, law.cdf).pvalue > RARE
    assert_mean(samples, law.mean())
    assert_mean((samples - law.mean()) ** 2, law.var())


def assert_uncorrelated(one, other):
    """Rank correlation of independent samples; z = 5."""
    assert abs(scipy.stats.spearmanr(one, other).statistic) * np.sqrt(len(one) - 1) <= 5


SOURCES = some(["stream"], ["spare", "key"])


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (random.uniform, scipy.stats.uniform()),
        (random.deep_uniform, scipy.stats.uniform()),
        (random.normal, scipy.stats.norm()),
        (random.exponential, scipy.stats.expon()),
    ],
    ids=["uniform", "deep_uniform", "normal", "exponential"],
)
def test_law(draw, law, source):
    assert_law(sample(draw, source), law)


@pytest.mark.parametrize(
    ("draw", "law"),
    [(random.deep_uniform, scipy.stats.uniform()), (random.normal, scipy.stats.norm())],
    ids=["deep_uniform", "normal"],
)
@pytest.mark.parametrize("source", some(["stream"], ["key"]))
def test_law_of_shaped_draws(draw, law, source):
    shaped = np.asarray(sample(lambda key: draw(key, (2, 1)), source))[:, :, 0]
    assert_law(shaped[:, 0], law)
    assert_law(shaped[:, 1], law)
    assert_uncorrelated(shaped[:, 0], shaped[:, 1])


@pytest.mark.parametrize("source", SOURCES)
def test_signed_uniform_law(source):
    sign, size = sample(random.signed_uniform, source)
    assert set(np.unique(sign)) == {-1.0, 1.0}
    assert_mean(sign, 0.0)
    assert_law(size, scipy.stats.uniform())
    assert_uncorrelated(sign, size)


@pytest.mark.parametrize("source", SOURCES)
def test_signed_uniforms_law(source):
    sign, first, second = sample(random.signed_uniforms, source)
    assert set(np.unique(sign)) == {-1.0, 1.0}
    assert_mean(sign, 0.0)
    for size in (first, second):
        assert_law(size, scipy.stats.uniform())
        assert_uncorrelated(sign, size)
    assert_uncorrelated(first, second)


@pytest.mark.parametrize("source", SOURCES)
def test_polar_law(source):
    radius, cosine = sample(random.polar, source)
    assert_law(radius, scipy.stats.uniform())
    assert_law(cosine, scipy.stats.arcsine(loc=-1, scale=2))
    assert_uncorrelated(radius, cosine)


def test_normal_in_its_far_tail(x64):
    # All bits zero but the lowest: the angle is 0, the radius the largest there is.
    assert float(random.normal(stream_of(0, 0, 0, 0))) == pytest.approx(np.sqrt(2 * 97 * np.log(2)), rel=1e-12)
    assert float(random.exponential(stream_of(0, 0, 0, 0))) == pytest.approx(97 * np.log(2), rel=1e-12)


@pytest.mark.parametrize(
    "draw",
    [
        random.uniform,
        random.deep_uniform,
        random.normal,
        random.exponential,
        random.signed_uniform,
        random.signed_uniforms,
        random.polar,
    ],
)
def test_a_jax_key_may_stand_in_for_a_stream(draw):
    one, again, other = (jnp.stack(jax.tree.leaves(draw(jax.random.key(seed)))) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert one[-1] != other[-1]
    assert one.dtype == jnp.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minus_log_of_rest_keeps_its_precision(dtype):
    u = np.concatenate([np.geomspace(1e-25, 0.5, 20_001), np.linspace(0.1, 1 - 1e-6, 20_001)]).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = np.asarray(quick_jit(random.minus_log_of_rest)(jnp.asarray(u)), np.longdouble)
        assert np.isposinf(random.minus_log_of_rest(jnp.ones((), dtype)))
    expected = -np.log1p(-u.astype(np.longdouble))
    assert np.max(np.abs(found / expected - 1)) < 3 * np.finfo(dtype).eps

"""The discrete laws and the Gumbel law: their shape from streams and keys, rare events, and both ways of the engine.

Every statistical assertion has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import functools
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.types import pytree
from tests.support.helpers import RARE, assert_binomial, stream_from, stream_of, stream_of_pairs
from tests.support.policies import quick_jit

DRAWS = 50_000
P = np.array([0.5, 0.0, 0.3, 0.2])


@functools.cache
def words():
    """Sixteen pairs of words of each of some rounds."""
    rounds = jnp.arange(1, DRAWS + 1, dtype=jnp.int32)
    return quick_jit(jax.vmap(lambda t: random.round_streams(jb.game_key(5, 0), t).policy.words(32).reshape(2, 16)))(
        rounds
    )


def sample(fn, source="stream"):
    if source == "key":
        return np.asarray(quick_jit(jax.vmap(fn))(jax.random.split(jax.random.key(5), DRAWS)))
    return np.asarray(quick_jit(jax.vmap(lambda pairs: fn(stream_of_pairs(*pairs))))(words()))


def assert_counts(values, law):
    """Whole numbers from 0 on have these probabilities."""
    counts = np.bincount(np.ravel(values), minlength=len(law))
    assert counts.size == len(law)
    assert (counts[np.asarray(law) == 0] == 0).all()
    kept = np.asarray(law) > 0
    assert scipy.stats.chisquare(counts[kept], np.asarray(law)[kept] * counts.sum()).pvalue > RARE


def from_both_sources(test):
    return pytest.mark.slow(pytest.mark.parametrize("source", ["stream", "key"])(test))


@from_both_sources
def test_randint(source):
    found = sample(lambda key: random.randint(key, (2,), -2, 4), source)
    assert found.dtype == np.int32
    assert_counts(found + 2, np.full(6, 1 / 6))
    assert_counts((found[:, 0] + 2) * 6 + found[:, 1] + 2, np.full(36, 1 / 36))
    traced = sample(lambda key: random.randint(key, (2,), jnp.int32(-2), jnp.int32(4)), source)
    np.testing.assert_array_equal(traced, found)


@from_both_sources
def test_bernoulli(source):
    found = sample(lambda key: random.bernoulli(key, jnp.array([0.2, 0.9])), source)
    for column, p in zip(found.T, (0.2, 0.9), strict=True):
        assert_binomial(int(column.sum()), DRAWS, p)
    assert not sample(lambda key: random.bernoulli(key, 0.0)).any()
    assert sample(lambda key: random.bernoulli(key, 1.0)).all()


def test_a_rare_event_keeps_its_probability():
    """A 24-bit uniform would round 1e-12 to 0: 40 bits of zeros, which have probability 2^-40, are one event of it."""
    assert bool(random.bernoulli(stream_of(0, 2**23, 0, 0), 1e-12))
    assert not bool(random.bernoulli(stream_of(0, 2**26, 0, 0), 1e-12))


@from_both_sources
def test_gumbel(source):
    found = sample(lambda key: random.gumbel(key, (2,)), source)
    for column in found.T:
        assert scipy.stats.kstest(column, scipy.stats.gumbel_r().cdf).pvalue > RARE
    assert scipy.stats.kstest(sample(random.gumbel, source), scipy.stats.gumbel_r().cdf).pvalue > RARE


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_tails_of_gumbel_are_deep(dtype):
    with jax.enable_x64(dtype == "float64"):
        far, near = 2**31, 0  # the sign of the last word chooses the half of the law
        assert float(random.gumbel(stream_of(0, 0, 0, far))) == pytest.approx(98 * np.log(2), rel=1e-6)
        assert float(random.gumbel(stream_of(0, 0, 0, near))) == pytest.approx(-np.log(98 * np.log(2)), rel=1e-6)


@from_both_sources
def test_choice_with_probabilities(source):
    entries = jnp.arange(4)
    found = sample(lambda key: random.choice(key, entries, (2,), p=3.0 * P), source)  # rates need no sum of 1
    assert_counts(found, P)
    assert_counts(found[:, 0] * 4 + found[:, 1], np.outer(P, P).ravel())


@pytest.mark.slow
def test_choice_of_equally_likely_entries():
    assert_counts(sample(lambda key: random.choice(key, 5)), np.full(5, 0.2))
    values = sample(lambda key: random.choice(key, jnp.array([10.0, 20.0])))
    assert set(np.unique(values)) == {10.0, 20.0}


@pytest.mark.slow
def test_choice_takes_lists_and_numbers_of_numpy():
    key = jax.random.key(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for a, p in (([10.0, 20.0, 30.0], None), (np.array([10.0, 20.0, 30.0]), [0.2, 0.3, 0.5])):
            given = None if p is None else jnp.asarray(p)
            assert random.choice(key, a, p=p) == random.choice(key, jnp.asarray(a), p=given)
        assert (
            random.choice(key, np.int64(5), (3,), replace=False).tolist()
            == random.choice(key, 5, (3,), replace=False).tolist()
        )


def test_choice_without_replacement():
    found = sample(lambda key: random.choice(key, 4, (2,), replace=False, p=jnp.asarray(P)))
    law = np.zeros((4, 4))
    for first in (0, 2, 3):
        for second in {0, 2, 3} - {first}:
            law[first, second] = P[first] * P[second] / (1 - P[first])
    assert_counts(found[:, 0] * 4 + found[:, 1], law.ravel())
    order = sample(lambda key: random.choice(key, 3, (3,), replace=False))
    assert_counts(order @ [9, 3, 1], np.bincount([5, 7, 11, 15, 19, 21], minlength=27)[:22] / 6)


@pytest.mark.slow
def test_an_entry_of_tiny_probability_is_as_rare_as_it_says():
    """The clock of entry 1 rings 2^-42 from the start: that wins at the rate 1e-12 and loses at 1e-14."""
    words = [
        3 * 2**30,
        0,
        0,
        2**23,
        0,
        0,
        2**31,
        2**31,
    ]  # three deep words for both entries, then the halves of the law
    for rate, winner in ((1e-12, 1), (1e-14, 0)):
        assert int(random.choice(stream_of(*words), 2, p=jnp.array([1.0, rate]))) == winner


def test_bad_arguments_are_refused():
    key = jax.random.key(0)
    for make, message in (
        (lambda: random.randint(key, (), 3, 3), "randint needs minval < maxval, got 3 and 3"),
        (lambda: random.choice(key, 3, (4,), replace=False), "cannot draw 4 of 3 entries"),
        (lambda: random.choice(key, 3, p=jnp.ones(2)), r"for each of 3 entries, got p of shape \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_jax_random_on_a_stream_says_what_to_write():
    stream = random.round_streams(jb.game_key(0, 0), jnp.int32(1)).policy
    for use in (jax.random.uniform, jax.random.split, lambda key: jax.random.categorical(key, jnp.zeros(3))):
        with pytest.raises(TypeError, match=r"draw from jaxbandit.random: uniform, .*choice.*jax_key\(key\)"):
            use(stream)
    assert float(jax.random.gamma(random.jax_key(stream), 2.0)) > 0
    key = jax.random.key(0)
    assert random.jax_key(key) is key


class Sums(NamedTuple):
    """What was drawn so far."""

    whole: jax.Array
    chosen: jax.Array
    order: jax.Array
    coin: jax.Array
    gumbel: jax.Array
    foreign: jax.Array


@pytree
class Draws:
    """Uniform play that sums what it draws."""

    def init(self, num_arms):
        return Sums(*jnp.zeros((6, 1)))

    def probabilities(self, state, t, key):
        return jnp.full(2, 0.5)

    def update(self, state, t, x, arm, loss, key):
        keys = random.split(key, 6)
        terms = (
            random.randint(keys[0], (3,), -5, t + 5).sum(),
            random.choice(keys[1], jnp.array([1.0, 2.0, 4.0]), (2,), p=jnp.array([0.2, 0.3, 0.5])).sum(),
            random.choice(keys[2], 4, (3,), replace=False) @ jnp.array([1, 10, 100]),
            random.bernoulli(keys[3], 0.3, (4,)).sum(),
            random.gumbel(keys[4], (2,)).sum(),
            jax.random.gumbel(random.jax_key(keys[5])),
        )
        return Sums(*(total + term.astype(total.dtype) for total, term in zip(state, terms, strict=True)))


@pytest.mark.slow
def test_both_ways_draw_alike():
    environment, options = jb.Bernoulli(means=[0.2, 0.5]), {"horizon": 20, "num_seeds": 16}
    native, scan = (
        jb.simulate(Draws(), environment, engine=jb.Engine(way=way), measures=Sums._fields, **options)
        for way in ("native", "scan")
    )
    for name in Sums._fields:
        error = 1e-5 if name in ("gumbel", "foreign") else 0  # the two ways round logarithms differently
        np.testing.assert_allclose(native[name], scan[name], rtol=error, atol=error)
        assert np.unique(native[name].isel(round=-1)).size > 5


@pytest.mark.parametrize("count", [1, 2, 3, 10, 2**16 + 1, 2**31 - 1])
def test_whole_numbers_are_the_upper_bits_of_a_product_of_64(count):
    """At both sides of each boundary the lower of the two words decides, by its carry."""
    k = np.random.default_rng(count).integers(1, max(count, 2), 40)
    edges = -(-(k << 32) // count) - 1
    w0 = np.concatenate([edges, edges, [0, 2**32 - 1]]).astype(np.uint32)
    w1 = np.repeat([0, 2**32 - 1], 41).astype(np.uint32)
    exact = [(int(a) * 2**32 + int(b)) * count >> 64 for a, b in zip(w0, w1, strict=True)]
    stream = stream_from(jnp.asarray(np.concatenate([w0, w1])))
    for given in (count, jnp.uint32(count)):
        np.testing.assert_array_equal(random.below(stream, given, w0.shape), exact)

"""Tails are drawn to their end: counts of rare losses, as users draw them.

Every statistical assertion has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import jaxbandit as jb
from jaxbandit import random
from tests.support.helpers import RARE, assert_binomial
from tests.support.laws import LAWS, exceedances

pytestmark = pytest.mark.slow

# Tails: of 2^28 draws 256 lie beyond the 2^-20 quantile of a tail and 16 beyond the 2^-24 quantile.

TAIL_DRAWS, TAIL = 2**28, 2.0**-20


def beyond(value_fn, lower, upper):
    """The rounds and values of 2^28 at which ``value_fn(t)`` is outside [lower, upper]."""
    chunk = 2**20
    values_fn = jax.jit(lambda start: jax.vmap(value_fn)(start + jnp.arange(chunk, dtype=jnp.int32)))
    rounds, values = [], []
    for start in range(1, TAIL_DRAWS, chunk):
        block = np.asarray(values_fn(jnp.int32(start)))
        hits = np.flatnonzero((block < lower) | (block > upper))
        rounds.append(start + hits)
        values.append(block[hits])
    return np.concatenate(rounds).astype(np.int32), np.concatenate(values)


def assert_poisson(count, mean):
    """A count of rare events; each side a false alarm in 3e-7 (z = 5)."""
    law = scipy.stats.poisson(mean)
    assert min(law.cdf(count), law.sf(count - 1)) > 2.9e-7, (count, mean)


def assert_distinct(uniforms):
    """No two values alike: of 256 in float32 one coincidence has probability 0.002, two 2e-6."""
    assert len(np.unique(uniforms)) >= len(uniforms) - 1, (len(np.unique(uniforms)), len(uniforms))


def loss_stream(t):
    return random.round_streams(jb.game_key(2024, 0), t)[random.LOSS]


@pytest.mark.parametrize(
    ("environment", "law", "uniform_of", "sides"),
    [
        (
            jb.Pareto(means=[1.0], tail_index=1.3),
            scipy.stats.pareto(1.3, scale=0.3 / 1.3),
            random.deep_uniform,
            ["upper"],
        ),
        (
            jb.StudentT(means=[0.0], tail_index=1.5),
            scipy.stats.t(1.5),
            lambda stream: random.polar(stream)[0],
            ["lower", "upper"],
        ),
    ],
    ids=["pareto", "student_t"],
)
def test_tails_are_drawn_to_their_end(environment, law, uniform_of, sides):
    lower = law.ppf(TAIL) if "lower" in sides else -np.inf
    rounds, losses = beyond(lambda t: environment.loss(t, jnp.int32(0), loss_stream(t)), lower, law.isf(TAIL))
    assert np.isfinite(losses).all()
    uniforms = np.asarray(jax.vmap(lambda t: uniform_of(loss_stream(t)))(jnp.asarray(rounds)))
    for side in sides:
        here = losses > 0 if side == "upper" else losses < 0
        probabilities = law.sf(losses[here]) if side == "upper" else law.cdf(losses[here])
        for depth in (2.0**-20, 2.0**-24):
            assert_poisson(np.sum(probabilities < depth), TAIL_DRAWS * depth)
        assert scipy.stats.kstest(probabilities / TAIL, "uniform").pvalue > RARE
        assert_distinct(uniforms[here])


def test_a_uniform_of_24_bits_fails_the_test_of_tails():
    _, uniforms = beyond(lambda t: random.uniform(loss_stream(t)), TAIL, np.inf)
    assert_poisson(len(uniforms), TAIL_DRAWS * TAIL)
    assert len(np.unique(uniforms)) <= 16
    with pytest.raises(AssertionError):
        assert_distinct(uniforms)


DEEP = 2**30  # draws of every law: about four minutes of one core for all of them


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, examples in LAWS.items() if examples[0].continuous])
def test_tail_down_to_one_in_ten_million(name):
    """Float32, as users draw it: counts beyond 1e-5, 1e-6 and 1e-7, below too where the law has a lower tail."""
    example = LAWS[name][0]
    levels, arm = (1e-5, 1e-6, 1e-7), 2
    thresholds = [float(np.float32(example.laws[arm].isf(level))) for level in levels]
    signed = example.laws[arm].support()[0] < 0
    environment = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), example.environment)
    chunks = jnp.int32(DEEP // 2**14)
    counts = np.asarray(exceedances(environment, jnp.int32(arm), jb.game_key(1, 0), tuple(thresholds), chunks))
    for n, level in enumerate(levels):
        assert_binomial(counts[n], DEEP, level)
        if signed:
            share = level if example.laws[arm].mean() == 0 else None
            reference = share or mirrored_tail(example.laws[arm], thresholds[n])
            assert_binomial(counts[n + 3], DEEP, reference)
        else:
            assert counts[n + 3] == 0


def mirrored_tail(law, z):
    """P(l < -z) of a law symmetric around its mean: P(l > z + 2 mean), by a root of isf."""
    goal = z + 2 * law.mean()
    return math.exp(scipy.optimize.brentq(lambda q: law.isf(math.exp(q)) / goal - 1, math.log(1e-17), math.log(1e-4)))

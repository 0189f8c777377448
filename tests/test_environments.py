"""Worlds: every registered one keeps the protocol, and each draws the law it declares, tails included.

Every statistical assertion has a fixed seed and z = 5, a false alarm in 1.7 million.
"""

import dataclasses
import functools
import itertools
import math
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import jaxbandit as jb
from jaxbandit import random
from tests.helpers import assert_mean

MEANS = [0.3, 0.5, 0.9]
ZEROS = [0.0, 0.0, 0.0]
DRAWS = 2_000_000
CHUNK = 100_000
TABLE = np.asarray([[-1.0, 0.0, 1.0], [0.0, 2.0, 3.0], [0.5, 4.0, 5.0], [7.0, 8.0, 9.0]])  # columns rise together


def pareto(mean, tail_index):
    return scipy.stats.pareto(tail_index, scale=mean * (tail_index - 1) / tail_index)


@dataclasses.dataclass
class Example:
    """A world and the SciPy law of each arm in round 1."""

    world: object
    laws: list

    def __repr__(self):
        return repr(self.world)


EXAMPLES = {
    "bernoulli": [Example(jb.Bernoulli(means=MEANS), [scipy.stats.bernoulli(mean) for mean in MEANS])],
    "gaussian": [
        Example(jb.Gaussian(means=MEANS, scale=0.7), [scipy.stats.norm(mean, 0.7) for mean in MEANS]),
        Example(jb.Gaussian(means=ZEROS), [scipy.stats.norm()] * 3),
    ],
    "pareto": [
        Example(jb.Pareto(means=MEANS, tail_index=1.2), [pareto(mean, 1.2) for mean in MEANS]),
        Example(jb.Pareto(means=MEANS, tail_index=5.0), [pareto(mean, 5.0) for mean in MEANS]),
    ],
    "replay": [
        Example(
            jb.Replay(TABLE, order="resampled", scale=0.5),
            [scipy.stats.rv_discrete(values=(0.5 * column, np.full(4, 0.25)))() for column in TABLE.T],
        ),
    ],
    "student_t": [
        Example(
            jb.StudentT(means=MEANS, tail_index=1.5, scale=2.0), [scipy.stats.t(1.5, loc=m, scale=2.0) for m in MEANS]
        ),
        Example(jb.StudentT(means=ZEROS, tail_index=4.5), [scipy.stats.t(4.5)] * 3),
    ],
    "switching": [
        Example(
            jb.Switching(jb.Pareto(means=MEANS, tail_index=1.6), lengths=[10_000_000, 5]),
            [pareto(mean, 1.6) for mean in MEANS],
        ),
        Example(jb.Switching(jb.Bernoulli(means=[0.3] * 3)), [scipy.stats.bernoulli(0.3)] * 3),
    ],
}
ALL = [
    pytest.param(example, id=f"{name}-{n}")
    for name in jb.ENVIRONMENTS
    for n, example in enumerate(EXAMPLES.get(name, []))
]


def losses(world, arms, rounds, games=0, seed=0):
    """Losses of ``arms`` in ``rounds`` of ``games``, arrays that broadcast, as the engine would draw them."""
    parts = [np.ravel(part).astype(np.int32) for part in np.broadcast_arrays(arms, rounds, games)]
    size, out = parts[0].size, []
    for start in range(0, size, CHUNK):
        chunk = [np.resize(part[start : start + CHUNK], CHUNK) for part in parts]  # one shape, one compilation
        arms, rounds, games = map(jnp.asarray, chunk)
        out.append(np.asarray(_losses(world, arms, rounds, _keys(jnp.int32(seed), games)), np.float64))
    return np.concatenate(out)[:size]


@jax.jit
def _losses(world, arms, rounds, keys):
    def one(arm, t, key):
        return world.loss(t, arm, random.round_streams(key, t)[random.LOSS])

    return jax.vmap(one)(arms, rounds, keys)


_keys = jax.jit(jax.vmap(jb.game_key, (None, 0)))


@functools.cache
def _sample(name, n, arm, size):
    with jax.enable_x64(True):
        return losses(EXAMPLES[name][n].world, arm, np.arange(1, size + 1))


def sample(example, arm, size=DRAWS):
    """Losses of the first rounds of one game in float64; kept, for several tests look at them."""
    place = next((name, n) for name, all_ in EXAMPLES.items() for n, one in enumerate(all_) if one is example)
    return _sample(*place, arm, DRAWS)[:size] if arm == example.world.num_arms - 1 else _sample(*place, arm, size)


# The protocol


@pytest.mark.parametrize("name", jb.ENVIRONMENTS)
def test_every_world_has_an_example(name):
    assert EXAMPLES.get(name), f"{name} is registered but not tested: add an instance and its laws to EXAMPLES here"
    assert all(type(example.world) is jb.ENVIRONMENTS[name] for example in EXAMPLES[name])


@pytest.mark.parametrize("example", ALL)
def test_shapes_and_means(example):
    world = example.world
    assert world.num_arms == len(example.laws)
    means = world.means(jnp.int32(1))
    assert means.shape == (world.num_arms,)
    assert means.dtype == jnp.float32
    np.testing.assert_allclose(means, [law.mean() for law in example.laws], rtol=1e-6)
    loss = jax.eval_shape(world.loss, jnp.int32(1), jnp.int32(0), jax.random.key(0))
    assert loss.shape == ()
    assert loss.dtype == jnp.float32


@pytest.mark.parametrize("example", ALL)
def test_the_same_key_round_and_arm_give_the_same_loss(example):
    arms, rounds = np.arange(60) % example.world.num_arms, np.arange(1, 61)
    together = losses(example.world, arms, rounds, games=7)
    np.testing.assert_array_equal(together, losses(example.world, arms, rounds, games=7))
    np.testing.assert_array_equal(together[::-1], losses(example.world, arms[::-1], rounds[::-1], games=7))


@pytest.mark.parametrize("example", ALL)
def test_all_arms_of_a_round_are_driven_by_the_same_uniforms(example, x64):
    table = [losses(example.world, arm, np.arange(1, 20_001)) for arm in range(example.world.num_arms)]
    for one, other in itertools.combinations(table, 2):
        order = np.lexsort((other, one))
        steps = np.diff(other[order])
        assert (steps >= -1e-12 * np.abs(other[order][1:])).all()  # comonotone, but for rounding
    assert np.std(table[0]) > 0


def test_arms_differ_by_scale_or_by_shift(x64):
    rounds = np.arange(1, 1001)
    world = jb.Pareto(means=MEANS, tail_index=1.2)
    ratios = [losses(world, arm, rounds) / mean for arm, mean in enumerate(MEANS)]
    np.testing.assert_allclose(ratios, [ratios[0]] * 3, rtol=1e-13)
    for world in (jb.StudentT(means=MEANS, tail_index=1.5, scale=2.0), jb.Gaussian(means=MEANS)):
        shifts = [losses(world, arm, rounds) - mean for arm, mean in enumerate(MEANS)]
        np.testing.assert_allclose(shifts, [shifts[0]] * 3, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("example", ALL)
def test_rounds_and_games_are_independent(example):
    first = np.arange(1, 50_001)
    now = losses(example.world, 0, first)
    assert_uncorrelated(now[1:], now[:-1], "next round")
    assert_uncorrelated(now, losses(example.world, 0, first + 2**20), "far round")
    assert_uncorrelated(now, losses(example.world, 0, first, seed=1), "other seed")
    games = losses(example.world, 0, 1, games=first)
    assert_uncorrelated(games[1:], games[:-1], "next game")
    assert_uncorrelated(games, losses(example.world, 0, 2, games=first), "next round of each game")


def assert_uncorrelated(one, other, name):
    """Rank correlation; z = 5."""
    correlation = scipy.stats.spearmanr(one, other).statistic
    assert abs(correlation) * math.sqrt(len(one) - 1) <= 5, (name, correlation)


# The laws

LEVELS = (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
CONTINUOUS = [param for param in ALL if isinstance(param.values[0].laws[0].dist, scipy.stats.rv_continuous)]


@pytest.mark.parametrize("example", CONTINUOUS)
def test_quantiles_down_to_one_in_a_hundred_thousand(example):
    arm = len(example.laws) - 1
    law, drawn = example.laws[arm], sample(example, arm)
    low, high = law.support()
    assert low * (1 - 1e-12) <= drawn.min()
    assert drawn.max() <= high
    for level in LEVELS:
        assert_binomial(np.sum(drawn > law.isf(level)), drawn.size, level)
        assert_binomial(np.sum(drawn < law.ppf(level)), drawn.size, level)


def assert_binomial(count, trials, probability):
    """A count of independent events; each side a false alarm in 2.9e-7 (z = 5): of 20 expected, 1 is too few."""
    law = scipy.stats.binom(trials, probability)
    assert min(law.cdf(count), law.sf(count - 1)) > 2.9e-7, (count, trials * probability)


@pytest.mark.parametrize("example", CONTINUOUS)
def test_truncated_mean(example):
    """Clipped at its 1e-3 quantiles the loss has a variance, whatever the tail index."""
    arm = len(example.laws) - 1
    law, drawn = example.laws[arm], sample(example, arm)
    low, high = law.ppf(1e-3), law.isf(1e-3)
    inside = scipy.integrate.quad(law.ppf, 1e-3, 1 - 1e-3, limit=500)[0]
    assert_mean(np.clip(drawn, low, high), inside + 1e-3 * (low + high))


@pytest.mark.parametrize("example", [param for param in ALL if param.values[0].laws[0].var() < np.inf])
def test_mean_where_the_variance_is_finite(example):
    drawn = sample(example, 0, 500_000)
    assert_mean(drawn, float(example.world.means(jnp.int32(1))[0]))
    if example.laws[0].moment(4) < np.inf:
        assert_mean((drawn - drawn.mean()) ** 2, example.laws[0].var())


@pytest.mark.parametrize("mean", [0.0, 1e-5, 0.3, 1.0])
def test_bernoulli_losses_have_their_probability(mean):
    drawn = losses(jb.Bernoulli(means=[mean] * 3), 0, np.arange(1, DRAWS + 1))
    assert set(np.unique(drawn)) <= {0.0, 1.0}
    if mean in (0.0, 1.0):
        assert (drawn == mean).all()
    else:
        assert_binomial(drawn.sum(), drawn.size, mean)


def test_float32_draws_the_law_of_float64():
    rounds = np.arange(1, 10_001)
    for world in (
        jb.Pareto(means=MEANS, tail_index=1.3),
        jb.StudentT(means=MEANS, tail_index=1.5),
        jb.Gaussian(means=MEANS),
    ):
        single = losses(world, 0, rounds)
        with jax.enable_x64(True):
            double = losses(world, 0, rounds)
        np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-5)


# Moments


def absolute_moment(law, alpha):
    """E|l|^alpha by quadrature over log|l|, where power tails decay exponentially."""
    lowest = law.support()[0]
    v = np.linspace(math.log(lowest) if lowest > 0 else -60, 200, 200_001)
    return scipy.integrate.simpson((law.pdf(np.exp(v)) + law.pdf(-np.exp(v))) * np.exp((alpha + 1) * v), x=v)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.1, 1.9])
@pytest.mark.parametrize(
    "example",
    [
        Example(jb.Pareto(means=[0.5, 1.5], tail_index=2.5), [pareto(1.5, 2.5)]),
        Example(jb.Gaussian(means=[0.0, 0.0], scale=0.7), [scipy.stats.norm(0, 0.7)]),
        Example(jb.StudentT(means=[0.0], tail_index=2.5, scale=2.0), [scipy.stats.t(2.5, scale=2.0)]),
    ],
    ids=repr,
)
def test_moment_is_that_of_the_largest_arm(example, alpha):
    assert example.world.moment(alpha) ** alpha == pytest.approx(absolute_moment(example.laws[0], alpha), rel=1e-6)


def test_moments_known_in_closed_form():
    assert jb.Pareto(means=[1.5, 0.5], tail_index=1.6).moment(1.0) == pytest.approx(1.5)
    assert jb.Pareto(means=[1.0], tail_index=3.0).moment(2.0) ** 2 == pytest.approx(pareto(1.0, 3.0).moment(2))
    assert jb.Gaussian(means=[0.0], scale=0.7).moment(2.0) == pytest.approx(0.7)
    assert jb.Gaussian(means=[0.0], scale=0.7).moment(4.0) ** 4 == pytest.approx(scipy.stats.norm(0, 0.7).moment(4))
    assert jb.StudentT(means=[0.0], tail_index=3.0).moment(2.0) == pytest.approx(math.sqrt(3))
    assert jb.StudentT(means=[0.0], tail_index=6.0).moment(4.0) ** 4 == pytest.approx(scipy.stats.t(6).moment(4))
    assert jb.Bernoulli(means=[0.2, 0.5]).moment(3.0) ** 3 == pytest.approx(0.5)


@pytest.mark.parametrize("alpha", [0.3, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("mean", [-3.0, 0.01, 0.4, 1.0, 20.0])
def test_moment_bounds_a_law_with_a_mean(mean, alpha):
    world = jb.StudentT(means=[mean, 0.0], tail_index=1.5, scale=0.5)
    assert absolute_moment(scipy.stats.t(1.5, loc=mean, scale=0.5), alpha) <= world.moment(alpha) ** alpha * (1 + 1e-9)
    world = jb.Gaussian(means=[0.0, mean], scale=0.5)
    assert absolute_moment(scipy.stats.norm(mean, 0.5), alpha) <= world.moment(alpha) ** alpha * (1 + 1e-9)


@pytest.mark.parametrize("example", ALL)
def test_moment_bounds_what_is_drawn(example):
    """At an order of which |l| has a variance: the empirical moment is no more than 5 standard errors above."""
    alpha = min(2.0, 0.45 * tail_index(example.world))
    bound = example.world.moment(alpha) ** alpha
    empirical = []
    for arm in range(example.world.num_arms):
        powers = np.abs(sample(example, arm, 500_000)) ** alpha
        stderr = powers.std() / math.sqrt(powers.size)
        assert powers.mean() <= bound + 5 * stderr
        empirical.append(powers.mean())
    assert max(empirical) >= bound / 5  # and the bound is no idle one


def tail_index(world):
    return tail_index(world.law) if hasattr(world, "law") else float(world.tail_index)


@pytest.mark.parametrize("example", ALL)
def test_moment_order(example):
    index = tail_index(example.world)
    assert example.world.moment_order == pytest.approx(min(2.0, 1 + 0.9 * (index - 1)))
    assert math.isfinite(example.world.moment(example.world.moment_order))


@pytest.mark.parametrize("example", ALL)
def test_a_moment_that_does_not_exist_is_refused(example):
    index = tail_index(example.world)
    with pytest.raises(ValueError, match="alpha > 0, got 0"):
        example.world.moment(0)
    with pytest.raises(ValueError, match="alpha > 0, got nan"):
        example.world.moment(math.nan)
    if math.isfinite(index):
        assert math.isfinite(example.world.moment(index - 1e-6))
        for alpha in (index, index + 1):
            with pytest.raises(ValueError, match=rf"no moment of order {alpha:g}; ask for alpha < {index:g}"):
                example.world.moment(alpha)


# Switching

LAW = jb.Pareto(means=MEANS, tail_index=1.6)


def exact_ends(growth, until):
    """Last rounds of the phases, in exact arithmetic."""
    length, ends = 1, [1]
    while ends[-1] < until:
        length = math.ceil(Fraction(growth) * length)
        ends.append(ends[-1] + length)
    return ends


@jax.jit
def _phases(world, rounds):
    return jax.vmap(world.phase)(rounds)


def phases(world, rounds):
    return np.asarray(_phases(world, jnp.asarray(np.resize(rounds, 4096), jnp.int32)))[: len(rounds)]


def test_phases_grow_by_the_factor_rounded_up():
    world = jb.Switching(LAW)
    high, low = np.asarray(world.ends, np.int64)
    ends = (high << 16) + low
    assert ends[0] == 1
    assert np.diff(ends)[:6].tolist() == [2, 4, 7, 12, 20, 32]
    until = exact_ends(Fraction(8, 5), 2**31)
    assert ends[: len(until)].tolist() == [min(end, 2**31 - 1) for end in until]
    np.testing.assert_array_equal(phases(world, [1, 2, 3, 4, 7, 8, 14, 15]), [0, 1, 1, 2, 2, 3, 3, 4])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("growth", [Fraction(8, 5), Fraction(101, 100), Fraction(10)], ids=float)
def test_phase_is_exact_at_every_boundary(growth, dtype):
    last = 2**31 - 2
    ends = np.array([end for end in exact_ends(growth, last) if end <= last])
    rounds = np.unique(np.concatenate([ends - 1, ends, ends + 1, [last]]))
    rounds = rounds[rounds >= 1]
    with jax.enable_x64(dtype == "float64"):
        world = jb.Switching(LAW, growth=float(growth))
        np.testing.assert_array_equal(phases(world, rounds), np.searchsorted(ends, rounds))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_given_lengths(dtype):
    with jax.enable_x64(dtype == "float64"):
        world = jb.Switching(LAW, lengths=[3, 1, 9_999_993, 2, 1])
        rounds = [1, 3, 4, 5, 9_999_996, 9_999_997, 9_999_998, 9_999_999, 10_000_000, 10_000_001, 16_000_000]
        expected = [0, 0, 1, 2, 2, 2, 3, 3, 4, 4, 4]
        np.testing.assert_array_equal(phases(world, rounds), expected)
        assert phases(jb.Switching(LAW, lengths=[3]), [1, 3, 4, 1000]).tolist() == [0, 0, 0, 0]


def test_means_and_losses_are_reversed_in_every_other_phase():
    world, rounds = jb.Switching(LAW, lengths=[3, 2, 4, 1, 1]), np.arange(1, 14)
    is_reversed = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0], bool)
    for t, swapped in zip(rounds, is_reversed, strict=True):
        expected = np.asarray(MEANS[::-1] if swapped else MEANS, np.float32)
        np.testing.assert_array_equal(world.means(jnp.int32(t)), expected)
    for arm in range(3):
        place = np.where(is_reversed, 2 - arm, arm)
        np.testing.assert_allclose(losses(world, arm, rounds), losses(LAW, place, rounds), rtol=1e-6)


def test_switching_declares_the_moments_of_its_law():
    world = jb.Switching(LAW)
    assert world.moment_order == LAW.moment_order
    assert world.moment(1.3) == LAW.moment(1.3)


# Bad input


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: jb.Pareto(means=[1.0], tail_index=1.0), ["Pareto.tail_index", "1.0", "> 1", "mean does not exist"]),
        (lambda: jb.StudentT(means=[1.0, 2.0], tail_index=0.5), ["StudentT.tail_index", "0.5", "> 1"]),
        (lambda: jb.Pareto(means=[1.0, 2.0], tail_index=math.nan), ["Pareto.tail_index", "NaN", "give a number"]),
        (lambda: jb.Pareto(means=[1.0, -2.0], tail_index=2.0), ["Pareto.means", "-2.0", "> 0", "losses are positive"]),
        (lambda: jb.Pareto(means=[0.0, 2.0], tail_index=2.0), ["Pareto.means", "0.0", "> 0", "losses are positive"]),
        (lambda: jb.Pareto(means=[1.0, math.nan], tail_index=2.0), ["Pareto.means", "nan", "give a number"]),
        (lambda: jb.Pareto(means=[1.0, math.inf], tail_index=2.0), ["Pareto.means", "inf", "finite"]),
        (lambda: jb.Gaussian(means=[1.0, -math.inf]), ["Gaussian.means", "-inf", "finite"]),
        (lambda: jb.StudentT(means=[math.inf, 1.0], tail_index=2.0), ["StudentT.means", "inf", "finite"]),
        (lambda: jb.Gaussian(means=[]), ["Gaussian.means", "[]", "one value per arm", "such as [0.5, 1.0]"]),
        (lambda: jb.Gaussian(means=0.5), ["Gaussian.means", "0.5", "one value per arm", "such as [0.5, 1.0]"]),
        (lambda: jb.Gaussian(means=[0.5, 1.0], scale=0.0), ["Gaussian.scale", "0.0", "> 0", "size of the noise"]),
        (lambda: jb.StudentT(means=[0.5, 1.0], tail_index=2, scale=-1), ["StudentT.scale", "-1", "must be > 0"]),
        (lambda: jb.Bernoulli(means=[0.5, 1.5]), ["Bernoulli.means", "1.5", "<= 1", "probability of loss 1"]),
        (lambda: jb.Bernoulli(means=[-0.5, 1.0]), ["Bernoulli.means", "-0.5", ">= 0", "probability of loss 1"]),
        (lambda: jb.Switching(), ["Switching.law", "None", "make one: jb.Pareto("]),
        (lambda: jb.Switching("pareto"), ["Switching.law", "'pareto'", "make one: jb.Pareto("]),
        (lambda: jb.Switching(jb.Pareto), ["Switching.law", "Pareto", "make one: jb.Pareto("]),
        (lambda: jb.Switching(LAW, lengths=[]), ["Switching.lengths", "[]", "a list of phase lengths"]),
        (lambda: jb.Switching(LAW, lengths=[1.5, 2]), ["Switching.lengths", "1.5", "whole", "count rounds"]),
        (lambda: jb.Switching(LAW, lengths=[5, math.inf]), ["Switching.lengths", "inf", "finite", "count rounds"]),
        (lambda: jb.Pareto(means=[1.0], tail_index=math.inf), ["Pareto.tail_index", "inf", "finite"]),
        (lambda: jb.Gaussian(means=[1.0], scale=math.inf), ["Gaussian.scale", "inf", "finite", "size of the noise"]),
        (lambda: jb.Gaussian(means=["a"]), ["Gaussian.means", "'a'", "list of numbers"]),
        (lambda: jb.Switching(LAW, growth=1.0), ["Switching.growth", "1.0", ">= 1.01", "lengths=[...]"]),
        (lambda: jb.Switching(LAW, lengths=[5, 0]), ["Switching.lengths", "0.0", ">= 1", "at least 1"]),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_input_is_refused_with_a_remedy(make, parts):
    with pytest.raises(ValueError, match=re.escape(parts[0])) as refused:
        make()
    for part in parts:
        assert part in str(refused.value)

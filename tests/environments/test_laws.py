"""Laws: every registered one keeps the protocol and draws what it declares, tails included.

Every statistical assertion has a fixed seed and z = 5, a false alarm in 1.7 million.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.types import public_fields
from tests.support.helpers import assert_binomial, assert_mean, assert_refused
from tests.support.laws import LAWS, MEANS, losses
from tests.support.samples import ALL, CONTINUOUS, DRAWS, REGISTERED, sample

# Of each of these the fast suite draws from a relative.
SLOW = {
    "exponential", "frechet", "lognormal", "lomax", "outlier_mixture", "reflected", "stable", "tail_reversed",
    "weibull",
}  # fmt: skip


def played(params):
    """The same, those marked as slow of which a relative or another instance is drawn from."""
    quick = {f"{name}-0" for name in LAWS if name not in SLOW}
    return [
        pytest.param(*param.values, id=param.id, marks=[] if param.id in quick else pytest.mark.slow)
        for param in params
    ]


# The protocol


@pytest.mark.parametrize("name", REGISTERED)
def test_every_law_has_an_example(name):
    assert LAWS.get(name), (
        f"{name} is registered but not tested: add an instance and its laws to LAWS in tests/support/laws.py"
    )
    assert all(type(example.environment) is jb.ENVIRONMENTS[name] for example in LAWS[name])


@pytest.mark.parametrize("example", ALL)
def test_shapes_and_means(example):
    environment = example.environment
    assert environment.num_arms == len(example.laws)
    means = environment.means(jnp.int32(1))
    assert means.shape == (environment.num_arms,)
    assert means.dtype == jnp.float32
    np.testing.assert_allclose(means, [law.mean() for law in example.laws], rtol=1e-6)
    loss = jax.eval_shape(environment.loss, jnp.int32(1), jnp.int32(0), jax.random.key(0))
    assert loss.shape == ()
    assert loss.dtype == jnp.float32


@pytest.mark.parametrize("example", played(ALL))
def test_the_same_key_round_and_arm_give_the_same_loss(example):
    arms, rounds = np.arange(60) % example.environment.num_arms, np.arange(1, 61)
    together = losses(example.environment, arms, rounds, games=7)
    np.testing.assert_array_equal(together, losses(example.environment, arms, rounds, games=7))
    np.testing.assert_array_equal(together[::-1], losses(example.environment, arms[::-1], rounds[::-1], games=7))


@pytest.mark.parametrize("example", played(ALL))
def test_all_arms_of_a_round_are_driven_by_the_same_uniforms(example, x64):
    table = [losses(example.environment, arm, np.arange(1, 20_001)) for arm in range(example.environment.num_arms)]
    for one, other in itertools.combinations(table, 2):
        order = np.lexsort((other, one))
        steps = np.diff(other[order])
        assert (steps >= -1e-12 * np.abs(other[order][1:])).all()  # comonotone, but for rounding
    assert np.std(table[0]) > 0


def test_arms_differ_by_scale_or_by_shift(x64):
    rounds = np.arange(1, 1001)
    environment = jb.Pareto(means=MEANS, tail_index=1.2)
    ratios = [losses(environment, arm, rounds) / mean for arm, mean in enumerate(MEANS)]
    np.testing.assert_allclose(ratios, [ratios[0]] * 3, rtol=1e-13)
    for environment in (jb.StudentT(means=MEANS, tail_index=1.5, scale=2.0), jb.Gaussian(means=MEANS)):
        shifts = [losses(environment, arm, rounds) - mean for arm, mean in enumerate(MEANS)]
        np.testing.assert_allclose(shifts, [shifts[0]] * 3, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("example", played(ALL))
def test_rounds_and_games_are_independent(example):
    first = np.arange(1, 50_001)
    now = losses(example.environment, 0, first)
    assert_uncorrelated(now[1:], now[:-1], "next round")
    assert_uncorrelated(now, losses(example.environment, 0, first + 2**20), "far round")
    assert_uncorrelated(now, losses(example.environment, 0, first, seed=1), "other seed")
    games = losses(example.environment, 0, 1, games=first)
    assert_uncorrelated(games[1:], games[:-1], "next game")
    assert_uncorrelated(games, losses(example.environment, 0, 2, games=first), "next round of each game")


def assert_uncorrelated(one, other, name):
    """Rank correlation; z = 5."""
    correlation = scipy.stats.spearmanr(one, other).statistic
    assert abs(correlation) * math.sqrt(len(one) - 1) <= 5, (name, correlation)


# The laws

LEVELS = (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("example", played(CONTINUOUS))
def test_quantiles_down_to_one_in_a_hundred_thousand(example):
    arm = len(example.laws) - 1
    law, drawn = example.laws[arm], sample(example, arm)
    low, high = law.support()
    assert low * (1 - 1e-12) <= drawn.min()
    assert drawn.max() <= high
    for level in LEVELS:
        assert_binomial(np.sum(drawn > law.isf(level)), drawn.size, level)
        assert_binomial(np.sum(drawn < law.ppf(level)), drawn.size, level)


@pytest.mark.parametrize("example", played(CONTINUOUS))
def test_truncated_mean(example):
    """Clipped at its 1e-3 quantiles the loss has a variance, whatever the tail index."""
    arm = len(example.laws) - 1
    law, drawn = example.laws[arm], sample(example, arm)
    low, high = law.ppf(1e-3), law.isf(1e-3)
    if low + high == pytest.approx(2 * law.mean()):  # symmetric
        expected = law.mean()
    else:
        expected = scipy.integrate.quad(law.ppf, 1e-3, 1 - 1e-3, limit=500)[0] + 1e-3 * (low + high)
    assert_mean(np.clip(drawn, low, high), expected)


@pytest.mark.parametrize("example", played(param for param in ALL if param.values[0].laws[0].var() < np.inf))
def test_mean_where_the_variance_is_finite(example):
    drawn = sample(example, 0, 500_000)
    assert_mean(drawn, float(example.environment.means(jnp.int32(1))[0]))
    if np.mean((drawn - drawn.mean()) ** 8) < 1e3 * np.var(drawn) ** 4:  # light enough for a variance's own mean
        assert_mean((drawn - drawn.mean()) ** 2, example.laws[0].var())


@pytest.mark.parametrize(
    "mean", [pytest.param(mean, marks=[] if mean == 0.3 else pytest.mark.slow) for mean in (0.0, 1e-5, 0.3, 1.0)]
)
def test_bernoulli_losses_have_their_probability(mean):
    drawn = losses(jb.Bernoulli(means=[mean] * 3), 0, np.arange(1, DRAWS + 1))
    assert set(np.unique(drawn)) <= {0.0, 1.0}
    if mean in (0.0, 1.0):
        assert (drawn == mean).all()
    else:
        assert_binomial(drawn.sum(), drawn.size, mean)


@pytest.mark.parametrize("example", played(ALL))
def test_float32_draws_the_law_of_float64(example):
    rounds = np.arange(1, 10_001)
    single = losses(example.environment, 0, rounds)
    double = sample(example, 0, 500_000)[:10_000]
    # Where a uniform is near 1, float32 has but 24 bits of it: that is felt near the start of a law.
    close = np.isclose(single, double, rtol=2e-5, atol=2e-5)
    assert close.mean() > 0.9995
    np.testing.assert_allclose(single, double, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("index", [1.1, 1.6, 1.99, 2.0])
def test_a_stable_loss_is_right_where_its_angle_is_tiny(index):
    """In float32: with u the smallest deep uniform and W = log 2, against the formula in exact terms of u."""
    words = jnp.array([0, 0, 0, 2**31, 0, 0], jnp.uint32)
    stream = random.Stream(lambda first, count: (words[:count], words[count : 2 * count]))
    u, exponential, half_pi = 2.0**-97, math.log(2), math.pi / 2
    sine, rest = (math.sin(half_pi * (2 - index + slope * u)) for slope in (index, index - 1))
    expected = sine * (half_pi * u) ** (-1 / index) * (exponential / rest) ** (1 - 1 / index)
    got = jb.Stable(means=[0.0], tail_index=index).loss(jnp.int32(1), jnp.int32(0), stream)
    assert float(got) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "gap", [pytest.param(gap, marks=[] if gap == 0.1 else pytest.mark.slow) for gap in (0.5, 0.1, 0.004)]
)
def test_hard_pair_takes_its_two_values(gap):
    environment = jb.HardPair(num_arms=3, gap=gap, moment_order=1.5)
    gamma = (2 * gap) ** 2
    for arm, mean in ((0, gap), (2, 2 * gap)):
        drawn = losses(environment, arm, np.arange(1, DRAWS + 1))
        large = drawn > 0
        np.testing.assert_allclose(drawn[large], 1 / gamma, rtol=1e-5)
        if gamma * mean < 1:
            assert_binomial(large.sum(), drawn.size, gamma * mean)
    np.testing.assert_allclose(environment.means(1), [gap, 2 * gap, 2 * gap], rtol=1e-6)
    assert environment.moment(1.5) == pytest.approx(1)


# Arms with shapes of their own


def test_parameters_per_arm_are_those_of_the_arm(x64):
    keys = [jax.random.key(n) for n in range(2)]
    index, scale = [1.3, 1.6, 1.9], [0.5, 1.0, 2.0]
    for make, values in (
        (jb.Pareto, {"tail_index": index}),
        (jb.Lomax, {"tail_index": index}),
        (jb.Frechet, {"tail_index": index}),
        (jb.LogNormal, {"log_std": scale}),
        (jb.Weibull, {"shape": scale}),
        (jb.Gaussian, {"scale": scale}),
        (jb.StudentT, {"tail_index": index, "scale": scale}),
        (jb.Stable, {"tail_index": index, "scale": scale}),
        (jb.OutlierMixture, {"scale": scale, "outlier_probability": [0.1, 0.2, 0.3], "outlier_scale": [9.0, 8.0, 7.0]}),
    ):
        environment = make(means=MEANS, **values)
        alone = [make(means=MEANS, **{name: value[arm] for name, value in values.items()}) for arm in range(3)]
        assert {spec.name for spec in public_fields(make).values() if spec.metadata["per_arm"]} == values.keys()
        for arm, key in itertools.product(range(3), keys):
            place = jnp.int32(1), jnp.int32(arm), key
            np.testing.assert_allclose(environment.loss(*place), alone[arm].loss(*place), rtol=1e-12)
        assert environment.moment(1.1) == pytest.approx(
            max(one.with_means(np.array([mean])).moment(1.1) for one, mean in zip(alone, MEANS, strict=True))
        )


def test_a_list_is_a_sweep_and_a_list_in_a_list_one_value_per_arm():
    grid = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.5, [1.2, 1.8], 2.0])
    assert [np.shape(point.tail_index) for point in grid.points] == [(), (2,), ()]
    assert grid.coordinates()["tail_index"] == [1.5, "1.2,1.8", 2.0]
    ds = jb.simulate(jb.Uniform(), grid, horizon=50, num_seeds=3)
    assert ds.regret.dims == ("tail_index", "seed", "round")
    alone = jb.simulate(jb.Uniform(), jb.Pareto(means=[0.5, 1.0], tail_index=[1.2, 1.8]), horizon=50, num_seeds=3)
    np.testing.assert_array_equal(ds.loss[1], alone.loss)


@pytest.mark.parametrize("name", REGISTERED)
def test_is_documented(name):
    cls = jb.ENVIRONMENTS[name]
    assert cls.__doc__.splitlines()[0].endswith(".")
    assert "Example:" in cls.__doc__
    assert cls.moments
    assert cls.nonnegative
    for key in public_fields(cls):
        assert f"{key}:" in cls.__doc__


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
        (lambda: jb.Pareto(means=[1.0], tail_index=math.inf), ["Pareto.tail_index", "inf", "finite"]),
        (lambda: jb.Gaussian(means=[1.0], scale=math.inf), ["Gaussian.scale", "inf", "finite", "size of the noise"]),
        (lambda: jb.Gaussian(means=["a"]), ["Gaussian.means", "'a'", "list of numbers"]),
        (lambda: jb.Lomax(means=[1.0], tail_index=1), ["Lomax.tail_index", "1", "> 1", "mean does not exist"]),
        (lambda: jb.Frechet(means=[1.0], tail_index=0.9), ["Frechet.tail_index", "0.9", "> 1", "mean does not exist"]),
        (lambda: jb.Stable(means=[1.0], tail_index=1.0), ["Stable.tail_index", "1.0", "> 1", "with a mean"]),
        (lambda: jb.Stable(means=[1.0], tail_index=2.1), ["Stable.tail_index", "2.1", "<= 2", "at most 2"]),
        (lambda: jb.LogNormal(means=[1.0], log_std=0), ["LogNormal.log_std", "0", "> 0", "e.g. 1.0"]),
        (lambda: jb.Weibull(means=[1.0], shape=0), ["Weibull.shape", "0", ">= 0.05", "exponential"]),
        (lambda: jb.Exponential(means=[0.0]), ["Exponential.means", "0.0", "> 0", "losses are positive"]),
        (lambda: jb.HardPair(3, gap=0.6, moment_order=1.5), ["HardPair.gap", "0.6", "<= 0.5", "at most 1/2"]),
        (lambda: jb.HardPair(3, gap=0.1, moment_order=1.0), ["HardPair.moment_order", "1.0", "> 1"]),
        (lambda: jb.HardPair(0, gap=0.1, moment_order=1.5), ["HardPair.num_arms", "0", ">= 1", "count the arms"]),
        (lambda: jb.OutlierMixture(means=[1.0], outlier_probability=2), ["OutlierMixture.outlier_probability", "<= 1"]),
        (lambda: jb.Pareto([1.0, 2.0], tail_index=[1.5] * 3), ["Pareto.tail_index", "3 values for 2 arms", "each arm"]),
        (lambda: jb.Gaussian([1.0] * 3, scale=[1.0]), ["Gaussian.scale", "1 values for 3 arms", "one number"]),
        (lambda: jb.Pareto([1.0, 2.0], tail_index=[1.5, 0.5]), ["Pareto.tail_index", "0.5", "> 1"]),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_input_is_refused_with_a_remedy(make, parts):
    assert_refused(make, parts)

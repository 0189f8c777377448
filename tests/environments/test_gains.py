"""Environments that mislead: gains with tails, a calm best arm, outliers, and gaps at the edge of detection.

Every statistical assertion has a fixed seed and z = 5, a false alarm in 1.7 million.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.environments.laws.points import is_truncated_nonnegative
from jaxbandit.studies import study
from tests.support.helpers import assert_binomial, assert_mean, assert_refused
from tests.support.laws import LAWS, losses

PARETO = jb.Pareto(means=[0.5, 1.0], tail_index=1.3)
EVIDENCE = {"means": [-0.5, 0.0], "probability": [0.01, 0.5], "gain": [100.0, 0.5]}


def stream_of(word, depth):
    """A stream whose deep uniform is ``word`` 2^-32 after ``depth`` zero words, whichever half is read."""
    words = jnp.array([0] * depth + [word] + [0] * (7 - depth), jnp.uint32)
    return random.Stream(lambda first, count: (words[:count], words[count : 2 * count]))


# Tails


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tails_reach_the_smallest_uniform(dtype):
    with jax.enable_x64(dtype == "float64"):
        stream, u = stream_of(0, 0), 2.0**-97
        at = jnp.int32(1), jnp.int32(1), stream
        far = 1.0 * 0.3 / 1.3 * u ** (-1 / 1.3)
        assert float(jb.Reflected(PARETO, shift=2.0).loss(*at)) == pytest.approx(2.0 - far, rel=1e-4)
        disaster = 0.2 / 1.2 * u ** (-1 / 1.2)
        assert float(jb.TailReversed(means=[0.5, 1.0], tail_index=1.2).loss(*at)) == pytest.approx(disaster, rel=1e-4)


@pytest.mark.parametrize(("word", "hit"), [(1, True), (2**26, False)])
def test_rare_kinds_keep_their_probability_to_60_bits(word, hit):
    """With a probability of 2^-60, 28 bits into the second word, that word decides."""
    at = jnp.int32(1), jnp.int32(0), stream_of(word, 1)
    jackpot = jb.Jackpot(means=[0.5, 1.0], probability=2.0**-60, gain=1e3)
    assert float(jackpot.loss(*at)) == pytest.approx(0.5 - 1e3 * hit)
    huber = jb.Huber(jb.Gaussian(means=[0.0], scale=1e-9), jb.Gaussian(means=[7.0], scale=1e-9), epsilon=2.0**-60)
    assert float(huber.loss(*at)) == pytest.approx(7.0 * hit, abs=1e-6)


# Means and moments


@pytest.mark.parametrize("alpha", [0.7, 1.25, 1.299])
def test_moment_of_a_reflected_pareto_law_is_exact_up_to_its_limit(alpha):
    """For a shift c below the start s of the law, E(X - c)^p is s^p a/(a-p) 2F1(-p, a-p; a-p+1; c/s)."""
    index, mean, shift = 1.3, 1.0, 0.1
    start = mean * (index - 1) / index
    ratio = scipy.special.hyp2f1(-alpha, index - alpha, index - alpha + 1, shift / start)
    expected = start**alpha * index / (index - alpha) * ratio
    environment = jb.Reflected(jb.Pareto(means=[mean], tail_index=index), shift=shift)
    assert environment.moment(alpha) ** alpha == pytest.approx(expected, rel=1e-6)
    assert jb.Reflected(PARETO).moment(alpha) == PARETO.moment(alpha)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_moment_of_a_jackpot(alpha):
    values = [(0.5, 0.99), (-99.5, 0.01)], [(0.25, 0.5), (-0.25, 0.5)]
    expected = max(sum(share * abs(value) ** alpha for value, share in arm) for arm in values)
    assert jb.Jackpot(**EVIDENCE).moment(alpha) ** alpha == pytest.approx(expected)
    assert jb.Jackpot(**EVIDENCE).moment_order == 2


def test_what_a_jackpot_draws():
    environment = jb.Jackpot(**EVIDENCE)
    for arm, (mean, share, gain) in enumerate(zip(*EVIDENCE.values(), strict=True)):
        drawn = losses(environment, arm, np.arange(1, 100_001))
        assert_binomial(np.sum(drawn < mean), drawn.size, share)
        np.testing.assert_allclose(np.unique(drawn), [mean + share * gain - gain, mean + share * gain], rtol=1e-6)
        assert_mean(drawn, mean)
    constant = losses(jb.Jackpot(means=[0.5, 1.0], probability=0.5, gain=[1.0, 0.0]), 1, np.arange(1, 100))
    assert (constant == 1).all()


def test_tail_reversed_is_pareto_with_an_index_per_arm():
    means = [1.0, 0.5, 2.0]
    preset = jb.TailReversed(means=means, tail_index=1.2, best_tail_index=8.0)
    spelt = jb.Pareto(means=means, tail_index=[1.2, 8.0, 1.2])
    for arm in range(3):
        np.testing.assert_array_equal(losses(preset, arm, np.arange(1, 2001)), losses(spelt, arm, np.arange(1, 2001)))
    assert preset.moment(1.1) == spelt.moment(1.1)
    assert preset.moment_order == pytest.approx(1.18)
    calm, cheap = (np.median(losses(preset, arm, np.arange(1, 10_001))) for arm in (1, 0))
    assert cheap < 0.7 * calm
    both = jb.TailReversed(means=[0.5, 0.5, 1.0], tail_index=1.2, best_tail_index=8.0)
    np.testing.assert_array_equal(losses(both, 0, np.arange(1, 100)), losses(both, 1, np.arange(1, 100)))


def test_huber_mixes_what_is_observed_and_keeps_the_means():
    clean, outliers = jb.Gaussian(means=[0.1, 0.5], scale=0.1), jb.Exponential(means=[40.0, 60.0])
    environment = jb.Huber(clean, outliers, epsilon=0.05)
    np.testing.assert_array_equal(environment.means(jnp.int32(1)), clean.means(jnp.int32(1)))
    drawn = losses(environment, 1, np.arange(1, 100_001))
    beyond = 0.05 * math.exp(-2 / 60)  # no clean loss is above 2
    assert_binomial(np.sum(drawn > 2), drawn.size, beyond)
    assert_mean(drawn, 0.95 * 0.5 + 0.05 * 60)
    assert environment.moment(2.0) ** 2 == pytest.approx(0.95 * clean.moment(2.0) ** 2 + 0.05 * 2 * 60**2)
    heavy = jb.Huber(clean, jb.Pareto(means=[1.0], tail_index=1.2), epsilon=0.05)
    assert (heavy.moment_limit, heavy.moment_order) == (1.2, pytest.approx(1.18))
    with pytest.raises(ValueError, match=r"no moment of order 1.5"):
        heavy.moment(1.5)


@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
def test_the_gap_factor_sets_the_number_of_losses_that_are_seen(factor):
    K, T, alpha = 4, 10_000, 1.5
    environment = jb.MinimaxHard(K, alpha, gap_factor=factor, horizon=T)
    seen = losses(environment, 1, np.tile(np.arange(1, T + 1), 20), games=np.repeat(np.arange(20), T)) > 0
    assert_binomial(seen.sum(), seen.size, factor ** (alpha / (alpha - 1)) * K / T)
    assert environment.moment(alpha) == pytest.approx(1)
    assert jb.MinimaxHard(K, alpha, gap_factor=1e6, horizon=T).pair.gap == 0.5


# Truncated non-negativity


def test_a_jackpot_is_truncated_nonnegative_by_definition():
    """The rule against the definition, for gains around the critical ones."""
    for mean, share, gain in itertools.product(
        [-0.1, 0.0, 0.1, 1.0], [0.25, 0.5, 0.75], [0.0, 0.25, 0.5, 1.0, 2.0, 8.0]
    ):
        environment = jb.Jackpot(means=[mean, 9.0], probability=share, gain=gain)
        values, weights = environment.points(0)
        sizes = [-1.0, *(np.abs(values) - 1e-9), *np.abs(values)]
        expected = min(float(np.sum((values * weights)[np.abs(values) > M + 1e-12])) for M in sizes) >= -1e-9
        assert environment.truncated_nonnegative == expected, environment
        assert is_truncated_nonnegative((values, weights)) == expected


@pytest.mark.parametrize(
    ("environment", "holds"),
    [
        (jb.Reflected(PARETO, shift=100.0), False),
        (jb.Reflected(jb.Exponential(means=[0.1, 0.2]), shift=5.0), False),
        (jb.Reflected(jb.Bernoulli(means=[0.1, 0.2]), shift=1.0), True),
        (jb.Reflected(jb.Bernoulli(means=[0.1, 0.2]), shift=0.5), True),
        (jb.Reflected(jb.Bernoulli(means=[0.1, 0.2]), shift=0.4), False),
        (jb.Reflected(jb.Gaussian(means=[0.1, 0.2]), shift=0.2), True),
        (jb.Reflected(jb.StudentT(means=[0.1, 0.2], tail_index=1.5), shift=0.1), False),
        (jb.Reflected(jb.Reflected(PARETO)), True),
        (jb.Reflected(jb.Jackpot(means=[-1.0, -2.0], probability=0.01, gain=100.0)), True),
        (jb.TailReversed(means=[0.5, 1.0], tail_index=1.2), True),
        (jb.Huber(PARETO, jb.Pareto(means=[5.0], tail_index=1.2), epsilon=0.1), True),
        (jb.Huber(PARETO, jb.Gaussian(means=[-1.0], scale=0.1), epsilon=0.4), False),
        (jb.Huber(jb.Gaussian(means=[0.0, 1.0]), jb.Gaussian(means=[0.0], scale=9.0), epsilon=0.1), True),
        (jb.Switching(jb.Jackpot(**EVIDENCE)), False),
    ],
    ids=repr,
)
def test_truncated_nonnegative(environment, holds):
    assert environment.truncated_nonnegative is holds


# Use


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ("pareto", "stable") else pytest.mark.slow) for name in LAWS]
)
def test_points_stand_for_the_law(name):
    """Bounded expectations by the points and by draws of the engine; z = 5."""
    for example in LAWS[name]:
        values, weights = example.environment.points(0)
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()
        drawn = losses(example.environment, 0, np.arange(1, 20_001))
        for squash in (np.tanh, lambda z: np.log1p(np.minimum(np.abs(z), 1e3))):
            assert_mean(squash(drawn), float(weights @ squash(values)))


@pytest.mark.slow
def test_sweeps_and_study_files():
    pareto = {"name": "pareto", "tail_index": 1.5, "means": [0.5, 1.0]}
    entries = [
        {"name": "reflected", "law": pareto, "shift": [1.0, [1.0, 2.0]]},
        {"name": "jackpot", "means": [-0.5, 0.0], "probability": [0.01, 0.1], "gain": 10.0},
        {"name": "tail_reversed", "means": [0.5, 1.0], "tail_index": [1.1, 1.2]},
        {"name": "huber", "law": pareto, "outliers": {"name": "gaussian", "means": [9.0]}, "epsilon": [0.0, 0.1]},
        {"name": "minimax_hard", "num_arms": 2, "moment_order": 1.5, "gap_factor": [1.0, 4.0]},
    ]
    content = {"title": "t", "horizon": 20, "num_seeds": 2, "policies": [{"name": "uniform"}], "environments": entries}
    grids = study.parse(content).resolved.environment_grids
    assert [len(grid.points) for grid in grids] == [2] * 5
    ds = jb.simulate([jb.Uniform()], grids, horizon=20, num_seeds=2)
    assert np.isfinite(ds.regret).all()
    contaminated = ds.regret.isel(environment=slice(6, 8), round=-1)
    np.testing.assert_array_equal(*contaminated.transpose("environment", ...))  # regret is of the clean means
    assert jb.grid(jb.MinimaxHard, num_arms=2, moment_order=1.5, gap_factor=[1.0, 4.0]).axes.keys() == {"gap_factor"}


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: jb.Reflected(3.0), ["Reflected.law", "3.0", "jb.Pareto"]),
        (lambda: jb.Reflected(jb.Switching(PARETO)), ["Reflected.law", "stationary law", "a reflected law"]),
        (lambda: jb.Reflected(PARETO, shift=[1.0] * 3), ["Reflected.shift", "3 values for 2 arms", "one for each arm"]),
        (lambda: jb.Reflected(PARETO, shift=math.nan), ["Reflected.shift", "nan", "NaN"]),
        (lambda: jb.Jackpot([0.5, 1.0], probability=0.0, gain=1.0), ["Jackpot.probability", "0.0", "> 0", "e.g. 0.01"]),
        (lambda: jb.Jackpot([0.5, 1.0], probability=1.0, gain=1.0), ["Jackpot.probability", "1.0", "< 1"]),
        (lambda: jb.Jackpot([0.5, 1.0], probability=0.1, gain=-1), ["Jackpot.gain", "-1", ">= 0", "a jackpot costs"]),
        (lambda: jb.Jackpot([0.5, 1.0], probability=0.1, gain=[1.0] * 3), ["Jackpot.gain", "3 values for 2 arms"]),
        (
            lambda: jb.Jackpot([0.5, 1.0], probability=0.37, gain=1e9),
            ["Jackpot.gain 1e+09", "probability 0.37", "breaks the mean", "give a smaller probability or gain"],
        ),
        (lambda: jb.Jackpot([0.5, 0.6], probability=[0.1, 0.5], gain=1e200), ["Jackpot.gain", "breaks the mean"]),
        (lambda: jb.TailReversed([0.5, 1.0], tail_index=1.0), ["TailReversed.tail_index", "1.0", "> 1"]),
        (
            lambda: jb.TailReversed([0.5, 1.0], tail_index=[1.2, 1.3], best_tail_index=1.25),
            ["TailReversed.best_tail_index", "above tail_index [1.2, 1.3]", "got 1.25", "jb.Pareto"],
        ),
        (
            lambda: jb.TailReversed([0.5, 1.0], tail_index=1.5, best_tail_index=1.4),
            ["TailReversed.best_tail_index", "above tail_index 1.5", "got 1.4", "jb.Pareto"],
        ),
        (lambda: jb.TailReversed([0.0, 1.0], tail_index=1.5), ["TailReversed.means", "0.0", "> 0", "positive"]),
        (lambda: jb.Huber(PARETO, PARETO, epsilon=0.5), ["Huber.epsilon", "0.5", "< 0.5", "told apart", "try 0.05"]),
        (lambda: jb.Huber(PARETO, PARETO, epsilon=-0.1), ["Huber.epsilon", "-0.1", ">= 0"]),
        (lambda: jb.Huber(PARETO, 7.0, epsilon=0.1), ["Huber.outliers", "7.0", "jb.Gaussian"]),
        (
            lambda: jb.Huber(PARETO, jb.Gaussian([1.0] * 3), epsilon=0.1),
            ["Huber.outliers", "3 arms for 2 arms", "one arm for all"],
        ),
        (lambda: jb.MinimaxHard(2, 1.5, gap_factor=0.0), ["MinimaxHard.gap_factor", "0.0", "> 0", "try 2 to 16"]),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_with_a_remedy(make, parts):
    assert_refused(make, parts)

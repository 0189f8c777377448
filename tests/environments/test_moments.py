"""Moments of laws are those of SciPy, and what the theory assumes holds for what is drawn.

Every statistical assertion has a fixed seed and z = 5, a false alarm in 1.7 million.
"""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import jaxbandit as jb
from jaxbandit.environments.laws import Law, Located
from jaxbandit.environments.laws.base import Symmetric
from jaxbandit.types import public_fields
from tests.support.laws import absolute_moment, pareto
from tests.support.samples import ALL, CONTINUOUS, sample

WITH_DENSITY = [param for param in CONTINUOUS if hasattr(param.values[0].laws[0], "pdf")]


WITH_QUANTILE = [param for param in ALL if type(param.values[0].environment).quantile is not Law.quantile]
LEVELS = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.5])


@pytest.mark.parametrize("example", WITH_QUANTILE)
def test_quantiles_are_those_of_scipy(example):
    """In both tails, where one of the two shares has all the digits."""
    for arm, law in enumerate(example.laws):
        lower = example.environment.quantile(LEVELS, 1 - LEVELS, arm)
        upper = example.environment.quantile(1 - LEVELS, LEVELS, arm)
        np.testing.assert_allclose(lower, law.ppf(LEVELS), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(upper, law.isf(LEVELS), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.9, 1.0, 1.1, 2.0, 3.0])
@pytest.mark.parametrize("example", ALL)
def test_moments_are_those_of_the_points(example, alpha):
    """The formulas of moments and the points, which come from quantiles, know nothing of each other."""
    environment = example.environment
    if alpha >= environment.moment_limit - 0.1:
        pytest.skip("does not exist, or its sum converges too slowly")
    symmetric = isinstance(environment, Symmetric)  # raw moments are bounds there, those of the noise are exact
    formula = environment.noise_moment(alpha) if symmetric else environment.raw_moment(alpha)
    for arm, mean in enumerate(np.asarray(environment.means(1), np.float64)):
        losses, weights = environment.points(arm)
        assert weights @ losses == pytest.approx(mean, rel=1e-6, abs=1e-9)
        found = weights @ np.abs(losses - mean if symmetric else losses) ** alpha
        expected = np.broadcast_to(formula, environment.num_arms)[arm]
        if isinstance(environment, jb.Reflected) and isinstance(environment.law, Symmetric):
            assert expected / 3 <= found <= expected * (1 + 1e-6)
        elif not isinstance(environment, jb.HardPair) or arm > 0:  # there it is the moment of the other arms
            # Where |z|^alpha has a kink within the law, the sum over points is coarser.
            assert found == pytest.approx(expected, rel=2e-4 if symmetric and alpha < 2 else 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.1, 1.9])
@pytest.mark.parametrize("example", WITH_DENSITY)
def test_moment_is_that_of_the_largest_arm(example, alpha):
    """By quadrature of SciPy's density: exact for positive and centred laws, a bound for the others."""
    if alpha >= example.environment.moment_limit - 0.1:
        pytest.skip("does not exist, or its integral converges too slowly")
    expected = max(absolute_moment(law, alpha) for law in example.laws)
    if isinstance(example.environment, Located) and (
        example.laws[0].support()[0] >= 0 or max(example.environment.arm_means) == 0
    ):
        assert example.environment.moment(alpha) ** alpha == pytest.approx(expected, rel=1e-6)
    else:
        assert expected * (1 - 1e-6) <= example.environment.moment(alpha) ** alpha <= 2 * expected


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.3])
@pytest.mark.parametrize("index", [1.4, 1.8, 2.0])
def test_moment_of_a_stable_law(index, alpha):
    """By quadrature of its characteristic function: E|X|^p is p/(Gamma(1-p) cos(pi p/2)) int (1 - f(u)) u^(-1-p)."""
    constant = alpha / (math.gamma(1 - alpha) * math.cos(math.pi * alpha / 2))
    v = np.linspace(-200, 100, 300_001)  # log u
    integral = scipy.integrate.simpson(-np.expm1(-np.exp(index * v)) * np.exp(-alpha * v), x=v)
    environment = jb.Stable(means=[0.0], tail_index=index, scale=1.5)
    assert environment.moment(alpha) ** alpha == pytest.approx(constant * integral * 1.5**alpha, rel=1e-6)
    if index == 2:
        assert environment.moment(4.0) ** 4 == pytest.approx(scipy.stats.norm(0, 1.5 * math.sqrt(2)).moment(4))


def test_moments_known_in_closed_form():
    assert jb.Pareto(means=[1.5, 0.5], tail_index=1.6).moment(1.0) == pytest.approx(1.5)
    assert jb.Pareto(means=[1.0], tail_index=3.0).moment(2.0) ** 2 == pytest.approx(pareto(1.0, 3.0).moment(2))
    assert jb.Gaussian(means=[0.0], scale=0.7).moment(2.0) == pytest.approx(0.7)
    assert jb.Gaussian(means=[0.0], scale=0.7).moment(4.0) ** 4 == pytest.approx(scipy.stats.norm(0, 0.7).moment(4))
    assert jb.StudentT(means=[0.0], tail_index=3.0).moment(2.0) == pytest.approx(math.sqrt(3))
    assert jb.StudentT(means=[0.0], tail_index=6.0).moment(4.0) ** 4 == pytest.approx(scipy.stats.t(6).moment(4))
    assert jb.Bernoulli(means=[0.2, 0.5]).moment(3.0) ** 3 == pytest.approx(0.5)
    assert jb.HardPair(1, gap=0.1, moment_order=1.5).moment(1.5) ** 1.5 == pytest.approx(0.5)
    assert jb.HardPair(2, gap=0.1, moment_order=1.5).moment(1.5) == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.3, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("mean", [-3.0, 0.01, 0.4, 1.0, 20.0])
def test_moment_bounds_a_law_with_a_mean(mean, alpha):
    environment = jb.StudentT(means=[mean, 0.0], tail_index=1.5, scale=0.5)
    assert absolute_moment(scipy.stats.t(1.5, loc=mean, scale=0.5), alpha) <= environment.moment(alpha) ** alpha * (
        1 + 1e-9
    )
    environment = jb.Gaussian(means=[0.0, mean], scale=0.5)
    assert absolute_moment(scipy.stats.norm(mean, 0.5), alpha) <= environment.moment(alpha) ** alpha * (1 + 1e-9)
    fourth = scipy.stats.norm(mean, 0.5).moment(4)  # beyond order 2 by Minkowski's inequality
    assert fourth <= environment.moment(4.0) ** 4 * (1 + 1e-9) <= 8 * fourth


@pytest.mark.slow
@pytest.mark.parametrize("example", ALL)
def test_moment_bounds_what_is_drawn(example):
    """At an order of which |l| has a variance: the empirical moment is no more than 5 standard errors above."""
    alpha = min(2.0, 0.45 * example.environment.moment_limit)
    bound = example.environment.moment(alpha) ** alpha
    empirical = []
    for arm in range(example.environment.num_arms):
        powers = np.abs(sample(example, arm, 500_000)) ** alpha
        stderr = powers.std() / math.sqrt(powers.size)
        assert powers.mean() <= bound + 5 * stderr
        empirical.append(powers.mean())
    assert max(empirical) >= bound / 5  # and the bound is no idle one


@pytest.mark.parametrize("example", ALL)
def test_moment_order(example):
    environment = example.environment
    if isinstance(environment, Located):
        assert environment.moment_order == pytest.approx(min(2.0, 1 + 0.9 * (np.min(environment.tail_index) - 1)))
    assert 1 < environment.moment_order <= 2
    assert math.isfinite(environment.moment(environment.moment_order))


@pytest.mark.parametrize("example", ALL)
def test_a_moment_that_does_not_exist_is_refused(example):
    index = example.environment.moment_limit
    with pytest.raises(ValueError, match="alpha > 0, got 0"):
        example.environment.moment(0)
    with pytest.raises(ValueError, match="alpha > 0, got nan"):
        example.environment.moment(math.nan)
    if math.isfinite(index):
        assert math.isfinite(example.environment.moment(index - 1e-6))
        for alpha in (index, index + 1):
            with pytest.raises(ValueError, match=rf"no moment of order {alpha:g}; pass alpha < {index:g}"):
                example.environment.moment(alpha)


# What the theory assumes


@pytest.mark.slow
@pytest.mark.parametrize("example", ALL)
def test_truncated_nonnegative_is_that_of_the_best_arm(example):
    """E[l 1(|l| > M)] >= 0 for the best arm, on a sample; z = 5."""
    best = int(np.argmin(example.environment.means(1)))
    drawn = np.clip(sample(example, best, 500_000), -1e3, 1e3)
    least = math.inf
    for bound in (0.0, 0.5, 2.0, 10.0):
        beyond = np.where(np.abs(drawn) > bound, drawn, 0)
        least = min(least, beyond.mean() / (beyond.std() / math.sqrt(beyond.size) or 1))
    assert example.environment.truncated_nonnegative == (least >= -5)


def test_assumptions_of_an_instance():
    for make in (jb.Gaussian, jb.StudentT, jb.Stable, jb.OutlierMixture):
        values = {"tail_index": 1.5} if "tail_index" in public_fields(make) else {}
        assert not make(means=[-0.1, 1.0], **values).truncated_nonnegative
        assert make(means=[0.0, 1.0], **values).truncated_nonnegative
    assert jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.5).unique_best
    assert not jb.Pareto(means=[0.5, 0.5, 1.0], tail_index=1.5).unique_best
    assert jb.Pareto(means=[0.5, 1.0], tail_index=[1.5, 1.2]).moment_limit == 1.2
    assert jb.Stable(means=[0.0], tail_index=2.0).moment_limit == math.inf
    assert jb.HardPair(3, gap=0.1, moment_order=1.5).unique_best

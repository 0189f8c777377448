"""Lower bounds with their constants: against brute force over discrete laws, expansions and published values."""

import math

import numpy as np
import pytest
import scipy.optimize

import jaxbandit as jb
from jaxbandit.theory.divergence import klinf
from jaxbandit.theory.instance import instance_bound
from tests.support.laws import LAWS

PARETO = jb.Pareto(means=[0.5] + [1.0] * 9, tail_index=1.5556)


def brute_force(losses, weights, mean, order, bound, nonnegative):
    """The least divergence over laws on the points of the law and one more, on ever finer grids.

    Searched are the logit of the further point's probability and its place on a logarithmic scale. The probabilities
    of two points follow from the mean and the sum; that of a third is found by a search around this one.
    """
    sides = [(-1, -5.0, 45.0)] if not nonnegative else [(0, 0.0, 0.0), (1, -5.0, 45.0)]

    def least(q):
        return min(searched(losses, weights, mean, order, bound, q, *side) for side in sides)

    if losses.size == 2:
        return least(np.zeros(0))
    return scipy.optimize.minimize_scalar(
        lambda q: min(least(np.array([q])), 1e3), bounds=(0.3 * weights[0], 2 * weights[0]), method="bounded"
    ).fun


def searched(losses, weights, mean, order, bound, first, sign, nearest, furthest):
    """The least divergence if the first points have the probabilities ``first``."""
    low, high, best = np.array([-40.0, nearest]), np.array([10.0, furthest]), math.inf
    fixed = float(np.sum(weights[: first.size] * np.log(weights[: first.size] / first)))
    for _ in range(20):
        axes = [np.linspace(a, b, 101 if b > a else 1) for a, b in zip(low, high, strict=True)]
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        more, place = 1 / (1 + np.exp(-grid[:, 0])), sign * np.exp(grid[:, 1])
        total = 1 - more - first.sum()
        last = (mean - more * place - first @ losses[: first.size] - total * losses[-2]) / (losses[-1] - losses[-2])
        q = np.column_stack([total - last, last])
        moment = first @ np.abs(losses[: first.size]) ** order + q @ np.abs(losses[-2:]) ** order
        inside = (q > 0).all(axis=1) & (moment + more * np.abs(place) ** order <= bound)
        if not inside.any():
            break
        value = np.full(inside.size, math.inf)
        value[inside] = np.sum(weights[-2:] * np.log(weights[-2:] / q[inside]), axis=1)
        at = int(np.argmin(value))
        best, cell = min(best, fixed + value[at]), 0.3 * (high - low)
        low, high = np.maximum(grid[at] - cell, low), np.minimum(grid[at] + cell, high)
    return best


DISCRETE = {
    "coin": ([0.0, 1.0], [0.3, 0.7], 0.5),
    "three": ([0.1, 0.5, 2.0], [0.5, 0.3, 0.2], 0.4),
    "disasters": ([0.1, 30.0], [0.98, 0.02], 0.5),
    "signed": ([-1.0, 0.5, 3.0], [0.3, 0.4, 0.3], 0.2),
    "far": ([1.0, 2.0], [0.5, 0.5], 0.3),
    "below zero": ([-1.0, 1.0], [0.4, 0.6], -0.2),
}
CASES = [
    pytest.param(name, order, nonnegative, marks=[] if (name, order) == ("coin", 1.5) else pytest.mark.slow)
    for name, (losses, _, _) in DISCRETE.items()
    for order in (1.2, 1.5, 2.0)
    for nonnegative in (False, True)
    if min(losses) >= 0 or not nonnegative
]


@pytest.mark.parametrize(("name", "order", "nonnegative"), CASES)
def test_the_dual_agrees_with_brute_force(name, order, nonnegative):
    losses, weights, mean = (np.asarray(part) for part in DISCRETE[name])
    for slack in (1.01, 3.0):
        bound = slack * float(weights @ np.abs(losses) ** order)
        value = klinf(losses, weights, float(mean), order, bound, nonnegative=nonnegative)
        expected = brute_force(losses, weights, float(mean), order, bound, nonnegative)
        assert value == pytest.approx(expected, rel=1e-3)
        assert value <= expected * (1 + 1e-6)  # a minimum over fewer laws


@pytest.mark.parametrize("environment", [jb.Gaussian([0.3]), jb.Exponential([0.5]), jb.Weibull([0.5], shape=0.7)])
@pytest.mark.parametrize("slack", [1.0001, 2.0])
def test_small_gaps_at_order_two(environment, slack):
    """d^2 / (2 V + B - E X^2) for a gap d."""
    values, weights = environment.points(0)
    mean, second = float(weights @ values), float(weights @ values**2)
    gap, bound = 1e-3, slack * second
    expected = gap**2 / (2 * (second - mean**2) + bound - second)
    assert klinf(values, weights, mean - gap, 2.0, bound) == pytest.approx(expected, rel=2e-2)


def test_published_values():
    normal = jb.Gaussian([0.0]).points(0)
    assert klinf(*normal, -0.2, 2.0, 2.0) == pytest.approx(0.01346, abs=5e-6)
    gains = np.array([0.0, -1.0]), np.array([0.7, 0.3])
    for order, value in ((2.0, 0.0407), (1.5, 0.0136), (60.0, 0.0823)):
        assert klinf(*gains, -0.5, order, 1.0) == pytest.approx(value, abs=5e-5)
    bound = instance_bound(PARETO)
    assert bound.moment * math.log(1e6) == pytest.approx(16_503, rel=2e-3)
    assert bound.nonnegative is not None
    assert bound.nonnegative * math.log(1e6) == pytest.approx(203, rel=2e-3)


def test_no_unit_matters_and_classes_are_nested():
    values, weights = PARETO.points(1)
    alpha = PARETO.moment_order
    bound = PARETO.moment(alpha) ** alpha
    for nonnegative in (False, True):
        value = klinf(values, weights, 0.5, alpha, bound, nonnegative=nonnegative)
        for unit in (1e-3, 7.0):
            scaled = klinf(unit * values, weights, 0.5 * unit, alpha, bound * unit**alpha, nonnegative=nonnegative)
            assert scaled == pytest.approx(value, rel=1e-9)
        wider = klinf(values, weights, 0.5, alpha, 2 * bound, nonnegative=nonnegative)
        assert wider <= value * (1 + 1e-12)
        assert klinf(values, weights, 0.7, alpha, bound, nonnegative=nonnegative) < value
    assert klinf(values, weights, 0.5, alpha, bound) < klinf(values, weights, 0.5, alpha, bound, nonnegative=True)


def test_edges_of_the_divergence():
    coin = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert klinf(*coin, 0.5, 2.0, 1.0) == 0
    assert klinf(*coin, 0.0, 2.0, 1.0, nonnegative=True) == math.inf
    assert klinf(*coin, -1.1, 2.0, 1.0) == math.inf  # no law with E l^2 <= 1 has this mean
    heavy = jb.Pareto(means=[0.5, 0.5001], tail_index=1.05)
    bound = instance_bound(heavy)
    assert bound.nonnegative is not None
    assert 1e60 < bound.nonnegative < bound.moment < math.inf


@pytest.mark.parametrize("environment", [PARETO, jb.Lomax([0.5, 1.0], tail_index=1.2), jb.Gaussian([0.0, 3.0])])
def test_the_points_are_fine_enough(environment):
    """Every other point gives the same divergence."""
    alpha = environment.moment_order
    bound = environment.moment(alpha) ** alpha
    values, weights = environment.points(1)
    best = float(environment.means(1)[0])
    for nonnegative in (False, True)[: 1 + (values.min() >= 0)]:
        fine = klinf(values, weights, best, alpha, bound, nonnegative=nonnegative)
        coarse = klinf(values[::2], 2 * weights[::2], best, alpha, bound, nonnegative=nonnegative)
        assert coarse == pytest.approx(fine, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_every_law_has_a_bound(name):
    for example in LAWS[name]:
        environment = example.environment
        if len(set(np.asarray(environment.means(1)).tolist())) == 1:
            continue
        bound = instance_bound(environment)
        assert 0 < bound.moment < math.inf
        assert bound.nonnegative is None or 0 <= bound.nonnegative <= bound.moment * (1 + 1e-9)


def test_whom_it_binds():
    bound = instance_bound(PARETO)
    assert bound.binding("robust_ucb") == bound.moment
    assert bound.binding("uniinf") == bound.nonnegative
    assert bound.binding("ucb1") is None
    assert bound.binding("ada_tinf") is None
    assert bound.binding("sao_ht") == bound.moment
    assert bound.binding("ape2") == bound.moment  # only logarithms of T, and every law with the moment
    assert bound.binding("ape2[perturbation=pareto]") is None  # a power of T
    assert bound.multiple("uniinf", 4000.0, 1e6) == pytest.approx(19.7, abs=0.1)
    assert bound.multiple("ucb1", 4000.0, 1e6) is None
    signed = instance_bound(jb.Gaussian(means=[0.0, 0.5]))
    assert signed.nonnegative is None
    assert signed.binding("uniinf") is None
    wider = instance_bound(PARETO, alpha=1.2, sigma=5.0)
    assert (wider.alpha, wider.sigma) == (1.2, 5.0)
    resampled = jb.Replay(losses=[[0.0, 3.0], [2.0, 1.0]], order="resampled")
    assert instance_bound(resampled).moment > 0
    hard = jb.MinimaxHard(3, 1.5, gap_factor=4.0, horizon=1000)
    assert instance_bound(hard).moment == pytest.approx(instance_bound(hard.pair).moment)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: instance_bound(jb.Switching(PARETO)), r"Switching has no points\(arm\); pass a law such as jb.Pareto"),
        (lambda: instance_bound(jb.Huber(PARETO, PARETO, epsilon=0.1)), r"Huber has no points\(arm\)"),
        (lambda: instance_bound(jb.Gaussian([0.0])), "at least 2 arms, and Gaussian has 1"),
        (lambda: instance_bound(PARETO, alpha=1.0), "alpha must be finite and above 1, got 1"),
        (lambda: instance_bound(PARETO, alpha=1.6), "no moment of order 1.6"),
        (lambda: instance_bound(PARETO, sigma=1.0), "outside the class: .* needs sigma 3.29303, got 1; pass sigma >="),
        (lambda: instance_bound(jb.Replay([[0.0, 1.0]])), 'stored order has no laws; order="resampled"'),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

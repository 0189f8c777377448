"""AdaHedge does not see the unit and the origin of the losses: to the bit, if neither changes a rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.policies import ada_hedge
from tests.support.policies import quick_jit

ROUNDS, ARMS = 400, 4
# Multiples of 2^-8 below 4: with a dyadic shift of up to 2^8 they are still float32 numbers.
LOSSES = np.random.default_rng(0).integers(0, 1024, (ROUNDS, ARMS)).astype(np.float32) / 256


@quick_jit
def laws(losses):
    """x of every round of one game whose arms are drawn by fixed uniforms."""
    policy, uniforms = jb.AdaHedge(exploration=0.1), np.random.default_rng(1).random(ROUNDS).astype(np.float32)

    def body(state, row):
        t, uniform, losses_t = row
        x = policy.probabilities(state, t, None)
        arm = jnp.argmax(uniform * jnp.sum(x) < jnp.cumsum(x)).astype(jnp.int32)
        return policy.update(state, t, x, arm, losses_t[arm]), x

    rows = (jnp.arange(1, ROUNDS + 1, dtype=jnp.int32), uniforms, losses)
    return jax.lax.scan(body, policy.init(ARMS), rows)[1]


@pytest.mark.parametrize("factor", [2.0**-20, 0.5, 4.0, 2.0**30])
def test_powers_of_two_change_no_bit(factor):
    np.testing.assert_array_equal(laws(LOSSES * np.float32(factor)), laws(LOSSES))


@pytest.mark.parametrize("shift", [-4.0, 0.25, 1.5, 100.0, 256.0])
def test_dyadic_shifts_change_no_bit(shift):
    np.testing.assert_array_equal(laws(LOSSES + np.float32(shift)), laws(LOSSES))


def test_the_policy_learns_and_other_losses_change_its_play():
    x = laws(LOSSES)
    assert (x[-1] != x[-2]).any()
    assert (laws(LOSSES[::-1]) != x).any()


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.25, 2.0**10])
def test_games_of_the_engine_too(factor):
    """The native way, with losses drawn by an environment: the unit of a Pareto law changes no pull."""
    scaled = jb.Pareto(means=factor * np.array([0.5, 1.0, 1.0]), tail_index=1.6)
    plain = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
    policy, options = jb.AdaHedge(), {"horizon": 300, "num_seeds": 16, "record": [300]}
    pulls = [jb.simulate(policy, environment, **options).pulls for environment in (scaled, plain)]
    np.testing.assert_array_equal(*pulls)


def test_a_nan_among_the_first_losses_stays():
    """It becomes the origin of the losses, which marks the game: a comparison alone would pass it over."""
    policy = jb.AdaHedge()
    state = policy.init(3)
    for t, loss in enumerate([1.0, np.nan, 0.5], start=1):
        state = policy.update(state, jnp.int32(t), jnp.ones(3), jnp.int32(t - 1), jnp.float32(loss))
    assert np.isnan(state.centre)


@pytest.mark.usefixtures("x64")
def test_the_series_of_the_gap_meets_the_formula():
    """Around the threshold both forms agree with extended precision."""
    policy, state = jb.AdaHedge(), jb.AdaHedge().init(2)
    state = state._replace(gap=jnp.log(2.0), cumulative_loss=jnp.array([0.0, 0.7]))  # eta = 1
    q = np.longdouble(1) / (1 + np.exp(-np.longdouble(np.float64(0.7))))
    find = quick_jit(lambda estimate: policy._mixability_gap(state, jnp.int32(0), estimate))
    for size in np.geomspace(1e-7, 100, 100):
        for estimate in (size, -size):
            z = -np.longdouble(estimate)
            if abs(z) < 1e-2:  # by its series, to 1e-14
                s, k = q * (1 - q), 1 - 2 * q
                cumulants = (s, s * k, s * (1 - 6 * s), s * k * (1 - 12 * s), s * (1 - 30 * s + 120 * s * s))
                exact = sum(c * z ** (n + 2) / np.prod(np.arange(1, n + 3)) for n, c in enumerate(cumulants))
            else:
                exact = np.log(1 - q + q * np.exp(z)) - q * z
            np.testing.assert_allclose(float(find(estimate)), float(exact), rtol=1e-10)
    assert ada_hedge.SERIES.keys() == {32, 64}

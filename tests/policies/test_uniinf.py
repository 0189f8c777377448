"""How uniINF behaves: at its threshold, at the ends of its range, under relabelling, and in float32 for long."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxbandit as jb
from benchmarks.accuracy import final_scales
from tests.support.helpers import some
from tests.support.policies import quick_jit
from tests.support.trajectories import (
    CHOICES,
    FIXED,
    ROUNDS,
    heavy_tailed,
    play,
    play_script,
    repeated,
    rounds_of,
)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_loss_at_the_threshold_is_skipped_and_one_below_is_kept(sign):
    policy = jb.UniINF(horizon=100.0)
    state = policy.init(2)
    x = policy.probabilities(state, 1, None)
    threshold = 2.0  # 4 / (4 (1 - 1/2)), exactly
    update = quick_jit(policy.update)
    at = update(state, 1, x, 0, sign * threshold)
    below = update(state, 1, x, 0, sign * np.nextafter(threshold, 0))
    np.testing.assert_array_equal(at.cumulative_loss, 0)
    np.testing.assert_allclose(np.ptp(below.cumulative_loss), 4.0, rtol=1e-15)
    for after in (at, below):
        np.testing.assert_allclose(after.scale**2, 16 * (1 + 1 / (16 * 2 * math.log(100))), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_rest_is_held_where_it_underflows(dtype):
    """With 1 - x below 2^-100 the threshold is 2^100 S / 4 and a skipped round grows S as ever."""
    with jax.enable_x64(dtype == "float64"):
        policy = jb.UniINF(horizon=100.0)
        state = policy.init(2)._replace(cumulative_loss=jnp.array([0.0, 1e36], dtype))
        x = policy.probabilities(state, 1, None)
        update = quick_jit(policy.update)
        kept, skipped = (update(state, 1, x, 0, part * 2.0**100) for part in (0.99, 1.01))
    assert abs(np.asarray(x)[0] - 1) <= np.finfo(dtype).eps
    np.testing.assert_allclose(kept.cumulative_loss[1], 1e36 - 0.99 * 2.0**100, rtol=1e-6)
    np.testing.assert_array_equal(skipped.cumulative_loss, state.cumulative_loss)
    growth = np.float64(skipped.scale) + np.float64(skipped.scale_lost) - 4
    np.testing.assert_allclose(growth * (8 + growth), 1 / (2 * math.log(100)), rtol=1e-5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("num_arms", some([10], [2, 3, 5]))
def test_zero_losses_leave_play_uniform(num_arms):
    script = heavy_tailed(0, 1.0, 1.0)
    game = play(jb.UniINF(horizon=100.0), num_arms, script._replace(value=np.zeros(ROUNDS)))
    np.testing.assert_allclose(game.x, 1 / num_arms, rtol=1e-15)
    np.testing.assert_array_equal(game.S, 4.0)
    assert np.ptp(play(jb.UniINF(horizon=100.0), num_arms, script).x) > 0.1


@pytest.mark.usefixtures("x64")
def test_a_constant_added_to_the_cumulative_losses_changes_nothing():
    policy = jb.UniINF(horizon=1_000.0)
    state, x, arm, loss, after = rounds_of(policy, 3)
    t = jnp.zeros(ROUNDS, jnp.int32)
    update = quick_jit(jax.vmap(policy.update))
    for constant in (-3.0, 0.7, 1e4):
        found = update(state._replace(cumulative_loss=state.cumulative_loss + constant), t, x, arm, loss)
        L, expected = (np.asarray(s.cumulative_loss + s.cumulative_lost) for s in (found, after))
        np.testing.assert_allclose(L, expected, atol=1e-14 * (abs(constant) + expected.max()))
        np.testing.assert_array_equal(found.scale, after.scale)
        np.testing.assert_array_equal(np.min(found.cumulative_loss, axis=1), 0)


@pytest.mark.usefixtures("x64")
def test_relabelling_the_arms_relabels_x():
    policy = jb.UniINF(horizon=1_000.0)
    state, x, arm, loss, after = jax.device_get(rounds_of(policy, 5))

    @quick_jit
    @jax.vmap
    def play_again(state, arm, loss):
        x = policy.probabilities(state, 1, None)
        return x, policy.update(state, 1, x, arm, loss)

    for order in itertools.permutations(range(5)):
        relabelled = state._replace(
            cumulative_loss=state.cumulative_loss[:, order], cumulative_lost=state.cumulative_lost[:, order]
        )
        x_found, found = play_again(relabelled, np.argsort(order)[arm].astype(np.int32), loss)
        np.testing.assert_allclose(x_found, x[:, order], rtol=1e-13)
        np.testing.assert_allclose(found.scale, after.scale, rtol=1e-14)
        L, size = after.cumulative_loss[:, order], np.max(after.cumulative_loss)
        np.testing.assert_allclose(found.cumulative_loss, L, rtol=1e-12, atol=1e-14 * size)


@pytest.mark.parametrize("arm", [0, 1])
def test_terms_below_the_rounding_of_their_sum_are_not_lost_in_float32(arm):
    """4,000 terms, each less than a third of an ulp of L at arm 1 (2^20) and of S (4): plain sums would stand still."""
    policy, rounds, x, loss = jb.UniINF(horizon=1_000.0), 4_000, np.array([0.5, 0.5], np.float32), 0.002

    @quick_jit
    def play_on(state):
        return jax.lax.fori_loop(0, rounds, lambda t, state: policy.update(state, t, x, arm, jnp.float32(loss)), state)

    start = policy.init(2)._replace(cumulative_loss=jnp.array([0.0, 2.0**20]))
    state = play_on(start)
    assert state.scale.dtype == np.float32
    L, S, L_lost, S_lost = (np.asarray(leaf, np.float64) for leaf in state)
    added = (L + L_lost - [0.0, 2.0**20]) @ [-1.0, 1.0]
    np.testing.assert_allclose(added, (1 if arm == 1 else -1) * rounds * loss / 0.5, rtol=1e-4)
    square = rounds * (loss * 0.5) ** 2 / (2 * math.log(1_000))
    np.testing.assert_allclose(S + S_lost - 4, square / (4 + math.sqrt(16 + square)), rtol=1e-4)
    assert loss / 0.5 < np.spacing(np.float32(2.0**20)) / 3
    assert square / rounds / 8 < np.spacing(np.float32(4)) / 3


@pytest.mark.usefixtures("x64")
def test_one_arm():
    policy = jb.UniINF(horizon=100.0)

    @quick_jit
    def one_round(state, loss):
        x = policy.probabilities(state, 1, None)
        after = policy.update(state, 1, x, 0, loss)
        return x, after, policy.measure(state, 1, x, 0, loss, after)["skipped"]

    state = policy.init(1)
    for loss in (1.0, -3.0, 0.0, 1e6, -1e12, 1e20):
        x, state, skipped = one_round(state, loss)
        assert x.tolist() == [1.0]
        assert state.scale == 4.0
        assert skipped == 0
        assert all(np.isfinite(leaf).all() for leaf in state)


@pytest.mark.parametrize(
    ("dtype", "num_arms"),
    [
        *(("float32", 10), ("float64", 2)),
        *(pytest.param(dtype, K, marks=pytest.mark.slow) for dtype, K in (("float32", 2), ("float64", 10))),
    ],
)
@FIXED
@given(
    losses=st.lists(st.sampled_from([1e30, -1e30, np.inf, -np.inf, 0.0, 1.0]), min_size=1, max_size=6),
    choices=st.lists(CHOICES, min_size=1, max_size=6),
)
def test_hostile_losses_leave_the_state_finite(dtype, num_arms, losses, choices):
    with jax.enable_x64(dtype == "float64"):
        script = repeated([(loss, False) for loss in losses], choices)
        (_, x, _, _, after, *_), _, _ = jax.device_get(play_script(jb.UniINF(horizon=1_000.0), num_arms, script))
    assert x.dtype == dtype
    assert all(np.isfinite(leaf).all() for leaf in (x, *after))
    assert np.all(x > 0)
    np.testing.assert_allclose(x.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.slow
def test_no_accumulator_stalls():
    """Small constant losses still grow S in float32; plain summation leaves it where it began."""
    compensated, exact = final_scales(horizon=200_000, num_seeds=4)
    assert exact.min() > 4.003
    np.testing.assert_allclose(compensated, exact, rtol=1e-4 * 0.1)
    plain, _ = final_scales(horizon=200_000, num_seeds=4, forget=True)
    np.testing.assert_array_equal(plain, 4)


@pytest.mark.long
def test_no_accumulator_stalls_in_ten_million_rounds():
    compensated, exact = final_scales(horizon=10_000_000, num_seeds=4)
    assert exact.min() > 4.05
    np.testing.assert_allclose(compensated, exact, rtol=1e-4)

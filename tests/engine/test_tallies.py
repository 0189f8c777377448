"""Regret, losses, pulls, traces and failures are recorded as they are defined, by every way to play."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import ways
from jaxbandit.game import is_stationary
from jaxbandit.types import field, pytree
from tests.support.helpers import assert_mean, some
from tests.support.runs import HORIZON, MEASURES, RECORD, environment, run


def test_regret_is_exact_in_a_changing_environment():
    law = jb.Gaussian(means=[0.0, 0.25, 1.0])
    switching = jb.Switching(law, lengths=[10, 25, 7])
    ds = jb.simulate(jb.Uniform(), switching, horizon=60, num_seeds=6, record=list(range(1, 61)), trace=6)
    table = np.stack([np.asarray(switching.means(jnp.int32(t)), np.float64) for t in range(1, 61)])
    played = np.take_along_axis(table[None], ds.trace_arm.values[..., None], axis=2)[..., 0]
    expected = played.cumsum(axis=1) - table.cumsum(axis=0).min(axis=1)
    np.testing.assert_allclose(ds.regret, expected, atol=1e-6)


def test_regret_is_pulls_times_gaps():
    ds = run()
    np.testing.assert_allclose(ds.regret, (ds.pulls * [0.0, 0.5, 0.5]).sum("arm"), rtol=1e-15)
    np.testing.assert_array_equal(ds.pulls.sum("arm"), np.broadcast_to(RECORD, ds.regret.shape))


def test_trace_tells_the_tallies():
    ds = run(trace=5)
    one_hot = ds.trace_arm.values[..., None] == np.arange(3)
    at = np.asarray(RECORD) - 1
    np.testing.assert_array_equal(one_hot.cumsum(axis=1)[:, at], ds.pulls[:5])
    np.testing.assert_allclose(ds.trace_loss.values.astype(np.float64).cumsum(axis=1)[:, at], ds.loss[:5], rtol=1e-12)
    np.testing.assert_allclose(ds.trace_x.sum("arm"), 1, atol=1e-6)


@pytest.mark.parametrize("changing", [False, True], ids=["stationary", "changing"])
def test_play_is_what_simulate_does(changing):
    """The same machine code, the sums rounded to float32 at the end."""
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(80))
    arena = jb.Switching(environment(3), lengths=[3, 50, 20]) if changing else environment(3)
    policy = jb.Uniform() if changing else jb.UniINF(horizon=HORIZON)
    out = jax.jit(jb.play)(policy, arena, keys, jnp.asarray(RECORD))
    ds = jb.simulate(policy, arena, horizon=HORIZON, num_seeds=80, record=RECORD)
    np.testing.assert_array_equal(out["pulls"], ds.pulls)
    np.testing.assert_array_equal(out["loss"], ds.loss.values.astype(np.float32))
    np.testing.assert_allclose(out["regret"], ds.regret, rtol=1e-5, atol=1e-5)
    assert (out["failed"] == 0).all()


def test_both_ways_play_one_game():
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(80))
    play = jax.jit(jb.play, static_argnames="way")
    one, other = (
        play(jb.UniINF(horizon=HORIZON), environment(3), keys, jnp.asarray(RECORD), way=way) for way in ways.WAYS
    )
    short = slice(0, 2)  # rounding parts two right programs after some hundred rounds
    np.testing.assert_array_equal(one["pulls"][:, short], other["pulls"][:, short])
    np.testing.assert_allclose(one["loss"][:, short], other["loss"][:, short], rtol=1e-5)
    assert_mean(one["regret"][:, -1] - other["regret"][:, -1], 0.0)


@pytest.mark.slow
def test_play_under_vmap_and_jvp(x64):
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(6))
    record = jnp.asarray([20])
    stacked = jb.UniINF(horizon=np.full(2, 20.0), initial_scale=np.array([1.0, 4.0]))
    both = jax.jit(jax.vmap(jb.play, (0, None, None, None)))(stacked, environment(2), keys, record)
    one = jax.jit(jb.play)(jb.UniINF(horizon=20.0, initial_scale=4.0), environment(2), keys, record)
    np.testing.assert_array_equal(both["pulls"][1], one["pulls"])

    def final_scale(initial_scale):
        policy = jb.UniINF(horizon=20.0, initial_scale=initial_scale)
        step, key = jb.step(policy, environment(2)), jb.game_key(0, 0)
        return jax.lax.fori_loop(0, 10, lambda _, s: step(s, key), jb.start(policy, environment(2))).policy.scale

    value_and_slope = jax.jit(lambda scale: jax.jvp(final_scale, (scale,), (1.0,)))
    h = 1e-6
    (below, _), (value, slope), (above, _) = (value_and_slope(scale) for scale in (4 - h, 4.0, 4 + h))
    np.testing.assert_allclose(slope, (above - below) / (2 * h), rtol=1e-5)
    assert value > 4


def test_summary_is_the_summary_of_the_seeds():
    seeds, kept = run(measures=MEASURES), run(measures=MEASURES, keep="summary")
    stats = jb.summary(seeds)
    for name in ("regret_mean", "regret_stderr", "regret_quantile"):
        np.testing.assert_allclose(kept[name].transpose(*stats[name].dims), stats[name], rtol=1e-12)
    np.testing.assert_allclose(kept.pulls, seeds.pulls.mean("seed"), rtol=1e-12)
    np.testing.assert_allclose(kept.skipped, seeds.skipped.mean("seed"), rtol=1e-12)
    assert "seed" not in kept.dims


@pytree
class OneInfiniteLoss:
    """Loss 0.5 in every round but the tenth."""

    num_arms: ClassVar[int] = 2

    def means(self, t):
        return jnp.full(2, 0.5)

    def loss(self, t, arm, key):
        return jnp.where(t == 10, jnp.inf, 0.5)


def test_infinite_losses_are_said():
    ds = jb.simulate(jb.UniINF(horizon=20), OneInfiniteLoss(), horizon=20, num_seeds=4, record=[5, 20])
    assert np.isfinite(ds.loss[:, 0]).all()
    assert np.isposinf(ds.loss[:, 1]).all()
    assert (ds.failed == 0).all()
    assert ds.attrs["infinite_losses"] == 4


@pytree
class Hoarder:
    """Plays at random and keeps its losses in a table."""

    def init(self, num_arms):
        return jnp.zeros((3, num_arms))

    def probabilities(self, state, t, key):
        return jnp.full(2, 0.5)

    def update(self, state, t, x, arm, loss):
        return state.at[t % 3, arm].set(loss)


@pytest.mark.filterwarnings("ignore:.* games of .* are broken:UserWarning")
def test_what_breaks_a_table_is_said_at_the_next_recorded_round():
    ds = jb.simulate(Hoarder(), OneInfiniteLoss(), horizon=20, num_seeds=4, record=[5, 11, 20])
    assert (ds.failed == 11).all()
    assert (jb.simulate(Hoarder(), OneInfiniteLoss(), horizon=9, num_seeds=4).failed == 0).all()


def test_stationarity_is_read_off():
    assert is_stationary(environment(3))
    assert not is_stationary(jb.Switching(environment(3)))


@pytest.mark.long
@pytest.mark.parametrize("environment", ["pareto", "student_t"])
def test_float32_is_good_enough(environment):
    """Mean regret in float32 and float64 within 4 standard errors, on unpaired seeds."""
    means = [0.5] + [1.0] * 9
    law = (
        jb.Pareto(means=means, tail_index=1.3) if environment == "pareto" else jb.StudentT(means=means, tail_index=1.5)
    )
    options = {"horizon": 200_000, "num_seeds": 512, "record": [200_000]}
    finals = [
        jb.simulate(jb.UniINF(horizon=200_000), law, dtype=dtype, seed=seed, **options).regret.values[:, 0]
        for seed, dtype in enumerate(("float32", "float64"))
    ]
    difference = finals[0].mean() - finals[1].mean()
    stderr = np.sqrt(sum(final.var(ddof=1) / final.size for final in finals))
    assert abs(difference) <= 4 * stderr, (difference, stderr)


@pytree
class Astray:
    """Plays at random until round 5, whose x is no probability vector."""

    wrong: jax.Array = field(vector=True)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        wrong = jnp.asarray(self.wrong)  # fields refuse NaN and infinity: 98 and 99 stand for them
        wrong = jnp.where(wrong == 98, jnp.nan, jnp.where(wrong == 99, jnp.inf, wrong))
        return jnp.where(t == 5, wrong, jnp.full(2, 0.5))

    def update(self, state, t, x, arm, loss):
        return state


@pytest.mark.parametrize("way", ways.WAYS)
@pytest.mark.parametrize("changing", some([False], [True]), ids=["stationary", "changing"])
@pytest.mark.filterwarnings("ignore:.* games of .* are broken:UserWarning")
def test_no_arm_is_drawn_off_the_simplex(way, changing):
    """Not finite, negative, or a sum off by more than 1e-3; the last x is within."""
    environment = jb.Bernoulli(means=[0.2, 0.8])
    environment = jb.Switching(environment, lengths=[3, 50]) if changing else environment
    wrong = [[98, 0.5], [99, 0.0], [-0.25, 1.25], [0.5, 0.4], [0.5, 0.5015], [0.5, 0.5005]]
    ds = jb.simulate(
        jb.grid(Astray, wrong=wrong),
        environment,
        horizon=8,
        num_seeds=6,
        record=[4, 5, 8],
        trace=6,
        engine=jb.Engine(way=way),
    )
    lost, fine = ds.isel(wrong=slice(5)), ds.isel(wrong=5)
    assert (lost.failed == 5).all() and (fine.failed == 0).all()
    arms = lost.trace_arm.values
    assert (arms[..., 4] == -1).all() and (np.delete(arms, 4, axis=-1) >= 0).all()
    assert np.isnan(lost.trace_loss.values[..., 4]).all()
    assert np.isfinite(lost.regret.values[..., 0]).all() and np.isnan(lost.regret.values[..., 1:]).all()
    np.testing.assert_array_equal(lost.pulls.sum("arm"), np.broadcast_to([4, 4, 7], (5, 6, 3)))
    assert np.isfinite(fine.regret).all() and (fine.pulls.sum("arm") == [4, 5, 8]).all()

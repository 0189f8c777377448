"""Losses of 1e30, infinity, NaN and below the normal numbers, for every policy: x is a law, or the game is marked."""

import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.arms import OFF_SIMPLEX
from jaxbandit.types import field, pytree
from tests.support.policies import make

HORIZON, EVERY = 60, 7
STRIKES = ["none", "1e30", "-1e30", "inf", "-inf", "nan", "subnormal"]


@pytree
class Struck:
    """An environment of ordinary losses, of which every seventh is extreme."""

    offset: jax.Array = field(vector=True)
    strike: float = field(default=0.0)  # index into STRIKES: constructors refuse the values themselves

    @property
    def num_arms(self):
        return self.offset.shape[0]

    def means(self, t):
        return 0.5 + self.offset

    def loss(self, t, arm, key):
        usual = 0.5 + self.offset[arm]
        tiny = jnp.finfo(usual.dtype).tiny / 8
        values = [jnp.asarray(value, usual.dtype) for value in (1e30, -1e30, np.inf, -np.inf, np.nan, tiny)]
        extreme = usual
        for number, value in enumerate(values, 1):
            extreme = jnp.where(self.strike == number, value, extreme)
        return jnp.where(t % EVERY == 0, extreme, usual)


COMBINATIONS = list(itertools.product(jb.POLICIES, (1, 2, 10, 100), ("float32", "float64")))
SHARE = set(random.Random(20).sample(range(len(COMBINATIONS)), round(len(COMBINATIONS) / 20)))  # a twentieth


@pytest.mark.filterwarnings("ignore:Struck has one arm", "ignore:.* games of .* are broken:UserWarning")
@pytest.mark.parametrize(
    ("name", "num_arms", "dtype"),
    [
        pytest.param(*which, marks=pytest.mark.slow if number in SHARE else pytest.mark.long)
        for number, which in enumerate(COMBINATIONS)
    ],
)
def test_a_law_or_a_marked_game(name, num_arms, dtype):
    def play(strikes):
        offset = np.linspace(0, 0.4, num_arms)
        environments = [Struck(offset=offset, strike=strike) for strike in strikes]
        return jb.simulate(
            make(name), environments, horizon=HORIZON, num_seeds=3, record=[HORIZON], dtype=dtype, trace=3
        ).squeeze("policy", drop=True)

    ds, calm = play(range(len(STRIKES))), play([0] * len(STRIKES))
    for number, strike in enumerate(STRIKES):
        game = ds.isel(environment=number)
        failed = game.failed.values
        x = game.trace_x.transpose("traced_seed", "t", "arm").values.astype(np.float64)
        law = np.isfinite(x).all(-1) & (x >= 0).all(-1) & (np.abs(x.sum(-1) - 1) <= OFF_SIMPLEX)
        first = np.where(law.all(-1), HORIZON + 1, 1 + np.argmin(law, axis=-1))
        assert ((failed == 0) & (first > HORIZON) | (failed > 0) & (failed <= first)).all(), (strike, failed, first)
        assert np.isfinite(game.regret.values[failed == 0]).all(), strike
        assert (game.pulls.isel(round=-1).sum("arm").values[failed == 0] == HORIZON).all(), strike
        assert strike in STRIKES[1:] or (failed == 0).all()
    for variable in ("regret", "loss", "pulls", "failed", "trace_x"):
        np.testing.assert_array_equal(ds[variable].isel(environment=0), calm[variable].isel(environment=0))


@pytest.mark.parametrize("num_arms", [1, 2])
def test_lb_inf_v_plays_on_after_an_enormous_loss(num_arms):
    """The square of 1e30 is no float32: the variation is held below it, so that the game goes on."""
    policy = jb.LBINFV(horizon=100.0)
    now = jnp.int32(1), jnp.full(num_arms, 1 / num_arms), jnp.int32(0), jnp.float32(1e30)
    after = policy.update(policy.init(num_arms), *now)
    assert all(np.isfinite(leaf).all() for leaf in after)

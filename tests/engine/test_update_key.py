"""A policy whose ``update`` declares ``key`` draws from a stream of its own, however it is played."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import arms, random
from jaxbandit.types import Array, pytree
from tests.support.helpers import some

ROUNDS, SEEDS = 20, 3
ENVIRONMENT = jb.Bernoulli(means=[0.2, 0.5, 0.5])


class Drawn(NamedTuple):
    """The sum of all draws so far."""

    total: Array


@pytree
class Draws:
    """Plays uniformly and adds up what its updates draw."""

    def init(self, num_arms):
        del num_arms
        return Drawn(jnp.zeros(()))

    def probabilities(self, state, t, key):
        del state, t
        return jnp.full(3, 1 / 3) + 0 * random.uniform(key)

    def update(self, state, t, x, arm, loss, key):
        del t, x, arm, loss
        return Drawn(state.total + random.uniform(key))


@pytree
class Plays(Draws):
    """The same without a draw in its update."""

    def update(self, state, t, x, arm, loss):
        del t, x, arm, loss
        return state


def expected(n):
    """The sum of the uniforms of game n, by the streams themselves."""
    key = jb.game_key(4, n)
    drawn = [random.uniform(random.round_streams(key, jnp.int32(t)).update) for t in range(1, ROUNDS + 1)]
    return float(np.sum(drawn, dtype=np.float64))


def test_a_signature_decides():
    assert random.takes_key(Draws().update)
    assert not random.takes_key(Plays().update)
    assert not random.takes_key(jb.UniINF(horizon=10).update)


@pytest.mark.parametrize("way", some(["native"], ["scan"]))
def test_simulate_hands_out_the_stream_of_the_update(way):
    options = {"horizon": ROUNDS, "num_seeds": SEEDS, "seed": 4, "engine": jb.Engine(way=way)}
    ds = jb.simulate(Draws(), ENVIRONMENT, measures=("total",), **options)
    np.testing.assert_allclose(ds.total.isel(round=-1), [expected(n) for n in range(SEEDS)], rtol=1e-5)
    plain = jb.simulate(Plays(), ENVIRONMENT, **options)
    np.testing.assert_array_equal(ds.pulls, plain.pulls)  # other consumers draw the same bits
    np.testing.assert_array_equal(ds.loss, plain.loss)


@pytree
class Follows(Draws):
    """The same, but the sum of the draws decides the arm."""

    def probabilities(self, state, t, key):
        del t, key
        return arms.one_hot((3 * (state.total % 1)).astype(jnp.int32), 3).astype(state.total.dtype)


@pytest.mark.parametrize("way", ["native", "scan"])
def test_step_and_play_draw_the_same(way):
    step, key = jax.jit(jb.step(Follows(), ENVIRONMENT)), jb.game_key(4, 1)
    state = jb.start(Follows(), ENVIRONMENT)
    for _ in range(ROUNDS):
        state = step(state, key)
    assert float(state.policy.total) == pytest.approx(expected(1), rel=1e-5)
    played = jb.play(Follows(), ENVIRONMENT, key[None], jnp.array([ROUNDS]), way=way)
    np.testing.assert_array_equal(played["pulls"][0, -1], state.pulls)
    assert int(state.pulls.min()) > 0

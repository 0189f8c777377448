"""Derivatives of ``jb.play`` against finite differences, in a game that is smooth in its parameters."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine import segments
from jaxbandit.types import field, pytree

REFUSED = r"^play cannot be differentiated in reverse with a traced record.*pass record as a list .*\[10, 100\]"
RECORD = [1, 5, 23]  # spans of 4 rounds: whole ones, a shorter one, one of a single round


@pytree
class Turning:
    """Losses exp(level[arm] u) in round t, whose means turn with the rounds."""

    level: jax.Array = field(vector=True)

    @property
    def num_arms(self):
        return len(self.level)

    def means(self, t):
        angle = 0.3 * t.astype(self.level.dtype) + jnp.arange(self.num_arms, dtype=self.level.dtype)
        return jnp.exp(self.level) * (2 + jnp.cos(angle))

    def loss(self, t, arm, key):
        return jnp.exp(self.level[arm] * random.uniform(key, ()).astype(self.level.dtype))


def played(level, record=RECORD, way=None):
    """A number made of all losses and regrets. The policy ignores losses, so its arms do not depend on the level."""
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(3))
    out = jb.play(jb.Uniform(), Turning(level=level), keys, record, way=way)
    weights = jnp.arange(1.0, 4.0)
    return jnp.sum((out["loss"] + jnp.sin(out["regret"])) @ weights)


def folded(rate, record):
    """The sums of rate ** n since the last recorded round n, at each of them."""

    def play(carry, t):
        power, total = carry
        return power * rate, total + power * rate

    def hand_out(carry, t):
        return (carry[0], jnp.zeros_like(carry[1])), carry[1] * t.astype(rate.dtype)

    (power, _), tallies = segments.fold(play, hand_out, (jnp.ones_like(rate), jnp.zeros_like(rate)), record)
    return jnp.append(tallies, power)


def test_a_loop_over_rounds_is_differentiated_in_both_directions(x64):
    n, rate = np.arange(1, RECORD[-1] + 1), 0.9
    parts = np.split(n, RECORD[:-1])
    sums = [stop * (rate**part).sum() for stop, part in zip(RECORD, parts, strict=True)]
    slopes = [stop * (part * rate ** (part - 1.0)).sum() for stop, part in zip(RECORD, parts, strict=True)]
    sums, slopes = np.array([*sums, rate ** RECORD[-1]]), np.array([*slopes, RECORD[-1] * rate ** (RECORD[-1] - 1)])
    known = functools.partial(folded, record=np.array(RECORD))
    np.testing.assert_allclose(known(jnp.asarray(rate)), sums, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.jacrev(known))(rate), slopes, rtol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(known)(rate), slopes, rtol=1e-12)
    traced = jax.jit(jax.jacfwd(folded))(rate, jnp.array(RECORD, jnp.int32))
    np.testing.assert_allclose(traced, slopes, rtol=1e-12)
    with pytest.raises(ValueError, match=REFUSED):
        jax.jit(jax.jacrev(folded))(rate, jnp.array(RECORD, jnp.int32))


LEVEL, DIRECTION = np.array([0.4, -0.7]), np.array([0.3, -1.0])
STEP = 1e-5


@functools.cache
def differences():
    """The value at ``LEVEL``, and central differences of the second order."""
    steps = STEP * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    values = np.asarray(jax.jit(jax.vmap(played))(LEVEL + steps))
    return values[0], (values[1::2] - values[2::2]) / (2 * STEP)


@pytest.mark.slow
@pytest.mark.parametrize("way", [None, "scan"])
def test_derivatives_are_those_of_finite_differences(way, x64):
    def derivatives(level, direction):
        value, gradient = jax.value_and_grad(lambda level: played(level, way=way))(level)
        return value, gradient, jax.jvp(lambda level: played(level, way=way), (level,), (direction,))[1]

    value, gradient, tangent = jax.jit(derivatives)(LEVEL, DIRECTION)
    expected, slopes = differences()
    assert (np.abs(slopes) > 1).all()
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7)
    np.testing.assert_allclose(tangent, slopes @ DIRECTION, rtol=1e-7)


@pytest.mark.slow
def test_play_to_traced_rounds_is_differentiated_forward_and_refused_in_reverse(x64):
    rounds = jnp.array(RECORD)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(played))(LEVEL, rounds), differences()[1], rtol=1e-7)
    with pytest.raises(ValueError, match=REFUSED):
        jax.jit(jax.grad(played))(LEVEL, rounds)

"""Shapes and dtypes of what a policy and an environment return are checked when a game is traced."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import pytest

import jaxbandit as jb
from jaxbandit.types import pytree


@pytree
class Even:
    """Plays every arm alike."""

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        return jnp.full(3, 1 / 3)

    def update(self, state, t, x, arm, loss):
        return state.at[arm].add(loss)


@pytree
class Index(Even):
    """Returns an arm in place of probabilities."""

    def probabilities(self, state, t, key):
        return jnp.argmin(state)


@pytree
class Short(Even):
    """Returns two probabilities for three arms."""

    def probabilities(self, state, t, key):
        return jnp.full(2, 0.5)


@pytree
class Whole(Even):
    """Counts losses in integers."""

    def init(self, num_arms):
        return {"count": jnp.zeros(num_arms, jnp.int32)}

    def update(self, state, t, x, arm, loss):
        return {"count": state["count"].astype(loss.dtype) + loss}


@pytree
class Grown(Even):
    """Returns a state with one entry more."""

    def update(self, state, t, x, arm, loss):
        return jnp.append(state, loss)


@pytree
class Other(Even):
    """Returns a state of another structure."""

    def update(self, state, t, x, arm, loss):
        return state, loss


@pytree
class Vector:
    """An environment whose loss is a vector."""

    num_arms: ClassVar[int] = 3

    def means(self, t):
        return jnp.zeros(3)

    def loss(self, t, arm, key):
        return jnp.zeros(3)


@pytree
class FewMeans(Vector):
    """An environment with two means for three arms, which change."""

    def means(self, t):
        return jnp.zeros(2) + t.astype(jnp.float32)

    def loss(self, t, arm, key):
        return jnp.zeros(())


EASY = jb.Bernoulli(means=[0.2, 0.5, 0.5])
WRONG = {
    "index": (
        Index(),
        EASY,
        r"Index.probabilities must return float32\[3\], got int32\[\]; .*jax.nn.one_hot\(index, 3\)",
    ),
    "short": (Short(), EASY, r"Short.probabilities must return float32\[3\], got float32\[2\]"),
    "whole": (Whole(), EASY, r"Whole.update changes the form of \['count'\]: got float32\[3\], expected int32\[3\]"),
    "grown": (Grown(), EASY, r"Grown.update changes the form of the state: got float32\[4\], expected float32\[3\]"),
    "other": (Other(), EASY, "Other.update must return a state like the one of init"),
    "vector": (
        Even(),
        Vector(),
        r"Vector.loss must return float32\[\], got float32\[3\]; return one number, .* losses\[arm\]",
    ),
    "means": (Even(), FewMeans(), r"FewMeans.means must return float32\[3\], got float32\[2\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_forms_are_refused_everywhere(case):
    policy, environment, message = WRONG[case]
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(2))
    with pytest.raises(TypeError, match=message):
        jb.simulate(policy, environment, horizon=5, num_seeds=2)
    with pytest.raises(TypeError, match=message):
        jb.simulate(policy, environment, horizon=5, num_seeds=2, engine=jb.Engine(way="scan"))
    with pytest.raises(TypeError, match=message):
        jb.play(policy, environment, keys, jnp.array([5]))
    with pytest.raises(TypeError, match=message):
        jb.step(policy, environment)(jb.start(policy, environment), keys[0])


def test_the_right_form_plays():
    assert int(jb.simulate(Even(), EASY, horizon=5, num_seeds=2).pulls.isel(round=-1).sum()) == 10

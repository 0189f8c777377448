"""Games that the checks play: one game round by round, and losses that are given in advance."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.game import GameState, as_arrays, game_key, start, step
from jaxbandit.types import Array, field, pytree

HORIZON = 300  # rounds of a game

# Unoptimised code compiles in half the time, and here the time is compilation.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class CheckError(AssertionError):
    """The error of a check that does not hold."""


def require(holds: Any, problem: str) -> None:
    """Raises ``CheckError`` with the problem unless the condition holds."""
    if not bool(holds):
        raise CheckError(problem)


@pytree
class Given:
    """An environment that deals out a given sequence of losses, the same to every arm, plus an offset per arm."""

    sequence: Array = field(vector=True, infinite=True)
    offset: Array = field(vector=True)

    @property
    def num_arms(self) -> int:
        """K."""
        return self.offset.shape[0]

    def means(self, t: Array) -> Array:
        """Returns the losses of round ``t``: [K]."""
        return self.sequence[t - 1] + self.offset

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the loss of an arm."""
        return self.sequence[t - 1] + self.offset[arm]


def given(sequence: np.ndarray, offset: list[float]) -> Given:
    """Returns an environment of given losses, past the constructor, which refuses NaN."""
    like = Given(sequence=jnp.zeros(1), offset=jnp.asarray(offset))
    return jax.tree.unflatten(jax.tree.structure(like), [sequence.astype(np.float32), np.asarray(offset)])


@quick_jit
def trajectory(policy: Any, environment: Any) -> tuple[Array, Array, GameState]:
    """Returns x, arm and state of every round of one game; compiled once per class and number of arms."""
    play_one, key = step(policy, environment), game_key(0, 0)

    def body(state, _):
        after = play_one(state, key)
        x = policy.probabilities(state.policy, after.t, random.round_streams(key, after.t).policy)
        return after, (x, jnp.argmax(after.pulls - state.pulls), after)

    return jax.lax.scan(body, start(policy, environment), None, length=HORIZON)[1]


def play(policy: Any, environment: Any) -> tuple[Array, Array, GameState]:
    """Returns x, arm and state of every round of one game of HORIZON rounds."""
    return trajectory(as_arrays(policy), as_arrays(environment))


def close(got: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    """Returns whether two trees of arrays agree to rounding; NaN agrees with NaN."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance / 10, equal_nan=True) for a, b in pairs)


def same(one: Any, other: Any) -> bool:
    """Returns whether two trees of arrays are equal; NaN equals NaN."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f") for a, b in pairs)

"""Uniform play: the yardstick."""

from typing import ClassVar

import jax.numpy as jnp

from jaxbandit.types import Array, pytree


@pytree
class Uniform:
    """Every arm with probability 1/K in every round; learns nothing.

    Example:
      >>> import jaxbandit as jb
      >>> jb.Uniform().probabilities(jb.Uniform().init(4), 1, None).tolist()
      [0.25, 0.25, 0.25, 0.25]

    References:
      The lower end of every comparison: regret linear in T.
      https://arxiv.org/abs/1204.5721 (Bubeck, Cesa-Bianchi 2012, section 1)
    """

    label: ClassVar[str] = "uniform"
    setting: ClassVar[str] = "yardstick"

    def init(self, num_arms: int) -> Array:
        """Returns the uniform probabilities, [K], which never change."""
        return jnp.full(num_arms, 1 / num_arms)

    def probabilities(self, state: Array, t: Array, key) -> Array:
        """Returns 1/K for every arm."""
        del t, key
        return state

    def update(self, state: Array, t: Array, x: Array, arm: Array, loss: Array) -> Array:
        """Returns the state unchanged."""
        del t, x, arm, loss
        return state

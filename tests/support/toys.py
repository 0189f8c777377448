"""Policies whose expected regret is known in closed form."""

import jax.numpy as jnp

from jaxbandit.types import field, pytree


@pytree
class Product:
    """Plays the second of two arms with probability a * b, whatever it sees: its regret is T * gap * a * b."""

    a: float = field(default=0.5, gt=0, lt=1)
    b: float = field(default=0.5, gt=0, lt=1)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        second = jnp.asarray(self.a) * self.b
        return jnp.stack([1 - second, second])

    def update(self, state, t, x, arm, loss):
        return state

"""Recorded digests of short games: a processor or card whose digests differ does not compute as it must.

The games below are made for this check and use what the games of a study use: divisions, roots, elementary functions
with their fused operations, words of random bits, branches, and a table in memory.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import random
from jaxbandit.engine.round import Plan
from jaxbandit.engine.shape import Shape
from jaxbandit.types import field, pytree

LANES, ROUNDS, ENTRIES = 32, 24, 80
RECORD = np.array([1, 10, ROUNDS])
# Digests of all that the games hand out and of their final states. They change only with the numerics of the package.
RECORDED = {
    "float32": "2b6cd1c55fabe86881c2b0ad5eb84b0eb514af95ef852d3a79b783e7a43bfe37",
    "float64": "3ce22f0300fa1f5ceb4a8f35eac13cf1739c5135aee91aef71d0f86a3ec59d26",
}


@pytree
class Exercise:
    """A policy that uses all kinds of operations; it learns little."""

    rate: jax.Array = field(default=0.7)

    def init(self, num_arms: int) -> dict[str, jax.Array]:
        """Returns the state before round 1."""
        return {"total": jnp.zeros(num_arms), "table": jnp.zeros(ENTRIES), "sum": jnp.zeros(())}

    def probabilities(self, state: dict[str, jax.Array], t: jax.Array, key: Any) -> jax.Array:
        """Returns a law on the arms."""
        shifted = state["total"] - jnp.min(state["total"])
        weights = jnp.exp(-self.rate * shifted / jnp.sqrt(jnp.asarray(t, shifted.dtype))) + 0.1
        return weights / jnp.sum(weights)

    def update(self, state: dict[str, jax.Array], t: jax.Array, x: jax.Array, arm: jax.Array, loss: jax.Array) -> Any:
        """Returns the state after a round."""
        place = (7 * t + 3 * arm) % ENTRIES
        table = state["table"].at[place].add(jnp.log1p(jnp.abs(loss)) / x[arm])
        rest = lax.cond(
            loss > 1, lambda now: now + jnp.sum(table) / (1 + now * now), lambda now: now - jnp.cos(now), state["sum"]
        )
        return {"total": state["total"].at[arm].add(jnp.minimum(loss / x[arm], 50)), "table": table, "sum": rest}


@pytree
class Trial:
    """An environment with heavy tails on both sides."""

    means_: jax.Array = field(vector=True)

    @property
    def num_arms(self) -> int:
        """Number of arms."""
        return self.means_.shape[0]

    def means(self, t: jax.Array) -> jax.Array:
        """Returns the middle of every arm's losses."""
        return jnp.asarray(self.means_)

    def loss(self, t: jax.Array, arm: jax.Array, key: Any) -> jax.Array:
        """Returns a loss."""
        drawn = random.exponential(key)
        return jnp.asarray(self.means_)[arm] + jnp.where(t % 2 == 0, 1, -1) * (drawn**1.7 - 0.5)


def differing(games_of: Callable[[Shape], Any]) -> list[str]:
    """Returns the dtypes in which the digest differs from the recorded one; ``games_of`` compiles games of a shape."""
    return [dtype for dtype, recorded in RECORDED.items() if played(dtype, games_of) != recorded]


def played(dtype: str, games_of: Callable[[Shape], Any]) -> str:
    """Plays the recorded games and returns their digest."""
    pair = Exercise(), Trial(means_=jnp.asarray([0.5, 0.75, 1.0]))
    with jax.enable_x64(dtype == "float64"):
        shape = Shape.of(*pair, Plan(stationary=True))
        leaves = [np.repeat(np.asarray(leaf, dtype)[..., None], LANES, axis=-1) for leaf in jax.tree.leaves(pair)]
        block = games_of(shape).block(leaves, random.game_words(random.seed_words(0), np.arange(LANES)))
        try:
            block.start()
            handed_out, _ = block.advance(0, ROUNDS, RECORD)
            return digest([*handed_out, *block.carry()])
        finally:
            block.close()


def digest(leaves: list[np.ndarray]) -> str:
    """Returns the SHA-256 over arrays, in which every NaN has the same bits."""
    found = hashlib.sha256()
    for leaf in leaves:
        found.update(f"{leaf.dtype.newbyteorder('<').str} {leaf.shape}".encode())
        found.update(np.ascontiguousarray(leaf, leaf.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()

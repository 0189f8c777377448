"""The shape of a game: its classes, arms and arrays, without the numbers."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engine import round as rounds
from jaxbandit.game import Environment, Policy
from jaxbandit.types import shared_leaves


@dataclasses.dataclass(frozen=True)
class Shape:
    """The key of a compiled program, which serves any numbers in any number of games of this shape.

    Attributes:
      tree: Structure of (policy, environment).
      leaves: Shape of every leaf.
      shared: For every leaf, whether all games share it.
      num_arms: Number of arms K.
      dtype: "float32" or "float64".
      plan: The quantities that are recorded.
    """

    tree: Any
    leaves: tuple[tuple[int, ...], ...]
    shared: tuple[bool, ...]
    num_arms: int
    dtype: str
    plan: rounds.Plan

    @classmethod
    def of(cls, policy: Policy, environment: Environment, plan: rounds.Plan) -> "Shape":
        """Returns the shape of the games of a pair, in the working dtype."""
        leaves, tree = jax.tree.flatten((policy, environment))
        shape = cls(
            tree=tree,
            leaves=tuple(np.shape(leaf) for leaf in leaves),
            shared=(*shared_leaves(policy), *shared_leaves(environment)),
            num_arms=environment.num_arms,
            dtype=str(jnp.result_type(float)),
            plan=plan,
        )
        return _known.setdefault(shape, shape)  # JAX traces the properties below once in a process

    @functools.cached_property
    def parameters(self) -> list[jax.ShapeDtypeStruct]:
        """The shapes and dtypes of the leaves."""
        return [jax.ShapeDtypeStruct(shape, np.dtype(self.dtype)) for shape in self.leaves]

    def pair(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
        """Returns the policy and the environment that have these leaves."""
        return jax.tree.unflatten(self.tree, leaves)

    @functools.cached_property
    def carry(self) -> rounds.Carry:
        """The shapes and dtypes of a game's carry."""
        return jax.eval_shape(lambda *leaves: self.begin(*leaves), *self.parameters)

    @functools.cached_property
    def tally(self) -> rounds.Tally:
        """The shapes and dtypes of a recorded round's tally."""
        return jax.eval_shape(lambda carry: rounds.record(self.plan, carry, jnp.int32(1))[1], self.carry)

    def check(self) -> None:
        """Raises ``TypeError`` if a round cannot be traced, before any game is played."""
        words, t = jax.ShapeDtypeStruct((2,), jnp.uint32), jax.ShapeDtypeStruct((), jnp.int32)
        jax.eval_shape(self.play, self.parameters, self.carry, words, t)

    def begin(self, *leaves: Any) -> rounds.Carry:
        """Returns a game before round 1."""
        return rounds.begin(self.plan, self.pair(leaves)[0], self.num_arms)

    def play(self, leaves: Sequence[Any], carry: rounds.Carry, key_words: Any, t: Any) -> tuple[Any, Any]:
        """Plays a round."""
        return rounds.play(self.plan, *self.pair(leaves), carry, key_words, t)


_known: dict[Shape, Shape] = {}

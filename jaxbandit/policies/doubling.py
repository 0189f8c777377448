"""The doubling trick around a policy that must be given the horizon.

[1] https://arxiv.org/abs/1803.06971 (Besson, Kaufmann 2018)
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit import random
from jaxbandit.types import Array, field, public_fields, pytree


class DoublingState(NamedTuple):
    """The state before round t: the state of the wrapped policy in this phase, and the phase."""

    policy: Any
    start: Array  # []  int32, the rounds before this phase
    length: Array  # []  the rounds of this phase


@pytree
class Doubling:
    r"""A policy that must be given T, played without T: it starts anew in phases of twice the length.

    Phase :math:`i = 0, 1, 2, \ldots` has :math:`2^i n` rounds. The policy forgets everything at its start, and is given
    that number for its horizon.

    Attributes:
      policy: The policy that plays; its own horizon is not used. In a study file it is a table with a name:
        ``policy = {name = "uniinf"}``.
      first: :math:`n`, the rounds of the first phase.

    Example:
      >>> import jaxbandit as jb
      >>> policies = [jb.UniINF(horizon=5_000), jb.Doubling(jb.UniINF(horizon=5_000))]
      >>> environment = jb.Bernoulli(means=[0.2, 0.8, 0.8])
      >>> ds = jb.simulate(policies, environment, horizon=5_000, num_seeds=64, record=[5_000])
      >>> given, doubled = ds.regret.mean("seed").values.ravel()
      >>> bool(given < doubled)
      True

    References:
      Besson, Kaufmann. "What Doubling Tricks Can and Can't Do for Multi-Armed Bandits". 2018.
      https://arxiv.org/abs/1803.06971

    Notes:
      The trick keeps a bound of order T^p up to a constant. A bound of order log T becomes log^2 T, because every phase
      pays its own logarithm.
    """

    label: ClassVar[str] = "doubling"
    setting: ClassVar[str] = "horizon not given"

    policy: Any = field(nested=True)
    first: float = field(default=64.0, ge=2, whole=True, hint="count the rounds of the first phase")

    def __post_init__(self):
        missing = [name for name in ("init", "probabilities", "update") if not hasattr(self.policy, name)]
        if isinstance(self.policy, type) or missing:
            raise ValueError(f"Doubling.policy must be a policy, got {self.policy!r}; pass jb.UniINF(horizon=...)")
        if "horizon" not in public_fields(type(self.policy)):
            name = type(self.policy).__name__
            raise ValueError(f"Doubling.policy must take a horizon, got {self.policy!r}; play {name} by itself")

    @property
    def sure(self) -> bool:
        """Whether the policy inside always puts probability 1 on one arm."""
        return getattr(self.policy, "sure", False)

    def init(self, num_arms: int) -> DoublingState:
        """Returns the state before round 1, in which the first phase starts."""
        length = jnp.asarray(self.first, jnp.result_type(float))
        return DoublingState(self._given(length).init(num_arms), jnp.int32(0), length)

    def probabilities(self, state: DoublingState, t: Array, key) -> Array:
        """Returns the probabilities of the wrapped policy, which has received the losses of this phase."""
        return self._given(state.length).probabilities(state.policy, t - state.start, key)

    def update(self, state: DoublingState, t: Array, x: Array, arm: Array, loss: Array, key) -> DoublingState:
        """Updates the wrapped policy; after the last round of a phase, starts the next phase."""
        t = jnp.asarray(t, jnp.int32)
        policy, keys = self._given(state.length), [key] if random.takes_key(self.policy.update) else []
        after = policy.update(state.policy, t - state.start, x, arm, loss, *keys)
        over = t - state.start >= state.length.astype(jnp.int32)
        fresh = DoublingState(self._given(2 * state.length).init(x.shape[0]), t, 2 * state.length)
        stay = DoublingState(after, state.start, state.length)
        return jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, stay)

    def _given(self, length: Array) -> Any:
        """Returns the wrapped policy, given the length of a phase for its horizon."""
        return dataclasses.replace(self.policy, horizon=length)

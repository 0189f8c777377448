"""Delayed feedback around any policy: a loss arrives some rounds after its arm was played.

[1] https://arxiv.org/abs/1910.06054 (Zimmert, Seldin 2020)
"""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit import random
from jaxbandit.types import Array, as_whole, field, pytree

NONE = -1  # no place of the ring


class DelayedState(NamedTuple):
    """The state before round t: the state of the wrapped policy, and a ring of D + 1 rounds on their way.

    Round s lies in place s mod (D + 1). With uniform delays, the rounds whose losses arrive at the end of the same
    round u form a chain, the oldest first: it begins in ``first``, at place u mod (D + 1), and continues in ``after``.
    """

    policy: Any
    x: Array  # [D + 1, K]  probabilities
    arm: Array  # [D + 1]  int32
    loss: Array  # [D + 1]
    played: Array  # [D + 1]  int32, the round
    first: Array  # [D + 1]  int32, the place of the oldest round that arrives then; -1 if there is none
    last: Array  # [D + 1]  int32, the place of the newest one
    after: Array  # [D + 1]  int32, the place of the next round that arrives with this one; -1 if there is none


@pytree
class Delayed:
    r"""A policy that sees each loss only some rounds after its arm was played.

    The loss of round s arrives at the end of round :math:`s + d_s`, and the policy's ``update`` then receives the round
    s, its probabilities, its arm and its loss. Regret is as before: it is counted when an arm is played. Losses that
    arrive in the same round come in the order in which they were played. A delay of 0 is the policy itself, to the bit.
    The state grows by D + 1 rounds, whatever the horizon.

    Attributes:
      policy: The policy that plays. In a study file it is a table with a name:
        ``policy = {name = "uniinf"}``; a horizon that it needs is the study's.
      delay: :math:`D`, the number of rounds, or the largest one.
      law: "fixed" for :math:`d_s = D`, "uniform" for independent delays, uniform on 0, ..., D. A policy whose update
        draws random numbers takes fixed delays only: several updates of one round would share their draws.

    Example:
      >>> import jaxbandit as jb
      >>> policies = [jb.UniINF(horizon=1_000), jb.Delayed(jb.UniINF(horizon=1_000), delay=50)]
      >>> environment = jb.Bernoulli(means=[0.2, 0.8, 0.8])
      >>> ds = jb.simulate(policies, environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> plain, late = ds.regret.mean("seed").values.ravel()
      >>> bool(plain < late)
      True

    References:
      Zimmert, Seldin. "An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays". AISTATS 2020.
      https://arxiv.org/abs/1910.06054

    Notes:
      No guarantee of the policy inside covers delays: the policies that the reference analyses are other ones.
    """

    label: ClassVar[str] = "delayed"
    setting: ClassVar[str] = "delayed feedback"

    policy: Any = field(nested=True)
    delay: int = field(static=True, hint="count the rounds")
    law: str = field(default="fixed", choices=("fixed", "uniform"))

    def __post_init__(self):
        missing = [name for name in ("init", "probabilities", "update") if not hasattr(self.policy, name)]
        if isinstance(self.policy, type) or missing:
            raise ValueError(f"Delayed.policy must be a policy, got {self.policy!r}; pass jb.UniINF(horizon=...)")
        delay = as_whole(self.delay)
        if delay is None or delay < 0:
            raise ValueError(f"Delayed.delay must be a whole number >= 0, got {self.delay!r}; count the rounds")
        object.__setattr__(self, "delay", delay)
        if self.law != "fixed" and random.takes_key(self.policy.update):
            raise ValueError(
                f"Delayed.law must be 'fixed' for {type(self.policy).__name__}, whose update draws, got {self.law!r}; "
                "several updates of one round would share their draws"
            )

    @property
    def sure(self) -> bool:
        """Whether the policy inside always puts probability 1 on one arm."""
        return getattr(self.policy, "sure", False)

    def init(self, num_arms: int) -> DelayedState:
        """Returns the state before round 1: that of the wrapped policy, with no loss on its way."""
        room = self.delay + 1
        whole, none = jnp.zeros(room, jnp.int32), jnp.full(room, NONE, jnp.int32)
        chains = {"first": none, "last": none, "after": none}
        return DelayedState(
            self.policy.init(num_arms), jnp.zeros((room, num_arms)), whole, jnp.zeros(room), played=whole, **chains
        )

    def probabilities(self, state: DelayedState, t: Array, key) -> Array:
        """Returns the probabilities of the wrapped policy, which has received only the losses that have arrived."""
        return self.policy.probabilities(state.policy, t, key)

    def update(self, state: DelayedState, t: Array, x: Array, arm: Array, loss: Array, key) -> DelayedState:
        """Stores the round, and passes the losses that arrive now to the wrapped policy."""
        t = jnp.asarray(t, jnp.int32)
        room = self.delay + 1
        slot = t % room
        state = state._replace(
            x=state.x.at[slot].set(x),
            arm=state.arm.at[slot].set(jnp.asarray(arm, jnp.int32)),
            loss=state.loss.at[slot].set(loss),
            played=state.played.at[slot].set(t),
        )
        if self.law == "fixed":
            after = self._seen(state, state.policy, (t + 1) % room, key)  # round t - D
            arrives = t > self.delay
            return state._replace(policy=jax.tree.map(lambda a, b: jnp.where(arrives, a, b), after, state.policy))
        state = self._chained(state, slot, (t + random.below(key, room)) % room)

        def hand_out(now: tuple[Any, Array]) -> tuple[Any, Array]:
            policy, place = now
            return self._seen(state, policy, place, key), state.after[place]

        policy, _ = lax.while_loop(lambda now: now[1] != NONE, hand_out, (state.policy, state.first[slot]))
        return state._replace(policy=policy, first=state.first.at[slot].set(NONE))

    def _chained(self, state: DelayedState, slot: Array, due: Array) -> DelayedState:
        """Puts a round at the end of the chain of those that arrive when it does."""
        alone = state.first[due] == NONE
        before = jnp.where(alone, slot, state.last[due])  # a round alone is linked to nothing, below
        return state._replace(
            first=state.first.at[due].set(jnp.where(alone, slot, state.first[due])),
            last=state.last.at[due].set(slot),
            after=state.after.at[before].set(slot).at[slot].set(NONE),
        )

    def _seen(self, state: DelayedState, policy: Any, slot: Array, key) -> Any:
        """Returns the state of the wrapped policy after the round in this slot."""
        then = (policy, state.played[slot], state.x[slot], state.arm[slot], state.loss[slot])
        return self.policy.update(*then, *([key] if random.takes_key(self.policy.update) else []))

"""A stochastic environment in which an adversary spoils a number of rounds."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import random
from jaxbandit.environments.laws.base import derive
from jaxbandit.environments.schedules.base import (
    HORIZON_HINT,
    Schedule,
    exchanged,
    exchanged_place,
    from_halves,
    in_halves,
    need_horizon,
)
from jaxbandit.types import Array, field, pytree

_STREAM = 0x636F7272  # keeps the bits of this schedule apart from those of others with the same seed
_STEPS = 6  # number of steps of the Feistel network


@pytree
class Corrupted(Schedule):
    """A law whose best and worst arm change places in a given number of rounds, drawn before play.

    The adversary may spoil ``budget`` of the ``horizon`` rounds. It draws them without replacement and makes the
    best arm look the worst and the worst the best. Regret is against the best fixed arm of all rounds, the spoilt
    ones included: ``means`` shows them. The rounds are the same for every policy and every game.

    Attributes:
      law: Any stationary environment.
      budget: Rounds to spoil, at most the horizon.
      seed: Seed of the spoilt rounds.
      horizon: Rounds to draw from; if left out, those of the run.
      plan: Budget, horizon, seed and half the width of a round's number in bits, each in two halves of 16 bits;
        follows from the above.

    Example:
      >>> import jax, jax.numpy as jnp, jaxbandit as jb
      >>> environment = jb.Corrupted(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), budget=10, horizon=100)
      >>> int(jax.vmap(environment.is_spoilt)(jnp.arange(1, 101)).sum())
      10

    References:
      Lykouris, Mirrokni and Paes Leme (2018), Stochastic bandits robust to adversarial corruptions.
      https://arxiv.org/abs/1803.09353
    """

    label: ClassVar[str] = "corrupted"

    law: Any = field(nested=True)
    budget: Any = field(whole=True, ge=0, hint="count the rounds to spoil")
    seed: Any = field(default=0, whole=True, ge=0, lt=2**32, hint="give a whole number below 2^32")
    horizon: Any = field(default=None, whole=True, ge=1, lt=2**31, hint=HORIZON_HINT)
    plan: Any = field(derived=True, shared=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        if self.horizon is None:
            return
        if self.budget > self.horizon:
            raise ValueError(
                f"Corrupted.budget must be at most the horizon {int(self.horizon)}, got {int(self.budget)}; "
                "give the number of rounds to spoil"
            )
        half_width = -(-max(int(self.horizon) - 1, 1).bit_length() // 2)
        derive(self, plan=in_halves(np.array([self.budget, self.horizon, self.seed, half_width])))

    def is_spoilt(self, t: Array) -> Array:
        """Returns whether round ``t`` is spoilt, that is, among the first ``budget`` places of a random permutation.

        The permutation is a Feistel network on the smallest square that covers the horizon, iterated until the place
        is back inside. It needs no table and spoils exactly ``budget`` rounds.
        """
        need_horizon(self)
        budget, horizon, seed, half = from_halves(self.plan, jnp.uint32)
        mask = (jnp.uint32(1) << half) - jnp.uint32(1)

        def permute(place):
            left, right = place >> half, place & mask
            for step in range(_STEPS):
                word, _ = random.threefry2x32((seed, jnp.uint32(_STREAM)), (right, jnp.uint32(step)))
                left, right = right, left ^ (word & mask)
            return (left << half) | right

        place = jnp.asarray(t).astype(jnp.uint32) - jnp.uint32(1)
        inside = place < horizon
        place = permute(jnp.where(inside, place, jnp.uint32(0)))
        place = lax.while_loop(lambda place: place >= horizon, permute, place)
        return inside & (place < budget)

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        return exchanged(self.law, t, self.is_spoilt(t))

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the loss of the law's arm whose place ``arm`` takes."""
        return self.law.loss(t, exchanged_place(self.law, t, arm, self.is_spoilt(t)), key)

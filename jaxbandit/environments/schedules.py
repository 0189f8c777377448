"""Non-stationary worlds: a law whose arms change places on a schedule fixed before play."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.types import Array, field, pytree


@pytree
class Switching:
    r"""A law whose arms are reversed in every other phase: the best arm changes at each boundary.

    Phase :math:`k = 0, 1, ...` has length :math:`g^k`, so it begins after
    :math:`(g^k - 1) / (g - 1)` rounds: with :math:`g = 1.6` a stochastically constrained adversary
    after Zimmert and Seldin (2021), with noise around the means. Or phases of given lengths, the
    last one without end.

    Attributes:
      law: Any stationary world.
      growth: :math:`g > 1`, the ratio of two successive phases. Not used if lengths are given.
      lengths: Phase lengths in rounds, or none.

    Example:
      >>> import jaxbandit as jb
      >>> world = jb.Switching(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), lengths=[100, 100])
      >>> world.means(100).tolist(), world.means(101).tolist()
      ([0.5, 1.0], [1.0, 0.5])
    """

    label: ClassVar[str] = "switching"

    law: Any = field()
    growth: float = field(default=1.6, gt=1, hint="or give lengths=[...]")
    lengths: Any = field(default=None, vector=True, ge=1, hint="a phase lasts at least one round")

    def __post_init__(self):
        if not hasattr(self.law, "loss"):
            raise ValueError(f"Switching.law must be a world such as jb.Pareto(...), got {self.law!r}")

    @property
    def num_arms(self) -> int:
        """K."""
        return self.law.num_arms

    @property
    def moment_order(self) -> float:
        """The law's."""
        return self.law.moment_order

    def moment(self, alpha: float) -> float:
        """The law's: the arms only change places."""
        return self.law.moment(alpha)

    def phase(self, t: Array) -> Array:
        """The number of boundaries before round ``t``."""
        if self.lengths is not None:
            ends = jnp.cumsum(jnp.asarray(self.lengths))
            return jnp.sum((t > ends[:-1]).astype(jnp.int32))
        g = jnp.asarray(self.growth, jnp.result_type(float))
        return jnp.floor(jnp.log1p((t - 1) * (g - 1)) / jnp.log(g)).astype(jnp.int32)

    def means(self, t: Array) -> Array:
        """Expected losses in round ``t``: [K]."""
        means = self.law.means(t)
        return jnp.where(self.phase(t) % 2 == 1, means[::-1], means)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """The loss of the law's arm that stands in this one's place."""
        place = jnp.where(self.phase(t) % 2 == 1, self.num_arms - 1 - arm, arm)
        return self.law.loss(t, place, key)

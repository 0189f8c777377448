"""Non-stationary worlds: a law whose arms change places on a schedule fixed before play."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.types import Array, field, pytree


@pytree
class Switching:
    r"""A law whose arms are reversed in every other phase: the best arm changes at each boundary.

    The first phase lasts one round, each one after it ``growth`` times the one before, rounded up:
    the schedule of Zimmert and Seldin (2021), whose growth is 1.6, with noise around the means. Or
    phases of given lengths, the last one without end.

    A policy that follows the changes can beat every fixed arm: its regret is then negative.

    Attributes:
      law: Any stationary world.
      growth: Ratio of two successive phases, at least 1.01. Not used if lengths are given.
      lengths: Phase lengths in rounds, or none.
      ends: The last round of every phase but the endless one, in two halves of 16 bits that every
        dtype holds exactly; follows from the two above.

    Example:
      >>> import jaxbandit as jb
      >>> world = jb.Switching(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), lengths=[100, 100])
      >>> world.means(100).tolist(), world.means(101).tolist()
      ([0.5, 1.0], [1.0, 0.5])
    """

    label: ClassVar[str] = "switching"

    law: Any = field(default=None, nested=True)
    growth: float = field(default=1.6, ge=1.01, hint="or give lengths=[...]")
    lengths: Any = field(
        default=None,
        vector="a list of phase lengths such as [100, 100]",
        whole=True,
        ge=1,
        hint="count rounds, at least 1",
    )
    ends: Array = field(derived=True, default=None)

    def __post_init__(self):
        if isinstance(self.law, type) or not hasattr(self.law, "loss"):
            raise ValueError(f"Switching.law must be a world, got {self.law!r}; make one: jb.Pareto(...)")
        lengths = _geometric(self.growth) if self.lengths is None else np.asarray(self.lengths)
        ends = np.minimum(np.cumsum(lengths)[:-1], 2.0**31 - 1)
        object.__setattr__(self, "ends", np.stack(np.divmod(ends, 2.0**16)))

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
        # In integers: float32 does not tell rounds beyond 2^24 apart. Lengths are whole, so ends are.
        high, low = (jnp.asarray(part).astype(jnp.int32) for part in self.ends)
        return jnp.sum(jnp.asarray(t) > (high << 16) + low, dtype=jnp.int32)

    def means(self, t: Array) -> Array:
        """Expected losses in round ``t``: [K]."""
        means = self.law.means(t)
        return jnp.where(self.phase(t) % 2 == 1, means[::-1], means)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """The loss of the law's arm that stands in this one's place."""
        place = jnp.where(self.phase(t) % 2 == 1, self.num_arms - 1 - arm, arm)
        return self.law.loss(t, place, key)


def _geometric(growth: float) -> np.ndarray:
    """Phase lengths that cover 2^31 rounds, their number rounded up so that few shapes occur."""
    lengths = [1.0]
    while sum(lengths) < 2**31 or len(lengths) % 32 != 1:
        lengths.append(float(np.ceil(growth * lengths[-1] - 1e-9)))
    return np.asarray(lengths)

"""Arms that change places: phase after phase, or once."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

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


@pytree
class Switching(Schedule):
    r"""A law whose arms are reversed in every other phase: the best arm changes at each boundary.

    The first phase lasts one round, each one after it ``growth`` times the one before, rounded up.
    This is the schedule of Zimmert and Seldin (2021), whose growth is 1.6, with noise around the means.
    If ``lengths`` are given, the phases have these lengths, and the last one has no end.

    A policy that follows the changes can beat every fixed arm. Its regret is then negative.

    Attributes:
      law: Any stationary environment.
      growth: Ratio of two successive phases, at least 1.01. Not used if lengths are given.
      lengths: Phase lengths in rounds, or None.
      ends: The last round of every phase but the endless one, in two halves of 16 bits that every
        dtype holds exactly; follows from the two above.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Switching(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), lengths=[100, 100])
      >>> environment.means(100).tolist(), environment.means(101).tolist()
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
        super().__post_init__()
        lengths = geometric(self.growth) if self.lengths is None else np.asarray(self.lengths)
        ends = np.minimum(np.cumsum(lengths)[:-1], 2.0**31 - 1)
        derive(self, ends=in_halves(ends))

    def phase(self, t: Array) -> Array:
        """Returns the number of phase boundaries before round ``t``."""
        # In integers, because float32 does not distinguish rounds beyond 2^24. Lengths are whole, so ends are.
        return jnp.sum(jnp.asarray(t) > from_halves(self.ends), dtype=jnp.int32)

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        means = self.law.means(t)
        return jnp.where(self.phase(t) % 2 == 1, means[::-1], means)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the loss of the law's arm whose place ``arm`` takes."""
        place = jnp.where(self.phase(t) % 2 == 1, self.num_arms - 1 - arm, arm)
        return self.law.loss(t, place, key)


@pytree
class Swap(Schedule):
    """A law whose best and worst arm change places once, for good.

    Attributes:
      law: Any stationary environment.
      at: The share of the horizon after which they change places.
      horizon: Rounds; if left out, those of the run.
      last: The last round before the swap, in two halves of 16 bits; follows from the two above.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Swap(jb.Pareto(means=[0.5, 1.0, 2.0], tail_index=1.6), horizon=100)
      >>> environment.means(50).tolist(), environment.means(51).tolist()
      ([0.5, 1.0, 2.0], [2.0, 1.0, 0.5])
    """

    label: ClassVar[str] = "swap"

    law: Any = field(nested=True)
    at: float = field(default=0.5, ge=0, le=1, hint="a share of the horizon")
    horizon: Any = field(default=None, whole=True, ge=1, hint=HORIZON_HINT)
    last: Any = field(derived=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        if self.horizon is not None:
            derive(self, last=in_halves(np.floor(np.float64(self.at) * np.float64(self.horizon) + 1e-9)))

    def _swapped(self, t: Array) -> Array:
        need_horizon(self)
        return jnp.asarray(t) > from_halves(self.last)

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        return exchanged(self.law, t, self._swapped(t))

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the loss of the law's arm whose place ``arm`` takes."""
        return self.law.loss(t, exchanged_place(self.law, t, arm, self._swapped(t)), key)


def geometric(growth: float) -> np.ndarray:
    """Returns phase lengths that cover 2^31 rounds; their number is rounded up so that few shapes occur."""
    lengths = [1.0]
    while sum(lengths) < 2**31 or len(lengths) % 32 != 1:
        lengths.append(float(np.ceil(growth * lengths[-1] - 1e-9)))
    return np.asarray(lengths)

"""A law whose best arm is the calm one."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxbandit import random
from jaxbandit.environments.laws.base import POSITIVE_HINT, TAIL_HINT, Located
from jaxbandit.environments.laws.positive import Pareto
from jaxbandit.types import Array, Numbers, field, pytree


@pytree
class TailReversed(Located):
    r"""Pareto losses with a calm best arm; the other arms are usually cheaper but have rare disasters.

    The arm of the smallest mean has the tail index :math:`b`, every other arm the index :math:`a < b`. Half of the
    losses of an arm with mean :math:`\mu` lie below :math:`2^{1/a} \mu (a - 1) / a`. This is 0.30 for a mean of 1 and
    an index of 1.2, but 0.48 for a mean of 0.5 and an index of 10. A policy that skips large losses, or has not seen
    one yet, prefers the wrong arms.

    Attributes:
      means: Expected loss of each arm, positive.
      tail_index: :math:`a > 1`, the tail index of all arms but the best; moments below it exist.
      best_tail_index: :math:`b`, the tail index of the best arm, above that of the others.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.TailReversed(means=[0.5, 1.0], tail_index=1.2)
      >>> [round(float(environment.quantile(0.5, 0.5, arm)), 2) for arm in (0, 1)]
      [0.48, 0.3]
    """

    label: ClassVar[str] = "tail-reversed"
    moments: ClassVar[str] = "below tail_index"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("Pareto"))
    tail_index: Any = field(gt=1, hint=TAIL_HINT)
    best_tail_index: Any = field(default=10.0, gt=1, hint="above tail_index, e.g. 10.0")

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.tail_index, Tracer) or isinstance(self.best_tail_index, Tracer):
            return
        if not np.all(np.asarray(self.best_tail_index) > np.asarray(self.tail_index)):
            raise ValueError(
                f"TailReversed.best_tail_index must be above tail_index {np.asarray(self.tail_index).tolist()}, got "
                f"{np.asarray(self.best_tail_index).tolist()}; the best arm is the calm one, and jb.Pareto takes any "
                "index per arm"
            )

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a Pareto loss with the arm's index."""
        return self._pareto(jnp).loss(t, arm, key)

    def survival(self, z: Array, arm: Array) -> Array:
        """Returns P(l > z) of an arm."""
        return self._pareto(jnp).survival(z, arm)

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        return self._pareto(np).quantile(below, above, arm)

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = s^alpha a / (a - alpha)."""
        return self._pareto(np).raw_moment(alpha)

    def _pareto(self, numpy: Any) -> Pareto:
        """Returns the Pareto law with an index for each arm."""
        means = numpy.asarray(self.arm_means)
        return Pareto(means, tail_index=numpy.where(means == means.min(), self.best_tail_index, self.tail_index))

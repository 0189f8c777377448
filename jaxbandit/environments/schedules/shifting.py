"""Means that rise and fall together: the best arm stays the same, but its mean changes."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit.environments.laws.base import derive
from jaxbandit.environments.schedules.base import Moved, from_halves, in_halves
from jaxbandit.environments.schedules.switching import geometric
from jaxbandit.types import Array, field, pytree


@pytree
class Shifting(Moved):
    r"""A law whose means are all higher by a shift in every other phase: gaps stay, losses do not.

    This is the stochastically constrained adversary of Zimmert and Seldin (2021): the first phase lasts one round, each
    one after it ``growth`` times the one before, rounded up. One arm is best throughout, so regret is never below 0.
    A policy that compares the arms' average losses is misled, because the averages depend on when an arm was played.

    Attributes:
      law: A law with means.
      shift: The number added to all means in every other phase.
      growth: Ratio of two successive phases, at least 1.01.
      ends: The last round of every phase but the endless one, in two halves of 16 bits; follows from the growth.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Shifting(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), shift=2.0)
      >>> environment.means(1).tolist(), environment.means(2).tolist()
      ([0.5, 1.0], [2.5, 3.0])

    References:
      Zimmert and Seldin. "Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits". Journal of Machine
      Learning Research 22 (2021). https://arxiv.org/abs/1807.07623
    """

    label: ClassVar[str] = "shifting"
    nonnegative: ClassVar[str] = "if the law's is"

    law: Any = field(nested=True)
    shift: Any = field(gt=0, hint="what is added to all means in every other phase")
    growth: float = field(default=1.6, ge=1.01, hint="the ratio of two successive phases")
    ends: Array = field(derived=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        self.check_law()
        self.check_means("shift")
        ends = np.minimum(np.cumsum(geometric(self.growth))[:-1], 2.0**31 - 1)
        derive(self, ends=in_halves(ends))

    @property
    def lowest(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The law's means: [K]."""
        return np.asarray(self.law.arm_means, np.float64)

    @property
    def highest(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means of the higher phases: [K]."""
        return self.lowest + np.asarray(self.shift)

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether the law is truncated non-negative: its best arm is the best in every phase, and losses only rise."""
        return self.law.truncated_nonnegative

    @property
    def unique_best(self) -> bool:
        """Whether the law has one best arm."""
        return self.law.unique_best

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        phase = jnp.sum(jnp.asarray(t) > from_halves(self.ends), dtype=jnp.int32)  # in integers, as in Switching
        means = self.law.means(t)
        return jnp.where(phase % 2 == 1, means + jnp.asarray(self.shift, means.dtype), means)

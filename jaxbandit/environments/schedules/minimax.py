"""The instance that is hard at a given horizon."""

import dataclasses
from typing import Any, ClassVar, Self

import numpy as np

from jaxbandit import random
from jaxbandit.environments.laws.base import derive
from jaxbandit.environments.laws.discrete import HardPair, check_num_arms
from jaxbandit.environments.laws.points import Points
from jaxbandit.environments.schedules.base import HORIZON_HINT, need_horizon
from jaxbandit.types import Array, field, pytree


@pytree
class MinimaxHard:
    r"""A hard pair whose gap shrinks with the horizon, so that it is hard to see within a run.

    :math:`\Delta = \frac f2 (K / T)^{1 - 1/\alpha}`, at most 1/2: every algorithm has regret of order
    :math:`K^{1 - 1/\alpha} T^{1/\alpha}` on it or on its like with another best arm. It is stationary within a
    run, but differs from horizon to horizon.

    An arm that is not the best has a loss above 0 with probability :math:`f^{\alpha / (\alpha - 1)} K / T`. If the
    factor :math:`f` is 1, then uniform play sees about one such loss of each arm in the whole game, and all policies
    have nearly the same regret. Factors from 2 to 16 distinguish policies.

    Attributes:
      num_arms: K; arm 0 is the best.
      moment_order: :math:`\alpha` in (1, 2]; sigma is 1 at this order.
      horizon: T; if left out, that of the run.
      gap_factor: :math:`f`, the gap as a multiple of the smallest that can be told apart.
      pair: The hard pair; follows from the above.

    Example:
      >>> import jaxbandit as jb
      >>> [round(float(jb.MinimaxHard(2, 2.0, horizon=T).pair.gap), 6) for T in (2, 200, 20_000)]
      [0.5, 0.05, 0.005]

    References:
      Bubeck, Cesa-Bianchi and Lugosi (2013), Bandits with heavy tail, Theorem 2. https://arxiv.org/abs/1209.1727
    """

    label: ClassVar[str] = "minimax-hard"
    moments: ClassVar[str] = "all"
    nonnegative: ClassVar[str] = "always"

    num_arms: int = field(static=True)
    moment_order: Any = field(gt=1, le=2, hint="the order at which sigma is 1")
    horizon: Any = field(default=None, whole=True, ge=1, hint=HORIZON_HINT)
    gap_factor: Any = field(default=1.0, gt=0, hint="1 cannot be told apart within the horizon; try 2 to 16")
    pair: Any = field(derived=True, nested=True, default=None)

    def __post_init__(self):
        check_num_arms(self)
        if self.horizon is not None:
            share = self.num_arms / np.asarray(self.horizon, np.float64)
            factor = 0.5 * np.asarray(self.gap_factor, np.float64)
            gap = np.minimum(0.5, factor * share ** (1 - 1 / np.asarray(self.moment_order, np.float64)))
            derive(self, pair=HardPair(self.num_arms, gap=gap, moment_order=self.moment_order))

    def at_horizon(self, horizon: int) -> Self:
        """Returns the environment for a run of ``horizon`` rounds; a horizon that it already has stays."""
        return dataclasses.replace(self, horizon=horizon) if self.horizon is None else self  # pyright: ignore[reportArgumentType]

    @property
    def moment_limit(self) -> float:
        """Infinity: all moments exist."""
        return self._pair().moment_limit

    @property
    def loss_range(self) -> tuple[float, float]:
        """From 0 to the hard pair's large loss."""
        return self._pair().loss_range

    @property
    def truncated_nonnegative(self) -> bool:
        """True: losses are not negative."""
        return True

    @property
    def unique_best(self) -> bool:
        """True: arm 0 is the best."""
        return True

    def moment(self, alpha: float) -> float:
        """Returns the hard pair's moment bound."""
        return self._pair().moment(alpha)

    def means(self, t: Array) -> Array:
        """Returns the expected losses, the same in every round: [K]."""
        return self._pair().means(t)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a loss of the hard pair."""
        return self._pair().loss(t, arm, key)

    def points(self, arm: int) -> Points:
        """Returns the two losses of an arm and their probabilities."""
        return self._pair().points(arm)

    def _pair(self) -> HardPair:
        need_horizon(self)
        return self.pair

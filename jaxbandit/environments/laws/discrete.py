"""Laws of losses that take two values."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.environments.laws.base import Law, Located, of_arm
from jaxbandit.environments.laws.points import Points, at, is_symmetric
from jaxbandit.types import Array, Numbers, field, pytree


@pytree
class Bernoulli(Located):
    """Losses 0 and 1.

    Attributes:
      means: Probability that each arm's loss is 1.

    Example:
      >>> import jaxbandit as jb
      >>> jb.Bernoulli(means=[0.25, 0.5]).moment(1.0)
      0.5
    """

    label: ClassVar[str] = "Bernoulli"

    arm_means: Numbers = field(alias="means", vector=True, ge=0, le=1, hint="a mean is the probability of loss 1")

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns 1 if a deep uniform is at most the mean, else 0; rare losses keep their probability."""
        del t
        mean = of_arm(self.arm_means, arm)
        return (random.deep_uniform(key) <= mean).astype(mean.dtype)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The unit interval."""
        return 0.0, 1.0

    @property
    def symmetric(self) -> bool:
        """Whether both losses of every arm are equally likely, or only one is possible."""
        return all(is_symmetric(self.points(arm)) for arm in range(self.num_arms))

    def points(self, arm: int) -> Points:
        """Returns the two losses and their probabilities."""
        mean = at(self.arm_means, arm)
        return np.array([0.0, 1.0]), np.array([1 - mean, mean])

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns the means: 1 to any power is 1."""
        del alpha
        return np.asarray(self.arm_means, np.float64)


@pytree
class HardPair(Law):
    r"""The two laws that no algorithm tells apart in time: rare large losses of which the best arm has fewer.

    With :math:`\gamma = (2 \Delta)^{1 / (\alpha - 1)}` a loss is :math:`1 / \gamma` with probability
    :math:`\gamma \Delta` in arm 0 and :math:`2 \gamma \Delta` in every other arm, and 0 otherwise. The means are
    :math:`\Delta` and :math:`2 \Delta`, and the raw moment of order :math:`\alpha` is 1/2 and 1.

    Attributes:
      num_arms: K; arm 0 is the best.
      gap: :math:`\Delta`, at most 1/2.
      moment_order: :math:`\alpha` in (1, 2], the order at which sigma is 1.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.HardPair(num_arms=3, gap=0.1, moment_order=1.5)
      >>> environment.means(1).tolist(), round(environment.moment(1.5), 6)
      ([0.10000000149011612, 0.20000000298023224, 0.20000000298023224], 1.0)

    References:
      Bubeck, Cesa-Bianchi and Lugosi (2013), Bandits with heavy tail, Theorem 2, with rewards read as losses.
      https://arxiv.org/abs/1209.1727
    """

    label: ClassVar[str] = "hard pair"

    num_arms: int = field(static=True)
    gap: Any = field(gt=0, le=0.5, hint="the gap of a pair whose moment is 1 is at most 1/2")
    moment_order: Any = field(gt=1, le=2, hint="the order at which sigma is 1")

    def __post_init__(self):
        check_num_arms(self)

    def means(self, t: Array) -> Array:
        """Returns the expected losses, the same in every round: [K]."""
        del t
        gap = jnp.asarray(self.gap)
        return jnp.where(jnp.arange(self.num_arms) == 0, gap, 2 * gap)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the large loss if a deep uniform is at most its probability, else 0."""
        del t
        gap = jnp.asarray(self.gap)
        gamma = jnp.exp(jnp.log(2 * gap) / (jnp.asarray(self.moment_order) - 1))
        probability = gamma * jnp.where(arm == 0, gap, 2 * gap)
        return jnp.where(random.deep_uniform(key) <= probability, 1 / gamma, 0)

    @property
    def loss_range(self) -> tuple[float, float]:
        """From 0 to the large loss."""
        order = np.asarray(self.moment_order, np.float64)
        return 0.0, float(np.max((2 * np.asarray(self.gap, np.float64)) ** (-1 / (order - 1))))

    @property
    def symmetric(self) -> bool:
        """Whether both losses of every arm are equally likely, or only one is possible."""
        return all(is_symmetric(self.points(arm)) for arm in range(self.num_arms))

    def points(self, arm: int) -> Points:
        """Returns the two losses and their probabilities."""
        gap = float(self.gap)
        gamma = (2 * gap) ** (1 / (float(self.moment_order) - 1))
        share = gamma * gap * (1 if arm == 0 else 2)
        return np.array([0.0, 1 / gamma]), np.array([1 - share, share])

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns 2 Delta gamma^(1 - alpha), the moment of an arm that is not the best."""
        gap = np.asarray(self.gap, np.float64)
        gamma = (2 * gap) ** (1 / (np.asarray(self.moment_order) - 1))
        return (2 if self.num_arms > 1 else 1) * gap * gamma ** (1 - alpha)


def check_num_arms(environment: Any) -> None:
    """Raises unless the number of arms is a whole number of at least 1."""
    value = environment.num_arms
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(
            f"{type(environment).__name__}.num_arms must be a whole number >= 1, got {value!r}; count the arms"
        )

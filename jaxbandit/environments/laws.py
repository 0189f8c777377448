"""Stationary laws of losses: one shape for all arms, a mean for each.

Every arm of a round reads the same uniforms, so two policies on one seed meet the same luck; the
law of what a player observes is unchanged, for it sees one arm a round.
"""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.arms import pick
from jaxbandit.types import Array, field, pytree

_TAIL_HINT = "at or below 1 the mean does not exist"
_SCALE_HINT = "give the size of the noise, e.g. 1.0"


class _Law:
    """What the laws share: stationary means and the declared moment order."""

    arm_means: Array
    tail_index: float = math.inf

    @property
    def num_arms(self) -> int:
        """K."""
        return self.arm_means.shape[0]

    @property
    def moment_order(self) -> float:
        """The alpha the world is declared at: 9/10 of the way to the tail index, at most 2."""
        return float(np.min(np.minimum(2.0, 1 + 0.9 * (np.asarray(self.tail_index) - 1))))

    def means(self, t: Array) -> Array:
        """Expected losses, the same in every round: [K]."""
        del t
        return jnp.asarray(self.arm_means)

    def _check_order(self, alpha: float) -> None:
        if not alpha > 0:
            raise ValueError(f"moment(alpha) needs alpha > 0, got {alpha}")
        limit = float(np.min(self.tail_index))
        if alpha >= limit:
            raise ValueError(
                f"{type(self).__name__} with tail_index {limit:g} has no moment of order {alpha:g}; "
                f"ask for alpha < {limit:g}, e.g. moment({self.moment_order:g})"
            )


@pytree
class Pareto(_Law):
    r"""Pareto losses: positive, with a power tail.

    :math:`P(\ell > z) = (s_i / z)^a` for :math:`z` above :math:`s_i = \mu_i (a - 1) / a`.

    Attributes:
      means: Expected loss of each arm, positive.
      tail_index: :math:`a > 1`; moments below it exist.

    Example:
      >>> import jaxbandit as jb
      >>> jb.Pareto(means=[0.5, 1.0], tail_index=1.6).moment_order
      1.54
    """

    label: ClassVar[str] = "Pareto"

    arm_means: Array = field(alias="means", vector=True, gt=0, hint="Pareto losses are positive")
    tail_index: float = field(gt=1, hint=_TAIL_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """The quantile at one minus a deep uniform."""
        del t
        a = self.tail_index
        return pick(self.means(arm), arm) * ((a - 1) / a) * jnp.exp(-jnp.log(random.deep_uniform(key)) / a)

    def moment(self, alpha: float) -> float:
        """The sigma with E|l|^alpha <= sigma^alpha for every arm."""
        self._check_order(alpha)
        a = np.asarray(self.tail_index)
        smallest = np.max(self.arm_means) * (a - 1) / a
        return float(np.max(smallest * (a / (a - alpha)) ** (1 / alpha)))


@pytree
class StudentT(_Law):
    r"""Student-t noise around the means: symmetric, with power tails.

    :math:`P(|\ell - \mu_i| > z)` falls like :math:`z^{-a}`.

    Attributes:
      means: Expected loss of each arm. The paper's assumption (truncated non-negative losses of
        the best arm) holds if the smallest is at least 0.
      tail_index: Degrees of freedom :math:`a > 1`; moments below it exist.
      scale: Multiplies the noise.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.StudentT(means=[0.0, 0.0], tail_index=3.0).moment(2.0), 6)  # sqrt(3)
      1.732051
    """

    label: ClassVar[str] = "Student-t"

    arm_means: Array = field(alias="means", vector=True)
    tail_index: float = field(gt=1, hint=_TAIL_HINT)
    scale: float = field(default=1.0, gt=0, hint=_SCALE_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Bailey's polar formula: a deep uniform for the radius, an angle for the side."""
        del t
        a = self.tail_index
        radius, cosine = random.polar(key)
        noise = jnp.sqrt(a * jnp.expm1(-2 / a * jnp.log(radius))) * cosine
        return pick(self.means(arm), arm) + self.scale * noise

    def moment(self, alpha: float) -> float:
        """A sigma with E|l|^alpha <= sigma^alpha (Minkowski; exact where the mean is 0)."""
        self._check_order(alpha)
        noise = [
            (a ** (alpha / 2) * math.gamma((alpha + 1) / 2) / math.sqrt(math.pi)) ** (1 / alpha)
            * math.exp((math.lgamma((a - alpha) / 2) - math.lgamma(a / 2)) / alpha)
            for a in np.ravel(self.tail_index)
        ]  # fmt: skip
        return float(np.max(np.abs(self.arm_means)) + np.max(self.scale) * max(noise))


@pytree
class Gaussian(_Law):
    """Gaussian noise around the means.

    Attributes:
      means: Expected loss of each arm.
      scale: Standard deviation.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Gaussian(means=[0.0, 0.5], scale=1.0).moment(2.0), 6)
      1.5
    """

    label: ClassVar[str] = "Gaussian"

    arm_means: Array = field(alias="means", vector=True)
    scale: float = field(default=1.0, gt=0, hint=_SCALE_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Box-Muller."""
        del t
        return pick(self.means(arm), arm) + self.scale * random.normal(key)

    def moment(self, alpha: float) -> float:
        """A sigma with E|l|^alpha <= sigma^alpha (Minkowski)."""
        self._check_order(alpha)
        noise = math.sqrt(2) * (math.gamma((alpha + 1) / 2) / math.sqrt(math.pi)) ** (1 / alpha)
        return float(np.max(np.abs(self.arm_means)) + np.max(self.scale) * noise)


@pytree
class Bernoulli(_Law):
    """Losses 0 and 1.

    Attributes:
      means: Probability that each arm's loss is 1.

    Example:
      >>> import jaxbandit as jb
      >>> jb.Bernoulli(means=[0.25, 0.5]).moment(1.0)
      0.5
    """

    label: ClassVar[str] = "Bernoulli"

    arm_means: Array = field(alias="means", vector=True, ge=0, le=1, hint="a mean is the probability of loss 1")

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """1 where the deep uniform is at most the mean: rare losses keep their probability."""
        del t
        means = self.means(arm)
        return (random.deep_uniform(key) <= pick(means, arm)).astype(means.dtype)

    def moment(self, alpha: float) -> float:
        """The sigma with E|l|^alpha <= sigma^alpha for every arm."""
        self._check_order(alpha)
        return float(np.max(self.arm_means) ** (1 / alpha))

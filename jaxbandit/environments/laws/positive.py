"""Laws of positive losses: a shape scaled to the means and drawn by its quantile function."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.environments.laws.base import POSITIVE_HINT, TAIL_HINT, Located, derive, lgamma, of_arm
from jaxbandit.environments.laws.points import at, minus_log, normal_quantile
from jaxbandit.types import Array, Numbers, field, pytree


@pytree
class Pareto(Located):
    r"""Pareto losses: positive, with a power tail.

    :math:`P(\ell > z) = (s_i / z)^a` for :math:`z` above :math:`s_i = \mu_i (a - 1) / a`.

    Attributes:
      means: Expected loss of each arm, positive.
      tail_index: :math:`a > 1`, one for all arms or one each; moments below it exist.

    Example:
      >>> import jaxbandit as jb
      >>> jb.Pareto(means=[0.5, 1.0], tail_index=1.6).moment_order
      1.54
    """

    label: ClassVar[str] = "Pareto"
    moments: ClassVar[str] = "below tail_index"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("Pareto"))
    tail_index: Any = field(per_arm=True, gt=1, hint=TAIL_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the quantile at one minus a deep uniform."""
        del t
        a = of_arm(self.tail_index, arm)
        return of_arm(self.arm_means, arm) * ((a - 1) / a) * jnp.exp(jnp.log(random.deep_uniform(key)) * (-1 / a))

    def survival(self, z: Array, arm: Array) -> Array:
        """Returns P(l > z) of an arm."""
        a = of_arm(self.tail_index, arm)
        start = of_arm(self.arm_means, arm) * ((a - 1) / a)
        return jnp.exp(a * jnp.log(start / jnp.maximum(z, start)))

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        a = at(self.tail_index, arm)
        return at(self.arm_means, arm) * (a - 1) / a * above ** (-1 / a)

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = s^alpha a / (a - alpha)."""
        a = np.asarray(self.tail_index)
        return (np.asarray(self.arm_means) * (a - 1) / a) ** alpha * a / (a - alpha)


@pytree
class Lomax(Located):
    r"""Lomax losses: a Pareto law that starts at 0.

    :math:`P(\ell > z) = (1 + z / s_i)^{-a}` with :math:`s_i = \mu_i (a - 1)`.

    Attributes:
      means: Expected loss of each arm, positive.
      tail_index: :math:`a > 1`, one for all arms or one each; moments below it exist.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Lomax(means=[0.5, 1.0], tail_index=3.0).moment(2.0), 6)
      2.0
    """

    label: ClassVar[str] = "Lomax"
    moments: ClassVar[str] = "below tail_index"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("Lomax"))
    tail_index: Any = field(per_arm=True, gt=1, hint=TAIL_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the quantile at one minus a deep uniform."""
        del t
        a = of_arm(self.tail_index, arm)
        return of_arm(self.arm_means, arm) * (a - 1) * jnp.expm1(-jnp.log(random.deep_uniform(key)) / a)

    def survival(self, z: Array, arm: Array) -> Array:
        """Returns P(l > z) of an arm."""
        a = of_arm(self.tail_index, arm)
        return jnp.exp(-a * jnp.log1p(jnp.maximum(z, 0) / (of_arm(self.arm_means, arm) * (a - 1))))

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        a = at(self.tail_index, arm)
        return at(self.arm_means, arm) * (a - 1) * np.expm1(minus_log(above, below) / a)

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = s^alpha Gamma(1 + alpha) Gamma(a - alpha) / Gamma(a)."""
        a = np.asarray(self.tail_index)
        scale = np.asarray(self.arm_means) * (a - 1)
        return scale**alpha * np.exp(lgamma(1 + alpha) + lgamma(a - alpha) - lgamma(a))


@pytree
class Frechet(Located):
    r"""Frechet losses: the law of large maxima.

    :math:`P(\ell \le z) = \exp(-(z / s_i)^{-a})` with :math:`s_i = \mu_i / \Gamma(1 - 1/a)`.

    Attributes:
      means: Expected loss of each arm, positive.
      tail_index: :math:`a > 1`, one for all arms or one each; moments below it exist.
      log_unit: Logarithm of the scale of a law of mean 1; follows from the tail index.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Frechet(means=[0.5, 1.0], tail_index=1.6).moment(1.0), 6)
      1.0
    """

    label: ClassVar[str] = "Frechet"
    moments: ClassVar[str] = "below tail_index"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("Frechet"))
    tail_index: Any = field(per_arm=True, gt=1, hint=TAIL_HINT)
    log_unit: Any = field(derived=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        derive(self, log_unit=-lgamma(1 - 1 / _array(self.tail_index)))

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the quantile at one minus a deep uniform."""
        del t
        a = of_arm(self.tail_index, arm)
        exponential = random.minus_log_of_rest(random.deep_uniform(key))  # small where the loss is large
        return of_arm(self.arm_means, arm) * jnp.exp(of_arm(self.log_unit, arm) - jnp.log(exponential) / a)

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        a = at(self.tail_index, arm)
        return at(self.arm_means, arm) * np.exp(-lgamma(1 - 1 / a)) * minus_log(below, above) ** (-1 / a)

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = s^alpha Gamma(1 - alpha / a)."""
        a = np.asarray(self.tail_index)
        return np.asarray(self.arm_means) ** alpha * np.exp(lgamma(1 - alpha / a) - alpha * lgamma(1 - 1 / a))


@pytree
class LogNormal(Located):
    r"""Log-normal losses: every moment exists, and yet the tail is long.

    :math:`\ell = \mu_i \exp(\sigma Z - \sigma^2 / 2)` with a standard normal :math:`Z`.

    Attributes:
      means: Expected loss of each arm, positive.
      log_std: :math:`\sigma`, the standard deviation of the logarithm, one for all arms or one each.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.LogNormal(means=[0.5, 1.0], log_std=1.0).moment(2.0), 6)  # sqrt(e)
      1.648721
    """

    label: ClassVar[str] = "log-normal"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("LogNormal"))
    log_std: Any = field(default=1.0, per_arm=True, gt=0, hint="the spread of the logarithm, e.g. 1.0")

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a log-normal loss, by Box-Muller."""
        del t
        s = of_arm(self.log_std, arm)
        return of_arm(self.arm_means, arm) * jnp.exp(s * (random.normal(key) - s / 2))

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        s = at(self.log_std, arm)
        return at(self.arm_means, arm) * np.exp(s * (normal_quantile(below, above) - s / 2))

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = mean^alpha exp(sigma^2 alpha (alpha - 1) / 2)."""
        variance = np.asarray(self.log_std, np.float64) ** 2
        return np.asarray(self.arm_means) ** alpha * np.exp(variance * alpha * (alpha - 1) / 2)


@pytree
class Weibull(Located):
    r"""Weibull losses: a stretched exponential tail for shapes below 1.

    :math:`P(\ell > z) = \exp(-(z / s_i)^k)` with :math:`s_i = \mu_i / \Gamma(1 + 1/k)`.

    Attributes:
      means: Expected loss of each arm, positive.
      shape: :math:`k`, one for all arms or one each: 1 is the exponential law, below it the tail is heavier.
      log_unit: Logarithm of the scale of a law of mean 1; follows from the shape.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Weibull(means=[0.5, 1.0], shape=0.5).moment(2.0) ** 2, 6)  # Gamma(5) / Gamma(3)^2
      6.0
    """

    label: ClassVar[str] = "Weibull"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("Weibull"))
    shape: Any = field(default=0.5, per_arm=True, ge=0.05, hint="below 1 the tail is stretched, 1 is the exponential")
    log_unit: Any = field(derived=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        derive(self, log_unit=-lgamma(1 + 1 / _array(self.shape)))

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the quantile at one minus a deep uniform."""
        del t
        power = jnp.log(random.exponential(key)) / of_arm(self.shape, arm)
        return of_arm(self.arm_means, arm) * jnp.exp(of_arm(self.log_unit, arm) + power)

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        k = at(self.shape, arm)
        return at(self.arm_means, arm) * np.exp(-lgamma(1 + 1 / k)) * minus_log(above, below) ** (1 / k)

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = s^alpha Gamma(1 + alpha / k)."""
        k = np.asarray(self.shape, np.float64)
        return np.asarray(self.arm_means) ** alpha * np.exp(lgamma(1 + alpha / k) - alpha * lgamma(1 + 1 / k))


@pytree
class Exponential(Located):
    """Exponential losses: positive, with a light tail.

    Attributes:
      means: Expected loss of each arm, positive.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Exponential(means=[0.5, 1.0]).moment(2.0) ** 2, 6)
      2.0
    """

    label: ClassVar[str] = "exponential"

    arm_means: Numbers = field(alias="means", vector=True, gt=0, hint=POSITIVE_HINT.format("Exponential"))

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the quantile at one minus a deep uniform."""
        del t
        return of_arm(self.arm_means, arm) * random.exponential(key)

    def survival(self, z: Array, arm: Array) -> Array:
        """Returns P(l > z) of an arm."""
        return jnp.exp(-jnp.maximum(z, 0) / of_arm(self.arm_means, arm))

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        return at(self.arm_means, arm) * minus_log(above, below)

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E l^alpha = mean^alpha Gamma(1 + alpha)."""
        return np.asarray(self.arm_means) ** alpha * np.exp(lgamma(1 + alpha))


def _array(value: Any) -> Any:
    return np.asarray(value, np.float64) if isinstance(value, int | float | np.generic) else value

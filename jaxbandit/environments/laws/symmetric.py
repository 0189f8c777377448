"""Laws of symmetric noise around the means."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import random
from jaxbandit.environments.laws.base import SCALE_HINT, TAIL_HINT, Symmetric, gaussian_moment, lgamma, of_arm
from jaxbandit.environments.laws.points import Points, at, by_quantile, minus_log, mixed, normal_quantile, uniforms
from jaxbandit.types import Array, Numbers, field, pytree


@pytree
class StudentT(Symmetric):
    r"""Student-t noise around the means: symmetric, with power tails.

    :math:`P(|\ell - \mu_i| > z)` falls like :math:`z^{-a}`.

    Attributes:
      means: Expected loss of each arm. The paper's assumption (truncated non-negative losses of
        the best arm) holds if the smallest is at least 0.
      tail_index: Degrees of freedom :math:`a > 1`, one for all arms or one each; moments below it exist.
      scale: Multiplies the noise, of all arms or of each.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.StudentT(means=[0.0, 0.0], tail_index=3.0).moment(2.0), 6)  # sqrt(3)
      1.732051
    """

    label: ClassVar[str] = "Student-t"
    moments: ClassVar[str] = "below tail_index"

    arm_means: Numbers = field(alias="means", vector=True)
    tail_index: Any = field(per_arm=True, gt=1, hint=TAIL_HINT)
    scale: Any = field(default=1.0, per_arm=True, gt=0, hint=SCALE_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a loss by Bailey's polar formula: a deep uniform gives the radius, an angle the side."""
        del t
        a = of_arm(self.tail_index, arm)
        radius, cosine = random.polar(key)
        noise = jnp.sqrt(a * jnp.expm1(-2 / a * jnp.log(radius))) * cosine
        return of_arm(self.arm_means, arm) + of_arm(self.scale, arm) * noise

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        from scipy.special import stdtrit

        a = at(self.tail_index, arm)
        noise = np.where(below < above, 1, -1) * stdtrit(a, np.minimum(below, above))
        return at(self.arm_means, arm) + at(self.scale, arm) * noise

    def noise_moment(self, alpha: float) -> np.ndarray:
        """Returns scale^alpha a^(alpha/2) Gamma((alpha + 1)/2) Gamma((a - alpha)/2) / (sqrt(pi) Gamma(a/2))."""
        a = np.asarray(self.tail_index, np.float64)
        gammas = math.lgamma((alpha + 1) / 2) + lgamma((a - alpha) / 2) - lgamma(a / 2)
        return np.asarray(self.scale, np.float64) ** alpha * a ** (alpha / 2) * np.exp(gammas) / math.sqrt(math.pi)


@pytree
class Stable(Symmetric):
    r"""Symmetric alpha-stable noise around the means: the law of sums of heavy-tailed terms.

    The noise has characteristic function :math:`\exp(-|c u|^a)`; :math:`P(|\ell - \mu_i| > z)` falls like
    :math:`z^{-a}` for :math:`a < 2`, and :math:`a = 2` is a Gaussian law of variance :math:`2 c^2`.

    Attributes:
      means: Expected loss of each arm.
      tail_index: :math:`a` in (1, 2], one for all arms or one each; moments below it exist, and all at 2.
      scale: :math:`c`, of all arms or of each.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Stable(means=[0.0, 0.0], tail_index=1.5).moment(1.0), 6)  # 2 Gamma(1/3) / pi
      1.705465

    References:
      Chambers, Mallows and Stuck (1976), A method for simulating stable random variables, JASA 71.
      https://doi.org/10.1080/01621459.1976.10480344
    """

    label: ClassVar[str] = "stable"
    moments: ClassVar[str] = "below tail_index; all at 2"

    arm_means: Numbers = field(alias="means", vector=True)
    tail_index: Any = field(per_arm=True, gt=1, le=2, hint="a stable law with a mean has an index above 1, at most 2")
    scale: Any = field(default=1.0, per_arm=True, gt=0, hint=SCALE_HINT)

    @property
    def moment_limit(self) -> float:
        """The order below which all moments exist."""
        a = np.asarray(self.tail_index, np.float64)
        return float(np.min(np.where(a < 2, a, math.inf)))

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a loss by the method of Chambers, Mallows and Stuck, written for a deep tail.

        Their angle is V = pi/2 (1 - u) with a deep uniform u, and the side is a bit of its own. Large losses have small
        u, and every small sine below is the sine of a small angle.
        """
        del t
        a = of_arm(self.tail_index, arm)
        side, u, v = random.signed_uniforms(key)
        quarter = math.pi / 2
        sine = jnp.sin(quarter * ((2 - a) + a * u))  # sin(a V)
        cosine = jnp.sin(quarter * u)  # cos(V)
        rest = jnp.sin(quarter * ((2 - a) + (a - 1) * u))  # cos((a - 1) V)
        power = (1 - 1 / a) * (jnp.log(-jnp.log(v)) - jnp.log(rest)) - jnp.log(cosine) / a
        noise = side * jnp.maximum(sine, 0) * jnp.exp(power)
        return of_arm(self.arm_means, arm) + of_arm(self.scale, arm) * noise

    def points(self, arm: int) -> Points:
        """Returns losses and probabilities that represent the law of an arm: a product rule over the draws of loss."""
        a, quarter = at(self.tail_index, arm), math.pi / 2
        u, _, weight_u = (part[:, None] for part in uniforms(np.arange(-80, 61) * 0.05))
        v, rest_v, weight_v = uniforms(np.arange(-25, 26) * 0.08)
        sine, rest = (np.sin(quarter * ((2 - a) + slope * u)) for slope in (a, a - 1))
        power = (1 - 1 / a) * (np.log(minus_log(v, rest_v)) - np.log(rest)) - np.log(np.sin(quarter * u)) / a
        noise = at(self.scale, arm) * np.ravel(np.maximum(sine, 0) * np.exp(power))
        weights = np.ravel(weight_u * weight_v) / 2
        return at(self.arm_means, arm) + np.concatenate([-noise, noise]), np.concatenate([weights, weights])

    def noise_moment(self, alpha: float) -> np.ndarray:
        """Returns (2 c)^alpha Gamma((1 + alpha)/2) Gamma(1 - alpha/a) / (sqrt(pi) Gamma(1 - alpha/2))."""
        a = np.asarray(self.tail_index, np.float64)
        below = np.where(a < 2, a, 2 * max(alpha, 2.0))  # a finite stand-in where the two Gammas cancel
        ratio = np.where(a < 2, np.exp(lgamma(1 - alpha / below) - lgamma(1 - min(alpha, 1.99) / 2)), 1.0)
        return (2 * np.asarray(self.scale, np.float64)) ** alpha * (gaussian_moment(alpha) / 2 ** (alpha / 2)) * ratio


@pytree
class Gaussian(Symmetric):
    """Gaussian noise around the means.

    Attributes:
      means: Expected loss of each arm.
      scale: Standard deviation, of all arms or of each.

    Example:
      >>> import jaxbandit as jb
      >>> round(jb.Gaussian(means=[0.0, 0.5], scale=1.0).moment(2.0) ** 2, 6)
      1.25
    """

    label: ClassVar[str] = "Gaussian"

    arm_means: Numbers = field(alias="means", vector=True)
    scale: Any = field(default=1.0, per_arm=True, gt=0, hint=SCALE_HINT)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a Gaussian loss, by Box-Muller."""
        del t
        return of_arm(self.arm_means, arm) + of_arm(self.scale, arm) * random.normal(key)

    def survival(self, z: Array, arm: Array) -> Array:
        """Returns P(l > z) of an arm."""
        return lax.erfc((z - of_arm(self.arm_means, arm)) / (math.sqrt(2) * of_arm(self.scale, arm))) / 2

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below``; on the host."""
        return at(self.arm_means, arm) + at(self.scale, arm) * normal_quantile(below, above)

    def noise_moment(self, alpha: float) -> np.ndarray:
        """Returns the moment of a centred normal law."""
        return np.asarray(self.scale, np.float64) ** alpha * gaussian_moment(alpha)


@pytree
class OutlierMixture(Symmetric):
    """Gaussian noise in which a few losses are outliers: Gaussian too, but of a much larger scale.

    Tukey's contaminated normal law: light-tailed in the end, heavy-tailed to anyone who sees few outliers.

    Attributes:
      means: Expected loss of each arm.
      scale: Standard deviation of an ordinary loss, of all arms or of each.
      outlier_probability: Share of outliers, of all arms or of each.
      outlier_scale: Standard deviation of an outlier, of all arms or of each.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.OutlierMixture(means=[0.0, 0.0], scale=1.0, outlier_probability=0.01, outlier_scale=100.0)
      >>> round(environment.moment(2.0) ** 2, 6)
      100.99
    """

    label: ClassVar[str] = "outlier mixture"

    arm_means: Numbers = field(alias="means", vector=True)
    scale: Any = field(default=1.0, per_arm=True, gt=0, hint=SCALE_HINT)
    outlier_probability: Any = field(default=0.01, per_arm=True, ge=0, le=1, hint="the share of outliers, e.g. 0.01")
    outlier_scale: Any = field(default=100.0, per_arm=True, gt=0, hint="give the size of the outliers, e.g. 100.0")

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a Gaussian loss whose scale a deep uniform chooses; rare outliers keep their probability."""
        del t
        key_noise, key_kind = random.split(key)
        outlier = random.deep_uniform(key_kind) <= of_arm(self.outlier_probability, arm)
        scale = jnp.where(outlier, of_arm(self.outlier_scale, arm), of_arm(self.scale, arm))
        return of_arm(self.arm_means, arm) + scale * random.normal(key_noise)

    def points(self, arm: int) -> Points:
        """Returns losses and probabilities that represent the law of an arm; on the host."""
        mean, share = at(self.arm_means, arm), at(self.outlier_probability, arm)
        scales = at(self.scale, arm), at(self.outlier_scale, arm)
        parts = [by_quantile(lambda b, a, s=scale: mean + s * normal_quantile(b, a)) for scale in scales]
        return mixed([(1 - share, parts[0]), (share, parts[1])])

    def noise_moment(self, alpha: float) -> np.ndarray:
        """Returns the weighted average of the moments of two normal laws."""
        p = np.asarray(self.outlier_probability, np.float64)
        powers = [np.asarray(scale, np.float64) ** alpha for scale in (self.scale, self.outlier_scale)]
        return ((1 - p) * powers[0] + p * powers[1]) * gaussian_moment(alpha)

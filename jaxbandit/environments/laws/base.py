"""Base classes of laws: arms, the moments that exist, and the assumptions of the theory."""

import abc
import copy
import dataclasses
import math
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxbandit.arms import pick
from jaxbandit.environments.laws.points import Points, by_quantile
from jaxbandit.types import Array, public_fields

TAIL_HINT = "at or below 1 the mean does not exist"
SCALE_HINT = "give the size of the noise, e.g. 1.0"
POSITIVE_HINT = "{} losses are positive"


class Law(abc.ABC):
    """A stationary environment: an arm's losses have the same law in every round.

    A subclass declares its fields, ``means``, ``loss`` and ``raw_moment``. If it also has ``quantile`` or ``points``,
    then ``jb.theory.instance_bound`` can compute the constant of its lower bound. The class attributes describe in
    words, for tables, what the corresponding properties of an instance compute.
    """

    moments: ClassVar[str] = "all"  # the moments that exist
    nonnegative: ClassVar[str] = "always"  # when the best arm is truncated non-negative

    num_arms: int
    moment_order: float

    @property
    def moment_limit(self) -> float:
        """The order below which all moments exist."""
        return math.inf

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether ``E[l 1(|l| > M)] >= 0`` for the losses l of the best arm and every M, the paper's assumption."""
        return True

    @property
    def every_arm_truncated_nonnegative(self) -> bool:
        """Whether this holds for every arm, as a schedule needs it that lets another arm be the best."""
        return self.truncated_nonnegative

    @property
    def unique_best(self) -> bool:
        """Whether one arm is better than all others."""
        means = np.asarray(self.means(jnp.int32(1)))
        return bool((means == means.min()).sum() == 1)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The smallest interval that is known to hold all losses."""
        return -math.inf, math.inf

    @property
    def symmetric(self) -> bool:
        """Whether the noise around every mean is known to be symmetric."""
        return False

    @abc.abstractmethod
    def means(self, t: Array) -> Array:
        """Returns the expected losses, the same in every round: [K]."""

    @abc.abstractmethod
    def loss(self, t: Array, arm: Array, key: Any) -> Array:
        """Draws the loss of an arm in round ``t``."""

    @abc.abstractmethod
    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns ``E|l|^alpha`` of each arm, or an upper bound on it, if it exists."""

    def quantile(self, below: np.ndarray, above: np.ndarray, arm: int) -> np.ndarray:
        """Returns the z with P(l <= z) = ``below`` and P(l > z) = ``above``; on the host in float64."""
        raise ValueError(
            f"{type(self).__name__} has no quantile function; declare quantile(below, above, arm) or points(arm)"
        )

    def points(self, arm: int) -> Points:
        """Returns losses and probabilities that represent the law of an arm in expectations; on the host."""
        return by_quantile(lambda below, above: self.quantile(below, above, arm))

    def moment(self, alpha: float) -> float:
        """Returns the sigma with ``E|l|^alpha <= sigma^alpha`` for every arm."""
        if not alpha > 0:
            raise ValueError(f"moment(alpha) needs alpha > 0, got {alpha}")
        limit = self.moment_limit
        if alpha >= limit:
            raise ValueError(
                f"{type(self).__name__} with tail_index {limit:g} has no moment of order {alpha:g}; "
                f"pass alpha < {limit:g}, e.g. moment({self.moment_order:g})"
            )
        return float(np.max(self.raw_moment(alpha)) ** (1 / alpha))


class Located(Law):
    """A law that is scaled or shifted to the means that a user gives, in the field ``arm_means``."""

    arm_means: Array
    tail_index: Any = math.inf

    def __post_init__(self):
        for name, spec in public_fields(type(self)).items():
            value = getattr(self, spec.name)
            if not spec.metadata.get("per_arm") or isinstance(value, Tracer) or np.ndim(self.arm_means) != 1:
                continue
            if np.ndim(value) and np.shape(value) != (self.num_arms,):
                raise ValueError(
                    f"{type(self).__name__}.{name} has {np.shape(value)[-1]} values for {self.num_arms} arms; "
                    "give one number, or one for each arm"
                )

    @property
    def num_arms(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """K."""
        return self.arm_means.shape[0]

    @property
    def moment_order(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The alpha that the environment declares, 9/10 of the way from 1 to the tail index and at most 2."""
        return float(np.min(np.minimum(2.0, 1 + 0.9 * (np.asarray(self.tail_index) - 1))))

    @property
    def moment_limit(self) -> float:
        """The order below which all moments exist."""
        return float(np.min(self.tail_index))

    def means(self, t: Array) -> Array:
        """Returns the expected losses, the same in every round: [K]."""
        del t
        return jnp.asarray(self.arm_means)

    def with_means(self, means: Array) -> Self:
        """Returns the same law with other means, which are not checked because they may be traced."""
        law = copy.copy(self)
        object.__setattr__(law, "arm_means", means)
        return law


class Symmetric(Located):
    """A law whose noise around the means is symmetric and unimodal."""

    nonnegative: ClassVar[str] = "if no mean is negative"

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether the smallest mean is at least 0; if so, the density at z > 0 is at least that at -z."""
        return bool(np.min(self.arm_means) >= 0)

    @property
    def symmetric(self) -> bool:
        """Whether the noise around every mean is symmetric, as it is here."""
        return True

    @abc.abstractmethod
    def noise_moment(self, alpha: float) -> np.ndarray:
        """Returns E|l - mean|^alpha of each arm."""

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns an upper bound that is exact if the mean is 0 or alpha is 2."""
        mean, noise = np.abs(np.asarray(self.arm_means, np.float64)), self.noise_moment(alpha)
        if alpha <= 2:  # (|m + z|^a + |m - z|^a) / 2 <= |m|^a + |z|^a: Clarkson
            return mean**alpha + noise
        return (mean + noise ** (1 / alpha)) ** alpha  # Minkowski


def of_arm(value: Any, arm: Array) -> Array:
    """Returns the arm's own number, or the number of all arms if there is only one."""
    value = jnp.asarray(value)
    return pick(value, arm) if value.ndim else value


def lgamma(value: Any) -> Any:
    """Returns the logarithm of |Gamma|, entry by entry; on the host in float64."""
    return jax.lax.lgamma(value) if isinstance(value, Tracer) else np.vectorize(math.lgamma)(value)


def gaussian_moment(alpha: float) -> float:
    """Returns E|Z|^alpha of a standard normal Z."""
    return math.exp(alpha / 2 * math.log(2) + math.lgamma((alpha + 1) / 2)) / math.sqrt(math.pi)


def derive(obj: Any, **values: Any) -> None:
    """Sets derived fields of a frozen environment during its construction."""
    names = {spec.name for spec in dataclasses.fields(obj) if spec.metadata.get("derived")}
    for name, value in values.items():
        assert name in names, name
        object.__setattr__(obj, name, value)

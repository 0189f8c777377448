"""Laws whose large losses are negative: gains."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxbandit import random
from jaxbandit.environments.laws.base import Law, Located, Symmetric, of_arm
from jaxbandit.environments.laws.points import Points, at, is_symmetric, is_truncated_nonnegative
from jaxbandit.types import Array, Numbers, field, pytree

_LOST = 1e-3  # the share of the smallest gap that rounding of float32 may take from a jackpot's mean


@pytree
class Reflected(Law):
    r"""A law with its sign reversed, so that its tail points to gains instead of losses.

    A loss is :math:`c_i - \ell` with a loss :math:`\ell` of the law, and an arm's mean is :math:`c_i - \mu_i`. The best
    arm is the law's worst, unless the shifts differ.

    Attributes:
      law: A stationary law, such as ``jb.Pareto(means=[0.5, 1.0], tail_index=1.6)``.
      shift: :math:`c_i`, one for all arms or one each.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Reflected(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), shift=2.0)
      >>> environment.means(1).tolist(), environment.truncated_nonnegative
      ([1.5, 1.0], False)
    """

    label: ClassVar[str] = "reflected"
    moments: ClassVar[str] = "the law's"
    nonnegative: ClassVar[str] = "if gains have no tail beyond the losses"

    law: Any = field(nested=True)
    shift: Any = field(default=0.0, per_arm=True, hint="what is added to the negative losses")

    def __post_init__(self):
        if not isinstance(self.law, Law):
            raise ValueError(
                f"Reflected.law must be a stationary law such as jb.Pareto(means=..., ...), got {self.law!r}; "
                "to reflect a schedule, give the schedule a reflected law"
            )
        if np.ndim(self.shift) == 1 and np.shape(self.shift) != (self.num_arms,):
            raise ValueError(
                f"Reflected.shift has {np.shape(self.shift)[-1]} values for {self.num_arms} arms; "
                "give one number, or one for each arm"
            )

    @property
    def num_arms(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """K."""
        return self.law.num_arms

    @property
    def moment_order(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The law's declared moment order."""
        return self.law.moment_order

    @property
    def moment_limit(self) -> float:
        """The law's limit of moments."""
        return self.law.moment_limit

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether the best arm's gains never outweigh its losses: ``E[l 1(|l| > M)] >= 0`` for every M."""
        means = self._host_means()
        return self._are_truncated_nonnegative(np.flatnonzero(means == means.min()))

    @property
    def every_arm_truncated_nonnegative(self) -> bool:
        """Whether no arm's gains outweigh its losses."""
        return self._are_truncated_nonnegative(np.arange(self.num_arms))

    @property
    def loss_range(self) -> tuple[float, float]:
        """The law's range, mirrored."""
        low, high = self.law.loss_range
        return float(np.min(self.shift)) - high, float(np.max(self.shift)) - low

    @property
    def symmetric(self) -> bool:
        """Whether the law's noise is symmetric."""
        return self.law.symmetric

    def means(self, t: Array) -> Array:
        """Returns the expected losses, the same in every round: [K]."""
        means = self.law.means(t)
        return jnp.asarray(self.shift, means.dtype) - means

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the shift minus a loss of the law, whose tail stays as deep as it is."""
        return of_arm(self.shift, arm) - self.law.loss(t, arm, key)

    def points(self, arm: int) -> Points:
        """Returns losses and probabilities that represent the law of an arm; on the host."""
        values, weights = self.law.points(arm)
        return at(self.shift, arm) - values, weights

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns E|c - l|^alpha: the law's moment and the expected difference, whose integral converges quickly."""
        if isinstance(self.law, Symmetric):
            return self._mirrored().raw_moment(alpha)
        own = np.broadcast_to(self.law.raw_moment(alpha), self.num_arms)
        if not np.any(self.shift):
            return own
        more = []
        for arm in range(self.num_arms):
            values, weights = self.law.points(arm)
            more.append(weights @ (np.abs(at(self.shift, arm) - values) ** alpha - np.abs(values) ** alpha))
        return own + np.array(more)

    def _are_truncated_nonnegative(self, arms: np.ndarray) -> bool:
        if isinstance(self.law, Symmetric):
            return self._mirrored().truncated_nonnegative
        return all(is_truncated_nonnegative(self.points(int(arm))) for arm in arms)

    def _mirrored(self) -> Symmetric:
        """Returns the symmetric law that this is if the law is symmetric."""
        return self.law.with_means(self._host_means())

    def _host_means(self) -> np.ndarray:
        """Returns the means in float64; ``means`` may be float32, in which 0.2 - 0.2 is not 0."""
        law = self.law
        inner = law._host_means() if isinstance(law, Reflected) else getattr(law, "arm_means", None)
        inner = law.means(jnp.int32(1)) if inner is None else inner
        return np.asarray(self.shift, np.float64) - np.asarray(inner, np.float64)


@pytree
class Jackpot(Located):
    r"""A constant loss and, with a small probability, a large gain.

    A loss is :math:`c_i = \mu_i + p_i g_i` with probability :math:`1 - p_i`, and :math:`c_i - g_i` with probability
    :math:`p_i`. A gain of 0 makes an arm constant; a probability of 1/2 makes it a fair coin around its mean.

    Attributes:
      means: Expected loss of each arm.
      probability: :math:`p_i` in (0, 1), of all arms or of each.
      gain: :math:`g_i`, of all arms or of each.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Jackpot(means=[-0.5, 0.0], probability=[0.01, 0.5], gain=[100.0, 0.5])
      >>> [environment.points(arm)[0].tolist() for arm in (0, 1)], environment.truncated_nonnegative
      ([[0.5, -99.5], [0.25, -0.25]], False)
    """

    label: ClassVar[str] = "jackpot"
    nonnegative: ClassVar[str] = "if the best arm's mean is not negative and its gain at most twice its loss"

    arm_means: Numbers = field(alias="means", vector=True)
    probability: Any = field(per_arm=True, gt=0, lt=1, hint="the share of jackpots, e.g. 0.01")
    gain: Any = field(per_arm=True, ge=0, hint="how much less than the constant loss a jackpot costs, e.g. 100.0")

    def __post_init__(self):
        super().__post_init__()
        numbers = (self.arm_means, self.probability, self.gain)
        if any(isinstance(value, Tracer) for value in numbers) or np.ndim(self.arm_means) != 1:
            return
        means = np.asarray(self.arm_means, np.float64)
        exact = means + self._expected_gain(means)
        with np.errstate(over="ignore", invalid="ignore"):
            lost = np.abs(exact.astype(np.float32) - exact)
        gaps = means[means > means.min()] - means.min()
        unit = gaps.min() if gaps.size else np.abs(means).max()
        if not np.all(lost <= _LOST * unit):
            arm = int(np.argmax(np.where(np.isfinite(lost), lost, np.inf)))
            raise ValueError(
                f"Jackpot.gain {at(self.gain, arm):g} at probability {at(self.probability, arm):g} breaks the mean "
                f"{means[arm]:g} of arm {arm}: rounding the constant loss {exact[arm]:g} to float32 changes it by "
                f"{lost[arm]:.2g}, more than a thousandth of {unit:g}, the smallest gap or largest mean; "
                "give a smaller probability or gain"
            )

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether the best arm's jackpot is not larger than its constant loss, and its mean not negative."""
        means = np.asarray(self.arm_means, np.float64)
        return bool(np.all(self._are_truncated_nonnegative(means)[means == means.min()]))

    @property
    def every_arm_truncated_nonnegative(self) -> bool:
        """Whether no arm's jackpot is larger than its constant loss, and no mean is negative."""
        return bool(np.all(self._are_truncated_nonnegative(np.asarray(self.arm_means, np.float64))))

    @property
    def loss_range(self) -> tuple[float, float]:
        """From the best jackpot to the largest constant loss."""
        losses = np.concatenate([self.points(arm)[0] for arm in range(self.num_arms)])
        return float(losses.min()), float(losses.max())

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the constant loss, less the gain if a deep uniform is at most its probability."""
        del t
        p, gain = of_arm(self.probability, arm), of_arm(self.gain, arm)
        constant = of_arm(self.arm_means, arm) + p * gain
        return jnp.where(random.deep_uniform(key) <= p, constant - gain, constant)

    @property
    def symmetric(self) -> bool:
        """Whether both losses of every arm are equally likely, or only one is possible."""
        return all(is_symmetric(self.points(arm)) for arm in range(self.num_arms))

    def points(self, arm: int) -> Points:
        """Returns the two losses and their probabilities."""
        p, gain = at(self.probability, arm), at(self.gain, arm)
        constant = at(self.arm_means, arm) + p * gain
        return np.array([constant, constant - gain]), np.array([1 - p, p])

    def raw_moment(self, alpha: float) -> np.ndarray:
        """Returns (1 - p) |c|^alpha + p |c - g|^alpha."""
        means = np.asarray(self.arm_means, np.float64)
        constant = means + self._expected_gain(means)
        p = np.asarray(self.probability, np.float64)
        return (1 - p) * np.abs(constant) ** alpha + p * np.abs(constant - np.asarray(self.gain)) ** alpha

    def _are_truncated_nonnegative(self, means: np.ndarray) -> np.ndarray:
        gain = np.broadcast_to(np.asarray(self.gain, np.float64), means.shape)
        return (means >= 0) & (2 * (means + self._expected_gain(means)) >= gain)

    def _expected_gain(self, means: np.ndarray) -> np.ndarray:
        gain = np.asarray(self.probability, np.float64) * np.asarray(self.gain, np.float64)
        return np.broadcast_to(gain, means.shape)

"""Base classes of schedules: a law inside, whole numbers beyond float32, and the run's horizon."""

import abc
import dataclasses
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from jaxbandit.arms import one_hot
from jaxbandit.types import Array, public_fields

HORIZON_HINT = "the number of rounds; if left out, that of the run"


class Schedule(abc.ABC):
    """An environment that holds a law and moves its means or its arms.

    By default moments and assumptions are those of the law, which is right if arms only change places.
    """

    moments: ClassVar[str] = "the law's"
    nonnegative: ClassVar[str] = "if every arm of the law is"

    law: Any

    def __post_init__(self):
        if isinstance(self.law, type) or not hasattr(self.law, "loss"):
            raise ValueError(
                f"{type(self).__name__}.law must be an environment, got {self.law!r}; pass jb.Pareto(means=..., ...)"
            )

    @property
    def num_arms(self) -> int:
        """K."""
        return self.law.num_arms

    @property
    def moment_order(self) -> float:
        """The law's declared moment order."""
        return self.law.moment_order

    @property
    def moment_limit(self) -> float:
        """The law's limit of moments."""
        return self.law.moment_limit

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether every arm of the law is truncated non-negative: each may take the place of the best in hindsight."""
        return _in_every_arm(self.law)

    @property
    def loss_range(self) -> tuple[float, float] | None:
        """The range of the law, which a schedule leaves as it is."""
        return getattr(self.law, "loss_range", None)

    @property
    def symmetric(self) -> bool | None:
        """Whether the law's noise is symmetric."""
        return getattr(self.law, "symmetric", None)

    @property
    def unique_best(self) -> bool:
        """Whether one arm is better than all others in every round; False if the best arm changes."""
        return False

    @abc.abstractmethod
    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""

    @abc.abstractmethod
    def loss(self, t: Array, arm: Array, key: Any) -> Array:
        """Draws the loss of an arm in round ``t``."""

    def moment(self, alpha: float) -> float:
        """Returns the law's moment bound: the arms only change places."""
        return self.law.moment(alpha)

    def at_horizon(self, horizon: int) -> Self:
        """Returns the environment for a run of ``horizon`` rounds; a horizon that it already has stays."""
        changes: dict[str, Any] = {}
        if "horizon" in public_fields(type(self)) and getattr(self, "horizon", 0) is None:
            changes["horizon"] = horizon
        law = self.law.at_horizon(horizon) if hasattr(self.law, "at_horizon") else self.law
        if law is not self.law:
            changes["law"] = law
        return dataclasses.replace(self, **changes) if changes else self  # pyright: ignore[reportArgumentType]


class Moved(Schedule):
    """A schedule that gives its law other means, which lie between ``lowest`` and ``highest`` in every round."""

    nonnegative: ClassVar[str] = "if every arm of the law is at the lowest means"

    lowest: np.ndarray  # [K]
    highest: np.ndarray  # [K]

    def check_means(self, field_name: str) -> None:
        """Raises if the law inside cannot have the lowest or the highest means."""
        where = f"{type(self).__name__}.{field_name}"
        for means in (self.lowest, self.highest):
            try:
                dataclasses.replace(self.law, arm_means=means)
            except ValueError as error:
                raise ValueError(f"{where} moves the means outside the range that the law allows: {error}") from None

    def check_law(self) -> None:
        """Raises if the environment inside has no means to move."""
        if not hasattr(self.law, "with_means"):
            raise ValueError(
                f"{type(self).__name__}.law must be a law with means of its own, such as jb.Pareto(means=..., ...), "
                f"got {self.law!r}"
            )

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether every arm of the law is truncated non-negative at the lowest and at the highest means."""
        return all(_in_every_arm(self.law.with_means(means)) for means in (self.lowest, self.highest))

    @property
    def loss_range(self) -> tuple[float, float]:
        """The smallest interval that holds the losses at the lowest and at the highest means."""
        lows, highs = zip(
            *(self.law.with_means(means).loss_range for means in (self.lowest, self.highest)), strict=True
        )
        return min(lows), max(highs)

    @property
    def symmetric(self) -> bool:
        """Whether the law's noise is symmetric at the lowest and at the highest means."""
        return all(self.law.with_means(means).symmetric for means in (self.lowest, self.highest))

    def moment(self, alpha: float) -> float:
        """Returns the law's moment bound at the means furthest from 0."""
        return max(self.law.with_means(means).moment(alpha) for means in (self.lowest, self.highest))

    def loss(self, t: Array, arm: Array, key: Any) -> Array:
        """Returns a loss of the law with the means of the round."""
        return self.law.with_means(self.means(t)).loss(t, arm, key)


def _in_every_arm(law: Any) -> bool:
    """Returns whether every arm of a law is truncated non-negative, or the best arm if the law declares no more."""
    return getattr(law, "every_arm_truncated_nonnegative", law.truncated_nonnegative)


def exchanged(law: Any, t: Array, swapped: Array) -> Array:
    """Returns the law's means [K]; if ``swapped``, with those of its best and worst arm exchanged."""
    means = law.means(t)
    best, worst = _best_and_worst(means)
    other = jnp.where(one_hot(worst, law.num_arms), jnp.min(means), means)
    other = jnp.where(one_hot(best, law.num_arms), jnp.max(means), other)
    return jnp.where(swapped, other, means)


def exchanged_place(law: Any, t: Array, arm: Array, swapped: Array) -> Array:
    """Returns the arm of the law whose place ``arm`` takes."""
    best, worst = _best_and_worst(law.means(t))
    other = jnp.where(arm == best, worst, jnp.where(arm == worst, best, arm))
    return jnp.where(swapped, other, arm)


def _best_and_worst(means: Array) -> tuple[Array, Array]:
    return jnp.argmin(means).astype(jnp.int32), jnp.argmax(means).astype(jnp.int32)


def in_halves(values: Any) -> np.ndarray:
    """Splits whole numbers below 2^32 into two of 16 bits, which every dtype holds exactly: [2, ...]."""
    return np.stack(np.divmod(np.asarray(values, np.float64), 2.0**16))


def from_halves(halves: Array, dtype: Any = jnp.int32) -> Array:
    """Joins the halves that ``in_halves`` made to whole numbers."""
    high, low = (jnp.asarray(part).astype(dtype) for part in halves)
    return (high << dtype(16)) + low


def need_horizon(environment: Any) -> None:
    """Raises if an environment has no horizon yet."""
    if environment.horizon is None:
        name = type(environment).__name__
        raise ValueError(f"{name}.horizon is not known; pass horizon=..., or call simulate(), which sets it")

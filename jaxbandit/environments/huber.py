"""Huber's contamination: some of the observed losses come from another law."""

import dataclasses
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.environments.laws.points import is_truncated_nonnegative, mixed
from jaxbandit.types import Array, field, pytree


@pytree
class Huber:
    r"""A law of which a share of the observed losses are outliers; regret counts the clean means.

    The observed loss is a draw of the law with probability :math:`1 - \varepsilon` and a draw of the outliers
    otherwise. ``means`` are those of the law, so the expected observed loss differs from them by up to
    :math:`\varepsilon` times the distance of the two means, and no number of rounds removes that bias.

    ``moment`` is that of the observed losses, outliers included. ``environment.law.moment`` is that of the clean ones.

    Attributes:
      law: The clean losses: any environment.
      outliers: The law of the outliers, with as many arms or with one arm for all.
      epsilon: :math:`\varepsilon`, the share of outliers, below 1/2.

    Example:
      >>> import jaxbandit as jb
      >>> clean, outliers = jb.Gaussian(means=[0.0, 0.5]), jb.Gaussian(means=[100.0])
      >>> environment = jb.Huber(clean, outliers, epsilon=0.1)
      >>> environment.means(1).tolist(), round(environment.moment(2.0) ** 2, 3)
      ([0.0, 0.5], 1001.225)

    References:
      Basu, Maillard, Mathieu. "Bandits Corrupted by Nature: Lower Bounds on Regret and Robust Optimistic Algorithm".
      Transactions on Machine Learning Research, 2023. https://arxiv.org/abs/2203.03186
    """

    label: ClassVar[str] = "Huber"
    moments: ClassVar[str] = "those of both laws"
    nonnegative: ClassVar[str] = "if the best arm's mixture is"

    law: Any = field(nested=True)
    outliers: Any = field(nested=True)
    epsilon: Any = field(ge=0, lt=0.5, hint="from 1/2 on, clean losses and outliers cannot be told apart; try 0.05")

    def __post_init__(self):
        for name in ("law", "outliers"):
            value = getattr(self, name)
            if isinstance(value, type) or not hasattr(value, "loss"):
                raise ValueError(
                    f"Huber.{name} must be an environment, got {value!r}; pass jb.Gaussian(means=..., ...)"
                )
        if self.outliers.num_arms not in (1, self.law.num_arms):
            raise ValueError(
                f"Huber.outliers has {self.outliers.num_arms} arms for {self.law.num_arms} arms of the law; "
                "give it as many, or one arm for all"
            )

    @property
    def num_arms(self) -> int:
        """K."""
        return self.law.num_arms

    @property
    def contaminated(self) -> bool:
        """Whether the observed losses do not have the declared means."""
        return bool(np.max(self.epsilon) > 0)

    @property
    def moment_order(self) -> float:
        """The smaller of the two declared moment orders."""
        return min(self.law.moment_order, self.outliers.moment_order)

    @property
    def moment_limit(self) -> float:
        """The smaller of the two limits of moments."""
        return min(self.law.moment_limit, self.outliers.moment_limit)

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether the observed losses of the best arm have ``E[l 1(|l| > M)] >= 0`` for every M.

        If a law has no points to compute it from, then whether both laws are truncated non-negative.
        """
        if not self._has_points:
            return self.law.truncated_nonnegative and self.outliers.truncated_nonnegative
        means = np.asarray(self.law.means(jnp.int32(1)))
        return all(self._is_truncated_nonnegative(int(arm)) for arm in np.flatnonzero(means == means.min()))

    @property
    def every_arm_truncated_nonnegative(self) -> bool:
        """Whether the observed losses of every arm have ``E[l 1(|l| > M)] >= 0`` for every M."""
        if not self._has_points:
            return self.truncated_nonnegative
        return all(self._is_truncated_nonnegative(arm) for arm in range(self.num_arms))

    @property
    def loss_range(self) -> tuple[float, float] | None:
        """The smallest interval that holds the observed losses; None if a law does not declare its own."""
        ranges = [getattr(part, "loss_range", None) for part in self._drawn]
        known = [found for found in ranges if found is not None]
        if len(known) < len(ranges):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    @property
    def symmetric(self) -> bool | None:
        """Whether the noise is the law's and symmetric; None if the law does not declare it."""
        return False if self.contaminated else getattr(self.law, "symmetric", None)

    @property
    def unique_best(self) -> bool:
        """Whether one arm of the law is better than all others."""
        return self.law.unique_best

    def at_horizon(self, horizon: int) -> Self:
        """Returns the environment for a run of ``horizon`` rounds."""
        parts = {"law": self.law, "outliers": self.outliers}
        played = {name: part.at_horizon(horizon) for name, part in parts.items() if hasattr(part, "at_horizon")}
        changed = {name: part for name, part in played.items() if part is not parts[name]}
        return dataclasses.replace(self, **changed) if changed else self  # pyright: ignore[reportArgumentType]

    def moment(self, alpha: float) -> float:
        """Returns a sigma with ``E|l|^alpha <= sigma^alpha`` for the observed losses of every arm."""
        share = float(self.epsilon)
        clean, outlier = (part.moment(alpha) for part in (self.law, self.outliers))
        return float(((1 - share) * clean**alpha + share * outlier**alpha) ** (1 / alpha))

    def means(self, t: Array) -> Array:
        """Returns the expected losses of the clean law in round ``t``: [K]."""
        return self.law.means(t)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns a loss of the law or an outlier; a deep uniform chooses, and both read the same other bits."""
        key_loss, key_kind = random.split(key)
        outlier = random.deep_uniform(key_kind) <= jnp.asarray(self.epsilon)
        drawn = self.outliers.loss(t, jnp.asarray(self._outlier_arm(arm), jnp.int32), key_loss)
        clean = self.law.loss(t, arm, key_loss)
        return jnp.where(outlier, drawn, clean)

    @property
    def _has_points(self) -> bool:
        return hasattr(self.law, "points") and hasattr(self.outliers, "points")

    def _is_truncated_nonnegative(self, arm: int) -> bool:
        share = float(self.epsilon)
        parts = [(1 - share, self.law.points(arm)), (share, self.outliers.points(self._outlier_arm(arm)))]
        return is_truncated_nonnegative(mixed(parts))

    @property
    def _drawn(self) -> list[Any]:
        """The laws that losses are drawn from: without outliers, the clean one alone."""
        return [self.law, self.outliers] if self.contaminated else [self.law]

    def _outlier_arm(self, arm: Any) -> Any:
        return arm if self.outliers.num_arms > 1 else 0

"""A schedule whose means come from a table."""

from typing import Any, ClassVar, Self

import numpy as np

from jaxbandit.environments.replay import row_of_round
from jaxbandit.environments.schedules.base import Moved
from jaxbandit.types import Array, Numbers, field, pytree


@pytree
class Scheduled(Moved):
    """A law whose means are read from a table, a row per round.

    Attributes:
      law: A law with means; its shape is kept, its own means are not used.
      means: Expected losses, ``[rounds, K]``; at least as many rounds as are played.

    Example:
      >>> import jaxbandit as jb
      >>> law = jb.Gaussian(means=[0.0, 0.0], scale=0.1)
      >>> jb.Scheduled(law, means=[[0.0, 1.0], [1.0, 0.0]]).means(2).tolist()
      [1.0, 0.0]
    """

    label: ClassVar[str] = "scheduled"

    law: Any = field(nested=True)
    table: Numbers = field(alias="means", table=True)

    def __post_init__(self):
        super().__post_init__()
        self.check_law()
        rounds, columns = np.shape(self.table)[-2:]
        if columns != self.law.num_arms:
            raise ValueError(
                f"Scheduled.means has {columns} columns ({rounds} rows) for {self.law.num_arms} arms of the law; "
                "give a row per round and a column per arm"
            )
        self.check_means("means")

    @property
    def lowest(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The least mean of each arm: [K]."""
        return np.min(self.table, axis=0)

    @property
    def highest(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The largest mean of each arm: [K]."""
        return np.max(self.table, axis=0)

    def at_horizon(self, horizon: int) -> Self:
        """Returns this environment; raises if the table has fewer rows than the run has rounds."""
        rounds = np.shape(self.table)[0]
        if horizon > rounds:
            raise ValueError(
                f"Scheduled.means has {rounds} rows, but the run has {horizon} rounds; "
                f"play at most {rounds}, or give a longer table"
            )
        return super().at_horizon(horizon)

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        return row_of_round(self.table, t)

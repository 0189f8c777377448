"""Measured losses, replayed: a table with a row per round and a column per arm."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.arms import pick
from jaxbandit.environments.laws.base import derive
from jaxbandit.environments.laws.points import is_symmetric
from jaxbandit.environments.measured import truncated_mean
from jaxbandit.types import Array, field, pytree


@pytree
class Replay:
    r"""A table of measured losses, in stored order or row by row at random.

    In stored order round t is row t. This is an oblivious adversary, and regret against the best fixed column is exact.
    The run may not be longer than the table. In resampled order every round is a row drawn uniformly, the same for all
    policies on one seed. This is a stochastic environment, and its means are exactly those of the columns.

    uniINF, OptHTINF and AdaTINF are not scale-free: they skip nearly all losses that are given in milliseconds.
    ``jaxbandit inspect`` prints the scale at which 99 % of the losses are at most 1.

    Attributes:
      losses: The table [T, K]; signed losses are fine. ``jb.read_table(path).replay(...)`` takes it from a file.
      order: ``"stored"`` or ``"resampled"``.
      scale: Factor of the losses.
      rewards: Whether the table holds rewards; the losses are then their negatives.
      name: The table's name in results.
      arm_means: The mean of each column; follows from the table.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Replay(losses=[[0.0, 3.0], [2.0, 1.0]], scale=0.5)
      >>> environment.means(1).tolist(), environment.means(2).tolist()
      ([0.0, 1.5], [1.0, 0.5])
      >>> jb.Replay(losses=[[0.0, 3.0], [2.0, 1.0]], order="resampled").means(1).tolist()
      [1.0, 2.0]

    Notes:
      A finite table has every moment, whatever the law behind the measurements, so the declared order is 2. ``moment``
      holds for every round and arm, so in stored order, where nothing is random, it is the largest entry.
    """

    label: ClassVar[str] = "replay"
    moments: ClassVar[str] = "all"
    nonnegative: ClassVar[str] = "as measured"
    moment_order: ClassVar[float] = 2.0
    moment_limit: ClassVar[float] = math.inf
    tail_index: ClassVar[float] = math.inf

    losses: Any = field(table=True, hint="files are read by jb.read_table(path).replay()")
    order: str = field(default="stored", choices=("stored", "resampled"))
    scale: float = field(default=1.0, gt=0, hint="rewards=True turns the sign; `jaxbandit inspect` suggests a scale")
    rewards: bool = field(default=False, choices=(False, True))
    name: str = field(default="", static=True)
    arm_means: Array = field(derived=True, default=None)

    def __post_init__(self):
        if not isinstance(self.name, str):
            raise ValueError(f"Replay.name must be text, got {self.name!r}; it names the table in results")
        derive(self, arm_means=np.mean(self.losses, axis=-2, dtype=np.float64))

    @property
    def num_arms(self) -> int:
        """K."""
        return self.losses.shape[-1]

    @property
    def num_rows(self) -> int:
        """T."""
        return self.losses.shape[-2]

    def at_horizon(self, horizon: int) -> "Replay":
        """Returns this environment; raises if the table has fewer rows than the run has rounds."""
        if self.order == "stored" and horizon > self.num_rows:
            table = f"table {self.name!r}" if self.name else "table"
            raise ValueError(
                f"horizon {horizon} is beyond the end of Replay's {table}, which has {self.num_rows} rows; "
                'play at most that many rounds, or draw rows at random with order="resampled"'
            )
        return self

    def means(self, t: Array) -> Array:
        """Returns the losses of round ``t``; in resampled order, the means of the columns: [K]."""
        values = row_of_round(self.losses, t) if self.order == "stored" else jnp.asarray(self.arm_means)
        return self._sign * self.scale * values

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the arm's entry in row ``t``; in resampled order, in a row drawn from the round's bits."""
        if self.order == "stored":
            return pick(self.means(t), arm)
        row = random.below(key, self.num_rows)
        return self._sign * self.scale * jnp.asarray(self.losses)[row, arm]

    def moment(self, alpha: float) -> float:
        """Returns the sigma with E|l|^alpha <= sigma^alpha for every round and arm."""
        if not alpha > 0:
            raise ValueError(f"moment(alpha) needs alpha > 0, got {alpha}")
        size = np.abs(np.asarray(self.losses, np.float64))
        largest = float(size.max())
        if self.order == "resampled" and largest > 0:  # relative to the largest, so that no power overflows
            largest *= float(np.max(np.mean((size / largest) ** alpha, axis=-2)) ** (1 / alpha))
        return float(np.max(self.scale)) * largest

    def points(self, arm: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the losses of a column and their probabilities; raises in stored order, where nothing is random."""
        if self.order == "stored":
            raise ValueError('Replay in stored order has no laws; order="resampled" draws rows at random')
        column = self._sign * float(self.scale) * np.asarray(self.losses, np.float64)[:, arm]
        return column, np.full(column.size, 1 / column.size)

    @property
    def truncated_nonnegative(self) -> bool:
        """Whether E[l 1(|l| > M)] >= 0 for the best column and every M (in stored order, for every round)."""
        means = self._sign * np.asarray(self.arm_means)
        return self._are_truncated_nonnegative(np.flatnonzero(means == means.min()))

    @property
    def every_arm_truncated_nonnegative(self) -> bool:
        """Whether this holds for every column."""
        return self._are_truncated_nonnegative(np.arange(self.num_arms))

    @property
    def loss_range(self) -> tuple[float, float]:
        """The smallest and the largest loss of the table."""
        losses = self._sign * float(np.max(self.scale)) * np.asarray(self.losses, np.float64)
        return float(losses.min()), float(losses.max())

    @property
    def symmetric(self) -> bool:
        """Whether every column is symmetric around its mean; in stored order, where nothing is random, it is."""
        return self.order == "stored" or all(is_symmetric(self.points(arm)) for arm in range(self.num_arms))

    @property
    def unique_best(self) -> bool:
        """Whether one column is better than all others, over the whole table."""
        means = self._sign * np.asarray(self.arm_means)
        return bool((means == means.min()).sum() == 1)

    def _are_truncated_nonnegative(self, arms: np.ndarray) -> bool:
        columns = self._sign * np.asarray(self.losses, np.float64)[:, arms].T
        if self.order == "stored":
            return bool(columns.min() >= 0)
        return all(truncated_mean(column).least >= 0 for column in columns)

    @property
    def _sign(self) -> float:
        return -1.0 if self.rewards else 1.0


def row_of_round(table: Any, t: Array) -> Array:
    """Returns row ``t`` of a table, 1-based; NaN past its end, which marks the game as failed."""
    return jnp.asarray(table).at[jnp.asarray(t) - 1].get(mode="fill", fill_value=jnp.nan)  # the default repeats a row

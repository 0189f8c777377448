"""The form of the measured table: blocks by arms, rows by policy, lines by kind of world, cells by moment order."""

import dataclasses

import numpy as np

from jaxbandit.theory import Order


@dataclasses.dataclass(frozen=True)
class Cell:
    """One policy in one world.

    Attributes:
      regret: Mean, lower and upper limit, at the last round played.
      exponent: Of T, with its limits; NaN where mean regret is not positive all along.
      promised: The theory's exponent; 0 for log T, none where there is no guarantee.
      since: The round since which regret grows no faster than that (in a stochastic world without a guarantee: than
        log T); NaN if it still does.
      played: Rounds played.
      stopped: Whether that is fewer than others played.
    """

    regret: tuple[float, float, float]
    exponent: tuple[float, float, float]
    promised: float | None
    since: float
    played: int
    stopped: bool = False

    @property
    def below_zero(self) -> bool:
        """Whether the policy surely beats every fixed arm."""
        return self.regret[2] < 0

    @property
    def compared(self) -> bool:
        """Whether the exponent is one of the regime that the theory speaks of."""
        return self.promised is not None and not np.isnan(self.since) and not self.below_zero


@dataclasses.dataclass(frozen=True)
class Line:
    """A policy in the worlds of one kind: a cell for each column, none where there is no such world."""

    kind: str
    stochastic: bool
    order: Order | None
    cells: tuple[Cell | None, ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """A policy: what it is told, and a line for each kind of world."""

    policy: str
    told: tuple[str, ...] | None
    lines: tuple[Line, ...]


@dataclasses.dataclass(frozen=True)
class Block:
    """Worlds with the same number of arms; a column for each declared moment order (NaN: none declared)."""

    num_arms: int
    columns: tuple[float, ...]
    rows: tuple[Row, ...]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The whole table."""

    title: str
    horizon: int
    blocks: tuple[Block, ...]
    notes: tuple[str, ...]

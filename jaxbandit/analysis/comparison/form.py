"""The form of the measured table: blocks by arms, rows by policy, lines by environment, columns by moment order."""

import dataclasses

import numpy as np

from jaxbandit.theory.guarantees import Order

LOWER_BOUND = "Lower bound"  # heads the row that no policy can beat


@dataclasses.dataclass(frozen=True)
class Cell:
    """One policy in one environment.

    Attributes:
      regret: Mean, lower and upper limit, at the last round played.
      exponent: Of T, with its limits; NaN where mean regret is not positive all along, or falls.
      promised: The theory's exponent; 0 for log T, none where nothing is proved or its exponent is 1 or more.
      logarithmic: The round since which regret grows no faster than log T; NaN if it still does, or falls.
      played: Rounds played.
      stopped: Whether that is fewer than others played.
    """

    regret: tuple[float, float, float]
    exponent: tuple[float, float, float]
    promised: float | None
    logarithmic: float
    played: int
    stopped: bool = False

    @property
    def below_zero(self) -> bool:
        """Whether the policy surely beats every fixed arm."""
        return self.regret[2] < 0

    @property
    def compared(self) -> bool:
        """Whether the growth that the theory promises has set in, so that the exponent may be held against it.

        For log T that is past the onset of the logarithmic regime; for a power, if regret surely grows no faster.
        """
        if self.promised is None or self.below_zero:
            return False
        return not np.isnan(self.logarithmic) if self.promised == 0 else self.exponent[2] <= self.promised

    @property
    def refuted(self) -> bool:
        """Whether regret surely still grows faster than a promised power."""
        return bool(self.promised) and self.exponent[1] > self.promised


@dataclasses.dataclass(frozen=True)
class Line:
    """A policy in the environments of one kind: what is proved, also of the worst; a cell for each column, or none."""

    kind: str
    stochastic: bool
    order: Order | None
    cells: tuple[Cell | None, ...]
    worst: Order | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """A policy with what it is given (None if unknown) and a line for each kind of environment; or the lower bound."""

    policy: str
    told: tuple[str, ...] | None
    lines: tuple[Line, ...]


@dataclasses.dataclass(frozen=True)
class Block:
    """Environments with the same number of arms; a column for each declared moment order (NaN: none declared)."""

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

"""The form of the measured table: blocks by arms, rows by policy, lines by environment, columns by moment order."""

import dataclasses

import numpy as np

from jaxbandit.theory.guarantees import Order

LOWER_BOUND = "Lower bound"  # heads the row that no policy can beat


@dataclasses.dataclass(frozen=True)
class Cell:
    """The entry of one policy in one environment.

    Attributes:
      regret: Mean, lower and upper limit, at the last round played.
      exponent: Exponent of T with its limits; NaN if mean regret is not positive throughout, or falls.
      promised: The theory's exponent; 0 for log T, None if nothing is proved or the exponent is 1 or more.
      logarithmic: The round since which regret grows no faster than log T; NaN if regret still grows faster, or falls.
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
        """Whether the run has reached the predicted regime, so that its exponent is compared with theory.

        If theory predicts log T, the run must be past the onset of the logarithmic regime. If theory predicts a power,
        regret must surely grow no faster.
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
    """A policy in environments of one kind: the proved orders, and an entry (or None) for each column."""

    kind: str
    stochastic: bool
    order: Order | None
    cells: tuple[Cell | None, ...]
    worst: Order | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """A policy, its given parameters (None if unknown), and a line per kind of environment; or the lower bound."""

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

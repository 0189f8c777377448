"""The form of the measured table: blocks by arms, rows by policy, lines by environment, columns by moment order."""

import dataclasses

from jaxbandit.theory.guarantees import Order

LOWER_BOUND = "Lower bound"  # heads the row that no policy can beat


@dataclasses.dataclass(frozen=True)
class Entry:
    """The entry of one policy in one environment.

    Attributes:
      regret: Mean, lower and upper limit, at the last round played.
      exponent: Exponent of T with its limits and its model error; NaN if mean regret is not positive, or falls.
      promised: The theory's exponent; 0 for log T, None if nothing is proved or the exponent is 1 or more.
      verdict: The verdict of ``growth.gain_ratio``; empty if the record is too short for one.
      ratio: The ratio of gains per doubling with its limits.
      played: Rounds played.
      stopped: Whether that is fewer than others played.
      multiple: Regret over the asymptotic lower bound times log T; None if no bound binds the policy here.
    """

    regret: tuple[float, float, float]
    exponent: tuple[float, float, float, float]
    promised: float | None
    verdict: str
    ratio: tuple[float, float, float]
    played: int
    stopped: bool = False
    multiple: float | None = None

    @property
    def below_zero(self) -> bool:
        """Whether the policy surely beats every fixed arm."""
        return self.regret[2] < 0

    @property
    def above(self) -> bool:
        """Whether regret surely still grows faster than a promised power."""
        return bool(self.promised) and self.exponent[1] > self.promised

    @property
    def below(self) -> bool:
        """Whether regret surely grows no faster than a promised power, on this instance."""
        return bool(self.promised) and self.exponent[2] <= self.promised


@dataclasses.dataclass(frozen=True)
class Line:
    """A policy in environments of one kind: the proved orders, and an entry (or None) for each column."""

    kind: str
    stochastic: bool
    order: Order | None
    entries: tuple[Entry | None, ...]
    worst: Order | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """A policy, its given parameters (None if unknown), and a line per kind of environment; or the lower bound."""

    policy: str
    given: tuple[str, ...] | None
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

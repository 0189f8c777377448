"""The form of the measured table: blocks by arms, rows by policy, lines by environment, columns by moment order."""

import dataclasses
import math

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
      outside: Whether the policy is outside its assumptions.
      tail: The 99 % quantile of regret at the last round played.
      lost: The share of lost games, P(R > T Delta / 4), with its limits; None if it tells nothing.
      fragile: Whether the mean rests on few of its games.
    """

    regret: tuple[float, float, float]
    exponent: tuple[float, float, float, float]
    promised: float | None
    verdict: str
    ratio: tuple[float, float, float]
    played: int
    stopped: bool = False
    multiple: float | None = None
    outside: bool = False
    tail: float = math.nan
    lost: tuple[float, float, float] | None = None
    fragile: bool = False

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
    """A policy in environments of one kind.

    Attributes:
      kind: The environments' name.
      stochastic: Whether they do not change.
      order: The order that is proved there; in stochastic environments, for one instance.
      entries: An entry (or None) for each column.
      worst: In stochastic environments, the order that is proved for the worst instance.
      outside: Whether the policy is outside its assumptions in all of them.
      tied: Whether several arms are best in all of them, and the policy's bound for one instance needs one.
    """

    kind: str
    stochastic: bool
    order: Order | None
    entries: tuple[Entry | None, ...]
    worst: Order | None = None
    outside: bool = False
    tied: bool = False

    @property
    def orders(self) -> tuple[Order, ...]:
        """The proved orders: for one instance, if there is one, and for the worst one."""
        return tuple(order for order in (self.order, self.worst) if order)


@dataclasses.dataclass(frozen=True)
class Row:
    """A policy, its given parameters (None if unknown), and a line per kind of environment; or the lower bound.

    ``note`` is a footnote of the policy, and ``remark`` says where it is outside its assumptions.
    """

    policy: str
    given: tuple[str, ...] | None
    lines: tuple[Line, ...]
    note: str = ""
    remark: str = ""


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


class Footnotes:
    """Footnotes that are numbered in the order in which their marks are asked for.

    Example:
      >>> notes = Footnotes()
      >>> notes.mark("first"), notes.mark(""), notes.mark("second"), notes.mark("first"), notes.listed()
      ('¹', '', '²', '¹', ['¹ first', '² second'])
    """

    def __init__(self):
        self._numbers: dict[str, int] = {}

    def mark(self, note: str) -> str:
        """Returns the raised number of a note, the same whenever the note comes again; nothing for no note."""
        return _raised(self._numbers.setdefault(note, len(self._numbers) + 1)) if note else ""

    def listed(self) -> list[str]:
        """Returns the notes with their numbers."""
        return [f"{_raised(number)} {note}" for note, number in self._numbers.items()]


def _raised(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))

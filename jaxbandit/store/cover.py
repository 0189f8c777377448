"""The division of a pair's seeds into stored pieces and missing cells."""

import dataclasses
from collections.abc import Sequence

from jaxbandit.store.cellfile import Header
from jaxbandit.store.cells import Cell, Pair


@dataclasses.dataclass(frozen=True)
class Piece:
    """A range of a file's seeds, ``first`` to ``last`` (exclusive)."""

    header: Header
    first: int
    last: int


def covered(headers: Sequence[Header], num_seeds: int, rounds: tuple[int, ...], whole: bool) -> list[Piece]:
    """Returns pieces of files that hold these rounds, without overlap, in the order of seeds.

    Args:
      headers: Files of one pair.
      num_seeds: Number of wanted seeds, from seed 0 on.
      rounds: The wanted rounds. A file is used if these are its first rounds: sums are added from one recorded round
        to the next, so other rounds in between could change the rounding.
      whole: Whether files cannot be cut, because they hold summaries.
    """
    usable = [header for header in headers if header.rounds[: len(rounds)] == rounds]
    pieces, at = [], 0
    while at < num_seeds:
        if whole:
            here = [header for header in usable if header.first == at and header.last <= num_seeds]
        else:
            here = [header for header in usable if header.first <= at < header.last]
        if here:
            best = max(here, key=lambda header: (header.last, header.path.name))
            pieces.append(Piece(best, at, min(best.last, num_seeds)))
            at = pieces[-1].last
        else:
            at = min((header.first for header in usable if header.first > at), default=num_seeds)
    return pieces


def missing(
    pair: Pair, headers: Sequence[Header], num_seeds: int, rounds: tuple[int, ...], whole: bool, at_most: int
) -> list[Cell]:
    """Returns the cells that are still to be played, of at most ``at_most`` seeds each.

    If a file has the same seeds up to an earlier round, and the state of its games, the cell continues from it.
    """
    earlier = sorted(
        (header for header in headers if header.has_state and rounds[: len(header.rounds)] == header.rounds),
        key=lambda header: (header.first, -len(header.rounds), -header.last),
    )
    cells, at = [], 0
    for piece in [*covered(headers, num_seeds, rounds, whole), None]:
        until = piece.first if piece else num_seeds
        while at < until:
            before = next((header for header in earlier if header.first == at and header.last <= until), None)
            if before:
                last = before.last
            else:
                starts = [header.first for header in earlier if header.first > at and header.last <= until]
                last = min([until, at + at_most, *starts])
            cells.append(Cell(pair, at, last, rounds, before))
            at = last
        at = piece.last if piece else until
    return cells

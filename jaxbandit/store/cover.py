"""Which seeds of a game the store has, and which are to be played."""

import dataclasses
from collections.abc import Sequence

from jaxbandit.store.cellfile import Header
from jaxbandit.store.cells import Cell, Game


@dataclasses.dataclass(frozen=True)
class Piece:
    """Seeds ``first`` to ``last`` (exclusive) of a file."""

    header: Header
    first: int
    last: int


def covered(headers: Sequence[Header], num_seeds: int, rounds: tuple[int, ...], whole: bool) -> list[Piece]:
    """Pieces of files that hold these rounds, without overlap, in the order of seeds.

    Args:
      headers: Files of one game.
      num_seeds: Seeds 0 to this are asked for.
      rounds: The rounds asked for: the first of a file's. (Sums are added from recorded round to recorded
        round, so other rounds in between may round otherwise.)
      whole: Files cannot be cut (a summary).
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
    game: Game, headers: Sequence[Header], num_seeds: int, rounds: tuple[int, ...], whole: bool, at_most: int
) -> list[Cell]:
    """The cells that are still to be played, of at most so many seeds each.

    Where a file has the same seeds up to an earlier round, and the state of its games, the cell goes on from it.
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
            cells.append(Cell(game, at, last, rounds, before))
            at = last
        at = piece.last if piece else until
    return cells

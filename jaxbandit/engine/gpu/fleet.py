"""The cards of this machine that may play: those that reproduce the recorded digests."""

import threading
import warnings

from jaxbandit.engine import proof
from jaxbandit.engine.gpu import card as cards
from jaxbandit.engine.gpu.errors import ON_CPUS, CardError
from jaxbandit.engine.gpu.games import Games
from jaxbandit.engine.shape import Shape

_lock = threading.Lock()
_known: list[cards.Card] = []


def usable() -> list[cards.Card]:
    """Returns the cards that play with the bits of a CPU; each is checked once in a process.

    Raises:
      CardError: There is none. The message says why.
    """
    with _lock:
        if not _known:
            found = [card for card in cards.visible(cards.bindings()) if _reproduces(card)]
            if not found:
                raise CardError(
                    "no card reproduces the recorded digests, so that its results would not be those of a CPU",
                    f"Please report the line that `jaxbandit bench` prints. {ON_CPUS}",
                )
            _known.extend(found)
        left = [card for card in _known if not card.lost]
    if not left:
        raise CardError("all cards failed earlier in this process", f"`nvidia-smi` shows their state. {ON_CPUS}")
    return left


def summary() -> str:
    """Returns the names of the cards that the driver shows, or the reason why there are none."""
    try:
        found = cards.visible(cards.bindings())
    except CardError as error:
        return f"none: {error.problem}"
    return ", ".join(f"{card.name} (compute capability {card.capability[0]}.{card.capability[1]})" for card in found)


def forget() -> None:
    """Forgets the cards, so that the next call looks for them again."""
    with _lock:
        _known.clear()


def differing(card: cards.Card) -> list[str]:
    """Returns the names of the recorded games whose bits differ on a card."""
    opened: list[Games] = []

    def games_of(shape: Shape) -> Games:
        opened.append(Games(shape, [card]))
        return opened[-1]

    try:
        return proof.differing(games_of)
    finally:
        for games in opened:
            games.close()


def _reproduces(card: cards.Card) -> bool:
    try:
        wrong = differing(card)
    except CardError as error:
        warnings.warn(f"a card is not used: {error}", stacklevel=4)
        return False
    if wrong:
        warnings.warn(
            f"{card.name} (card {card.number}) is not used: its bits differ from the recorded ones in "
            f"{', '.join(wrong)}",
            stacklevel=4,
        )
    return not wrong

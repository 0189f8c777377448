"""The cards of this machine that may play: those that reproduce the recorded digests."""

import collections
import threading
import warnings
from collections.abc import Sequence

from jaxbandit.engine import proof
from jaxbandit.engine.gpu import card as cards
from jaxbandit.engine.gpu import errors
from jaxbandit.engine.gpu.errors import ON_CPUS, CardError, CardLostError, NoMemoryError, warn_once
from jaxbandit.engine.gpu.games import Games
from jaxbandit.engine.shape import Shape

_lock = threading.Lock()
_known: list[cards.Card] = []


def usable() -> list[cards.Card]:
    """Returns the cards that play with the bits of a CPU; each is checked once in a process.

    Cards that failed since then are left out. If all of them did, the list is empty.

    Raises:
      CardError: There was none from the beginning. The message says why.
    """
    with _lock:
        if not _known:
            _known.extend(_checked(cards.visible(cards.bindings())))
        left = [card for card in _known if not card.lost]
    for reason in lost() if left else ():
        warn_once(f"{reason}. The other cards play its games")
    return left


def lost() -> list[str]:
    """Returns the failures of the cards that played at first and failed later in this process."""
    return [card.lost for card in _known if card.lost]


def named(found: Sequence[cards.Card], capability: bool = False) -> str:
    """Returns the numbers and names of cards, such as "2 x NVIDIA A100", with their compute capabilities if wanted."""
    about = " (compute capability {}.{})" if capability else ""
    names = collections.Counter(card.name + about.format(*card.capability) for card in found)
    return ", ".join(f"{count} x {name}" for name, count in names.items())


def forget() -> None:
    """Forgets the cards, so that the next call looks for them again."""
    with _lock:
        _known.clear()
    errors.forget()


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


def _checked(found: list[cards.Card]) -> list[cards.Card]:
    """Returns the cards that reproduce the recorded digests; warns of the others, or raises if there is none."""
    reasons: dict[int, str] = {}
    remedies: dict[str, None] = {}
    for card in found:
        try:
            if wrong := differing(card):
                reasons[card.number] = (
                    f"{card.name} (card {card.number}) does not reproduce the recorded digests in {', '.join(wrong)}, "
                    "so that its results would not be those of a CPU"
                )
                remedies["Please report the line that `jaxbandit bench` prints"] = None
            elif card.lost:  # it failed when its memory was freed
                raise CardLostError(card.lost)
        except NoMemoryError as error:
            reasons[card.number] = error.problem
            remedies["End other programs that use the card"] = None
        except CardError as error:
            reasons[card.number] = error.problem
            remedies["`nvidia-smi` shows the state of the cards"] = None
    if len(reasons) == len(found):
        raise CardError(f"no card can play: {'; '.join(reasons.values())}", ". ".join([*remedies, ON_CPUS]))
    for reason in reasons.values():
        warnings.warn(f"{reason}. The other cards play", stacklevel=4)
    return [card for card in found if card.number not in reasons]

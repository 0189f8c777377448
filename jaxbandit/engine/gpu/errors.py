"""The errors of GPUs, whose messages name the remedy, and warnings of cards that are not used any more."""

import warnings


class CardError(RuntimeError):
    """A card that cannot be used; the message has the problem and the remedy.

    Args:
      problem: A sentence without its full stop.
      remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str = ""):
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.problem = problem


class NoMemoryError(CardError):
    """A card without enough free memory."""


class CardLostError(CardError):
    """A card that failed while it played."""


def warn_once(sentence: str, occasion: str = "") -> None:
    """Warns, unless this process warned on the same occasion before; by default the sentence is its own occasion."""
    if (occasion or sentence) not in _said:
        _said.add(occasion or sentence)
        warnings.warn(sentence, stacklevel=4)


def forget() -> None:
    """Forgets all warnings, so that they are given again."""
    _said.clear()


_said: set[str] = set()
NO_CARD_LEFT = "no card is left"  # the occasion of one warning: from then on the CPUs play
MAKE_ROOM = (
    "Run fewer seeds at a time (--num-seeds, or Engine(block=...) in Python), or end other programs that use the card"
)
ON_CPUS = "To play on the CPUs, leave out --device gpu and Engine(devices='gpu')"

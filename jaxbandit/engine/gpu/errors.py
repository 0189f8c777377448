"""The errors of GPUs; each message names the remedy."""


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


ON_CPUS = "To play on the CPUs, leave out --device gpu and Engine(devices='gpu')"

"""The form of a guarantee: orders of regret, the parameters that a policy must be given, and its assumptions."""

import dataclasses
import re
from collections.abc import Callable

Exponent = Callable[[float, int], float]  # of T, given alpha and K

# The assumptions of theorems, in words. ``assumptions`` checks them.
ASSUMPTIONS = {
    "unit interval": "losses lie in [0, 1]",
    "unit range": "losses lie in an interval of length 1",
    "range": "losses are bounded, the bounds unknown",
    "moment": "a moment of order α > 1 is finite",
    "given moment": "E|loss|^α <= σ^α for the given α and σ",
    "given order": "the moment of the given order α is finite",
    "truncated non-negative": "the best arm's losses are truncated non-negative",
    "symmetric": "the noise is symmetric around means of at most R",
    "unique best arm": "one arm is better than all others (for the bound of one instance only)",
    "stochastic": "every arm always draws from the same law",
    "oblivious": "the environment does not react to play",
}


@dataclasses.dataclass(frozen=True)
class Order:
    """An upper bound on regret, up to constants.

    Attributes:
      text: The order in plain characters.
      latex: The order in LaTeX's mathematics.
      exponent: The exponent of T as a function of alpha and K; 0 for a logarithm.
      optimal: Whether it meets the lower bound, up to logarithms (of one instance: up to constants and logarithms of
        sigma and the gaps).
      tilde: Whether logarithms of T are hidden: the order is O~ and not O.
      note: A footnote of the paper, or a slip in it.
    """

    text: str
    latex: str
    exponent: Exponent
    optimal: bool = True
    tilde: bool = False
    note: str = ""

    @property
    def bound(self) -> str:
        """The order in plain characters, in O or O~."""
        return f"{'Õ' if self.tilde else 'O'}({self.text})"

    @property
    def math(self) -> str:
        r"""The order in LaTeX's mathematics, in O or \tilde O."""
        symbol = r"\tilde O" if self.tilde else "O"
        return rf"{symbol}\bigl({self.latex}\bigr)"

    @property
    def flat(self) -> str:
        """The order in LaTeX's mathematics with fractions on one line, as exponents are then read more easily."""
        return flat(self.math)


def flat(formula: str) -> str:
    r"""Returns a formula of LaTeX whose fractions are on one line.

    Example:
      >>> flat(r"x^{\frac{1}{\alpha-1}}")
      'x^{1/(\\alpha-1)}'
    """

    def over(found: re.Match[str]) -> str:
        return "/".join(f"({part})" if re.search(r"\S[+-]", part) else part for part in found.groups())

    return re.sub(r"\\t?frac\{([^{}]+)\}\{([^{}]+)\}", over, formula)


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """The proved bounds of a policy.

    Attributes:
      stochastic: Order in one stochastic instance.
      worst: Order in the worst stochastic instance, if the paper states it.
      adversarial: Order against an oblivious adversary.
      given: What the policy must be given, among T, α, σ, R (a bound on the means) and the *unit* of the losses.
      assumes: Keys of ``ASSUMPTIONS``.
      note: A remark on the whole row.
    """

    stochastic: Order | None = None
    worst: Order | None = None
    adversarial: Order | None = None
    given: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    note: str = ""

    @property
    def worst_case(self) -> Order | None:
        """The order in the worst stochastic instance: an adversarial bound is also a stochastic one."""
        return self.worst or self.adversarial

    @property
    def binding_class(self) -> str | None:
        """The class of environments whose asymptotic lower bound binds the policy; None if neither does.

        The rule: a policy is bound if its proved order for one instance has no power of T, only logarithms, and holds
        for all laws with the moment. Its regret then grows more slowly than every power of T in every environment of
        the class, as the bound needs. For a policy that also needs truncated non-negativity, the class is that of the
        non-negative laws with the moment.
        """
        logarithmic = self.stochastic is not None and self.stochastic.exponent(1.5, 10) == 0
        if not logarithmic or not {"moment", "given moment", "given order"} & set(self.assumes):
            return None
        return "nonnegative" if "truncated non-negative" in self.assumes else "moment"

    @property
    def promises(self) -> dict[str, Order]:
        """The proved orders by the words for where they hold; an adversarial bound is also a stochastic one."""
        worst = {} if self.worst else {"against an adversary and in the worst stochastic instance": self.adversarial}
        stated = {"in the worst stochastic instance": self.worst, "against an adversary": self.adversarial}
        found = {"in one stochastic instance": self.stochastic} | (worst or stated)
        return {where: order for where, order in found.items() if order}

    @property
    def proved(self) -> bool:
        """Whether anything is proved."""
        return any((self.stochastic, self.worst, self.adversarial))

r"""Guarantees proved for the policies of the paper's Table 1: orders of regret, and the exponents of T in them.

An order has no constants, so a measured regret is compared with it by growth alone.

References:
  Table 1 of Chen, Huang, Dai, Huang. "uniINF: Best-of-Both-Worlds Algorithm for Parameter-Free Heavy-Tailed MABs".
  ICLR 2025. https://arxiv.org/abs/2410.03284
"""

import dataclasses
import math
from collections.abc import Callable

Exponent = Callable[[float, int], float]  # of T, given alpha and K


@dataclasses.dataclass(frozen=True)
class Order:
    """An upper bound on regret, up to constants.

    Attributes:
      text: The order in plain characters.
      latex: The order in LaTeX's mathematics.
      exponent: The exponent of T as a function of alpha and K; 0 for a logarithm.
      optimal: Whether it meets the lower bound (of one instance up to constants, of the worst up to logarithms).
    """

    text: str
    latex: str
    exponent: Exponent
    optimal: bool = True


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """The proved orders of a policy: in one stochastic instance, in the worst one, and against an adversary."""

    stochastic: Order | None = None
    worst: Order | None = None
    adversarial: Order | None = None


def _log(alpha: float, num_arms: int) -> float:
    del alpha, num_arms
    return 0.0


def _minimax(alpha: float, num_arms: int) -> float:
    del num_arms
    return 1 / alpha


INSTANCE = Order(
    "Σ (σ^α/Δ)^(1/(α−1)) log T", r"\sum_i (\sigma^\alpha/\Delta_i)^{\frac{1}{\alpha-1}} \log T", exponent=_log
)
MINIMAX = Order("σ K^(1−1/α) T^(1/α)", r"\sigma K^{1-1/\alpha} T^{1/\alpha}", exponent=_minimax)
GUARANTEES: dict[str, Guarantee] = {
    "robust_ucb": Guarantee(stochastic=INSTANCE, worst=MINIMAX),
    "robust_moss": Guarantee(
        stochastic=Order(
            "Σ (σ^α/Δ)^(1/(α−1)) log(T/K (σ/Δ)^(α/(α−1)))",
            r"\sum_i (\sigma^\alpha/\Delta_i)^{\frac{1}{\alpha-1}}"
            r" \log\bigl(\tfrac{T}{K} (\sigma/\Delta_i)^{\frac{\alpha}{\alpha-1}}\bigr)",
            exponent=_log,
        ),
        worst=MINIMAX,
    ),
    "ape2": Guarantee(
        stochastic=Order(
            "e^σ + Σ Δ^(−1/(α−1)) (T Δ^(α/(α−1)) log K)^(α/((α−1) log K))",
            r"e^\sigma + \sum_i \Delta_i^{-\frac{1}{\alpha-1}}"
            r" (T \Delta_i^{\frac{\alpha}{\alpha-1}} \log K)^{\frac{\alpha}{(\alpha-1)\log K}}",
            exponent=lambda alpha, num_arms: alpha / ((alpha - 1) * math.log(num_arms)),
            optimal=False,
        ),
        worst=Order(
            "e^(σ^(1/α)) K^(1−1/α) T^(1/α)",
            r"e^{\sigma^{1/\alpha}} K^{1-1/\alpha} T^{1/\alpha}",
            exponent=_minimax,
            optimal=False,
        ),
    ),
    "htinf": Guarantee(stochastic=INSTANCE, adversarial=MINIMAX),
    "opt_htinf": Guarantee(
        stochastic=Order(
            "Σ (σ^(2α)/Δ^(3−α))^(1/(α−1)) log T",
            r"\sum_i (\sigma^{2\alpha}/\Delta_i^{3-\alpha})^{\frac{1}{\alpha-1}} \log T",
            exponent=_log,
            optimal=False,
        ),
        adversarial=Order(
            "σ^α K^((α−1)/2) T^((3−α)/2)",
            r"\sigma^\alpha K^{\frac{\alpha-1}{2}} T^{\frac{3-\alpha}{2}}",
            exponent=lambda alpha, num_arms: (3 - alpha) / 2,
            optimal=False,
        ),
    ),
    "ada_tinf": Guarantee(adversarial=MINIMAX),
    "adar_ucb": Guarantee(stochastic=INSTANCE, worst=MINIMAX),
    "uniinf": Guarantee(
        stochastic=Order(
            "K (σ^α/Δ)^(1/(α−1)) log T log(σ^α/Δ)",
            r"K (\sigma^\alpha/\Delta_{\min})^{\frac{1}{\alpha-1}} \log T \cdot \log(\sigma^\alpha/\Delta_{\min})",
            exponent=_log,
        ),
        adversarial=MINIMAX,
    ),
}

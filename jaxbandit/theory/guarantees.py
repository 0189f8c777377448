r"""Guarantees proved for the shipped policies: orders of regret, what a policy must be given, and what is assumed.

An order has no constants, so a measured regret is compared with it by growth alone. ``GUARANTEES`` has a row for every
registry name. The rows of the paper's Table 1 follow that table; the others follow the papers that their classes name.

References:
  Table 1 of Chen, Huang, Dai, Huang. "uniINF: Best-of-Both-Worlds Algorithm for Parameter-Free Heavy-Tailed MABs".
  ICLR 2025. https://arxiv.org/abs/2410.03284
"""

import dataclasses
import math
import re

from jaxbandit.theory.orders import ASSUMPTIONS as ASSUMPTIONS
from jaxbandit.theory.orders import Exponent as Exponent
from jaxbandit.theory.orders import Guarantee as Guarantee
from jaxbandit.theory.orders import Order as Order


def _log(alpha: float, num_arms: int) -> float:
    del alpha, num_arms
    return 0.0


def _minimax(alpha: float, num_arms: int) -> float:
    del num_arms
    return 1 / alpha


def _root(alpha: float, num_arms: int) -> float:
    del alpha, num_arms
    return 0.5


INSTANCE = Order(
    "Σ (σ^α/Δ)^(1/(α−1)) log T", r"\sum_i (\sigma^\alpha/\Delta_i)^{\frac{1}{\alpha-1}} \log T", exponent=_log
)
MINIMAX = Order("σ K^(1−1/α) T^(1/α)", r"\sigma K^{1-1/\alpha} T^{1/\alpha}", exponent=_minimax)
HIDDEN_MINIMAX = dataclasses.replace(MINIMAX, tilde=True)
# For losses in [0, 1].
LOGARITHM = Order("Σ log T/Δ", r"\sum_i \log T / \Delta_i", exponent=_log)
ROOT = Order("√(K T)", r"\sqrt{K T}", exponent=_root)
ROOT_LOG_K = Order("√(K T log K)", r"\sqrt{K T \log K}", exponent=_root)
ROOT_LOG_T = Order("√(K T log T)", r"\sqrt{K T \log T}", exponent=_root)

_HEAVY = ("moment", "truncated non-negative", "oblivious")
_UNIT = ("unit interval", "oblivious")
_SIMILAR = "optimal up to log σ^α and log 1/Δ_min, and only when all gaps are similar"
_APE2_WORST = Order(
    "e^(σ^(1/α)) K^(1−1/α) T^(1/α) log K",
    r"e^{\sigma^{1/\alpha}} K^{1-1/\alpha} T^{1/\alpha} \log K",
    exponent=_minimax,
    optimal=False,
)


def _pareto_exponent(alpha: float, num_arms: int) -> float:
    """Returns the exponent of T in the bound; the index of the perturbation is log K, but at least α²/(α−1)."""
    index = max(math.log(num_arms), alpha**2 / (alpha - 1))
    return alpha / ((alpha - 1) * index)


APE2_EXPONENTIAL = Guarantee(
    stochastic=Order(
        "e^σ + Σ Δ^(−1/(α−1)) log(T Δ^(α/(α−1)))^(α/(α−1))",
        r"e^\sigma + \sum_i \Delta_i^{-\frac{1}{\alpha-1}}"
        r" \bigl(\log (T \Delta_i^{\frac{\alpha}{\alpha-1}})\bigr)^{\frac{\alpha}{\alpha-1}}",
        exponent=_log,
        optimal=False,
    ),
    worst=_APE2_WORST,
    given=("α", "unit"),
    assumes=("given order", "stochastic"),
    note="for Weibull (the default), gamma and Gumbel perturbations, unless another one is named",
)
APE2_HEAVY = dataclasses.replace(
    APE2_EXPONENTIAL,
    stochastic=Order(
        "e^σ + Σ Δ^(−1/(α−1)) (T Δ^(α/(α−1)) log K)^(α/((α−1) a))",
        r"e^\sigma + \sum_i \Delta_i^{-\frac{1}{\alpha-1}} (T \Delta_i^{\frac{\alpha}{\alpha-1}} \log K)"
        r"^{\frac{\alpha}{(\alpha-1) a}}",
        exponent=_pareto_exponent,
        optimal=False,
        note="a = max(log K, α²/(α−1)); the paper has a = log K, which needs log K ≥ α²/(α−1) and thus K ≥ 55",
    ),
    note="for Pareto and Fréchet perturbations",
)

GUARANTEES: dict[str, Guarantee] = {
    "ada_hedge": Guarantee(
        adversarial=Order("(M−m) √(K T log K)", r"(M - m) \sqrt{K T \log K}", exponent=_root),
        assumes=("range", "oblivious"),
        note="m and M bound the losses, and the policy is given neither",
    ),
    "ada_tinf": Guarantee(
        adversarial=dataclasses.replace(
            MINIMAX, text="σ K^(1−1/α) T^(1/α) + √(K T)", latex=r"\sigma K^{1-1/\alpha} T^{1/\alpha} + \sqrt{K T}"
        ),
        given=("T", "unit"),
        assumes=_HEAVY,
    ),
    "adar_ucb": Guarantee(
        stochastic=INSTANCE,
        worst=HIDDEN_MINIMAX,
        given=("T",),
        assumes=("moment", "truncated non-negative", "stochastic"),
    ),
    "ape2": APE2_EXPONENTIAL,
    "clipped_sgd_ucb": Guarantee(
        worst=Order("log T √(K T log T)", r"\log T \sqrt{K T \log T}", exponent=_root, optimal=True),
        given=("T", "R"),
        assumes=("symmetric", "stochastic"),
        note="the noise needs no moment",
    ),
    "delayed": Guarantee(note="the bounds of the policy that is delayed do not cover delays"),
    "doubling": Guarantee(note="a bound of order T^p keeps its order, and log T becomes log² T"),
    "exp3": Guarantee(adversarial=ROOT_LOG_K, given=("unit",), assumes=_UNIT),
    "exp3_plus_plus": Guarantee(
        stochastic=Order("Σ log² T/Δ", r"\sum_i \log^2 T / \Delta_i", exponent=_log, optimal=False),
        adversarial=ROOT_LOG_K,
        given=("unit",),
        assumes=_UNIT,
    ),
    "ftpl": Guarantee(
        stochastic=LOGARITHM,
        adversarial=ROOT,
        given=("unit",),
        assumes=(*_UNIT, "unique best arm"),
        note="proved for the estimate by geometric resampling; the policy here has exact weights",
    ),
    "htinf": Guarantee(
        stochastic=INSTANCE,
        adversarial=MINIMAX,
        given=("α", "σ"),
        assumes=("given moment", "truncated non-negative", "oblivious", "unique best arm"),
    ),
    "lb_inf_v": Guarantee(
        stochastic=Order("Σ (Var/Δ + 1) log T", r"\sum_i (\mathrm{Var}_i/\Delta_i + 1) \log T", exponent=_log),
        adversarial=ROOT_LOG_T,
        given=("T", "unit"),
        assumes=(*_UNIT, "unique best arm"),
    ),
    "moss": Guarantee(
        stochastic=Order(
            "K log(T Δ²/K)/Δ", r"K \log(T \Delta_{\min}^2 / K) / \Delta_{\min}", exponent=_log, optimal=False
        ),
        worst=ROOT,
        given=("T", "unit"),
        assumes=("unit range", "stochastic"),
    ),
    "mr_ape": Guarantee(worst=MINIMAX, given=("T", "α", "unit"), assumes=("given order", "stochastic")),
    "mr_ucb": Guarantee(worst=MINIMAX, given=("T", "α", "unit"), assumes=("given order", "stochastic")),
    "omd_lb_ht": Guarantee(adversarial=HIDDEN_MINIMAX, given=("T", "α", "σ"), assumes=("given moment", "oblivious")),
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
        given=("unit",),
        assumes=(*_HEAVY, "unique best arm"),
    ),
    "robust_moss": Guarantee(
        stochastic=Order(
            "Σ (σ^α/Δ)^(1/(α−1)) log(T/K (Δ/σ)^(α/(α−1)))",
            r"\sum_i (\sigma^\alpha/\Delta_i)^{\frac{1}{\alpha-1}}"
            r" \log\bigl(\tfrac{T}{K} (\Delta_i/\sigma)^{\frac{\alpha}{\alpha-1}}\bigr)",
            exponent=_log,
            note="optimal up to log σ^α and log 1/Δ^α; Table 1 of the uniINF paper prints σ/Δ within the logarithm, "
            "where a MOSS bound has Δ/σ",
        ),
        worst=MINIMAX,
        given=("T", "α", "σ"),
        assumes=("given moment", "stochastic"),
    ),
    "robust_ucb": Guarantee(
        stochastic=INSTANCE, worst=HIDDEN_MINIMAX, given=("α", "σ"), assumes=("given moment", "stochastic")
    ),
    "sao_ht": Guarantee(
        stochastic=Order(
            "K (σ^α/Δ)^(1/(α−1))", r"K (\sigma^\alpha/\Delta_{\min})^{\frac{1}{\alpha-1}}", exponent=_log, tilde=True
        ),
        adversarial=HIDDEN_MINIMAX,
        given=("T", "α", "σ"),
        assumes=("given moment", "oblivious"),
    ),
    "thompson": Guarantee(
        stochastic=Order("Σ log(T Δ²)/Δ", r"\sum_i \log(T \Delta_i^2) / \Delta_i", exponent=_log),
        worst=ROOT_LOG_K,
        given=("unit",),
        assumes=("unit interval", "stochastic"),
    ),
    "tsallis_inf": Guarantee(
        stochastic=LOGARITHM, adversarial=ROOT, given=("unit",), assumes=(*_UNIT, "unique best arm")
    ),
    "ucb1": Guarantee(stochastic=LOGARITHM, worst=ROOT_LOG_T, given=("unit",), assumes=("unit range", "stochastic")),
    "uniform": Guarantee(note="it learns nothing, so its regret grows like T"),
    "uniinf": Guarantee(
        stochastic=Order(
            "K (σ^α/Δ)^(1/(α−1)) log T log(σ^α/Δ)",
            r"K (\sigma^\alpha/\Delta_{\min})^{\frac{1}{\alpha-1}} \log T \cdot \log(\sigma^\alpha/\Delta_{\min})",
            exponent=_log,
            note=_SIMILAR,
        ),
        adversarial=HIDDEN_MINIMAX,
        given=("T", "unit"),
        assumes=(*_HEAVY, "unique best arm"),
    ),
    "uniinf_first_losses": Guarantee(given=("T",), note="not the paper's, no proof"),
    "uniinf_variant": Guarantee(given=("T", "unit"), note="not the paper's, no proof unless all its fields are"),
}


# Registry names by the names of the classes, in small letters.
_KEYS = {key.replace("_", ""): key for key in GUARANTEES} | {"gaussianthompson": "thompson"}

# Policies around another one, with the parameters that only the policy inside would have to be given.
_WRAPPERS: dict[str, tuple[str, ...]] = {"delayed": (), "doubling": ("T",)}

# Rows of policies with other parameters than the default ones: the parameters in words, and the row.
OTHERWISE = {"ape2": ("with a Pareto or Fréchet perturbation", APE2_HEAVY)}


def of(label: str) -> Guarantee | None:
    """Returns the row of a policy, given by its label such as ``ape2[perturbation=pareto]``; None if unknown."""
    name = label.split("[")[0].split("#")[0]
    if name == "ape2" and any(f"perturbation={law}" in label for law in ("pareto", "frechet")):
        return APE2_HEAVY
    return GUARANTEES.get(name)


def given(label: str) -> tuple[str, ...] | None:
    """Returns what a policy must be given, by its label; None if that is unknown.

    A delayed policy must be given what the policy inside must be given. The doubling trick needs no T. The label names
    the policy inside by its registry name or by its class.

    Example:
      >>> given("uniinf[initial_scale=4]"), given("doubling[policy=uniinf]")
      (('T', 'unit'), ('unit',))
      >>> given("delayed[policy=HTINF(moment_order=1.5, moment_bound=1),delay=5]")
      ('α', 'σ')
    """
    head = re.match(r"\w*", label)
    return _given(head[0], label[head.end() :]) if head else None


def _given(name: str, rest: str) -> tuple[str, ...] | None:
    """Returns what a policy must be given, by its name or class and by the text behind that, which has its fields."""
    key = name if name in GUARANTEES else _KEYS.get(name.lower(), name)
    if key not in _WRAPPERS:
        return GUARANTEES[key].given if key in GUARANTEES else None
    inside = re.match(r"[\[(](?:[^(]*[,\s])?policy=(\w+)", rest)
    needed = _given(inside[1], rest[inside.end() :]) if inside else None
    return None if needed is None else tuple(letter for letter in needed if letter not in _WRAPPERS[key])

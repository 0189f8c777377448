"""The facts that the analysis of uniINF proves about every trajectory, as they are printed, and the sums they need."""

from typing import NamedTuple

ORDERS = (1.0, 1.25, 1.5, 1.75, 2.0)  # the a at which S is compared with sum |l|^a
SIZES = (0.5, 2.0, 8.0, 32.0, 128.0)  # the M, in units of S_1, at which skipped losses below M are counted


class Fact(NamedTuple):
    """An inequality or an equality that holds in every round of every game."""

    statement: str
    equal: bool = False  # an equality is reported by its relative error, an inequality by its ratio
    printed: bool = False  # has the paper's constant, although the sharp one is smaller


FACTS: dict[str, Fact] = {
    "simplex": Fact("sum_i x_i = 1", equal=True),
    "kkt": Fact("x_i = S / (L_i - Z), one Z", equal=True),
    "cumulative_loss": Fact("L = sum of estimates - min", equal=True),
    "scale_sum": Fact("S_(n+1) = S_1 + sum of growths", equal=True),
    "estimate": Fact("estimate = l 1[|l| < S/(4(1-x))] / x", equal=True),
    "growth": Fact("S_(t+1)^2 = S_t^2 + clip^2 (1-x)^2 / (K log T)", equal=True),
    "stability_above": Fact("z/x <= 1.3986"),
    "stability_below": Fact("z/x >= 0.7556"),
    "stability_above_printed": Fact("z/x <= 2", printed=True),
    "stability_below_printed": Fact("z/x >= 1/2", printed=True),
    "div": Fact("Div_t <= 1.033 skip^2 (1-x)^2 / S_t"),
    "div_printed": Fact("Div_t <= 2048 skip^2 (1-x)^2 / S_t", printed=True),
    "div_sum": Fact("sum Div <= 2.11 (S_(n+1) - S_1) K log T"),
    "div_sum_printed": Fact("sum Div <= 4096 S_(n+1) K log T", printed=True),
    "shift": Fact("(S_(t+1) - S_t) sum_i -log y_i <= clip^2 (1-x)^2 / (2 S_t)"),
    "shift_sum": Fact("sum_(t=0..n) Shift <= S_(n+1) K log T"),
    "ftrl": Fact("sum <x - y, estimate> <= sum Div + sum Shift, every y"),
    "growth_at_most": Fact("S_(t+1)^2 / S_t^2 - 1 <= 1/(16 K log T)"),
    "growth_if_skipped": Fact("... with equality if skipped", equal=True),
    "scale_never_falls": Fact("S_t <= S_(t+1)"),
    "skipped_rounds": Fact("skips with S <= M: <= 1 + log(M/S_1) / log sqrt(1 + 1/(16 K log T))"),
    "small_skips": Fact("skips with |l| < M: <= 1 + log(4M/S_1) / log sqrt(1 + 1/(16 K log T)), five M"),
    "scale_bound": Fact("S_(n+1) <= max(sqrt(2) S_1, (2 4^(a-2) sum |l|^a / (K log T))^(1/a))"),
}

# Sums over rounds; a ``_size`` is the sum of absolute values, which the rounding of the other is relative to.
SUMS = (
    "suffered",
    "suffered_size",
    "estimate_size",
    "div",
    "log_barrier",
    "log_barrier_size",
    "growth",
    "skipped",
    "skip_error",
    *(f"small_skips_{m:g}" for m in SIZES),
    *(f"moment_{a:g}" for a in ORDERS),
)

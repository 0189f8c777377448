r"""Lower bounds of one stochastic environment with their constants: the slope of regret over log T as T grows.

A policy is *uniformly good* on a class of laws if its regret grows more slowly than every power of T in every
environment of the class. Its regret R then has

.. math:: \liminf_T \frac{R_T}{\log T} \ge \sum_i \frac{\Delta_i}{KL_{inf}(\text{law}_i, \text{best mean})},

where KLinf is the divergence of an arm's law from the laws of the class with a mean of at most the best mean. The bound
is asymptotic: it holds for the slope as T grows without limit, and it is no bound at a finite T.

The class decides whom the bound binds. The alternatives in the class of all laws with :math:`E|\ell|^\alpha \le
\sigma^\alpha` put some probability on large gains. Truncated non-negativity rules such laws out, so policies that
assume it are not uniformly good on that class. The second class has non-negative losses only and binds them too.

References:
  Agrawal, Juneja, Koolen. "Regret Minimization in Heavy-Tailed Bandits". COLT 2021. https://arxiv.org/abs/2102.03734
  Lai, Robbins. "Asymptotically efficient adaptive allocation rules". Advances in Applied Mathematics 6, 1985.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from jaxbandit.theory import guarantees
from jaxbandit.theory.divergence import klinf

LABEL = "asymptotic lower bound (slope of log T, no bound at finite T)"
SLACK = 1e-6  # relative; a sigma copied from environment.moment() is not refused for its last digit


@dataclasses.dataclass(frozen=True)
class InstanceBound:
    """Asymptotic lower bounds of an environment: regret over log T, as T grows.

    Attributes:
      alpha: The order of the moment that defines both classes.
      sigma: The bound on that moment.
      moment: The bound over all laws of the moment class.
      nonnegative: The bound over those of non-negative losses; None if the environment has negative losses.
    """

    alpha: float
    sigma: float
    moment: float
    nonnegative: float | None

    def binding(self, policy: str) -> float | None:
        """Returns the bound that binds a policy, given by its registry name or label; None if neither does."""
        row = guarantees.of(policy)
        kind = None if row is None else row.binding_class
        return None if kind is None else getattr(self, kind)

    def multiple(self, policy: str, regret: float, horizon: float) -> float | None:
        """Returns regret as a multiple of the binding slope times log T; None if no bound above 0 binds the policy."""
        slope = self.binding(policy)
        return regret / (slope * math.log(horizon)) if slope and horizon > 1 else None


def instance_bound(environment: Any, alpha: float | None = None, sigma: float | None = None) -> InstanceBound:
    """Computes the asymptotic lower bounds of a stochastic environment, constants included.

    Args:
      environment: A stationary environment whose laws are known: ``points(arm)`` returns losses and probabilities.
      alpha: The order of the moment, above 1; default the environment's declared order.
      sigma: The bound on the moment; default the environment's own.

    Example:
      >>> import jaxbandit as jb
      >>> bound = instance_bound(jb.Pareto(means=[0.5] + [1.0] * 9, tail_index=1.5556), alpha=1.5)
      >>> round(bound.nonnegative * np.log(1e6)), round(bound.moment * np.log(1e6))
      (203, 16503)
      >>> bound.binding("robust_ucb") == bound.moment, bound.binding("ucb1")
      (True, None)
    """
    alpha, sigma = _checked(environment, alpha, sigma)
    means = np.asarray(environment.means(1), np.float64)
    best = float(means.min())
    laws = [environment.points(arm) for arm in range(environment.num_arms)]
    positive = all(values[weights > 0].min() >= 0 for values, weights in laws)
    sums = {"moment": 0.0, "nonnegative": 0.0}
    known: dict[tuple[bytes, bytes], dict[str, float]] = {}  # arms of one law are computed once
    for mean, (values, weights) in zip(means.tolist(), laws, strict=True):
        if mean <= best:
            continue
        key = values.tobytes(), weights.tobytes()
        if key not in known:
            kinds = ("moment", "nonnegative") if positive else ("moment",)
            known[key] = {
                kind: klinf(values, weights, best, alpha, sigma**alpha, nonnegative=kind == "nonnegative")
                for kind in kinds
            }
        for kind, divergence in known[key].items():
            sums[kind] += (mean - best) / divergence if divergence > 0 else math.inf
    return InstanceBound(alpha, sigma, sums["moment"], sums["nonnegative"] if positive else None)


def _checked(environment: Any, alpha: float | None, sigma: float | None) -> tuple[float, float]:
    """Returns alpha and sigma; raises if the environment has no known laws or lies outside the class."""
    kind = type(environment).__name__
    if not hasattr(environment, "points"):
        raise ValueError(
            f"instance_bound needs a stationary environment with known laws, and {kind} has no points(arm); "
            "pass a law such as jb.Pareto(means=..., ...), or the law inside a schedule"
        )
    if environment.num_arms < 2:
        raise ValueError(f"a lower bound needs at least 2 arms, and {kind} has {environment.num_arms}")
    alpha = float(environment.moment_order if alpha is None else alpha)
    if not 1 < alpha < math.inf:
        raise ValueError(f"alpha must be finite and above 1, got {alpha:g}; {kind}.moment_order is a valid choice")
    own = environment.moment(alpha)
    sigma = float(own if sigma is None else sigma)
    if not own <= sigma * (1 + SLACK):
        raise ValueError(
            f"{kind} is outside the class: its moment of order {alpha:g} needs sigma {own:.6g}, got {sigma:g}; "
            f"pass sigma >= {own:.6g}"
        )
    return alpha, sigma

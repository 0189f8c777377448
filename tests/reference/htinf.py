"""HTINF, OptHTINF and AdaTINF (Huang, Dai, Huang, ICML 2022): literal, in float64, one round at a time."""

import math

import numpy as np
from scipy.optimize import brentq


def tsallis(cumulative_loss: np.ndarray, rate: float, order: float) -> np.ndarray:
    """Solves argmin eta <L, x> - alpha sum_i x_i^(1/alpha) over the simplex through its KKT multiplier.

    Stationarity gives x_i = (eta (L_i - min L) + mu)^-q with q = alpha / (alpha - 1), and mu lies in [1, K^(1/q)].

    Args:
        cumulative_loss: [K] L.
        rate: eta.
        order: alpha.

    Returns:
        [K] probabilities of the arms.
    """
    q = order / (order - 1.0)
    gaps = rate * (cumulative_loss - np.min(cumulative_loss))

    def excess(mu: float) -> float:
        return math.fsum([*np.exp(-q * np.log(gaps + mu)), -1.0])

    upper = gaps.size ** (1.0 / q) + 1.0  # rounding can leave excess(K^(1/q)) > 0
    mu = brentq(excess, 1.0, upper, xtol=1e-300, rtol=1e-15, maxiter=1000)
    for _ in range(2):  # Newton; mu < 1 is rounding only
        mu = max(mu + excess(mu) / (q * math.fsum(np.exp(-(q + 1.0) * np.log(gaps + mu)))), 1.0)
    return np.exp(-q * np.log(gaps + mu))  # kernel K1


def skipping_constant(order: float) -> float:
    """Returns Theta_alpha, the constant of the skipping threshold."""
    first = 1.0 - 2.0 ** (-(order - 1.0) / (2.0 * order - 1.0))
    second = math.exp(-0.5) if order == 2.0 else (2.0 - 2.0 / order) ** (1.0 / (2.0 - order))  # limit at alpha = 2
    return min(first, second)


class HTINF:
    """Tsallis FTRL of order 1/alpha that skips large losses; knows the moment.

    Attributes:
        cumulative_loss: [K] sum of the estimates so far, not shifted.
    """

    def __init__(self, num_arms: int, moment_order: float, moment_bound: float):
        self.num_arms = num_arms
        self.moment_order = float(moment_order)  # alpha
        self.moment_bound = float(moment_bound)  # sigma
        self.cumulative_loss = np.zeros(num_arms)  # Lhat = 0

    def rate(self, t: int) -> float:
        """Returns eta_t."""
        return 1.0 / (self.moment_bound * t ** (1.0 / self.moment_order))  # eta_t = 1/(sigma t^(1/alpha))

    def threshold(self, t: int, x: np.ndarray, arm: int) -> float:
        """Returns r_t, above which the loss is skipped."""
        theta = skipping_constant(self.moment_order)
        return theta / self.rate(t) * float(x[arm]) ** (1.0 / self.moment_order)  # r_t

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        return tsallis(self.cumulative_loss, self.rate(t), self.moment_order)

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        if abs(loss) <= self.threshold(t, x, arm):  # else skip
            self.cumulative_loss[arm] += float(loss) / float(x[arm])


class OptHTINF(HTINF):
    """HTINF with alpha = 2 and sigma = 1 hard-wired."""

    def __init__(self, num_arms: int):
        super().__init__(num_arms, moment_order=2.0, moment_bound=1.0)


class AdaTINF:
    """OptHTINF with a rate that is lowered by doubling whenever the cost of stability exceeds its budget.

    Attributes:
        cumulative_loss: [K] sum of the estimates so far, not shifted.
        exponent: J.
        cost: S.
        start: Rounds played before the clock of the rate was last set to zero; 0 without restart.
    """

    def __init__(
        self,
        num_arms: int,
        horizon: int,
        skipped_cost: str = "absolute",
        after_doubling: str = "cost",
        restart: bool = False,
    ):
        self.num_arms = num_arms
        self.unit = math.sqrt(num_arms * (horizon + 1))  # sqrt(K(T+1))
        self.skipped_cost = skipped_cost
        self.after_doubling = after_doubling
        self.restart = restart
        self.cumulative_loss = np.zeros(num_arms)
        self.exponent = 0
        self.cost = 0.0
        self.start = 0

    def rate(self, t: int) -> float:
        """Returns eta_t."""
        return 1.0 / (2.0**self.exponent * math.sqrt(t - self.start))  # eta_t = 1/(2^J sqrt(t))

    def threshold(self, t: int, x: np.ndarray, arm: int) -> float:
        """Returns r_t, above which the loss is skipped."""
        return (1.0 - 2.0 ** (-1.0 / 3.0)) / self.rate(t) * math.sqrt(x[arm])  # r_t

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        return tsallis(self.cumulative_loss, self.rate(t), 2.0)

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        loss = float(loss)
        if abs(loss) <= self.threshold(t, x, arm):
            self.cumulative_loss[arm] += float(loss) / float(x[arm])
            cost = 2.0 * self.rate(t) * float(x[arm]) ** -0.5 * loss**2  # c_t, kept
        else:
            cost = {"absolute": abs(loss), "signed": loss}[self.skipped_cost]  # c_t, skipped; register 1
        self.cost += cost  # S += c_t
        if self.cost > 2.0**self.exponent * self.unit:
            self.exponent = max(self.exponent + 1, math.ceil(math.log2(cost / self.unit)) + 1)
            self.cost = {"cost": cost, "zero": 0.0}[self.after_doubling]  # register 1
            if self.restart:  # register 1
                self.cumulative_loss = np.zeros(self.num_arms)
                self.start = t

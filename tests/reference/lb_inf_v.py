"""LB-INF-V (Ito, Tsuchiya, Honda, COLT 2022): literal, in float64, with a solver by bisection."""

import math

import numpy as np
from scipy import optimize


class LBINFV:
    """Optimistic FTRL with a log-barrier of its own weight for every arm.

    Attributes:
        cumulative_loss: [K] sum of the estimates.
        losses: One list of losses per arm.
        variations: [K] sum of alpha_i.
    """

    def __init__(self, num_arms: int, horizon: float, epsilon: float = 0.5):
        self.num_arms, self.gamma, self.epsilon = num_arms, math.log(horizon), epsilon
        self.cumulative_loss = np.zeros(num_arms)
        self.losses: list[list[float]] = [[] for _ in range(num_arms)]
        self.variations = np.zeros(num_arms)
        self.level = 0.0  # the multiplier of the last round

    def predictions(self) -> np.ndarray:
        """Returns m_i."""
        return np.array([(0.5 + math.fsum(x)) / (1 + len(x)) for x in self.losses])

    def weights(self) -> np.ndarray:
        """Returns beta_i."""
        return np.sqrt((1 + self.epsilon) ** 2 + self.variations / self.gamma)

    def _odds(self, target: np.ndarray) -> np.ndarray:
        """Returns the s with phi'(p) = target at p = 1 / (1 + exp(-s)): bisection, then Newton's method."""

        def slope(s):  # phi'(p) = 1 - 1/p - gamma log(1 - p), which increases in s
            return -np.exp(-s) + self.gamma * np.logaddexp(0, s)

        low, high = np.full(self.num_arms, -40.0), np.full(self.num_arms, 40.0)
        for _ in range(10):
            s = (low + high) / 2
            below = slope(s) < target
            low, high = np.where(below, s, low), np.where(below, high, s)
        for _ in range(5):
            s = s - (slope(s) - target) / (np.exp(-s) + self.gamma / (1 + np.exp(-s)))
        return s

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        if self.num_arms == 1:
            return np.ones(1)
        L, beta = self.cumulative_loss + self.predictions(), self.weights()
        L = L - np.min(L)

        def law(mu):
            return 1 / (1 + np.exp(-self._odds((mu - L) / beta)))

        def excess(mu):
            return math.fsum(law(mu)) - 1

        step = 1.0  # around the last level
        while excess(self.level - step) > 0 or excess(self.level + step) < 0:
            step *= 2
        self.level = optimize.brentq(excess, self.level - step, self.level + step, xtol=1e-15, rtol=8.9e-16)
        x = law(self.level)
        return x / math.fsum(x)

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        m, loss = self.predictions(), float(loss)
        rest = math.fsum(x[i] for i in range(self.num_arms) if i != arm)  # 1 - p
        alpha = (loss - m[arm]) ** 2 * min(1.0, 2 * rest / (self.gamma * x[arm] ** 2))
        estimate = m.copy()
        estimate[arm] += (loss - m[arm]) / x[arm]
        self.cumulative_loss += estimate
        self.variations[arm] += alpha
        self.losses[arm].append(loss)

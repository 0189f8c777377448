"""Robust MOSS (Wei, Srivastava, 2020): literal, in float64, with full histories."""

import math

import numpy as np


class RobustMOSS:
    """Robust MOSS; the raw moment of order 1 + eps is at most u^(1 + eps).

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(
        self,
        num_arms: int,
        horizon: int,
        moment_order: float,
        moment_bound: float,
        level_ratio: float = 1.1,
        exploration: float = 2.2,
    ):
        self.num_arms = num_arms
        self.horizon = horizon
        self.eps = float(moment_order) - 1.0
        self.u = float(moment_bound)  # not sigma^alpha
        self.level_ratio = float(level_ratio)  # a
        self.exploration = float(exploration)  # eta
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def phi(self, n: float) -> float:
        """Returns ln_+(T/(K n))/n."""
        return max(math.log(self.horizon / (self.num_arms * n)), 1.0) / n  # ln_+(x) = max(ln x, 1)

    def peel(self, m: int) -> float:
        """Returns h(m) = a^(floor(log_a m) + 1)."""
        level = 0  # floor(log_a m), without a logarithm
        while self.level_ratio ** (level + 1) <= m:
            level += 1
        return self.level_ratio ** (level + 1)

    def saturation(self, m: int) -> float:
        """Returns B_m."""
        return self.u * self.phi(self.peel(m)) ** (-1.0 / (1.0 + self.eps))

    def index(self, rewards: list[float]) -> float:
        """Returns the index of an arm from its rewards."""
        m = len(rewards)
        if m == 0:
            return math.inf
        bound = self.saturation(m)
        mean = math.fsum(math.copysign(min(abs(x), bound), x) for x in rewards) / m  # all clipped at the current level
        return mean + (1.0 + self.exploration) * self.u * self.phi(m) ** (self.eps / (1.0 + self.eps))  # (1+eta) c_m

    def indices(self) -> np.ndarray:
        """Returns the [K] indices."""
        return np.array([self.index(rewards) for rewards in self.rewards])

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based)."""
        return np.eye(self.num_arms)[np.argmax(self.indices())]  # ties to the lowest index

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))

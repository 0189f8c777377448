"""AdaHedge for bandits with an unknown range of rewards (Hadiji, Stoltz, 2023): literal, in float64."""

import math

import numpy as np


class AdaHedge:
    """Exponential weights with AdaHedge's learning rate and extra exploration.

    Attributes:
        rewards: The rewards of the first K rounds.
        estimates: [K] Y, the cumulative estimates of the rewards less C.
        gap: D, the cumulative mixability gap.
    """

    def __init__(self, num_arms: int, exploration: float = 10.0):
        self.num_arms, self.exploration = num_arms, exploration
        self.rewards: list[float] = []
        self.estimates = np.zeros(num_arms)
        self.gap = 0.0

    def weights(self) -> np.ndarray:
        """Returns q, proportional to exp(eta Y); uniform while eta is infinite."""
        if self.gap == 0 or self.num_arms == 1:
            return np.full(self.num_arms, 1 / self.num_arms)
        eta = math.log(self.num_arms) / self.gap
        weights = np.exp(eta * (self.estimates - np.max(self.estimates)))
        return weights / math.fsum(weights)

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        K = self.num_arms
        if t <= K:
            return np.eye(K)[t - 1]
        gamma = min(0.5, math.sqrt(self.exploration * K * math.log(K) / (t - K)))
        return (1 - gamma) * self.weights() + gamma / K

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        if t <= self.num_arms:
            self.rewards.append(-float(loss))
            return
        C, q = max(self.rewards), self.weights()
        centred = np.zeros(self.num_arms)  # yhat - C
        centred[arm] = (-float(loss) - C) / x[arm]
        largest = np.max(centred)
        gap = largest - q @ centred
        if self.gap > 0:  # eta is finite
            eta = math.log(self.num_arms) / self.gap
            gap += math.log(math.fsum(q * np.exp(eta * (centred - largest)))) / eta
        self.estimates += centred
        self.gap += max(gap, 0.0)

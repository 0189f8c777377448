"""Exp3++ (Seldin, Slivkins, 2014; constants of Seldin, Lugosi, 2017): literal, in float64."""

import math

import numpy as np


class Exp3PlusPlus:
    """Exponential weights mixed with exploration that follows estimates of the gaps.

    Attributes:
        losses: One list of losses per arm.
        cumulative_loss: [K] sum of the importance-weighted losses.
    """

    def __init__(self, num_arms: int, alpha: float = 3.0, beta: float = 256.0):
        self.num_arms, self.alpha, self.beta = num_arms, alpha, beta
        self.losses: list[list[float]] = [[] for _ in range(num_arms)]
        self.cumulative_loss = np.zeros(num_arms)

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        K = self.num_arms
        if t <= K:
            return np.eye(K)[t - 1]
        rate = 0.5 * math.sqrt(math.log(K) / (t * K))  # eta_t
        mean = np.array([math.fsum(x) / len(x) for x in self.losses])
        count = np.array([len(x) for x in self.losses])
        radius = np.sqrt(self.alpha * math.log(t * K ** (1 / self.alpha)) / (2 * count))
        ucb, lcb = np.minimum(1, mean + radius), np.maximum(0, mean - radius)
        gap = np.maximum(0, lcb - np.min(ucb))
        with np.errstate(divide="ignore"):
            xi = self.beta * math.log(t) / (t * gap**2)
        epsilon = np.minimum(np.minimum(1 / (2 * K), rate), xi)
        rho = np.exp(-rate * (self.cumulative_loss - np.min(self.cumulative_loss)))
        rho /= math.fsum(rho)
        return (1 - math.fsum(epsilon)) * rho + epsilon

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        self.losses[arm].append(float(loss))
        self.cumulative_loss[arm] += float(loss) / float(x[arm])

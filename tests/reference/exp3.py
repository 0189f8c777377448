"""Exp3 with losses and an anytime rate (Bubeck, Cesa-Bianchi, 2012, Theorem 3.1): literal, in float64."""

import math

import numpy as np


class Exp3:
    """Exponential weights over importance-weighted losses.

    Attributes:
        cumulative_loss: [K] sum of the estimates so far, not shifted.
    """

    def __init__(self, num_arms: int):
        self.num_arms = num_arms
        self.cumulative_loss = np.zeros(num_arms)

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        rate = math.sqrt(math.log(self.num_arms) / (t * self.num_arms))  # eta_t = sqrt(ln K/(tK))
        weights = np.exp(-rate * (self.cumulative_loss - np.min(self.cumulative_loss)))
        return weights / math.fsum(weights)

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        self.cumulative_loss[arm] += float(loss) / float(x[arm])

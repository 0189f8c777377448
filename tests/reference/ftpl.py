"""FTPL with Frechet perturbations of shape 2 (Honda, Ito, Tsuchiya, 2023) and its exact weights, in float64."""

import math

import numpy as np

STEP = 0.05
LOGARITHMS = np.arange(-3, 25, STEP)  # of z; the trapezoidal rule on them is exact to 1e-13


class FTPL:
    """The law of argmin_i L_i - r_i / eta with r_i of distribution function exp(-r^-2).

    Attributes:
        cumulative_loss: [K] sum of the importance-weighted losses.
    """

    def __init__(self, num_arms: int, rate: float = 1.0):
        self.num_arms, self.rate = num_arms, rate
        self.cumulative_loss = np.zeros(num_arms)

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        scaled = self.rate / math.sqrt(t) * (self.cumulative_loss - np.min(self.cumulative_loss))
        z = np.exp(LOGARITHMS)[:, None]
        # w_i is the integral of the density 2 (z + l_i)^-3 times exp(-sum_j (z + l_j)^-2)
        density = 2 * (z + scaled) ** -3.0 * np.exp(-np.sum((z + scaled) ** -2.0, axis=1, keepdims=True))
        weights = STEP * np.sum(z * density, axis=0)
        return weights / math.fsum(weights)

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        self.cumulative_loss[arm] += float(loss) / float(x[arm])

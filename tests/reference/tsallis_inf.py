"""Tsallis-INF with alpha = 1/2 (Zimmert, Seldin, JMLR 2021): literal, in float64, one round at a time."""

import math

import numpy as np
from scipy.optimize import brentq


class TsallisINF:
    """FTRL with the 1/2-Tsallis entropy.

    Attributes:
        cumulative_loss: [K] sum of the estimates so far, not shifted.
    """

    def __init__(self, num_arms: int, estimator: str = "iw"):
        self.num_arms = num_arms
        self.estimator = estimator
        self.cumulative_loss = np.zeros(num_arms)

    def rate(self, t: int) -> float:
        """Returns eta_t."""
        return {"iw": 2.0, "rv": 4.0}[self.estimator] / math.sqrt(t)

    def estimate(self, t: int, x: np.ndarray, arm: int, loss: float) -> np.ndarray:
        """Returns the [K] estimate of the losses of round t."""
        x, loss, lhat = np.asarray(x, dtype=np.float64), float(loss), np.zeros(self.num_arms)
        for i in range(self.num_arms):
            baseline = 0.5 if self.estimator == "rv" and x[i] >= self.rate(t) ** 2 else 0.0  # B_i
            lhat[i] = (loss - baseline) / x[i] + baseline if i == arm else baseline
        return lhat

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based).

        With v = eta mu / 2 in [1, sqrt(K)] kernel K3 reads w_i = (eta (L_i - min L) / 2 + v)^-2.
        """
        gaps = 0.5 * self.rate(t) * (self.cumulative_loss - np.min(self.cumulative_loss))

        def excess(v: float) -> float:
            return math.fsum([*(gaps + v) ** -2.0, -1.0])

        v = brentq(excess, 1.0, math.sqrt(gaps.size) + 1.0, xtol=1e-300, rtol=1e-15, maxiter=1000)
        for _ in range(2):  # Newton; v < 1 is rounding only
            v = max(v + excess(v) / (2.0 * math.fsum((gaps + v) ** -3.0)), 1.0)
        return (gaps + v) ** -2.0  # kernel K3

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        self.cumulative_loss = self.cumulative_loss + self.estimate(t, x, arm, loss)

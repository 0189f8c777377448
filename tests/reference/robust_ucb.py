"""RobustUCB with three estimators (Bubeck, Cesa-Bianchi, Lugosi, 2013): literal, in float64, with full histories."""

import math

import numpy as np
from scipy.optimize import brentq


def truncated_mean(rewards: list[float], log_term: float, eps: float, u: float) -> float:
    """Returns the truncated mean, L = ln(1/delta); the raw moment of order 1 + eps is at most u."""
    kept = []
    for j, x in enumerate(rewards, start=1):  # ordinal within the arm
        if abs(x) <= (u * j / log_term) ** (1.0 / (1.0 + eps)):
            kept.append(x)  # an outlier is deleted
    return math.fsum(kept) / len(rewards)


def median_of_means(rewards: list[float], log_term: float) -> float:
    """Returns the median of the means of consecutive blocks, L = ln(1/delta)."""
    n = len(rewards)
    k = max(1, math.floor(min(8.0 * (0.125 + log_term), n / 2)))  # 8 ln(e^(1/8)/delta)
    size = n // k  # N
    means = [math.fsum(rewards[b * size : (b + 1) * size]) / size for b in range(k)]
    return float(np.median(means))  # averages the two middle ones


def psi(x: float) -> float:
    """Returns the widest influence function of Catoni."""
    return math.log1p(x + x * x / 2.0) if x >= 0.0 else -math.log1p(-x + x * x / 2.0)


def catoni(rewards: list[float], log_term: float, v: float) -> float:
    """Returns the M-estimate of Catoni, L = ln(1/delta), n > 2L; the variance is at most v."""
    n = len(rewards)
    alpha = math.sqrt(2.0 * log_term / (n * (v + 2.0 * v * log_term / (n - 2.0 * log_term))))  # alpha_delta

    def total(theta: float) -> float:
        return math.fsum(psi(alpha * (x - theta)) for x in rewards)

    return float(brentq(total, min(rewards), max(rewards), xtol=1e-300, rtol=1e-15, maxiter=1000))


class RobustUCB:
    """RobustUCB.

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(self, num_arms: int, moment_order: float, moment_bound: float, estimator: str = "truncated"):
        self.num_arms = num_arms
        self.eps = float(moment_order) - 1.0
        self.estimator = estimator
        self.u = float(moment_bound) ** moment_order  # raw
        self.v = 2.0 ** (2.0 - moment_order) * float(moment_bound) ** moment_order  # central; sigma^2 at alpha = 2
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def index(self, t: int, rewards: list[float]) -> float:
        """Returns B_i at round t from the rewards of the arm."""
        n = len(rewards)
        if n == 0:
            return math.inf
        log_term = 2.0 * math.log(t)  # L, delta = t^-2
        power = self.eps / (1.0 + self.eps)
        if self.estimator == "truncated":
            width = 4.0 * self.u ** (1.0 / (1.0 + self.eps)) * (log_term / n) ** power
            return truncated_mean(rewards, log_term, self.eps, self.u) + width
        if self.estimator == "median_of_means":
            width = (12.0 * self.v) ** (1.0 / (1.0 + self.eps)) * (16.0 * (0.125 + log_term) / n) ** power
            return median_of_means(rewards, log_term) + width
        if n < 4.0 * log_term:  # Catoni, modified policy: 8 ln t
            return math.inf
        return catoni(rewards, log_term, self.v) + 2.0 * math.sqrt(self.v * log_term / n)

    def indices(self, t: int) -> np.ndarray:
        """Returns the [K] indices of round t."""
        return np.array([self.index(t, rewards) for rewards in self.rewards])

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based)."""
        unplayed = [i for i, rewards in enumerate(self.rewards) if not rewards]  # before the +inf of Catoni's guard
        arm = unplayed[0] if unplayed else np.argmax(self.indices(t))
        return np.eye(self.num_arms)[arm]

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))

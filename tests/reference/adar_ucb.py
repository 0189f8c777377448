"""AdaR-UCB (Genalti et al., COLT 2024), with the repaired guard: literal, in float64, with full histories."""

import math
from itertools import accumulate

import numpy as np

C = (1.0 + math.sqrt(2.0)) ** 2


def threshold(samples: list[float], target: float) -> float:
    """Solves sum_j min((X'_j / M)^2, 1) = target for M; more than target of the samples must not be zero.

    Between two neighbouring squares, j of them at most M^2, the sum is S_j / M^2 + n - j with S_j their prefix sum.

    Args:
        samples: X'.
        target: c L, above zero.

    Returns:
        M.
    """
    squares = sorted(x * x for x in samples)
    n = len(squares)
    prefixes = list(accumulate(squares))
    below = 0
    for j in range(1, n + 1):
        if squares[j - 1] > 0.0 and prefixes[j - 1] / squares[j - 1] + (n - j) >= target:  # F at the j-th sample
            below = j  # M is at or above it
    return math.sqrt(prefixes[below - 1] / (target - (n - below)))  # Eq. 13


def index(first: list[float], second: list[float], log_term: float) -> float:
    """Returns B_i from the samples X (first) and X' (second) of the arm, L = ln(1/delta)."""
    n = len(first)
    nonzero = sum(x != 0.0 for x in second)  # m_i
    if n == 0 or nonzero <= C * log_term:
        return math.inf  # forced exploration
    level = threshold(second, C * log_term)
    trimmed = [x if abs(x) <= level else 0.0 for x in first]
    mean = math.fsum(trimmed) / n
    variance = math.fsum((x - mean) ** 2 for x in trimmed) / (n - 1)
    return mean + math.sqrt(2.0 * variance * log_term / n) + 10.0 * level * log_term / n


class AdaRUCB:
    """AdaR-UCB: rounds 2 tau - 1 and 2 tau pull the same arm.

    Attributes:
        first: X, one list of rewards (minus the losses) per arm.
        second: X', likewise.
        last: The arm of the latest odd round within the pairs.
    """

    def __init__(self, num_arms: int, horizon: int):
        self.num_arms = num_arms
        self.horizon = horizon
        self.first: list[list[float]] = [[] for _ in range(num_arms)]
        self.second: list[list[float]] = [[] for _ in range(num_arms)]
        self.last = 0

    def indices(self, tau: int) -> np.ndarray:
        """Returns the [K] indices of pair tau (1-based)."""
        log_term = 3.0 * math.log(tau)  # delta = tau^-3
        return np.array([index(x, y, log_term) for x, y in zip(self.first, self.second, strict=True)])

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based)."""
        if t % 2 == 0 or t > 2 * (self.horizon // 2):
            return np.eye(self.num_arms)[self.last]  # the second of a pair, or the pairs are over
        values = self.indices((t + 1) // 2)
        tied = [i for i in range(self.num_arms) if math.isinf(values[i])]
        if not tied:
            return np.eye(self.num_arms)[np.argmax(values)]
        return np.eye(self.num_arms)[min(tied, key=lambda i: (len(self.first[i]), i))]  # least pulled, then lowest

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        if t > 2 * (self.horizon // 2):
            return
        if t % 2 == 1:
            self.first[arm].append(-float(loss))
            self.last = int(arm)
        else:
            self.second[arm].append(-float(loss))

"""UCB1, MOSS and Gaussian Thompson sampling: literal, in float64, with full histories."""

import math

import numpy as np


class UCB1:
    """UCB1 (Auer, Cesa-Bianchi, Fischer, 2002).

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(self, num_arms: int):
        self.num_arms = num_arms
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def bonus(self, n: int) -> float:
        """Returns what is added to the mean of n rewards."""
        plays = sum(len(x) for x in self.rewards)  # n_tot = t - 1
        return math.sqrt(2.0 * math.log(plays) / n)

    def indices(self) -> np.ndarray:
        """Returns the [K] indices; +inf for an arm never played."""
        return np.array([math.fsum(x) / len(x) + self.bonus(len(x)) if x else math.inf for x in self.rewards])

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based)."""
        return np.eye(self.num_arms)[np.argmax(self.indices())]  # ties to the lowest index

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))


class MOSS(UCB1):
    """MOSS for rewards in [0, 1] (Audibert, Bubeck, 2009)."""

    def __init__(self, num_arms: int, horizon: int):
        super().__init__(num_arms)
        self.horizon = horizon

    def bonus(self, n: int) -> float:
        """Returns what is added to the mean of n rewards."""
        return math.sqrt(max(math.log(self.horizon / (self.num_arms * n)), 0.0) / n)


class GaussianThompson:
    """Gaussian Thompson sampling (Agrawal, Goyal, 2013).

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(self, num_arms: int):
        self.num_arms = num_arms
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the [K] means and the [K] variances; N(0, 1) for an arm never played."""
        means = np.array([math.fsum(x) / (len(x) + 1) for x in self.rewards])
        return means, np.array([1.0 / (len(x) + 1) for x in self.rewards])

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t, given [K] standard normals."""
        means, variances = self.posterior()
        return np.eye(self.num_arms)[np.argmax(means + np.sqrt(variances) * noise)]

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))

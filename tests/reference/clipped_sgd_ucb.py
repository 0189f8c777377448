"""Clipped-SGD-UCB (Dorn, Katrutsa, Latypov, Pudovikov, 2024), as in the authors' code: literal, in float64."""

import math

import numpy as np


class ClippedSGDUCB:
    """An index around an estimate that moves by a clipped gradient.

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
        estimates: [K] x_i.
    """

    def __init__(
        self, num_arms: int, horizon: float, mean_bound: float, exploration: float = 0.1, smoothing: float = 1e-3
    ):
        self.num_arms, self.bound, self.exploration, self.smoothing = num_arms, mean_bound, exploration, smoothing
        self.A = math.log(4 * (horizon + 1) * horizon**2)
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]
        self.estimates = np.zeros(num_arms)
        self.noise = 0.0

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t; ``noise`` is the normal that its update draws."""
        self.noise = 0.0 if noise is None else float(noise)
        counts = np.array([len(x) for x in self.rewards])
        if counts.min() < 3:  # three pulls of arm 0, then of arm 1, ...
            return np.eye(self.num_arms)[np.argmax(counts < 3)]
        index = self.estimates + self.exploration * np.sqrt(math.log(t - 1) / counts)
        return np.eye(self.num_arms)[np.argmax(index)]

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        reward = -float(loss)
        self.rewards[arm].append(reward)
        if len(self.rewards[arm]) <= 3:
            if len(self.rewards[arm]) == 3:
                self.estimates[arm] = np.median(self.rewards[arm])
            return
        gradient = self.estimates[arm] - reward + self.smoothing * self.noise
        self.estimates[arm] -= np.clip(gradient, -self.bound, self.bound) / self.A

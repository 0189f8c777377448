"""An evolution strategy in the unit cube, for objectives whose gradients are flat, noisy or end at an edge.

This is the (mu/mu, lambda) strategy with cumulative step-size control and covariance adaptation, with the usual
constants. A generation is one table of points, so that all of it can be played on one lane axis.

References:
  Hansen. "The CMA Evolution Strategy: A Tutorial". https://arxiv.org/abs/1604.00772
"""

import math

import numpy as np

START = 0.3  # the first step, as a share of the cube's side: two of them reach both edges from the middle
LARGEST_STEP = 0.5  # as a share of the cube's side; if all points were alike, the step would grow without end


def default_population(dim: int) -> int:
    """Returns the points of a generation: twice the tutorial's number, since values are noisy."""
    return 2 * (4 + int(3 * math.log(dim)))


class Evolution:
    """A minimiser of a noisy function on [0, 1]^d, a generation at a time.

    The first ``scans`` generations scan the whole cube at the points of one Latin hypercube, and the search starts from
    the best of them. Points beyond an edge are moved onto it, and the strategy learns from the moved points, so it can
    reach an optimum on the edge.

    Args:
      dim: The dimension d.
      population: Points of a generation, lambda.
      seed: The seed of the points.
      scans: The number of generations that scan the cube.

    Example:
      >>> search = Evolution(dim=2, seed=0)
      >>> for _ in range(40):
      ...     points = search.ask()
      ...     search.tell(points, ((points - np.array([0.25, 2.0])) ** 2).sum(axis=1))
      >>> search.mean.round(2).tolist()  # the second coordinate ends at the edge
      [0.25, 1.0]
    """

    def __init__(self, dim: int, *, population: int | None = None, seed: int = 0, scans: int = 0):
        self.population = population or default_population(dim)
        if self.population < 4:
            raise ValueError(f"population must be at least 4, got {self.population}; leave it out for the default")
        self.mean = np.full(dim, 0.5)
        self.step = START
        self._seed, self._generation = seed, 0
        self._scans, self._seen = scans, (np.inf, self.mean)  # the least value of the scans, and its place
        self._covariance = np.eye(dim)
        self._path, self._step_path = np.zeros(dim), np.zeros(dim)

        parents = self.population // 2
        weights = math.log((self.population + 1) / 2) - np.log(np.arange(1, parents + 1))
        self._weights = weights / weights.sum()
        mass = 1 / (self._weights**2).sum()  # mu_eff
        self._mass = mass
        self._step_rate = (mass + 2) / (dim + mass + 5)
        self._damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (dim + 1)) - 1) + self._step_rate
        self._path_rate = (4 + mass / dim) / (dim + 4 + 2 * mass / dim)
        self._one_rate = 2 / ((dim + 1.3) ** 2 + mass)
        self._many_rate = min(1 - self._one_rate, 2 * (mass - 2 + 1 / mass) / ((dim + 2) ** 2 + mass))
        self._length = math.sqrt(dim) * (1 - 1 / (4 * dim) + 1 / (21 * dim**2))  # E|N(0, I)|

    def ask(self) -> np.ndarray:
        """Returns the points of this generation, [population, d]; they stay the same until ``tell``."""
        if self._generation < self._scans:
            return self._hypercube()[self._generation :: self._scans]
        draws = np.random.default_rng([self._seed, self._generation]).standard_normal((self.population, self.mean.size))
        scales, axes = self._axes()
        return np.clip(self.mean + self.step * (draws * scales) @ axes.T, 0, 1)

    def tell(self, points: np.ndarray, values: np.ndarray) -> None:
        """Moves to the better half of the points; a value that is not a number counts as the worst."""
        values = np.where(np.isnan(values), np.inf, values)
        order = np.argsort(values, kind="stable")
        self._generation += 1
        if self._generation <= self._scans:
            self._seen = min(self._seen, (values[order[0]], points[order[0]]), key=lambda seen: seen[0])
            self.mean = self._seen[1]
            return
        moves = (points[order[: self._weights.size]] - self.mean) / self.step
        move = self._weights @ moves
        scales, axes = self._axes()
        whitened = axes @ ((axes.T @ move) / scales)
        c = self._step_rate
        self._step_path = (1 - c) * self._step_path + math.sqrt(c * (2 - c) * self._mass) * whitened
        length = float(np.linalg.norm(self._step_path))
        steady = length / math.sqrt(1 - (1 - c) ** (2 * (self._generation - self._scans)))
        moving = steady < (1.4 + 2 / (self.mean.size + 1)) * self._length
        c = self._path_rate
        self._path = (1 - c) * self._path + moving * math.sqrt(c * (2 - c) * self._mass) * move
        one, many = self._one_rate, self._many_rate
        kept = 1 - one - many + (1 - moving) * one * c * (2 - c)
        spread = (self._weights * moves.T) @ moves
        self._covariance = kept * self._covariance + one * np.outer(self._path, self._path) + many * spread
        self.mean = np.clip(self.mean + self.step * move, 0, 1)
        self.step = min(
            self.step * math.exp(self._step_rate / self._damping * (length / self._length - 1)), LARGEST_STEP
        )

    def _hypercube(self) -> np.ndarray:
        """Draws a Latin hypercube over all scans: every coordinate has one point in each of as many equal parts."""
        rng, count = np.random.default_rng([self._seed, 0]), self._scans * self.population
        parts = rng.permuted(np.tile(np.arange(count)[:, None], self.mean.size), axis=0)
        return (parts + rng.random(parts.shape)) / count

    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns lengths and directions of the axes of the search ellipsoid."""
        values, axes = np.linalg.eigh((self._covariance + self._covariance.T) / 2)
        return np.sqrt(np.maximum(values, 1e-12)), axes

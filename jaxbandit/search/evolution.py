"""An evolution strategy in the unit cube, for objectives whose gradients are flat, noisy or end at an edge.

A first scan of the cube is a Latin hypercube of SciPy; the search from its best point is CMA-ES of the package
``cmaes``. A generation is one table of points, so that all of it can be played on one lane axis.

References:
  Hansen. "The CMA Evolution Strategy: A Tutorial". https://arxiv.org/abs/1604.00772
  Nomura and Shibata. "cmaes: A Simple yet Practical Python Library for CMA-ES". https://arxiv.org/abs/2402.01373
"""

import math
from typing import Any

import numpy as np

VERSION = 2  # rises when the points of a search change; version 1 had a CMA-ES and a Latin hypercube of its own
START = 0.3  # the first step, as a share of the cube's side: two of them reach both edges from the middle


def default_population(dim: int) -> int:
    """Returns the points of a generation: twice the tutorial's number, since values are noisy."""
    return 2 * (4 + int(3 * math.log(dim)))


def load_cma() -> type[Any]:
    """Returns the class ``cmaes.CMA``; if the package is not installed, an error names the extra to install."""
    try:
        from cmaes import CMA
    except ImportError as error:
        raise ValueError(
            f'method = "evolution" needs {error.name}, which is not installed; '
            "install it with pip install 'jaxbandit[search]', or set method = \"gradient\""
        ) from None
    return CMA


class Evolution:
    """A minimiser of a noisy function on [0, 1]^d, a generation at a time.

    The first ``scans`` generations scan the whole cube at the points of one Latin hypercube, and the search starts from
    the best of them. A draw beyond an edge is played on the edge, and the strategy receives the draw with a penalty for
    its distance, so the search can reach an optimum on the edge. If the strategy has converged or degenerated, then it
    starts again from its centre. The points are a function of the seed and of the values so far.

    Args:
      dim: The dimension d.
      population: Points of a generation, lambda.
      seed: The seed of the points.
      scans: The number of generations that scan the cube.
      step: The first step, as a share of the cube's side.

    Example:
      >>> search = Evolution(dim=2, seed=0)
      >>> for _ in range(40):
      ...     search.tell(((search.ask() - np.array([0.25, 2.0])) ** 2).sum(axis=1))
      >>> search.mean.round(2).tolist()  # the second coordinate ends at the edge
      [0.25, 1.0]
    """

    def __init__(self, dim: int, *, population: int | None = None, seed: int = 0, scans: int = 0, step: float = START):
        self.population = population or default_population(dim)
        if self.population < 4:
            raise ValueError(f"population must be at least 4, got {self.population}; leave it out for the default")
        self._seed, self._step, self._generation = seed, step, 0
        self._scans = _hypercubes(dim, self.population, scans, seed)  # [scans, population, d]
        self._least = np.inf  # the least value of the scans
        self._search = self._start(np.full(dim, 0.5))
        self._draws = self._draw()

    @property
    def mean(self) -> np.ndarray:
        """Returns the centre of the search: [d]."""
        return np.clip(self._search.mean, 0, 1)

    def ask(self) -> np.ndarray:
        """Returns the points of this generation, [population, d]; they stay the same until ``tell``."""
        return np.clip(self._draws, 0, 1)

    def tell(self, values: np.ndarray) -> None:
        """Moves towards the better points of ``ask``; a value that is not a number counts as the worst."""
        values = np.where(np.isnan(values), np.inf, values)
        self._generation += 1
        if self._generation <= len(self._scans):
            best = int(np.argmin(values))
            if values[best] < self._least:
                self._least, self._search = values[best], self._start(self._draws[best])
        else:
            self._search.tell(list(zip(self._draws, self._scores(values), strict=True)))
            if self._search.should_stop():
                self._search = self._start(self.mean)
        self._draws = self._draw()

    def _start(self, mean: np.ndarray) -> Any:
        seed = (self._seed + self._generation) % 2**32
        return load_cma()(mean=mean, sigma=self._step, seed=seed, population_size=self.population)

    def _draw(self) -> np.ndarray:
        """Draws a generation; some of its places may lie beyond the cube."""
        if self._generation < len(self._scans):
            return self._scans[self._generation]
        return np.stack([self._search.ask() for _ in range(self.population)])

    def _scores(self, values: np.ndarray) -> np.ndarray:
        """Adds the squared distances from the cube, in units of the spread of draws and values; the rest is worst."""
        good = np.isfinite(values)
        if not good.any():
            return np.zeros(values.shape)
        spread = np.subtract(*np.quantile(values[good], [0.75, 0.25])) or 1.0
        beyond = ((self._draws - self.ask()) ** 2).sum(axis=1)
        scores = values + spread * beyond / max(self._draws.var(axis=0).mean(), np.finfo(np.float64).tiny)
        return np.where(good, scores, scores[good].max() + spread)


def _hypercubes(dim: int, population: int, scans: int, seed: int) -> np.ndarray:
    """Returns one Latin hypercube in parts, [scans, population, d]."""
    if scans == 0:
        return np.empty((0, population, dim))
    from scipy.stats import qmc  # imported late: it takes a second

    points = qmc.LatinHypercube(dim, rng=np.random.default_rng(seed)).random(scans * population)
    return points.reshape(scans, population, dim)

"""Stochastic gradients of a regret that can only be simulated: coupled differences and SPSA, passed to optax.

A step proposes points on both sides of its place, receives the regrets of the games at those points, and moves. Game k
of every point uses common random numbers. Directions:

- ``"differences"``: one parameter at a time, two points for each.
- ``"spsa"``: all parameters at once along random signs, two points for any number of parameters. Every group of games
  (an environment) has signs of its own, so that the noise of the directions is averaged over them.

References:
  Spall. "Multivariate Stochastic Approximation Using a Simultaneous Perturbation Gradient Approximation". IEEE
  Transactions on Automatic Control, 1992. Rockafellar, Uryasev. "Optimization of conditional value-at-risk". Journal of
  Risk, 2000.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

GRADIENTS = ("differences", "spsa")
OBJECTIVES = ("mean", "cvar")


class Gradient(NamedTuple):
    """An estimate of the gradient relative to the mean size of regret, so that learning rates need no unit."""

    value: np.ndarray  # [d]
    stderr: np.ndarray  # [d]  over the random numbers of the games, for the directions and environments of this step
    objective: float  # at the points of the step, in units of regret


def contributions(games: np.ndarray, objective: str = "mean", level: float = 0.9) -> np.ndarray:
    """Returns what each game adds to the objective; the mean of these terms is the objective.

    The CVaR at ``level`` is the mean of the worst ``1 - level`` of all games. With v their quantile it is the mean of
    ``v + max(R - v, 0) / (1 - level)``, and v may be held fixed in derivatives and standard errors.

    Args:
      games: Regrets of any shape, one population.
      objective: ``"mean"`` or ``"cvar"``.
      level: The level of the CVaR.

    Example:
      >>> games = np.arange(10.0)
      >>> float(contributions(games).mean()), float(contributions(games, "cvar", 0.8).mean())  # (8 + 9) / 2
      (4.5, 8.5)
    """
    if objective == "mean":
        return games
    v = _quantile(games, level)
    return v + np.maximum(games - v, 0) / (1 - level)


class Descent:
    """A minimiser by optax, from points and their games.

    Args:
      start: The first place [d].
      optimiser: Any optax optimiser, with any schedule inside.
      gradient: ``"differences"`` or ``"spsa"``.
      step: Half the distance between the two points of a difference.
      objective: ``"mean"`` or ``"cvar"``.
      level: The level of the CVaR.
      sign: 1 to minimise, -1 to maximise.
      seed: The seed of the signs of SPSA.

    Example:
      >>> descent = Descent(np.array([1.0, -1.0]), optax.sgd(0.1), gradient="differences")
      >>> for _ in range(50):
      ...     points = descent.ask(groups=1)
      ...     found = descent.gradient((points**2).sum(axis=-1)[..., None] + np.ones(8))
      ...     descent.tell(found.value)
      >>> bool((abs(descent.place) < 1e-3).all())
      True
    """

    def __init__(
        self,
        start: np.ndarray,
        optimiser: optax.GradientTransformation,
        *,
        gradient: str = "spsa",
        step: float = 0.1,
        objective: str = "mean",
        level: float = 0.9,
        sign: int = 1,
        seed: int = 0,
    ):
        self.place = np.asarray(start, np.float64)
        self._step, self._kind, self._sign, self._seed = step, gradient, sign, seed
        self._objective, self._level = objective, level
        self._count = 0
        self._update = jax.jit(lambda slope, state, place: _moved(optimiser, slope, state, place))
        with _as_optax_needs():
            self._state = optimiser.init(jnp.asarray(self.place))

    def ask(self, groups: int) -> np.ndarray:
        """Returns points around the place, [points, groups, d]: in each direction one ahead, then one behind."""
        moves = self._step * self._directions(groups)
        return self.place + np.stack([moves, -moves], axis=1).reshape(-1, *moves.shape[1:])

    def gradient(self, games: np.ndarray) -> Gradient:
        """Estimates the gradient from the games [points, groups, seeds] of the last points of ``ask``."""
        directions = self._directions(games.shape[1])
        terms = np.stack([contributions(point, self._objective, self._level) for point in games])
        slopes = (terms[0::2] - terms[1::2]) / (2 * self._step)  # [directions, groups, seeds]
        by_seed = np.einsum("dgn,dgi->in", slopes, directions) / games.shape[1]
        size = max(float(np.abs(games).mean()), np.finfo(np.float64).tiny)
        spread = by_seed.std(axis=-1, ddof=1) if by_seed.shape[-1] > 1 else np.full(len(by_seed), np.nan)
        stderr = spread / np.sqrt(by_seed.shape[-1])
        return Gradient(by_seed.mean(axis=-1) / size, stderr / size, float(terms.mean()))

    def tell(self, gradient: np.ndarray) -> None:
        """Takes a step; a gradient that is not finite counts as 0."""
        self._count += 1
        with _as_optax_needs():
            slope = self._sign * np.where(np.isfinite(gradient), gradient, 0.0)
            place, self._state = self._update(jnp.asarray(slope), self._state, jnp.asarray(self.place))
        self.place = np.asarray(place, np.float64)

    def _directions(self, groups: int) -> np.ndarray:
        """Returns the directions of a step: [directions, groups, d]."""
        dim = self.place.size
        if self._kind == "differences":
            return np.broadcast_to(np.eye(dim)[:, None], (dim, groups, dim))
        rng = np.random.default_rng([self._seed, self._count])
        return rng.choice([-1.0, 1.0], size=(1, groups, dim))


@contextlib.contextmanager
def _as_optax_needs() -> Iterator[None]:
    """Sets float64 and the type promotion that optax needs, whatever the caller has set."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _moved(optimiser: optax.GradientTransformation, slope, state, place):
    updates, state = optimiser.update(slope, state, place)
    return optax.apply_updates(place, updates), state


def _quantile(games: np.ndarray, level: float) -> float:
    """Returns Rockafellar and Uryasev's v: the lowest value with at least ``level`` of the games at or below it."""
    return float(np.quantile(games, level, method="inverted_cdf"))

"""The facts that hold in expectation: the size of the scale, the regret, and the terms of the theorems one by one.

The right-hand sides have the constants that the proofs give with the sharp bounds of ``statements``. Those that the
paper prints are compared in ``errata``.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from jaxbandit.game import Environment, is_stationary

LEVEL = 0.9999  # coverage of the intervals over seeds
DIV, DIV_SUM = 1.033, 2.11  # the sharp constants of Div_t and of sum Div


@dataclasses.dataclass(frozen=True)
class Games:
    """What the games of one environment give, an entry for each seed, with the letters of the paper.

    Attributes:
      K: Number of arms.
      T: Rounds.
      S_1: The first scale.
      alpha: The declared moment order.
      sigma: The bound of that moment.
      gap: The smallest gap; None if the environment changes or the best arm is not unique.
      scale: S_(T+1).
      div: sum Div.
      shift: sum Shift from t = 0 to T - 1.
      skip_error: sum |SkipErr| off the best arm.
      off_best: Rounds in which another arm than the best was played.
      regret: Pseudo-regret.
    """

    K: int
    T: int
    S_1: float
    alpha: float
    sigma: float
    gap: float | None
    scale: np.ndarray
    div: np.ndarray
    shift: np.ndarray
    skip_error: np.ndarray
    off_best: np.ndarray
    regret: np.ndarray

    @property
    def k_log_t(self) -> float:
        """K log T."""
        return self.K * math.log(self.T)

    @property
    def step(self) -> float:
        """The factor by which a skipped round multiplies S, the largest there is."""
        return math.sqrt(1 + 1 / (16 * self.k_log_t))

    @property
    def scale_bound(self) -> float:
        """The bound of E[S_(T+1)]."""
        a = self.alpha
        return math.sqrt(2) * self.S_1 + 2 ** (2 - 3 / a) * self.sigma * (self.T / self.k_log_t) ** (1 / a)

    def threshold(self, constant: float) -> float:
        """Returns the M at which constant M^(1 - alpha) sigma^alpha = gap / 4."""
        assert self.gap is not None
        return (4 * constant * self.sigma**self.alpha / self.gap) ** (1 / (self.alpha - 1))

    def small_skips(self, M: float) -> float:
        """Returns the bound of the sum of skipped losses below M: M times their number."""
        return M * max(0.0, 1 + math.log(4 * M / self.S_1) / math.log(self.step))


class Expectation(NamedTuple):
    """An inequality between expectations over seeds."""

    statement: str
    left: Callable[[Games], np.ndarray]
    right: Callable[[Games], Any]
    stochastic: bool = False  # needs an environment that does not change and has a unique best arm


def _div_stochastic(games: Games) -> np.ndarray:
    M = games.threshold(2 * DIV * 4 ** (games.alpha - 2))
    return DIV_SUM * games.k_log_t * max(0.0, games.step * M - games.S_1) + games.regret / 4


def _shift_stochastic(games: Games) -> np.ndarray:
    M = games.threshold(4 ** (games.alpha - 2))
    return games.k_log_t * max(games.S_1, games.step * M) + games.regret / 4


def _skip_adversarial(games: Games) -> np.ndarray:
    M = games.sigma * (games.T / games.k_log_t) ** (1 / games.alpha)
    return games.sigma**games.alpha * M ** (1 - games.alpha) * games.off_best + games.small_skips(M)


EXPECTATIONS: dict[str, Expectation] = {
    "scale": Expectation(
        "E[S_(T+1)] <= B = sqrt(2) S_1 + 2^(2 - 3/alpha) sigma (T/(K log T))^(1/alpha)",
        lambda games: games.scale,
        lambda games: games.scale_bound,
    ),
    "regret": Expectation(
        "regret <= E[sum Div + sum Shift + sum |SkipErr| off the best arm] + 2 sigma (K - 1)",
        lambda games: games.regret,
        lambda games: games.div + games.shift + games.skip_error + 2 * games.sigma * (games.K - 1),
    ),
    "div_adversarial": Expectation(
        "E[sum Div] <= 2.11 (B - S_1) K log T",
        lambda games: games.div,
        lambda games: DIV_SUM * (games.scale_bound - games.S_1) * games.k_log_t,
    ),
    "shift_adversarial": Expectation(
        "E[sum Shift] <= B K log T",
        lambda games: games.shift,
        lambda games: games.scale_bound * games.k_log_t,
    ),
    "skip_adversarial": Expectation(
        "E[sum |SkipErr| off the best arm] <= sigma^alpha M^(1-alpha) E[pulls off it] + M N(M), "
        "M = sigma (T/(K log T))^(1/alpha)",
        lambda games: games.skip_error,
        _skip_adversarial,
    ),
    "div_stochastic": Expectation(
        "E[sum Div] <= 2.11 (q M - S_1)+ K log T + regret/4, M = (8.264 4^(alpha-2) sigma^alpha/Delta)^(1/(alpha-1))",
        lambda games: games.div,
        _div_stochastic,
        stochastic=True,
    ),
    "shift_stochastic": Expectation(
        "E[sum Shift] <= max(S_1, q M) K log T + regret/4, M = 4 (sigma^alpha/Delta)^(1/(alpha-1))",
        lambda games: games.shift,
        _shift_stochastic,
        stochastic=True,
    ),
    "skip_stochastic": Expectation(
        "E[sum |SkipErr| off the best arm] <= M N(M) + regret/4, M = (4 sigma^alpha/Delta)^(1/(alpha-1))",
        lambda games: games.skip_error,
        lambda games: games.small_skips(games.threshold(1.0)) + games.regret / 4,
        stochastic=True,
    ),
}


def games_of(
    environment: Environment, S_1: float, horizon: int, sums: Mapping[str, np.ndarray], off_best: np.ndarray
) -> Games | None:
    """Returns what the expectations need; None if the environment declares no moment.

    Args:
      environment: The environment that was played.
      S_1: The first scale.
      horizon: T.
      sums: ``SUMS`` of the certificate, with ``regret`` and ``last_growth``.
      off_best: Rounds in which another arm than the best fixed one was played.
    """
    moment, alpha = getattr(environment, "moment", None), getattr(environment, "moment_order", None)
    if moment is None or alpha is None:
        return None
    K, scale = environment.num_arms, S_1 + sums["growth"]
    log_y = math.log1p(-(K - 1) / horizon) - (K - 1) * math.log(horizon)
    return Games(
        K=K,
        T=horizon,
        S_1=S_1,
        alpha=float(alpha),
        sigma=float(moment(alpha)),
        gap=unique_gap(environment),
        scale=scale,
        div=sums["div"],
        shift=sums["log_barrier"] - (scale - sums["last_growth"]) * log_y,
        skip_error=sums["skip_error"],
        off_best=off_best,
        regret=sums["regret"],
    )


def unique_gap(environment: Environment) -> float | None:
    """Returns the smallest gap; None if the environment changes or several arms are best."""
    if not is_stationary(environment):
        return None
    first, second = np.sort(np.asarray(environment.means(1), np.float64))[:2]  # pyright: ignore[reportArgumentType]
    return float(second - first) if second > first else None


def compared(games: Games | None) -> dict[str, np.ndarray]:
    """Returns, for each expectation, the ratio of the sides and their difference with its interval; NaN if it is void.

    Both sides are estimated by means over seeds.
    """
    found = {name: np.full(len(EXPECTATIONS), np.nan) for name in ("ratio", "excess", "low", "high")}
    for n, fact in enumerate(EXPECTATIONS.values()):
        if games is None or (fact.stochastic and games.gap is None):
            continue
        left = fact.left(games)
        right = np.broadcast_to(fact.right(games), left.shape)
        excess = left - right
        stderr = excess.std(ddof=1) / math.sqrt(excess.size) if excess.size > 1 else np.inf
        half = special.stdtrit(max(1, excess.size - 1), 0.5 + LEVEL / 2) * stderr
        found["ratio"][n], found["excess"][n] = left.mean() / right.mean(), excess.mean()
        found["low"][n], found["high"][n] = excess.mean() - half, excess.mean() + half
    return found


def verdict(low: float, high: float) -> str:
    """Returns what an interval of left - right says."""
    return "" if math.isnan(low) else "holds" if high <= 0 else "VIOLATED" if low > 0 else "undecided"

"""Environments by registry name: laws of losses, replayed tables, and schedules over a law."""

from jaxbandit.environments.laws import (
    Bernoulli,
    Exponential,
    Frechet,
    Gaussian,
    HardPair,
    LogNormal,
    Lomax,
    OutlierMixture,
    Pareto,
    Stable,
    StudentT,
    Weibull,
)
from jaxbandit.environments.replay import Replay
from jaxbandit.environments.schedules import Corrupted, Drifting, MinimaxHard, Scheduled, Shifting, Swap, Switching

ENVIRONMENTS: dict[str, type] = {
    "bernoulli": Bernoulli,
    "exponential": Exponential,
    "frechet": Frechet,
    "gaussian": Gaussian,
    "hard_pair": HardPair,
    "lognormal": LogNormal,
    "lomax": Lomax,
    "outlier_mixture": OutlierMixture,
    "pareto": Pareto,
    "replay": Replay,
    "stable": Stable,
    "student_t": StudentT,
    "weibull": Weibull,
    "switching": Switching,
    "shifting": Shifting,
    "swap": Swap,
    "drifting": Drifting,
    "corrupted": Corrupted,
    "minimax_hard": MinimaxHard,
    "scheduled": Scheduled,
}

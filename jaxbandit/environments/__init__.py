"""Environments by registry name: laws of losses, replayed tables, and schedules over a law."""

from jaxbandit.environments.huber import Huber
from jaxbandit.environments.laws import (
    Bernoulli,
    Exponential,
    Frechet,
    Gaussian,
    HardPair,
    Jackpot,
    LogNormal,
    Lomax,
    OutlierMixture,
    Pareto,
    Reflected,
    Stable,
    StudentT,
    TailReversed,
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
    "jackpot": Jackpot,
    "lognormal": LogNormal,
    "lomax": Lomax,
    "outlier_mixture": OutlierMixture,
    "pareto": Pareto,
    "reflected": Reflected,
    "replay": Replay,
    "stable": Stable,
    "student_t": StudentT,
    "tail_reversed": TailReversed,
    "weibull": Weibull,
    "huber": Huber,
    "switching": Switching,
    "shifting": Shifting,
    "swap": Swap,
    "drifting": Drifting,
    "corrupted": Corrupted,
    "minimax_hard": MinimaxHard,
    "scheduled": Scheduled,
}

"""Environments, which draw the losses of the arms, and the registry that names them.

``laws`` holds distributions that stay the same in every round, ``schedules`` changes a law over the rounds, ``replay``
plays a table of measured losses, and ``huber`` contaminates another environment. An environment sees no history: its
losses depend on the round, the arm and the random bits alone. Study files and ``jaxbandit list`` use the names in
``ENVIRONMENTS``. ``measured`` checks the tables of measured losses.
"""

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

__all__ = [
    "ENVIRONMENTS",
    "Bernoulli",
    "Corrupted",
    "Drifting",
    "Exponential",
    "Frechet",
    "Gaussian",
    "HardPair",
    "Huber",
    "Jackpot",
    "LogNormal",
    "Lomax",
    "MinimaxHard",
    "OutlierMixture",
    "Pareto",
    "Reflected",
    "Replay",
    "Scheduled",
    "Shifting",
    "Stable",
    "StudentT",
    "Swap",
    "Switching",
    "TailReversed",
    "Weibull",
    "measured",
    "replay",
]

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

"""Worlds by registry name."""

from jaxbandit.environments.laws import Bernoulli, Gaussian, Pareto, StudentT
from jaxbandit.environments.replay import Replay
from jaxbandit.environments.schedules import Switching

ENVIRONMENTS: dict[str, type] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "pareto": Pareto,
    "replay": Replay,
    "student_t": StudentT,
    "switching": Switching,
}

"""Bandit algorithms by registry name."""

from jaxbandit.policies.uniform import Uniform
from jaxbandit.policies.uniinf import UniINF

POLICIES: dict[str, type] = {
    "uniform": Uniform,
    "uniinf": UniINF,
}

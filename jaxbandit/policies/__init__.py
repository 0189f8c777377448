"""Bandit algorithms by registry name."""

from jaxbandit.policies.exp3 import Exp3
from jaxbandit.policies.htinf import HTINF, AdaTINF, OptHTINF
from jaxbandit.policies.tsallis_inf import TsallisINF
from jaxbandit.policies.ucb import MOSS, UCB1, GaussianThompson
from jaxbandit.policies.uniform import Uniform
from jaxbandit.policies.uniinf import UniINF

POLICIES: dict[str, type] = {
    "ada_tinf": AdaTINF,
    "exp3": Exp3,
    "htinf": HTINF,
    "moss": MOSS,
    "opt_htinf": OptHTINF,
    "thompson": GaussianThompson,
    "tsallis_inf": TsallisINF,
    "ucb1": UCB1,
    "uniform": Uniform,
    "uniinf": UniINF,
}

"""Bandit algorithms, one to a file, and the registry that names them.

A policy is a frozen dataclass whose fields are its hyperparameters, with three methods: ``init``, ``probabilities`` and
``update`` play one game. Its file follows its paper, with the paper's letters and equation numbers. Study files and
``jaxbandit list`` use the names in ``POLICIES``. ``delayed`` wraps another policy. ``robust`` and ``influence`` hold
the robust means of the index policies.
"""

from jaxbandit.policies.ada_hedge import AdaHedge
from jaxbandit.policies.adar_ucb import AdaRUCB
from jaxbandit.policies.ape2 import APE2, MRAPE, MRUCB
from jaxbandit.policies.clipped_sgd_ucb import ClippedSGDUCB
from jaxbandit.policies.delayed import Delayed
from jaxbandit.policies.doubling import Doubling
from jaxbandit.policies.exp3 import Exp3
from jaxbandit.policies.exp3_plus_plus import Exp3PlusPlus
from jaxbandit.policies.ftpl import FTPL
from jaxbandit.policies.htinf import HTINF, AdaTINF, OptHTINF
from jaxbandit.policies.lb_inf_v import LBINFV
from jaxbandit.policies.omd_lb_ht import OMDLBHT
from jaxbandit.policies.robust_moss import RobustMOSS
from jaxbandit.policies.robust_ucb import RobustUCB
from jaxbandit.policies.sao_ht import SAOHT
from jaxbandit.policies.tsallis_inf import TsallisINF
from jaxbandit.policies.ucb import MOSS, UCB1, GaussianThompson
from jaxbandit.policies.uniform import Uniform
from jaxbandit.policies.uniinf import UniINF
from jaxbandit.policies.uniinf_first_losses import UniINFFirstLosses
from jaxbandit.policies.uniinf_variant import UniINFVariant

__all__ = [
    "APE2",
    "FTPL",
    "HTINF",
    "LBINFV",
    "MOSS",
    "MRAPE",
    "MRUCB",
    "OMDLBHT",
    "POLICIES",
    "SAOHT",
    "UCB1",
    "AdaHedge",
    "AdaRUCB",
    "AdaTINF",
    "ClippedSGDUCB",
    "Delayed",
    "Doubling",
    "Exp3",
    "Exp3PlusPlus",
    "GaussianThompson",
    "OptHTINF",
    "RobustMOSS",
    "RobustUCB",
    "TsallisINF",
    "UniINF",
    "UniINFFirstLosses",
    "UniINFVariant",
    "Uniform",
    "uniinf",
]

POLICIES: dict[str, type] = {
    "ada_hedge": AdaHedge,
    "ada_tinf": AdaTINF,
    "adar_ucb": AdaRUCB,
    "ape2": APE2,
    "clipped_sgd_ucb": ClippedSGDUCB,
    "delayed": Delayed,
    "doubling": Doubling,
    "exp3": Exp3,
    "exp3_plus_plus": Exp3PlusPlus,
    "ftpl": FTPL,
    "htinf": HTINF,
    "lb_inf_v": LBINFV,
    "moss": MOSS,
    "mr_ape": MRAPE,
    "mr_ucb": MRUCB,
    "omd_lb_ht": OMDLBHT,
    "opt_htinf": OptHTINF,
    "robust_moss": RobustMOSS,
    "robust_ucb": RobustUCB,
    "sao_ht": SAOHT,
    "thompson": GaussianThompson,
    "tsallis_inf": TsallisINF,
    "ucb1": UCB1,
    "uniform": Uniform,
    "uniinf": UniINF,
    "uniinf_first_losses": UniINFFirstLosses,
    "uniinf_variant": UniINFVariant,
}

"""Sensitivity of regret to parameters: derivatives, shares of variance, screening.

``local`` computes derivatives by coupled differences, and ``score`` checks them with another estimator. ``sobol``
divides the variance of regret among the parameters, and ``morris`` finds the parameters that matter with few points.
``run`` computes those that a study file asks for, and ``tables`` and ``figures`` show the results. ``kept`` stores
finished points, so that an interrupted run continues.
"""

from jaxbandit.sensitivity.figures import bars, curves, draw
from jaxbandit.sensitivity.local import local
from jaxbandit.sensitivity.morris import morris
from jaxbandit.sensitivity.run import KINDS, load, run
from jaxbandit.sensitivity.score import score
from jaxbandit.sensitivity.sobol import sobol

__all__ = [
    "KINDS",
    "bars",
    "curves",
    "draw",
    "figures",
    "load",
    "local",
    "morris",
    "run",
    "score",
    "sobol",
    "tables",
]

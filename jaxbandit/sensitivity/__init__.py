"""Sensitivity of regret to parameters: derivatives, shares of variance, screening."""

from jaxbandit.sensitivity.figures import bars as bars
from jaxbandit.sensitivity.figures import curves as curves
from jaxbandit.sensitivity.figures import draw as draw
from jaxbandit.sensitivity.local import local as local
from jaxbandit.sensitivity.morris import morris as morris
from jaxbandit.sensitivity.run import KINDS as KINDS
from jaxbandit.sensitivity.run import load as load
from jaxbandit.sensitivity.run import run as run
from jaxbandit.sensitivity.score import score as score
from jaxbandit.sensitivity.sobol import sobol as sobol

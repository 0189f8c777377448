"""How regret depends on everything: derivatives, shares of variance, screening."""

from jaxbandit.sensitivity.local import local as local
from jaxbandit.sensitivity.morris import morris as morris
from jaxbandit.sensitivity.score import score as score
from jaxbandit.sensitivity.sobol import sobol as sobol

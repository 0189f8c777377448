"""Stationary laws of losses: one shape for all arms, a mean for each.

All arms of a round read the same uniforms, so two policies on one seed have common random numbers. This does not
change the law of what a policy observes, because it observes one arm per round.
"""

from jaxbandit.environments.laws.base import Law as Law
from jaxbandit.environments.laws.base import Located as Located
from jaxbandit.environments.laws.base import of_arm as of_arm
from jaxbandit.environments.laws.discrete import Bernoulli as Bernoulli
from jaxbandit.environments.laws.discrete import HardPair as HardPair
from jaxbandit.environments.laws.gains import Jackpot as Jackpot
from jaxbandit.environments.laws.gains import Reflected as Reflected
from jaxbandit.environments.laws.positive import Exponential as Exponential
from jaxbandit.environments.laws.positive import Frechet as Frechet
from jaxbandit.environments.laws.positive import LogNormal as LogNormal
from jaxbandit.environments.laws.positive import Lomax as Lomax
from jaxbandit.environments.laws.positive import Pareto as Pareto
from jaxbandit.environments.laws.positive import Weibull as Weibull
from jaxbandit.environments.laws.symmetric import Gaussian as Gaussian
from jaxbandit.environments.laws.symmetric import OutlierMixture as OutlierMixture
from jaxbandit.environments.laws.symmetric import Stable as Stable
from jaxbandit.environments.laws.symmetric import StudentT as StudentT
from jaxbandit.environments.laws.tail_reversed import TailReversed as TailReversed

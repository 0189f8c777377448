"""Theory of heavy-tailed bandits: proved guarantees, lower bounds and the assumptions behind them.

``guarantees`` has the orders of regret that papers prove for the policies and ``bounds`` the orders that no policy can
beat. ``instance`` computes the lower bounds of one environment with their constants. ``assumptions`` compares what a
policy is given with what an environment declares.
"""

from jaxbandit.theory import assumptions as assumptions
from jaxbandit.theory import bounds as bounds
from jaxbandit.theory import guarantees as guarantees
from jaxbandit.theory.guarantees import GUARANTEES as GUARANTEES
from jaxbandit.theory.guarantees import INSTANCE as INSTANCE
from jaxbandit.theory.guarantees import MINIMAX as MINIMAX
from jaxbandit.theory.guarantees import Exponent as Exponent
from jaxbandit.theory.guarantees import Guarantee as Guarantee
from jaxbandit.theory.guarantees import Order as Order
from jaxbandit.theory.instance import InstanceBound as InstanceBound
from jaxbandit.theory.instance import instance_bound as instance_bound

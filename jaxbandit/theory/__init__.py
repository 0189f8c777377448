"""Theory of heavy-tailed bandits: proved guarantees, lower bounds and the assumptions behind them.

``guarantees`` has the orders of regret that papers prove for the policies and ``bounds`` the orders that no policy can
beat. ``instance`` computes the lower bounds of one environment with their constants. ``assumptions`` compares what a
policy is given with what an environment declares.
"""

from jaxbandit.theory import assumptions, bounds, guarantees
from jaxbandit.theory.guarantees import GUARANTEES, INSTANCE, MINIMAX, Exponent, Guarantee, Order
from jaxbandit.theory.instance import InstanceBound, instance_bound

__all__ = [
    "GUARANTEES",
    "INSTANCE",
    "MINIMAX",
    "Exponent",
    "Guarantee",
    "InstanceBound",
    "Order",
    "assumptions",
    "bounds",
    "guarantees",
    "instance",
    "instance_bound",
]

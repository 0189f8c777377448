"""Pairs of a policy and an environment, in the form that the checks of assumptions need."""

from typing import Any

from jaxbandit.game import is_stationary
from jaxbandit.grid import registry_name
from jaxbandit.policies import POLICIES
from jaxbandit.theory.assumptions import Pair


def checked_pair(policy: Any, environment: Any) -> Pair:
    """Returns a pair to check; a policy around another one is checked for what the policy inside assumes.

    Example:
      >>> import jaxbandit as jb
      >>> pair = checked_pair(jb.Delayed(jb.UCB1(), delay=5), jb.Bernoulli(means=[0.2, 0.8]))
      >>> pair.name, pair.shown
      ('ucb1', 'Delayed(UCB1)')
    """
    around = []
    while getattr(policy, "policy", None) is not None:
        around.append(type(policy).__name__)
        policy = policy.policy
    shown = "(".join([*around, type(policy).__name__]) + ")" * len(around)
    return Pair(registry_name(type(policy), POLICIES), policy, environment, is_stationary(environment), shown)

"""Certificates of uniINF: games in float64 that are checked against its analysis, round by round.

``statements`` lists the facts that are proved about every trajectory and ``facts`` checks them inside the game,
``expectations`` has those that hold on average over seeds and ``conditional`` those that hold on average given the
past. ``certificates`` plays the games and gathers all of it.
"""

import warnings

from jaxbandit.certify.certificates import HORIZON as HORIZON
from jaxbandit.certify.certificates import NUM_SEEDS as NUM_SEEDS
from jaxbandit.certify.certificates import QUICK_HORIZON as QUICK_HORIZON
from jaxbandit.certify.certificates import QUICK_SEEDS as QUICK_SEEDS
from jaxbandit.certify.certificates import Certified as Certified
from jaxbandit.certify.certificates import broken as broken
from jaxbandit.certify.certificates import certify as certify
from jaxbandit.certify.certificates import default_environments as default_environments
from jaxbandit.certify.certificates import holds as holds
from jaxbandit.certify.certificates import read_environments as read_environments
from jaxbandit.certify.certificates import run_controls as run_controls
from jaxbandit.certify.certificates import tables as tables
from jaxbandit.certify.certificates import tolerance as tolerance


def __getattr__(name: str):
    """Finds a function under the name that it had up to 0.1."""
    current = name.replace("worlds", "environments")
    if current == name or current not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"certify.{name} has been renamed; use certify.{current}", DeprecationWarning, stacklevel=2)
    return globals()[current]

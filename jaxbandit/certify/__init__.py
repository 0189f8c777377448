"""Certificates of uniINF: games in float64 that are checked against its analysis, round by round.

``statements`` lists the facts that are proved about every trajectory and ``facts`` checks them inside the game,
``expectations`` has those that hold on average over seeds and ``conditional`` those that hold on average given the
past. ``certificates`` plays the games and gathers all of it.
"""

import warnings

from jaxbandit.certify.certificates import (
    HORIZON,
    NUM_SEEDS,
    QUICK_HORIZON,
    QUICK_SEEDS,
    Certified,
    broken,
    certify,
    default_environments,
    holds,
    read_environments,
    run_controls,
    tables,
    tolerance,
)

__all__ = [
    "HORIZON",
    "NUM_SEEDS",
    "QUICK_HORIZON",
    "QUICK_SEEDS",
    "Certified",
    "broken",
    "certificates",
    "certify",
    "default_environments",
    "errata",
    "holds",
    "outcome",
    "read_environments",
    "run_controls",
    "tables",
    "tolerance",
]


def __getattr__(name: str):
    """Finds a function under the name that it had up to 0.1."""
    current = name.replace("worlds", "environments")
    if current == name or current not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"certify.{name} has been renamed; use certify.{current}", DeprecationWarning, stacklevel=2)
    return globals()[current]

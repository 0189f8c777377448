"""Regret as a multiple of asymptotic lower bounds, for the policies that such a bound binds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.game import is_stationary
from jaxbandit.theory import assumptions, guarantees
from jaxbandit.theory.instance import InstanceBound, instance_bound

MOST = 16  # environments of a study whose bounds are computed: each takes up to a few tenths of a second
NOTE = "asymptotic lower bound: the slope of log T for uniformly good policies as T grows, no bound at finite T"

Multiples = dict[tuple[str, str], float]  # by labels of policy and environment


def multiples(stats: xr.Dataset, environments: Mapping[str, Any]) -> Multiples:
    """Returns final mean regret over the bound times log T, for pairs that have a bound.

    A pair has none if no bound binds the policy, if the policy is outside its assumptions, if the environment changes
    or its laws are not known, and if the study sweeps the moment that the policy is given. The class is that of the
    environment's declared moment.

    Args:
      stats: A summary with dimensions ``policy`` and ``environment``; its attributes name the pairs outside.
      environments: The environments by label; the others have no bound.
    """
    policies = [str(label) for label in stats.policy.values if _may_be_bound(str(label))]
    outside = assumptions.outside_of(stats.attrs)
    environments = {label: one for label, one in environments.items() if hasattr(one, "points") and is_stationary(one)}
    if not policies or len(environments) > MOST:
        return {}
    found: Multiples = {}
    for environment in map(str, stats.environment.values):
        bound = _bound(environments.get(environment))
        for policy in policies if bound else ():
            mean = stats.regret_mean.sel(policy=policy, environment=environment).dropna("round")
            if bound is None or not mean.size or (policy, environment) in outside:
                continue
            multiple = bound.multiple(policy, float(mean[-1]), float(mean["round"][-1]))
            if multiple is not None and np.isfinite(multiple):
                found[policy, environment] = multiple
    return found


def multiple_text(value: float) -> str:
    """Returns a multiple of a bound to two digits.

    Example:
      >>> multiple_text(263.0), multiple_text(1.234), multiple_text(0.0456), multiple_text(7.5e-8)
      ('260', '1.2', '0.046', '< 0.01')
    """
    if 0 < value < 0.01:
        return "< 0.01"
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{value:.2g}"


def _may_be_bound(label: str) -> bool:
    """Returns whether a bound may bind the policy of a label: not if the label has the moment that it is given."""
    row = guarantees.of(label)
    return row is not None and row.binding_class is not None and "moment_" not in label


def _bound(environment: Any) -> InstanceBound | None:
    """Returns the bounds of an environment; None if it has none."""
    if environment is None:
        return None
    try:
        return instance_bound(environment)
    except ValueError:  # for example, one arm, or a table in stored order
        return None

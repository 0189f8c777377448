"""Checks of assumptions: the moment bound that a policy is given against the environment's; environments of one arm."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

SLACK = 1e-6  # relative; a bound copied from environment.moment() is not refused for its last digit
NAMED = 3  # violations that are listed one by one: a sweep may have hundreds


def violated_bounds(policies: Iterable[Any], environments: Iterable[Any]) -> list[str]:
    """Returns a sentence for every pair whose environment violates the moment bound that the policy is given.

    A pair is skipped if the policy has no ``moment_bound`` or the environment no ``moment``.
    """
    environments = list(environments)
    said = []
    for policy in policies:
        order, bound = getattr(policy, "moment_order", None), getattr(policy, "moment_bound", None)
        if order is None or bound is None:
            continue
        said += [_violation(policy, float(order), float(bound), environment) for environment in environments]
    return list(dict.fromkeys(sentence for sentence in said if sentence))


def one_armed(environments: Iterable[Any]) -> list[str]:
    """Returns a sentence for every class of environment that has one arm, where there is nothing to learn."""
    kinds = dict.fromkeys(type(environment).__name__ for environment in environments if environment.num_arms == 1)
    return [f"{kind} has one arm: every policy has regret 0; give it two or more" for kind in kinds]


def told(violated: Sequence[str]) -> Iterator[str]:
    """Yields the first few violated bounds as sentences, and then the number of the others."""
    for sentence in violated[:NAMED]:
        yield f"{sentence}: its guarantee does not cover this environment"
    if len(violated) > NAMED:
        yield f"{len(violated) - NAMED:,} more violated bounds like these; all are in the dataset's attrs['warnings']"


def warn(violated: Sequence[str], environments: Iterable[Any], stacklevel: int) -> None:
    """Warns of violated bounds and of environments with one arm; ``stacklevel`` is the caller's."""
    for sentence in (*told(violated), *one_armed(environments)):
        warnings.warn(sentence, stacklevel=stacklevel + 1)


def _violation(policy: Any, order: float, bound: float, environment: Any) -> str:
    moment = getattr(environment, "moment", None)
    if moment is None:
        return ""
    said = f"{type(policy).__name__} is given moment_bound {bound:g} at moment_order {order:g}, but {environment!r}"
    try:
        actual = moment(order)
    except ValueError:
        return f"{said} has no moment of that order; its declared order is {environment.moment_order:g}"
    return f"{said} has {actual:.4g}" if actual > bound * (1 + SLACK) else ""

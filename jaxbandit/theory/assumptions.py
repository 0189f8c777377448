"""Checks of assumptions: the needs of a policy's theorems against the properties that an environment declares."""

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.theory import guarantees
from jaxbandit.theory.guarantees import GUARANTEES

SLACK = 1e-6  # relative; a bound copied from environment.moment() is not refused for its last digit
TIED = "its bound for one instance does not hold, the one against an adversary does"
NAMED = 3  # violations that are listed one by one: a sweep may have hundreds
OUTSIDE = "outside its assumptions"
CHECKED = (
    "bounded losses, the moment of the given order and its given bound, truncated non-negativity, symmetric noise, "
    "a unique best arm, laws that do not change, and observed losses that have the declared means"
)


class Pair(NamedTuple):
    """A policy in an environment, with the facts that a check needs.

    Attributes:
      name: The policy's registry name; a policy without a row in ``GUARANTEES`` is checked for a given moment only.
      policy: The policy.
      environment: The environment.
      stationary: Whether the environment's means never change.
      shown: The name that sentences give to the policy, with the policies around it; default its class.
    """

    name: str
    policy: Any
    environment: Any
    stationary: bool
    shown: str = ""


class Violation(NamedTuple):
    """A violated assumption.

    Attributes:
      sentence: The policy, the environment, and the violated assumption.
      outside: Whether no promise is left; if not, the bound against an adversary still holds.
    """

    sentence: str
    outside: bool


def violations(pair: Pair) -> list[Violation]:
    """Returns the assumptions of a policy's theorems that its environment violates, as far as they can be checked.

    An environment of the user's own that does not declare a property is not checked for it.
    """
    row, name = GUARANTEES.get(pair.name), pair.shown or type(pair.policy).__name__
    given = _given_moment(name, pair.policy, pair.environment)
    found = [Violation(given, outside=True)] if given else []
    if row is None or not row.proved:
        return found
    if getattr(pair.environment, "contaminated", False):
        why = "regret counts the clean means, and the observed losses have others"
        found.append(Violation(f"{name} in {pair.environment!r} is {OUTSIDE}: {why}", outside=True))
    for assumption in row.assumes:
        reason = _CHECKS[assumption](pair) if assumption in _CHECKS else ""
        if reason and assumption == "unique best arm":
            found.append(Violation(f"{name} in {pair.environment!r}: {reason}; {TIED}", outside=False))
        elif reason:
            found.append(Violation(f"{name} in {pair.environment!r} is {OUTSIDE}: {reason}", outside=True))
    return found


def is_tied(label: str, environment: Any, stationary: bool) -> bool:
    """Returns whether several best arms leave a policy, given by its label, without its bound for one instance."""
    row = guarantees.of(label)
    needs = row is not None and "unique best arm" in row.assumes
    return needs and bool(_not_unique(Pair(label, None, environment, stationary)))


def sentences(pairs: Iterable[Pair]) -> list[str]:
    """Returns a sentence for every violated assumption, each once."""
    return list(dict.fromkeys(found.sentence for pair in pairs for found in violations(pair)))


def is_outside(pair: Pair) -> bool:
    """Returns whether no promise is left for the policy in this environment."""
    return any(found.outside for found in violations(pair))


def as_attribute(outside: Iterable[tuple[str, str]]) -> str:
    """Returns labels (policy, environment) of pairs outside their assumptions as an attribute of a dataset."""
    return json.dumps([list(labels) for labels in outside])


def outside_of(attrs: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Returns the labels (policy, environment) that a dataset's attributes name as outside their assumptions."""
    return {(str(policy), str(environment)) for policy, environment in json.loads(attrs.get("outside") or "[]")}


def remark(attrs: Mapping[str, Any], policy: Any, environments: Iterable[Any]) -> str:
    """Returns the words beside a policy's name: in which of some environments it is outside its assumptions."""
    environments = [str(one) for one in environments]
    outside = outside_of(attrs)
    count = sum((str(policy), one) in outside for one in environments)
    if not count:
        return ""
    return OUTSIDE if count == len(environments) else f"{OUTSIDE} in {count} of {len(environments)}"


def one_armed(environments: Iterable[Any]) -> list[str]:
    """Returns a sentence for every class of environment that has one arm, where there is nothing to learn."""
    kinds = dict.fromkeys(type(environment).__name__ for environment in environments if environment.num_arms == 1)
    return [f"{kind} has one arm: every policy has regret 0; give it two or more" for kind in kinds]


def sentences_of(violated: Sequence[str]) -> Iterator[str]:
    """Yields the first few violations as sentences, and then the number of the others."""
    for sentence in violated[:NAMED]:
        # With ties one of the two bounds is left, and the sentence says which.
        yield sentence if sentence.endswith(TIED) else f"{sentence}: its guarantee does not cover this environment"
    if len(violated) > NAMED:
        yield f"{len(violated) - NAMED:,} more warnings like these; all are in the dataset's attrs['warnings']"


def warn(violated: Sequence[str], environments: Iterable[Any], stacklevel: int) -> None:
    """Warns of violated assumptions and of environments with one arm; ``stacklevel`` is the caller's."""
    for sentence in (*sentences_of(violated), *one_armed(environments)):
        warnings.warn(sentence, stacklevel=stacklevel + 1)


def _given_moment(name: str, policy: Any, environment: Any) -> str:
    order, bound = getattr(policy, "moment_order", None), getattr(policy, "moment_bound", None)
    moment = getattr(environment, "moment", None)
    if order is None or bound is None or moment is None:
        return ""
    order, bound = float(order), float(bound)
    said = f"{name} is given moment_bound {bound:g} at moment_order {order:g}, but {environment!r}"
    try:
        actual = moment(order)
    except ValueError:
        return f"{said} has no moment of that order; its declared order is {environment.moment_order:g}"
    return f"{said} has {actual:.4g}" if actual > bound * (1 + SLACK) else ""


def _range(environment: Any) -> tuple[float, float] | None:
    return getattr(environment, "loss_range", None)


def _span(found: tuple[float, float]) -> str:
    return "are not bounded" if math.isinf(found[1] - found[0]) else f"lie in [{found[0]:.4g}, {found[1]:.4g}]"


def _not_in_unit_interval(pair: Pair) -> str:
    found = _range(pair.environment)
    if found is None or (found[0] >= -SLACK and found[1] <= 1 + SLACK):
        return ""
    return f"it needs losses in [0, 1], and these {_span(found)}"


def _not_in_unit_range(pair: Pair) -> str:
    found, width = _range(pair.environment), float(getattr(pair.policy, "exploration", 1.0))
    if found is None or found[1] - found[0] <= width * (1 + SLACK):
        return ""
    return f"it needs losses in an interval of length {width:g}, and these {_span(found)}"


def _unbounded(pair: Pair) -> str:
    found = _range(pair.environment)
    return "it needs bounded losses, and these are not bounded" if found and math.isinf(found[1] - found[0]) else ""


def _no_moment(pair: Pair) -> str:
    limit = getattr(pair.environment, "moment_limit", None)
    return "" if limit is None or limit > 1 else "it needs a finite moment of an order above 1, and there is none"


def _no_given_order(pair: Pair) -> str:
    limit, order = getattr(pair.environment, "moment_limit", None), getattr(pair.policy, "moment_order", None)
    if limit is None or order is None or float(order) < limit:
        return ""
    return f"it is given moment_order {float(order):g}, and moments exist only below {limit:g}"


def _not_truncated_nonnegative(pair: Pair) -> str:
    holds = getattr(pair.environment, "truncated_nonnegative", None)
    return "" if holds in (True, None) else "the best arm's losses are not truncated non-negative"


def _not_symmetric(pair: Pair) -> str:
    if getattr(pair.environment, "symmetric", None) is False:
        return "it needs symmetric noise, and this is not symmetric"
    bound = getattr(pair.policy, "mean_bound", None)
    if bound is None:
        return ""
    largest = float(np.max(np.abs(np.asarray(pair.environment.means(1)))))
    if largest <= float(bound) * (1 + SLACK):
        return ""
    return f"it is given mean_bound {float(bound):g}, and a mean has size {largest:.4g}"


def _not_unique(pair: Pair) -> str:
    if (
        not pair.stationary
        or pair.environment.num_arms < 2
        or getattr(pair.environment, "unique_best", None) is not False
    ):
        return ""
    return "several arms are best"


def _changes(pair: Pair) -> str:
    return "" if pair.stationary else "it needs laws that do not change, and these change"


_CHECKS = {
    "unit interval": _not_in_unit_interval,
    "unit range": _not_in_unit_range,
    "range": _unbounded,
    "moment": _no_moment,
    "given order": _no_given_order,
    "truncated non-negative": _not_truncated_nonnegative,
    "symmetric": _not_symmetric,
    "unique best arm": _not_unique,
    "stochastic": _changes,
}

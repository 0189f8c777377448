"""``jb.check``: all checks of one policy or environment, and their report."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxbandit.engine import explained
from jaxbandit.environments import Bernoulli
from jaxbandit.game import at_horizon
from jaxbandit.grid import Grid
from jaxbandit.policies import Uniform
from jaxbandit.testing.environments import ENVIRONMENT_CHECKS
from jaxbandit.testing.games import HORIZON, CheckError
from jaxbandit.testing.policies import POLICY_CHECKS
from jaxbandit.types import PROTOCOL, check_kind, check_made, check_single, lacking, validate

FIRST = {  # the checks on which all others build, in their order
    "keeps_the_form_of_its_state",
    "follows_the_dtype",
    "returns_the_right_forms",
    "is_pure",
    "fields_are_data",
    "plays_on_the_simplex",
}


@dataclasses.dataclass(frozen=True, repr=False)
class Checked:
    """The report of ``jb.check``.

    Attributes:
      subject: The policy or environment, as text.
      kind: ``"policy"`` or ``"environment"``.
      found: Findings of the checks that hold, by name.
      failed: Messages of the checks that fail, by name.
      waiting: Names of the checks that were not made, because they build on one that fails.
    """

    subject: str
    kind: str
    found: Mapping[str, str]
    failed: Mapping[str, str]
    waiting: Sequence[str] = ()

    def __str__(self) -> str:
        total, width = len(self.found) + len(self.failed), max(map(len, [*self.found, *self.failed]))
        verdict = f"fails {len(self.failed)} of {total} checks" if self.failed else f"passes {total} checks"
        waiting = f"; {len(self.waiting)} more are made once it holds" if self.waiting else ""
        lines = [f"{self.subject} {verdict}{waiting}"]
        lines += [f"  FAILED {name.replace('_', ' ')}: {said}" for name, said in self.failed.items()]
        lines += [f"  {name.replace('_', ' '):<{width}}  {said}" for name, said in self.found.items()]
        return "\n".join(lines)

    __repr__ = __str__


def check(subject: Any) -> Checked:
    """Checks a policy or an environment of your own, and returns a report to print.

    A policy is checked for shapes, dtypes, purity, the simplex, agreement of ``step``, ``jit``, ``vmap`` and
    ``simulate``, hostile losses, bounds of fields and the order of arms. An environment is checked for shapes, purity,
    and its means and moments by sampling. The report also says whether games are played by machine code.

    Args:
      subject: A policy, an environment, or a grid, of which the first point is checked.

    Returns:
      A report, whose text has a line for each check.

    Raises:
      CheckError: A check does not hold. The message is the whole report, with the remedy.

    Example:
      >>> import jaxbandit as jb
      >>> print(jb.check(jb.Bernoulli(means=[0.2, 0.8])))  # doctest: +ELLIPSIS
      Bernoulli(means=[0.2, 0.8]) passes 8 checks
        ...
    """
    obj = subject.points[0] if isinstance(subject, Grid) else subject
    kind = _kind(obj)
    check_made(obj)
    validate(obj)
    check_single(obj)
    obj = at_horizon(obj, min(HORIZON, getattr(obj, "num_rows", HORIZON)))
    found, failed = {}, {}
    checks: dict[str, Callable[[Any], str]] = dict(POLICY_CHECKS if kind == "policy" else ENVIRONMENT_CHECKS)
    checks["plays_by_machine_code"] = _way
    for name, holds in checks.items():
        if FIRST & failed.keys():
            break
        try:
            found[name] = holds(obj)
        except CheckError as error:
            failed[name] = str(error)
        except Exception as error:  # the author's code may raise anything
            failed[name] = f"it raises {type(error).__name__}: {str(error).strip().splitlines()[0]}"
    waiting = [name for name in checks if name not in found and name not in failed]
    report = Checked(repr(obj), kind, found, failed, waiting)
    if failed:
        raise CheckError(str(report))
    return report


def _kind(obj: Any) -> str:
    """Returns whether an object is a policy or an environment; raises ``ValueError`` if it is neither."""
    if isinstance(obj, type):
        raise ValueError(f"check() takes an object, got the class {obj.__name__}; pass {obj.__name__}(...)")
    lacks = {kind: lacking(kind, obj) for kind in PROTOCOL}
    for kind, missing in lacks.items():
        if not missing:
            return kind
    if hasattr(obj, "replay"):
        check_kind("environment", obj)  # raises: a table is not an environment yet
    nearest = min(lacks, key=lambda kind: len(lacks[kind]))
    raise ValueError(
        f"{type(obj).__name__} is neither a policy (init, probabilities, update) nor an environment (num_arms, means, "
        f"loss); for {'a policy' if nearest == 'policy' else 'an environment'} it lacks {', '.join(lacks[nearest])}"
    )


def _way(obj: Any) -> str:
    pair = (obj, Bernoulli(means=[0.2, 0.5])) if _kind(obj) == "policy" else (Uniform(), obj)
    way, reason = explained(*pair)
    return f"yes: {reason}" if way == "native" else f"no, JAX's scan plays it some 50 to 200 times slower: {reason}"

"""The results of a study as published tables see them: its pairs with their names, regret, gaps, and what is given."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import xarray as xr

from jaxbandit.analysis import risk
from jaxbandit.dataset.labels import pretty
from jaxbandit.dataset.results import played
from jaxbandit.grid import registry_name
from jaxbandit.policies import POLICIES
from jaxbandit.studies.entries import ENVIRONMENT, Entry
from jaxbandit.studies.study import Study
from jaxbandit.theory import assumptions, guarantees

LETTERS = {"α": "alpha", "σ": "sigma"}
FIELDS = {"α": "moment_order", "σ": "moment_bound"}


@dataclasses.dataclass(frozen=True)
class Results:
    """The results of a study.

    Attributes:
      study: The study.
      ds: Its dataset, by ``policy``, ``environment``, ``seed`` and ``round``.
    """

    study: Study
    ds: xr.Dataset

    @property
    def environments(self) -> dict[str, Any]:
        """The environments by label."""
        return dict(zip(map(str, self.ds.environment.values), self.study.resolved.points, strict=True))

    def policies(self, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns labels of policies with the names that a table shows; all if none are chosen."""
        labels = [str(label) for label in self.ds.policy.values]
        return _chosen(labels, chosen) if chosen else {label: pretty(label) for label in labels}

    def places(self, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns labels of environments with the headings that a table shows; all if none are chosen."""
        labels = [str(label) for label in self.ds.environment.values]
        return _chosen(labels, chosen) if chosen else {label: f"`{label}`" for label in labels}

    def remark(self, pairs: Iterable[tuple[str, str]]) -> str:
        """Returns words behind the name of a row if it is outside its assumptions in some of the row's pairs."""
        pairs, outside = list(pairs), assumptions.outside_of(self.ds.attrs)
        count = sum(pair in outside for pair in pairs)
        where = "" if count == len(pairs) else f" in {count} of {len(pairs)}"
        return f" ({assumptions.OUTSIDE}{where})" if count else ""

    def telling(self, environment: str) -> risk.Gaps | None:
        """Returns the gaps of an environment if some policy of the study wins its median game there; None if not."""
        games = (self.regret(str(policy), environment) for policy in self.ds.policy.values)
        return risk.telling(games, risk.gaps_of(self.environments[environment]))

    def given(self, label: str) -> str:
        """Returns what a policy is given, the unit of the losses included; that of the policy inside for a wrapper.

        A moment order or bound that the study file has as a number says nothing about the environment. Such an order is
        left out, and such a bound counts as the unit of the losses.
        """
        index = [str(one) for one in self.ds.policy.values].index(label)
        pair = next(pair for pair in self.study.resolved.pairs() if pair.index[0] == index)
        letters = guarantees.given(_name(pair.policy))
        if letters is None:
            return ""
        numbers = {letter for letter, name in FIELDS.items() if not _refers(pair.entry, name)}
        shown = ["unit" if letter in numbers else letter for letter in letters if letter not in {"α"} & numbers]
        return ", ".join(LETTERS.get(letter, letter) for letter in dict.fromkeys(shown)) or "nothing"

    def regret(self, policy: str, environment: str) -> xr.DataArray:
        """Returns the regret of a pair, [seed, round], up to the last round it was played to, in memory."""
        return played(self.ds.regret.sel(policy=policy, environment=environment).load())


def _name(policy: Any) -> str:
    """Returns the registry name of a policy, with that of the policy inside: ``doubling[policy=uniinf]``."""
    name = registry_name(type(policy), POLICIES)
    return f"{name}[policy={_name(policy.policy)}]" if hasattr(policy, "policy") else name


def _refers(entry: Entry, name: str) -> bool:
    """Returns whether an entry takes a field from the environment at one of its points."""
    return any(
        isinstance(value, str) and value == ENVIRONMENT for value in (entry.fixed.get(name), *entry.axes.get(name, ()))
    )


def _chosen(labels: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Returns the chosen labels with their names; the start of a label stands for it if no other label starts so."""
    found = {}
    for start, name in chosen.items():
        fitting = [start] if start in labels else [label for label in labels if label.startswith(start)]
        if len(fitting) != 1:
            raise ValueError(f"{len(fitting)} labels of the study start with {start!r}; they are {', '.join(labels)}")
        found[fitting[0]] = name
    return found

"""The resolved study: every policy and environment of a study file, made once, with its labels."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from jaxbandit.grid import Grid
from jaxbandit.studies.entries import Declared, Entry


@dataclasses.dataclass(frozen=True)
class ResolvedPair:
    """One policy with one environment, and the entry of the policy.

    Attributes:
      index: The numbers of the policy and of the environment.
      entry: The entry of ``policies`` that the policy comes from.
      policy: The policy, with the values that it takes from the environment.
      environment: The environment.
    """

    index: tuple[int, int]
    entry: Entry
    policy: Any
    environment: Any


@dataclasses.dataclass(frozen=True)
class Resolved:
    """The policies and environments of a study.

    Attributes:
      policies: The checked entries of ``policies``.
      environments: The checked entries of ``environments``.
      environment_grids: The grid of each entry of ``environments``, at the study's horizon.
      declared: Every environment with the values that it declares, in the order of the grids.
      policy_grids: For each entry of ``policies``, its grid in every environment.
    """

    policies: list[Entry]
    environments: list[Entry]
    environment_grids: list[Grid]
    declared: list[Declared]
    policy_grids: list[list[Grid]]

    @classmethod
    def of(cls, policies: list[Entry], environments: list[tuple[Entry, Grid]], horizon: int) -> "Resolved":
        """Makes the policies and environments of checked entries."""
        declared = [
            Declared(
                environment=point,
                horizon=int(getattr(point, "horizon", horizon)),
                moment_order=entry.options.get("moment_order") or getattr(point, "moment_order", None),
            )
            for entry, grid in environments
            for point in grid.points
        ]
        grids = [
            [entry.grid(one) for one in declared] if entry.refers else [entry.grid(declared[0])] * len(declared)
            for entry in policies
        ]
        return cls(policies, [entry for entry, _ in environments], [grid for _, grid in environments], declared, grids)

    @property
    def points(self) -> list[Any]:
        """Every environment."""
        return [one.environment for one in self.declared]

    def labelled_policies(self) -> list[tuple[str, Grid]]:
        """Returns each entry's label and its grid, with the values that the first environment declares."""
        return [(entry.label, grids[0]) for entry, grids in zip(self.policies, self.policy_grids, strict=True)]

    def labelled_environments(self) -> list[tuple[str, Grid]]:
        """Returns each entry's label and its grid."""
        return [(entry.label, grid) for entry, grid in zip(self.environments, self.environment_grids, strict=True)]

    def pairs(self) -> Iterator[ResolvedPair]:
        """Yields every pair; the environment varies fastest."""
        first = 0
        for entry, grids in zip(self.policies, self.policy_grids, strict=True):
            for p in range(len(grids[0].points)):
                for e, one in enumerate(self.declared):
                    yield ResolvedPair((first + p, e), entry, grids[e].points[p], one.environment)
            first += len(grids[0].points)

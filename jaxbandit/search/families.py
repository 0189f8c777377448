"""Families of environments, for which a policy is tuned or in which its worst instance is searched."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit import parameters
from jaxbandit.grid import Grid, as_grid
from jaxbandit.search.boxes import Box, box_of, set_values


@dataclasses.dataclass(frozen=True)
class Family:
    """An environment with parameters that range between bounds, evenly in their logarithms.

    Attributes:
      environment: An environment; parameters without a range keep its values.
      ranges: Bounds by parameter, e.g. ``{"tail_index": (1.1, 2.0), "gap": (0.05, 0.5)}``.

    Example:
      >>> import jaxbandit as jb
      >>> family = Family(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), {"tail_index": (1.1, 2.0)})
      >>> family.at({"tail_index": 1.25})
      Pareto(means=[0.5, 1.0], tail_index=1.25)
    """

    environment: Any
    ranges: Mapping[str, Sequence[float]]

    @functools.cached_property
    def box(self) -> Box:
        """Returns the ranges, checked once; if there are none, an error names the parameters that can be searched."""
        if isinstance(self.environment, type) or not hasattr(self.environment, "means"):
            raise ValueError(
                f"a family needs an environment, such as jb.Pareto(means=..., tail_index=...), got {self.environment!r}"
            )
        able = parameters.movable(self.environment)
        kind = type(self.environment).__name__
        if not able:
            raise ValueError(f"{self.environment!r} has no free parameter: a {kind} has none; use another environment")
        open_ended = [name for name, pair in self.ranges.items() if pair is None]
        if open_ended:
            raise ValueError(f"{kind}.{open_ended[0]} has no default range; give one: [lowest, highest]")
        return box_of(self.environment, self.ranges, "searched")

    def at(self, values: Mapping[str, float]) -> Any:
        """Returns the environment with these values."""
        return set_values(self.environment, values)

    def draw(self, count: int, rng: np.random.Generator) -> list[Any]:
        """Draws environments independently, log-uniformly in every parameter."""
        box = self.box
        places = rng.random((count, len(box.names)))
        return [self.at(box.named(values)) for values in box.from_unit(places)]


class Environments:
    """A distribution of environments: fixed ones with equal weights, or families to draw from.

    Args:
      given: An environment, a grid, a ``Family``, or a list of those.

    Example:
      >>> import jaxbandit as jb
      >>> fixed = Environments(jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6]))
      >>> fixed.random, len(fixed.draw(8, np.random.default_rng(0)))
      (False, 2)
    """

    def __init__(self, given: Any):
        entries = list(given) if isinstance(given, list | tuple) else [given]
        self.members: list[Any] = []
        for entry in entries:
            points = as_grid(entry).points if isinstance(entry, Grid) else [entry]
            self.members += points
        if not self.members:
            raise ValueError("environments is empty; pass an environment, a grid, a family, or a list of those")
        for member in self.members:
            if isinstance(member, Family):
                member.box  # noqa: B018  raises an error if a range is not allowed
            elif isinstance(member, type) or not hasattr(member, "means"):
                raise ValueError(
                    f"{member!r} is not an environment; pass environments such as jb.Pareto(means=..., tail_index=...)"
                )

    @property
    def random(self) -> bool:
        """Returns whether environments are drawn; if so, unseen ones are other environments."""
        return any(isinstance(member, Family) for member in self.members)

    def draw(self, count: int, rng: np.random.Generator) -> list[Any]:
        """Draws ``count`` environments: families take turns; of fixed environments all, or ``count`` different ones."""
        if not self.random and count >= len(self.members):
            return self.members
        if count <= len(self.members):
            chosen = [self.members[n] for n in rng.choice(len(self.members), size=count, replace=False)]
        else:
            chosen = [self.members[n % len(self.members)] for n in range(count)]
        return [member.draw(1, rng)[0] if isinstance(member, Family) else member for member in chosen]

    def example(self) -> Any:
        """Returns an environment of the distribution."""
        first = self.members[0]
        return first.environment if isinstance(first, Family) else first

    def about(self) -> list[str]:
        """Describes each member in a line of text."""
        return [
            f"{member.environment!r} with {', '.join(f'{k} in {list(v)}' for k, v in member.ranges.items())}"
            if isinstance(member, Family)
            else repr(member)
            for member in self.members
        ]

"""The points of a sensitivity study: every policy in every environment, and their labelled dataset."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.dataset.results import labelled_dataset, product_dataset
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import as_grid, registry_name
from jaxbandit.policies import POLICIES
from jaxbandit.studies.study import Study
from jaxbandit.types import validate


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The pairs of policies and environments, with the environment fastest, and their coordinates."""

    pairs: Sequence[tuple[Any, Any]]
    coordinates: Callable[[], xr.Dataset]  # a dataset without variables: dimensions of the sweep

    def dataset(
        self, variables: Mapping[str, np.ndarray], behind: Mapping[str, Any], long_names: Mapping[str, str]
    ) -> xr.Dataset:
        """Returns variables [pairs, ...] as a dataset; ``behind`` names the dimensions after those of the sweep.

        A variable with n axes after the first has the first n of these dimensions.
        """
        ds = self.coordinates()
        front = tuple(str(dim) for dim in ds.sizes)
        shape = tuple(ds.sizes[dim] for dim in front)
        ds = ds.assign_coords(behind)
        for name, values in variables.items():
            dims = (*front, *list(behind)[: values.ndim - 1])
            ds[name] = (dims, values.reshape((*shape, *values.shape[1:])), {"long_name": long_names[name]})
        return ds


def pairs_of(policy: Any, environment: Any) -> Pairs:
    """Makes the pairs of the arguments of ``simulate`` (single ones, grids or lists), or of a ``Study`` and None."""
    if isinstance(policy, Study):
        return _pairs_of_study(policy)
    listed = [entry if isinstance(entry, list | tuple) else [entry] for entry in (policy, environment)]
    for name, entries in zip(("policy", "environment"), listed, strict=True):
        if not entries:
            raise ValueError(f"{name} is an empty list; pass at least one")
    policies, environments = ([as_grid(entry) for entry in entries] for entries in listed)
    pairs = [(p, w) for grid in policies for p in grid.points for other in environments for w in other.points]
    for p, w in pairs:
        validate(p)
        validate(w)

    def coordinates() -> xr.Dataset:
        if not isinstance(policy, list | tuple) and not isinstance(environment, list | tuple):
            return product_dataset(policies[0], environments[0], {}, {})
        return labelled_dataset(
            [(registry_name(grid.cls, POLICIES), grid) for grid in policies],
            [(registry_name(grid.cls, ENVIRONMENTS), grid) for grid in environments],
            {},
            {},
        )

    return Pairs(pairs, coordinates)


def _pairs_of_study(study: Study) -> Pairs:
    """Makes the pairs of a study; each policy is given what it needs of its environment."""

    def coordinates() -> xr.Dataset:
        return labelled_dataset(study.resolved.labelled_policies(), study.resolved.labelled_environments(), {}, {})

    return Pairs([(pair.policy, pair.environment) for pair in study.resolved.pairs()], coordinates)

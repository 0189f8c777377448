"""Parameters of many policies and environments, stacked, and dealt to lanes."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit.types import shared_leaves


def distinct(objects: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """Returns the distinct ones of some objects, and the place of each among them."""
    places: dict[int, int] = {}
    of = np.asarray([places.setdefault(id(one), len(places)) for one in objects])
    by_id = {id(one): one for one in objects}
    return [by_id[key] for key in places], of


def stacked(objects: Sequence[Any], dtype: str) -> list[tuple[bool, np.ndarray]]:
    """Stacks every leaf of the objects along a first axis; a leaf that games share is equal in all and kept once."""
    return [
        (shared, np.asarray(leaves[0], dtype) if shared else np.stack([np.asarray(leaf, dtype) for leaf in leaves]))
        for shared, *leaves in zip(shared_leaves(objects[0]), *map(jax.tree.leaves, objects), strict=True)
    ]


def taken(job_leaves: list[tuple[bool, np.ndarray]], index: np.ndarray) -> list[np.ndarray]:
    """Returns the leaves of the given points, lanes last; shared leaves stay unchanged."""
    return [leaf if shared else np.moveaxis(leaf[index], 0, -1) for shared, leaf in job_leaves]

"""Helpers of branches and loops: their programs, and small arrays as flat lists of entries."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.native import program as programs
from jaxbandit.engine.native.arrays import Apart, Array
from jaxbandit.engine.native.emit import Value


def closed(jaxpr: Any) -> programs.Program:
    """Returns the program of a branch or of a loop's body."""
    return programs.flattened(jaxpr)


def flat(arrays: Sequence[Apart]) -> list[Value]:
    """Returns all entries of some arrays."""
    return [value for array in arrays for value in array.items.flat]


def shaped(values: Sequence[Value], like: Sequence[Array], scope) -> list[Apart]:
    """Makes arrays with the shapes of ``like`` from a flat list of entries."""
    rest = iter(values)
    shaped = []
    for array in like:
        items = np.empty(array.shape, object)
        for index in np.ndindex(*array.shape):
            items[index] = next(rest)
        shaped.append(Apart(items, array.dtype, scope))
    return shaped

"""What a loop carries, in few arrays."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit import lanes
from jaxbandit.types import Array


class Rows:
    """How the leaves of a tree, arrays that end in the lane axis, lie in one table [rows, lanes] per dtype.

    A loop copies every array it carries: thirty vectors in one table are copied at once. Leaves too
    large to be unrolled are left as they are.
    """

    def __init__(self, tree: Any):
        leaves, self._structure = jax.tree.flatten(tree)
        self._shapes = [leaf.shape for leaf in leaves]
        small = [n for n, leaf in enumerate(leaves) if lanes.is_small(leaf.shape[:-1])]
        dtypes = sorted({leaves[n].dtype for n in small}, key=str)
        self._groups = [[n for n in small if leaves[n].dtype == dtype] for dtype in dtypes]
        self._large = [n for n in range(len(leaves)) if n not in small]

    def pack(self, tree: Any) -> list[Array]:
        """The tables, then the large leaves."""
        leaves = jax.tree.leaves(tree)
        tables = [
            jnp.concatenate([leaves[n].reshape(-1, leaves[n].shape[-1]) for n in group]) for group in self._groups
        ]
        return tables + [leaves[n] for n in self._large]

    def unpack(self, packed: list[Array]) -> Any:
        """The tree."""
        leaves: dict[int, Array] = dict(zip(self._large, packed[len(self._groups) :], strict=True))
        for group, table in zip(self._groups, packed, strict=False):
            first = 0
            for n in group:
                size = math.prod(self._shapes[n][:-1])
                leaves[n] = table[first : first + size].reshape(self._shapes[n])
                first += size
        return jax.tree.unflatten(self._structure, [leaves[n] for n in range(len(leaves))])

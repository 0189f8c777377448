"""What a loop carries, in few arrays."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import lanes
from jaxbandit.types import Array


class Rows:
    """How the leaves of a tree, arrays that end in the lane axis, lie in one table [rows, lanes] per width of dtype.

    A loop copies every array it carries: thirty vectors in one table are copied at once. A table has one dtype, so
    whole numbers go as floats of the same bits, if there are any (``dressed``). Leaves too large to be unrolled are
    left as they are.
    """

    def __init__(self, tree: Any):
        leaves, self._structure = jax.tree.flatten(tree)
        self._leaves = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        small = [n for n, leaf in enumerate(leaves) if lanes.is_small(leaf.shape[:-1])]
        floats = {leaves[n].dtype for n in small if jnp.issubdtype(leaves[n].dtype, jnp.floating)}
        self._dressed = {n: _table_dtype(leaves[n].dtype, floats) for n in small}
        self._groups = [
            [n for n in small if self._dressed[n] == dtype] for dtype in dict.fromkeys(self._dressed.values())
        ]
        self._large = [n for n in range(len(leaves)) if n not in small]

    def dressed(self, tree: Any) -> Any:
        """The tree in the dtypes of its tables."""
        leaves = jax.tree.leaves(tree)
        return self._unflatten([_as(leaf, self._dressed.get(n, leaf.dtype)) for n, leaf in enumerate(leaves)])

    def undressed(self, tree: Any) -> Any:
        """The tree in its own dtypes."""
        pairs = zip(jax.tree.leaves(tree), self._leaves, strict=True)
        return self._unflatten([_as(leaf, own.dtype) for leaf, own in pairs])

    def pack(self, tree: Any) -> list[Array]:
        """The tables, then the large leaves, of a tree in the dtypes of its tables."""
        leaves = jax.tree.leaves(tree)
        tables = [
            jnp.concatenate([leaves[n].reshape(-1, leaves[n].shape[-1]) for n in group]) for group in self._groups
        ]
        return tables + [leaves[n] for n in self._large]

    def unpack(self, packed: list[Array]) -> Any:
        """The tree, in the dtypes of its tables."""
        leaves: dict[int, Array] = dict(zip(self._large, packed[len(self._groups) :], strict=True))
        for group, table in zip(self._groups, packed, strict=False):
            first = 0
            for n in group:
                shape = self._leaves[n].shape
                size = math.prod(shape[:-1])
                leaves[n] = table[first : first + size].reshape(shape)
                first += size
        return self._unflatten([leaves[n] for n in range(len(leaves))])

    def _unflatten(self, leaves: list[Array]) -> Any:
        return jax.tree.unflatten(self._structure, leaves)


def _table_dtype(dtype: Any, floats: set) -> Any:
    """The float of the same width if the tree has it: a second float dtype would take a second kernel (``fusion``)."""
    if not jnp.issubdtype(dtype, jnp.integer):
        return dtype
    same = [each for each in floats if each.itemsize == dtype.itemsize]
    return same[0] if same else np.dtype(f"uint{8 * dtype.itemsize}")


def _as(leaf: Array, dtype: Any) -> Array:
    return leaf if leaf.dtype == dtype else lax.bitcast_convert_type(leaf, dtype)

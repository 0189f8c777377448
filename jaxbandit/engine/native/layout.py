"""The layout of games' arrays in memory."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

ALIGN = 64  # bytes


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One array of a game: its shape, its dtype, and its place in the memory of a group of lanes."""

    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)


class Layout:
    """The places of games' arrays: a group of ``width`` lanes has them together, each ``[entries][lanes]``."""

    def __init__(self, leaves: Sequence[Any], width: int):
        self.width = width
        self.leaves: list[Leaf] = []
        offset = 0
        for leaf in leaves:
            dtype = np.dtype(leaf.dtype)
            self.leaves.append(Leaf(tuple(leaf.shape), dtype, offset))
            offset += -(-math.prod(leaf.shape) * dtype.itemsize * width // ALIGN) * ALIGN
        self.bytes = max(offset, ALIGN)

    def allocate(self, groups: int) -> np.ndarray:
        """Returns memory for groups of lanes, filled with zeros."""
        return aligned((groups, self.bytes), np.uint8)

    def views(self, memory: np.ndarray) -> list[np.ndarray]:
        """Returns each leaf in memory as ``[groups, entries, lanes]``."""
        found = []
        for leaf in self.leaves:
            flat = memory[:, leaf.offset : leaf.offset + leaf.size * leaf.dtype.itemsize * self.width]
            found.append(flat.view(leaf.dtype).reshape(len(memory), leaf.size, self.width))
        return found

    def read(self, memory: np.ndarray, lanes: int) -> list[np.ndarray]:
        """Returns copies of the leaves in their own shapes, lanes last; every NaN has the same bits."""
        out = []
        for leaf, view in zip(self.leaves, self.views(memory), strict=True):
            array = np.moveaxis(view, 0, 1).reshape(leaf.size, len(memory) * self.width)[:, :lanes]
            array = np.array(array.reshape(*leaf.shape, lanes))
            if leaf.dtype.kind == "f":
                array[np.isnan(array)] = np.nan
            out.append(array)
        return out

    def write(self, memory: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
        """Writes leaves that end in the lane axis; copies of the last lane fill the last group."""
        for view, array, leaf in zip(self.views(memory), arrays, self.leaves, strict=True):
            lanes = array.shape[-1]
            flat = np.asarray(array, leaf.dtype).reshape(leaf.size, lanes)
            extra = len(memory) * self.width - lanes
            if extra:
                flat = np.concatenate([flat, np.repeat(flat[:, -1:], extra, axis=1)], axis=1)
            view[...] = np.moveaxis(flat.reshape(leaf.size, len(memory), self.width), 0, 1)


def aligned(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Returns zeros whose address is a multiple of 64 bytes."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size].view(dtype).reshape(shape)

"""The memory of arrays that live within a round."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.engine.native.arrays import Array, Buffer
from jaxbandit.engine.native.emit import Value

if TYPE_CHECKING:
    from jaxbandit.engine.native.scope import Scope


class Workspace:
    """The memory of one group of lanes for arrays that live within a round; its size is measured while lowering.

    Args:
      base: Address at which it begins.
      stride: Lanes of a row.
    """

    def __init__(self, base: Value, stride: int):
        self.base, self.stride = base, stride
        self.bytes = 0
        self.globals: list[str] = []  # the definitions of constant arrays
        self._equations = 0

    def numbered(self, count: int) -> range:
        """Returns numbers for equations that no other equation of the function has."""
        self._equations += count
        return range(self._equations - count, self._equations)

    def constant(self, value: np.ndarray, scope: "Scope") -> Buffer:
        """Returns a known large array, stored in the memory of the program."""
        kind = Array((), value.dtype).kind
        stored = "i8" if kind == "i1" else kind
        entries = ", ".join(f"{stored} {scope.f.constant(number, stored).text}" for number in value.ravel().tolist())
        name = f"@array{len(self.globals)}"
        self.globals.append(f"{name} = private constant [{value.size} x {stored}] [{entries}], align 64")
        return Buffer(Value(name, "ptr", False), value.shape, value.dtype, scope, shared=True)

    def buffer(self, shape: Sequence[int], dtype: Any, scope: "Scope") -> Buffer:
        """Returns room for an array."""
        itemsize = np.dtype(dtype).itemsize
        start = self.bytes
        self.bytes += -(-math.prod(shape) * itemsize * self.stride // 64) * 64
        where = scope.f.place(self.base, start, Array((), dtype).kind)
        return Buffer(where, shape, dtype, scope, writable=True)

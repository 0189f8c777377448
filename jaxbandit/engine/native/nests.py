"""Places in arrays, and loops over all of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.native.arrays import Index
from jaxbandit.engine.native.emit import Function, Value

UNROLLED = 4  # entries that a turn of a loop computes


class Nests:
    """The loops of a function.

    Attributes:
      f: The function being written.
      turn: The entries computed so far in this turn of a loop; None outside of loops.
    """

    def __init__(self, f: Function):
        self.f = f
        self.turn: dict[Any, Value] | None = None

    def linear(self, index: Index, shape: Sequence[int]) -> int | Value:
        """Returns the row of a place."""
        row: int | Value = 0
        for i, length in zip(index, shape, strict=True):
            row = self.plus(self.times(row, length), i)
        return row

    def plus(self, a: int | Value, b: int | Value) -> int | Value:
        """Returns the sum of two indices."""
        a, b = (int(i) if isinstance(i, np.integer) else i for i in (a, b))
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int):
            a, b = b, a
        assert isinstance(a, Value)
        if isinstance(b, int):
            return a if b == 0 else self.f.add(a, self.f.constant(b, a.kind))
        return self.f.add(*self._same_kind(a, b))

    def times(self, a: int | Value, b: int) -> int | Value:
        """Returns an index times a number."""
        a = int(a) if isinstance(a, np.integer) else a
        if isinstance(a, int):
            return a * b
        return a if b == 1 else self.f.mul(a, self.f.constant(b, a.kind))

    def _same_kind(self, a: Value, b: Value) -> tuple[Value, Value]:
        if a.kind == b.kind:
            return a, b
        return tuple(v if v.kind == "i64" else self.f.cast("sext", v, "i64") for v in (a, b))  # pyright: ignore

    def loop_over(self, shape: Sequence[int], body: Callable[[Index], None]) -> None:
        """Runs ``body`` at every place."""

        def turn(index: Index, copy: int, flat: list[Value]) -> list[Value]:
            self.turn = {}
            body(index)
            self.turn = None
            return flat

        self.nest(shape, turn, [], UNROLLED)

    def nest(self, shape, turn: Callable[[Index, int, list[Value]], list[Value]], carried, copies: int) -> list[Value]:
        """Writes a loop over all places, the last axis innermost and several entries in a turn."""
        f = self.f

        def level(axis: int, index: Index, carried: list[Value]) -> list[Value]:
            length = shape[axis]
            if axis < len(shape) - 1:
                if length == 1:
                    return level(axis + 1, (*index, 0), carried)
                return f.loop(
                    f.constant(0, "i64"),
                    f.constant(length, "i64"),
                    carried,
                    lambda i, now: level(axis + 1, (*index, i), now),
                )
            turns = length // copies
            if length <= 16:
                for n in range(length):
                    carried = turn((*index, n), n % copies, carried)
                return carried

            def several(i: Value, now: list[Value]) -> list[Value]:
                first = self.times(i, copies)
                for n in range(copies):
                    now = turn((*index, self.plus(first, n)), n, now)
                return now

            carried = f.loop(f.constant(0, "i64"), f.constant(turns, "i64"), carried, several)
            for n in range(turns * copies, length):
                carried = turn((*index, n), n % copies, carried)
            return carried

        return level(0, (), list(carried))

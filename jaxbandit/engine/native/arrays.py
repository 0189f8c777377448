"""The arrays of one game while its round is lowered.

A small array is taken apart: every entry is a value of its own. A large array lies in memory or is not computed yet.
An array that is not computed yet is a function from places to entries; a loop over its entries is written when another
array needs it. One loop serves all arrays and sums of the same shape that are ready by then, and computes their common
parts once.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.engine.native.emit import Value

if TYPE_CHECKING:
    from jaxbandit.engine.native.scope import Scope

SMALL = 64  # entries of the largest array that is taken apart
CHEAP = 3  # operations that are repeated rather than stored

Index = tuple["int | Value", ...]

KINDS = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.bool_): "i1",
    np.dtype(np.int8): "i8",
    np.dtype(np.uint8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.uint16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.uint32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint64): "i64",
}


class Array:
    """An array of one game: a shape, a dtype, and an entry for every place."""

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def kind(self) -> str:
        """The LLVM type of an entry."""
        return KINDS[self.dtype]

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    def at(self, index: Index) -> Value:
        """Returns the entry at a place; indices are numbers, scalars, or one number per lane."""
        raise TypeError(type(self).__name__)


class Apart(Array):
    """A small array: one value for each entry, in ``items``."""

    def __init__(self, items: np.ndarray, dtype: Any, scope: "Scope"):
        super().__init__(items.shape, dtype)
        self.items: Any = items  # of values
        self._scope = scope
        self._spilled: Buffer | None = None

    def at(self, index: Index) -> Value:
        """Returns the entry; if its place is not known while lowering, selects or a read of memory find it."""
        if all(isinstance(i, int) for i in index):
            return self.items[index]
        if self.size == 1:
            return self.items.flat[0]
        moving = [axis for axis, i in enumerate(index) if isinstance(i, Value)]
        if len(moving) == 1 and self.shape[moving[0]] <= 16:
            (axis,), f = moving, self._scope.f
            place: Any = index[axis]
            entries = [self.items[(*index[:axis], n, *index[axis + 1 :])] for n in range(self.shape[axis])]
            found = entries[0]
            for n, entry in enumerate(entries[1:], start=1):
                here = f.compare("eq", place, f.constant(n, place.kind))
                found = f.select(here, entry, found)
            return found
        return self.spilled().at(index)

    def spilled(self) -> "Buffer":
        """Returns the array in memory, for places that are not known while lowering."""
        if self._spilled is None:
            self._spilled = self._scope.workspace.buffer(self.shape, self.dtype, self._scope)
            for index in np.ndindex(*self.shape):
                self._spilled.put(index, self.items[index])
        return self._spilled


class Buffer(Array):
    """An array in memory, ``[entries][lanes]``.

    Attributes:
      base: Where it begins.
      shared: Whether the lanes share it; then it is ``[entries]``.
      writable: Whether a later version of the array may take its place.
      origin: The buffer that owns the memory; a view under another shape has the origin of the viewed buffer.
    """

    def __init__(self, base: Value, shape, dtype, scope: "Scope", *, shared: bool = False, writable: bool = False):
        super().__init__(shape, dtype)
        self.base, self.shared, self.writable, self._scope = base, shared, writable, scope
        self.origin = self

    def at(self, index: Index) -> Value:
        """Reads the entry."""
        f = self._scope.f
        row = self._scope.linear(index, self.shape)
        if isinstance(row, Value) and row.wide:
            return f.gather(self.base, row, self.kind, shared=self.shared)
        return f.load(self.base, row, self.kind, wide=not self.shared)

    def put(self, index: Index, value: Value, mask: Value | None = None) -> None:
        """Writes an entry in the lanes of ``mask``; if every lane has its own index, the entries are scattered."""
        f = self._scope.f
        row = self._scope.linear(index, self.shape)
        if isinstance(row, Value) and row.wide:
            f.scatter(value, self.base, row, mask)
        else:
            f.store(value, self.base, row, mask=mask)

    def viewed(self, shape: Sequence[int]) -> "Buffer":
        """Returns the same memory under another shape."""
        view = Buffer(self.base, shape, self.dtype, self._scope, shared=self.shared, writable=self.writable)
        view.origin = self.origin
        return view


class Node(Array):
    """A large array that is not computed yet.

    Args:
      element: Entry at a place, computed from entries of the sources.
      sources: (array, how): how a loop over this node's places reads a source. "same" reads the same place, "once"
        every entry at most once, "many" entries repeatedly.
      cost: Operations of one entry, without those of its sources.
      users: Numbers of the equations that read it.
      number: Number of the equation that makes it.
    """

    def __init__(self, shape, dtype, scope, element, sources, cost: float, users: set[int], number: int):
        super().__init__(shape, dtype)
        self.element: Callable[[Index], Value] = element
        self.sources: list[tuple[Array, str]] = sources
        self.cost, self.users, self.number = cost, users, number
        self.stored: Buffer | None = None
        self._scope = scope

    def at(self, index: Index) -> Value:
        """Returns the entry: from memory, from this turn of the loop, or computed."""
        if self.stored is not None:
            return self.stored.at(index)
        return self._scope.remembered(self, index, lambda: self.element(index))

    def is_cheap(self) -> bool:
        """Returns whether an entry takes few operations, counted down to the arrays in memory."""
        total = 0.0
        for node in unstored([self]):
            total += node.cost
            if total > CHEAP:
                return False
        return True


class Pending(Array):
    """The small result of a reduction over a large array; computed when its entries are first read.

    Args:
      operand: The array that is reduced.
      axes: The axes along which it is reduced.
      start: The accumulators before the first entry.
      absorb: (accumulators, entry, index along the axes) -> accumulators.
      merge: (accumulators, accumulators) -> accumulators, the first of earlier entries.
      finish: accumulators -> result.
      number: Number of the equation that makes it.
    """

    def __init__(self, shape, dtype, scope, operand: Array, axes, start, absorb, merge, finish, number: int):
        super().__init__(shape, dtype)
        self.operand, self.axes, self.number = operand, tuple(axes), number
        self.start, self.absorb, self.merge, self.finish = start, absorb, merge, finish
        self.result: Apart | None = None
        self._scope = scope

    def at(self, index: Index) -> Value:
        """Returns the entry; writes the loop if it has not been written."""
        return self.apart().at(index)

    def apart(self) -> Apart:
        """Returns the result taken apart."""
        if self.result is None:
            self._scope.reduce(self)
        assert self.result is not None
        return self.result


def merged(parts: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merges all parts into one, neighbours first."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = itertools.zip_longest(parts[::2], parts[1::2])
        parts = [a if b is None else merge(a, b) for a, b in pairs]
    return parts[0]


def unstored(arrays: Sequence[Array], *, aligned: bool = False) -> list[Node]:
    """Returns the nodes that loops over these arrays compute on the way, each once, before its sources.

    If ``aligned``, only the nodes that such a loop computes place by place.
    """
    found: dict[int, Node] = {}

    def walk(array: Array) -> None:
        if isinstance(array, Node) and array.stored is None and id(array) not in found:
            found[id(array)] = array
            for source, how in array.sources:
                if how == "same" or not aligned:
                    walk(source)

    for array in arrays:
        walk(array)
    return list(found.values())


def reads_elsewhere(array: Array, buffer: Buffer) -> bool:
    """Returns whether an array that is not computed yet reads a buffer at other places than its own."""
    aligned = {id(node) for node in unstored([array], aligned=True)}
    for node in unstored([array]):
        for source, how in node.sources:
            stored = source.stored if isinstance(source, Node) else source
            if (
                isinstance(stored, Buffer)
                and stored.origin is buffer.origin
                and (how != "same" or id(node) not in aligned)
            ):
                return True
    return False


def reads(array: Array, buffer: Buffer) -> bool:
    """Returns whether an array that is not computed yet reads a buffer's memory."""
    if isinstance(array, Pending):
        return array.result is None and reads(array.operand, buffer)
    sources = [array, *(source for node in unstored([array]) for source, _ in node.sources)]
    sources = [s.stored if isinstance(s, Node) else s for s in sources]
    return any(isinstance(s, Buffer) and s.origin is buffer.origin for s in sources)

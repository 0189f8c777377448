"""The scope in which arrays are computed: loops over the entries of large arrays, and their memory."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.native.arrays import (
    SMALL,
    Apart,
    Array,
    Buffer,
    Index,
    Node,
    Pending,
    merged,
    reads,
    reads_elsewhere,
    unstored,
)
from jaxbandit.engine.native.emit import Function, Value
from jaxbandit.engine.native.nests import UNROLLED, Nests
from jaxbandit.engine.native.workspace import Workspace


class Scope(Nests):
    """The place where arrays are computed: a function, its work space, and the results on this path of control.

    Args:
      f: The function being written.
      workspace: Memory for arrays that live for part of a round.
      mask: The lanes that take part, if not all do.
    """

    def __init__(self, f: Function, workspace: "Workspace", mask: Value | None = None):
        super().__init__(f)
        self.workspace, self.mask = workspace, mask
        self.nodes: list[Node] = []
        self.pending: list[Pending] = []
        self.computed: set[int] = set()  # equations whose results have been computed

    # Arrays

    def apart(self, array: Array) -> Apart:
        """Returns a small array taken apart."""
        if isinstance(array, Apart):
            return array
        if isinstance(array, Pending):
            return array.apart()
        items = np.empty(array.shape, object)
        for index in np.ndindex(*array.shape):
            items[index] = array.at(index)
        return Apart(items, array.dtype, self)

    def node(self, shape, dtype, element, sources, cost: float, users: set[int], number: int) -> Node:
        """Returns a large array, to be computed later."""
        node = Node(shape, dtype, self, element, sources, cost, users, number)
        self.nodes.append(node)
        return node

    def stored(self, array: Array) -> Buffer:
        """Returns the array in memory."""
        if isinstance(array, Buffer):
            return array
        if isinstance(array, Node):
            if array.stored is None:
                self._run_loop(array.shape, [array], [])
            assert array.stored is not None
            return array.stored
        return self.apart(array).spilled()

    def write(self, array: Array, buffer: Buffer, mask: Value | None = None) -> None:
        """Writes an array into a buffer of its shape, in the lanes of ``mask``."""
        if array.size <= SMALL:
            for index in np.ndindex(*array.shape):
                buffer.put(index, array.at(index), mask)
            return
        if isinstance(array, Node):
            self._prepare([array])
        self.loop_over(array.shape, lambda index: buffer.put(index, array.at(index), mask))

    def write_together(self, pairs: Sequence[tuple[Array, Buffer]]) -> None:
        """Writes arrays into buffers that some of them may read; entry by entry if all read the same place."""
        pairs = list(pairs)
        homes = [home for _, home in pairs]
        for array, _ in pairs:
            if isinstance(array, Node) and any(reads_elsewhere(array, home) for home in homes):
                self.stored(array)
        while pairs:
            shape = pairs[0][1].shape
            now = [(array, home) for array, home in pairs if home.shape == shape]
            pairs = [(array, home) for array, home in pairs if home.shape != shape]
            for array, _ in pairs:
                if isinstance(array, Node) and any(reads(array, home) for _, home in now):
                    self.stored(array)
            self._prepare([array for array, _ in now])

            def put(index: Index, now=now) -> None:
                values = [array.at(index) for array, _ in now]
                for value, (_, home) in zip(values, now, strict=True):
                    home.put(index, value)

            self.loop_over(shape, put)

    def fill(self, buffer: Buffer, array: Array, place: Callable[[Index], Index]) -> None:
        """Writes every entry of an array to ``place(index)`` of a buffer."""
        if array.size <= SMALL:
            array = self.apart(array)
            for index in np.ndindex(*array.shape):
                buffer.put(place(index), array.at(index))
            return
        self._prepare([array])
        self.loop_over(array.shape, lambda index: buffer.put(place(index), array.at(index)))

    def fill_with(self, buffer: Buffer, value: Value) -> None:
        """Writes one value to every place of a buffer."""
        self.loop_over(buffer.shape, lambda index: buffer.put(index, value))

    def reduce_rows(self, operand: Array, axes, shape, dtype, start, single, merge, finish) -> Buffer:
        """Writes a reduction with many results, with a loop along the axes for each."""
        self._prepare([operand])
        out = self.workspace.buffer(shape, dtype, self)
        outer = [axis for axis in range(len(operand.shape)) if axis not in axes]

        def result(where: Index) -> None:
            def turn(index: Index, copy: int, now: list[Value]) -> list[Value]:
                self.turn = {}
                full: list[Any] = [None] * len(operand.shape)
                for axis, i in (*zip(axes, index, strict=True), *zip(outer, where, strict=True)):
                    full[axis] = i
                return list(merge(now, single(operand.at(tuple(full)), index)))

            first = [self.f.widened(value) for value in start()]
            out.put(where, finish(self.nest([operand.shape[axis] for axis in axes], turn, first, 1)))

        self.loop_over(shape, result)
        return out

    def running(self, operand: Array, axis: int, reverse: bool, combine, start: Value) -> Buffer:
        """Writes the running combinations along an axis."""
        self._prepare([operand])
        out = self.workspace.buffer(operand.shape, operand.dtype, self)
        length, others = operand.shape[axis], [n for a, n in enumerate(operand.shape) if a != axis]

        def line(rest: Index) -> None:
            def turn(index: Index, copy: int, now: list[Value]) -> list[Value]:
                self.turn = {}
                i = self.plus(self.times(index[0], -1), length - 1) if reverse else index[0]
                here = (*rest[:axis], i, *rest[axis:])
                total = combine(now[0], operand.at(here))
                out.put(here, total)
                return [total]

            self.nest([length], turn, [self.f.widened(start)], 1)

        if others:
            self.loop_over(others, line)
        else:
            line(())
        self.turn = None
        return out

    def remembered(self, node: Node, index: Index, compute: Callable[[], Value]) -> Value:
        """Returns an entry of a node, computed once in a turn of a loop."""
        if self.turn is None:
            return compute()
        key = (id(node), *(i if isinstance(i, int) else i.text for i in index))
        if key not in self.turn:
            self.turn[key] = compute()
        return self.turn[key]

    def release(self, buffer: Buffer) -> None:
        """Computes all arrays that still read a buffer, because the buffer is about to change."""
        for pending in list(self.pending):
            if pending.result is None and reads(pending.operand, buffer):
                pending.apart()
        for node in list(self.nodes):
            if node.stored is None and node.users - self.computed and reads(node, buffer):
                self.stored(node)

    def reduce(self, wanted: Pending) -> None:
        """Writes the loop of a reduction, together with all others of its shape that are ready."""
        # Sources that must be in memory may depend on other reductions, which are then written first.
        self._prepare([wanted.operand])
        if wanted.result is not None:
            return
        shape, axes = wanted.operand.shape, wanted.axes
        together = [
            p
            for p in self.pending
            if p.result is None
            and p.operand.shape == shape
            and p.axes == axes
            and (p is wanted or self._ready(p.operand))
        ]
        for pending in together:
            self._prepare([pending.operand])
        self._run_loop(shape, [], [p for p in together if p.result is None], axes)

    # Loops

    def _ready(self, array: Array) -> bool:
        """Returns whether a loop over the array can be written without computing other arrays first."""
        for node in unstored([array]):
            for source, how in node.sources:
                if isinstance(source, Pending) and source.result is None:
                    return False
                if self._must_store(source, how):
                    return False
        return not isinstance(array, Pending) or array.result is not None

    def _must_store(self, source: Array, how: str) -> bool:
        """Returns whether a source that is not read place by place should be in memory first."""
        if not isinstance(source, Node) or source.stored is not None or how == "same":
            return False
        once = how == "once" and len(source.users) == 1
        return how == "gather" or not (once or source.is_cheap())

    def _prepare(self, arrays: Sequence[Array]) -> None:
        """Computes the arrays that loops over these arrays need from outside the loop."""
        seen: set[int] = set()

        def walk(array: Array) -> None:
            if id(array) in seen:
                return
            seen.add(id(array))
            if isinstance(array, Pending):
                array = array.apart()
            if isinstance(array, Apart) and array.size > 16:
                array.spilled()
            if isinstance(array, Node) and array.stored is None:
                for source, how in array.sources:
                    if self._must_store(source, how):
                        self.stored(source)
                    walk(source)

        for array in arrays:
            walk(array)

    def _run_loop(self, shape, targets: list[Node], sums: list[Pending], axes: Sequence[int] | None = None) -> None:
        """Writes one loop that stores nodes and reduces; it also stores every node that other loops will read."""
        axes = tuple(range(len(shape))) if axes is None else tuple(axes)
        whole = axes == tuple(range(len(shape)))
        if targets:
            self._prepare(targets)
            targets = [node for node in targets if node.stored is None]
            if not targets:
                return
        if whole and targets:  # sums of the same shape come along
            sums = [p for p in self.pending if p.result is None and p.operand.shape == shape and p.axes == axes]
            sums = [p for p in sums if self._ready(p.operand)]
        keep = [*targets, *(self._kept(shape, targets, sums) if whole else ())]
        buffers = {id(node): self.workspace.buffer(node.shape, node.dtype, self) for node in keep}
        outer = [axis for axis in range(len(shape)) if axis not in axes]
        results = list(np.ndindex(*[shape[axis] for axis in outer]))
        copies = UNROLLED if math.prod(shape[axis] for axis in axes) >= 2 * UNROLLED and len(results) < UNROLLED else 1
        accumulators = [list(p.start()) for p in sums for _ in results for _ in range(copies)]
        widths = [len(a) for a in accumulators]

        def split(flat: Sequence[Value]) -> list[list[Value]]:
            rest = iter(flat)
            return [[next(rest) for _ in range(width)] for width in widths]

        def turn(index: Index, copy: int, flat: list[Value]) -> list[Value]:
            groups = split(flat)
            self.turn = {}
            place = 0
            for pending in sums:
                for result in results:
                    full: list[Any] = [None] * len(shape)
                    for axis, i in zip(axes, index, strict=True):
                        full[axis] = i
                    for axis, i in zip(outer, result, strict=True):
                        full[axis] = i
                    entry = pending.operand.at(tuple(full))
                    groups[place + copy] = list(pending.absorb(groups[place + copy], entry, index))
                    place += copies
            for node in keep:
                buffers[id(node)].put(index, node.at(index))
            self.turn = None
            return [value for group in groups for value in group]

        flat = [self.f.widened(value) for group in accumulators for value in group]
        flat = self.nest([shape[axis] for axis in axes], turn, flat, copies)
        groups = split(flat)
        place = 0
        for pending in sums:
            items = np.empty([shape[axis] for axis in outer], object)
            for result in results:
                items[result] = pending.finish(merged(groups[place : place + copies], pending.merge))
                place += copies
            pending.result = Apart(items.reshape(pending.shape), pending.dtype, self)
            self.computed.add(pending.number)
        for node in keep:
            node.stored = buffers[id(node)]
        for node in [*keep, *unstored([p.operand for p in sums] + [s for n in keep for s, _ in n.sources])]:
            if node.stored is not None or node.users <= self.computed:
                self.computed.add(node.number)

    def _kept(self, shape, targets: Sequence[Node], sums: Sequence[Pending]) -> list[Node]:
        """Returns the nodes to store: this loop computes them, others read them, and they are not cheap to repeat."""
        reached = unstored([*targets, *(p.operand for p in sums)], aligned=True)
        inside = {node.number for node in reached} | {p.number for p in sums} | self.computed
        wanted = [node for node in reached if node not in targets and node.shape == tuple(shape)]
        return [node for node in wanted if node.users - inside and not node.is_cheap()]

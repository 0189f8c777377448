"""A game's kernel: the loops over groups of lanes, recorded rounds and rounds, around the lowered programs."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.native import processor
from jaxbandit.engine.native.arrays import KINDS, SMALL, Apart, Array, Buffer
from jaxbandit.engine.native.emit import BITS, Function, Value
from jaxbandit.engine.native.layout import ALIGN, Layout
from jaxbandit.engine.native.lower import Lowering
from jaxbandit.engine.native.order import just_in_time
from jaxbandit.engine.native.program import Programs, divided
from jaxbandit.engine.native.scope import Scope
from jaxbandit.engine.native.workspace import Workspace


@dataclasses.dataclass(frozen=True)
class Source:
    """The text of a kernel and the size of the memory that a call needs besides its arguments."""

    text: str
    workspace: int


class Writer:
    """The writer of a game's kernel.

    Args:
      programs: The game.
      width: Lanes of a group, which lie together in memory.
      target: LLVM's name of the processor's family, for its control word.
      llvm_version: LLVM's major version.
    """

    more = ""  # arguments of a function after those below

    def __init__(self, programs: Programs, width: int, target: str, llvm_version: int):
        self.programs, self.width, self.target = programs, width, target
        self.llvm_version = llvm_version
        self.parameters = Layout([p for p, s in zip(programs.parameters, programs.shared, strict=True) if not s], width)
        self.carry = Layout(programs.carry, width)

    def source(self) -> Source:
        """Returns the module's text."""
        functions, declared, defined = [], {}, []
        bytes_needed = ALIGN
        for name, arguments, body in (
            (
                "begin",
                "ptr noalias %params, ptr noalias %carry, ptr noalias %shared, ptr noalias %work, "
                "i64 %first, i64 %last",
                self._begin,
            ),
            (
                "play",
                "ptr noalias %params, ptr noalias %carry, ptr noalias %keys, ptr noalias %shared, ptr noalias %work, "
                "ptr noalias %outs, ptr noalias %traced, "
                "i64 %first, i64 %last, i64 %lanes, i64 %t, ptr noalias %record, i64 %num_recorded, i64 %until",
                self._play,
            ),
        ):
            f = self._function()
            f.llvm_version = self.llvm_version
            work = Workspace(Value("%work", "ptr", False), self.width)
            work.globals = defined
            restore = processor.enter(f, self.target)
            body(f, work)
            restore()
            convention, attributes = processor.convention(self.target), processor.attributes(self.target)
            functions.append(
                f"define {convention}void @{name}({arguments}{self.more}) nounwind{attributes} {{\nentry:\n"
                + "\n".join(f.lines)
                + "\n  ret void\n}\n"
            )
            declared |= f.declared
            bytes_needed = max(bytes_needed, work.bytes)
        text = "\n".join([*defined, *declared.values(), *functions])
        return Source(text, bytes_needed)

    # Pieces

    def _function(self) -> Function:
        """Returns an empty function, in which a vector has the lanes of a group."""
        return Function(self.width)

    def _over_groups(self, f: Function, work: Workspace, body: Callable[[Value], None]) -> None:
        """Runs ``body`` for every group; groups play one after the other and share their work space."""

        def turn(group: Value, carried: list[Value]) -> list[Value]:
            body(group)
            return carried

        f.loop(Value("%first", "i64", False), Value("%last", "i64", False), [], turn)

    def _place(self, f: Function, base: str, group: Value, bytes_each: int) -> Value:
        offset = f.mul(group, f.constant(bytes_each, "i64"))
        return Value(f.address(Value(base, "ptr", False), offset, "i8", 1), "ptr", False)

    def _pointer(self, f: Function, pointers: str, number: int) -> Value:
        """Returns one of the pointers that an argument points to."""
        pointer = f.fresh()
        where = f.address(Value(pointers, "ptr", False), number, "ptr", 1)
        f.lines.append(f"  {pointer} = load ptr, ptr {where}, align 8")
        return Value(pointer, "ptr", False)

    def _arrays(self, f: Function, scope: Scope, layout: Layout, base: Value, *, writable: bool) -> list[Array]:
        """Returns the leaves of a layout: small ones loaded, large ones in memory."""
        arrays: list[Array] = []
        for leaf in layout.leaves:
            where = f.place(base, leaf.offset, KINDS[leaf.dtype])
            buffer = Buffer(where, leaf.shape, leaf.dtype, scope, writable=writable)
            arrays.append(scope.apart(buffer) if leaf.size <= SMALL else buffer)
        return arrays

    def _parameters(self, f: Function, scope: Scope, group: Value) -> list[Array]:
        own = iter(
            self._arrays(
                f, scope, self.parameters, self._place(f, "%params", group, self.parameters.bytes), writable=False
            )
        )
        arrays: list[Array] = []
        number = 0
        for leaf, shared in zip(self.programs.parameters, self.programs.shared, strict=True):
            if not shared:
                arrays.append(next(own))
                continue
            buffer = Buffer(self._pointer(f, "%shared", number), leaf.shape, leaf.dtype, scope, shared=True)
            arrays.append(scope.apart(buffer) if buffer.size <= SMALL else buffer)
            number += 1
        return arrays

    def _store(self, f: Function, lowering: Lowering, results: Sequence[Array], homes: Sequence[Buffer]) -> None:
        """Writes the results of a program to their homes; large ones after all reads of the old arrays."""
        scope = lowering.scope
        moved = [
            (array, home)
            for array, home in zip(results, homes, strict=True)
            if not (isinstance(array, Buffer) and array.origin is home.origin)
        ]
        small = [(scope.apart(array), home) for array, home in moved if home.size <= SMALL]
        scope.write_together([(array, home) for array, home in moved if home.size > SMALL])
        for array, home in small:
            scope.write(array, home)

    def _begin(self, f: Function, work: Workspace) -> None:
        def body(group: Value) -> None:
            scope = Scope(f, work)
            base = self._place(f, "%carry", group, self.carry.bytes)
            lowering = Lowering(scope, self.programs.begin)
            results = lowering.run(self._parameters(f, scope, group))
            homes = [
                Buffer(f.place(base, leaf.offset, KINDS[leaf.dtype]), leaf.shape, leaf.dtype, scope)
                for leaf in self.carry.leaves
            ]
            for array, home in zip(results, homes, strict=True):
                scope.write(array, home)

        self._over_groups(f, work, body)

    def _play(self, f: Function, work: Workspace) -> None:
        record, num_recorded = Value("%record", "ptr", False), Value("%num_recorded", "i64", False)
        until = Value("%until", "i64", False)

        num_parameters = len(self.programs.parameters)
        fixed = self.programs.play.arguments[:num_parameters] + self.programs.play.arguments[-2:-1]
        before, each_round = divided(self.programs.play, fixed)
        each_round = just_in_time(each_round)

        def segment(group: Value, base: Value, constant: list[Array], made: list[Array], n: Value, t: Value) -> Value:
            is_recorded = f.compare("lt", n, num_recorded)
            place = f.select(is_recorded, n, f.constant(0, "i64"))
            following = f.select(is_recorded, f.load(record, place, "i64", wide=False), until)
            end = f.select(f.compare("lt", following, until), following, until)
            with f.branch(f.compare("lt", t, end)):
                self._rounds(f, work, each_round, base, constant, made, group, t, end)
            reached = f.binary("and", is_recorded, f.compare("le", following, until))
            with f.branch(reached):
                self._record(f, work, base, group, n, end)
            return end

        def body(group: Value) -> None:
            outer = Scope(f, work)
            base = self._place(f, "%carry", group, self.carry.bytes)
            parameters = self._parameters(f, outer, group)
            key_base = f.own(self._place(f, "%keys", group, 8 * self.width), "i32")
            keys = _scalars([f.load(key_base, n, "i32") for n in range(2)], np.uint32, outer)
            # Values that depend only on the parameters of a game are computed once, not in every round.
            lowering = Lowering(outer, before)
            made: list[Array] = [
                outer.stored(a) if a.size > SMALL else outer.apart(a) for a in lowering.run([*parameters, keys])
            ]
            f.loop(
                f.constant(0, "i64"),
                f.add(num_recorded, f.constant(1, "i64")),
                [Value("%t", "i64", False)],
                lambda n, now: [segment(group, base, [*parameters, keys], made, n, now[0])],
            )

        self._over_groups(f, work, body)

    def _rounds(self, f, work, program, base, constant, made, group, t, end) -> None:
        """Writes the loop over rounds, in which small arrays of the carry stay in registers."""
        outer = Scope(f, work)
        carry = self._arrays(f, outer, self.carry, base, writable=True)
        small = [n for n, array in enumerate(carry) if isinstance(array, Apart)]
        first = [value for n in small for value in carry[n].items.flat]  # pyright: ignore

        def turn(i: Value, now: list[Value]) -> list[Value]:
            scope = Scope(f, work)
            lowering = Lowering(scope, program)
            rest = iter(now)
            inside: list[Array] = []
            homes: dict[int, Buffer] = {}
            for n, array in enumerate(carry):
                if n in small:
                    items = np.empty(array.shape, object)
                    for index in np.ndindex(*array.shape):
                        items[index] = next(rest)
                    inside.append(Apart(items, array.dtype, scope))
                else:
                    inside.append(lowering.handed_in(array, lowering, writable=True))
                    homes[n] = array  # pyright: ignore
            round_number = f.cast("trunc", f.add(i, f.constant(1, "i64")), "i32")
            *parameters, keys = (lowering.handed_in(array, lowering) for array in constant)
            arguments = [*parameters, *inside, keys, _scalar(round_number, np.int32, scope)]
            results = lowering.run([*arguments, *(lowering.handed_in(array, lowering) for array in made)])
            after, traced = results[: len(carry)], results[len(carry) :]
            values = [value for n in small for value in scope.apart(after[n]).items.flat]
            if traced:
                self._trace(f, scope, traced, group, i)
            self._store(f, lowering, [after[n] for n in homes], list(homes.values()))
            return [f.widened(value) for value in values]

        final = f.loop(t, end, [f.widened(value) for value in first], turn)
        rest = iter(final)
        for n in small:
            leaf = self.carry.leaves[n]
            home = Buffer(f.place(base, leaf.offset, KINDS[leaf.dtype]), leaf.shape, leaf.dtype, outer)
            for index in np.ndindex(*leaf.shape):
                home.put(index, next(rest))

    def _record(self, f, work, base, group, n, t) -> None:
        """Writes the code that hands out the tally of a recorded round."""
        scope = Scope(f, work)
        lowering = Lowering(scope, self.programs.record)
        carry = self._arrays(f, scope, self.carry, base, writable=True)
        results = lowering.run([*carry, _scalar(f.cast("trunc", t, "i32"), np.int32, scope)])
        after, out = results[: len(carry)], results[len(carry) :]
        self._hand_out(f, scope, out, "%outs", group, n)
        homes = [
            Buffer(f.place(base, leaf.offset, KINDS[leaf.dtype]), leaf.shape, leaf.dtype, scope)
            if isinstance(array, Apart)
            else array
            for leaf, array in zip(self.carry.leaves, carry, strict=True)
        ]
        self._store(f, lowering, after, homes)  # pyright: ignore

    def _trace(self, f, scope, arrays, group, i) -> None:
        self._hand_out(f, scope, arrays, "%traced", group, f.sub(i, Value("%t", "i64", False)))

    def _hand_out(
        self, f: Function, scope: Scope, arrays: Sequence[Array], pointers: str, group: Value, row: Value
    ) -> None:
        """Writes each array to its output array ``[rows, entries, lanes]``."""
        lanes = Value("%lanes", "i64", False)
        first = f.mul(group, f.constant(self.width, "i64"))
        if f.lane is not None:
            first = f.add(first, f.lane)
        for number, array in enumerate(arrays):
            pointer = self._pointer(f, pointers, number)
            stored = "i8" if array.kind == "i1" else array.kind
            start = f.mul(f.mul(row, f.constant(array.size, "i64")), lanes)

            def put(index, array=array, pointer=pointer, stored=stored, start=start):
                entry = scope.linear(index, array.shape)
                entry = f.constant(entry, "i64") if isinstance(entry, int) else entry
                place = f.add(f.add(start, f.mul(entry, lanes)), first)
                value = array.at(index)
                if value.kind == "i1":
                    value = f.cast("zext", value, "i8")
                where = f.address(pointer, place, stored, 1)
                value = f.widened(value)
                f.lines.append(
                    f"  store {f.type_of(stored, True)} {value.text}, ptr {where}, align {BITS[stored] // 8}"
                )

            if array.size <= SMALL:
                array = scope.apart(array)
                for index in np.ndindex(*array.shape):
                    put(index, array)
            else:
                array = scope.stored(array)
                scope.loop_over(array.shape, lambda index, put=put, array=array: put(index, array))


def _scalar(value: Value, dtype: Any, scope: Scope) -> Apart:
    items = np.empty((), object)
    items[()] = value
    return Apart(items, dtype, scope)


def _scalars(values: Sequence[Value], dtype: Any, scope: Scope) -> Apart:
    items = np.empty(len(values), object)
    items[:] = values
    return Apart(items, dtype, scope)

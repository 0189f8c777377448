"""The lowering of a program of JAX primitives to LLVM IR, equation by equation; ``arrays`` has the arrays.

``rules`` has the elementwise primitives. Other modules have those that move entries, reduce, index, and branch.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.native import branches, indexing, loops, ordering, reductions, rules, shapes, words
from jaxbandit.engine.native.arrays import SMALL, Apart, Array, Buffer, Node, Pending
from jaxbandit.engine.native.emit import Value
from jaxbandit.engine.native.program import Equation, Name, Program, is_literal
from jaxbandit.engine.native.scope import Scope

END = 1 << 60  # number of the reader of a program's results


class UnsupportedError(Exception):
    """The error of a round that does not become machine code; its text continues a sentence about the game."""


class FailedError(UnsupportedError):
    """The error of a fault in the compiler itself, in its rules or in LLVM."""

    def __init__(self, error: Exception, where: str = ""):
        said = str(error).strip().splitlines()[:1]
        super().__init__(f"cannot be compiled{where}, because of {': '.join([type(error).__name__, *said])}")


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turns errors of the compiler into ``FailedError``, but for those that memory is short."""
    try:
        yield
    except (UnsupportedError, MemoryError):
        raise
    except Exception as error:
        raise FailedError(error) from error


class Lowering:
    """The lowering of one program in one scope.

    Args:
      scope: The scope in which its results are computed.
      program: The equations.
    """

    def __init__(self, scope: Scope, program: Program):
        self.scope, self.program = scope, program
        self.f = scope.f
        self.arrays: dict[Name, Array] = {}
        self.users: dict[Name, set[int]] = {}
        self.names_of: dict[int, list[Name]] = {}  # by the origin of their buffer
        self.number = 0
        self._numbers = scope.workspace.numbered(len(program.equations))
        for number, equation in zip(self._numbers, program.equations, strict=True):
            for atom in equation.invars:
                if isinstance(atom, Name):
                    self.users.setdefault(atom, set()).add(number)
        for result in program.results:
            if isinstance(result, Name):
                self.users.setdefault(result, set()).add(END)

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Writes the program; returns its results."""
        for name, array in zip(self.program.arguments, arguments, strict=True):
            self.bind(name, array)
        for name, value in self.program.constants.items():
            self.bind(name, self.constant(value))
        for number, equation in zip(self._numbers, self.program.equations, strict=True):
            self.number = number
            rule = _RULES.get(equation.primitive.name)
            try:
                equation = words.stored(equation)
                if rule is not None:
                    results = rule(self, equation, *map(self.read, equation.invars))
                elif equation.primitive.name in rules.RULES:
                    results = [self.elementwise(equation)]
                else:
                    raise KeyError(equation.primitive.name)
            except KeyError as error:
                primitive = str(error.args[0])
                raise UnsupportedError(f"uses '{primitive}'{_where(equation)}, which has no native rule") from error
            except (UnsupportedError, MemoryError):
                raise
            except Exception as error:
                raise FailedError(error, _where(equation)) from error
            for name, array in zip(equation.outvars, results, strict=True):
                self.bind(name, array)
            if not any(isinstance(array, Node | Pending) for array in results):
                self.scope.computed.add(self.number)
        return [self.read(result) for result in self.program.results]

    def bind(self, name: Name, array: Array) -> None:
        """Gives a name to an array."""
        self.arrays[name] = array
        if isinstance(array, Buffer):
            self.names_of.setdefault(id(array.origin), []).append(name)

    def read(self, atom: Any) -> Array:
        """Returns the array of a name or literal."""
        if is_literal(atom):
            dtype = atom.aval.dtype  # pyright: ignore[reportAttributeAccessIssue]
            return self.constant(np.asarray(atom.val, dtype))
        return self.arrays[atom]

    def users_of(self, equation: Equation, result: int = 0) -> set[int]:
        """Returns the numbers of the equations that read a result of this one."""
        return self.users.get(equation.outvars[result], set())

    def is_last_use(self, buffer: Buffer) -> bool:
        """Returns whether nothing after this equation reads the memory of a buffer."""
        left = set().union(*(self.users.get(name, set()) for name in self.names_of.get(id(buffer.origin), ())))
        return not (left - self.scope.computed - {self.number})

    def constant(self, value: Any) -> Array:
        """Returns a known array: taken apart if it is small, in the program's memory if it is large."""
        value = np.asarray(value)
        if value.size > SMALL:
            return self.scope.workspace.constant(value, self.scope)
        kind = Array(value.shape, value.dtype).kind
        items = np.empty(value.shape, object)
        for index in np.ndindex(*value.shape):
            items[index] = self.f.constant(value[index].item(), kind)
        return Apart(items, value.dtype, self.scope)

    # Methods that rules use

    def elementwise(self, equation: Equation) -> Array:
        """Returns the result of an elementwise primitive; an operand with fewer axes has the leading ones."""
        operands = [self.read(atom) for atom in equation.invars]
        rule = rules.RULES[equation.primitive.name]
        aval = equation.outvars[0].aval

        def entry(array: Array, index):
            index = index[: len(array.shape)]  # a condition on keys lacks the axis of their words
            if array.shape == aval.shape:
                return array.at(index)
            return array.at(tuple(i if n > 1 else 0 for i, n in zip(index, array.shape, strict=True)))

        def element(index):
            return rule(self.f, equation, *(entry(a, index) for a in operands))

        cost = rules.COSTS.get(equation.primitive.name, 1)
        sources = [(a, "same" if a.shape == aval.shape else "many") for a in operands]
        return self.make(equation, aval.shape, aval.dtype, element, sources, cost)

    def make(self, equation: Equation, shape, dtype, element: Callable, sources, cost: float, result: int = 0) -> Array:
        """Returns an array made of its entries; a small one is computed now, a large one when it is needed."""
        if math.prod(shape) <= SMALL:
            items = np.empty(tuple(shape), object)
            for index in np.ndindex(*shape):
                items[index] = element(index)
            return Apart(items, dtype, self.scope)
        # Operands without axes are combined with every entry; their own values are computed before the loop.
        sources = [(a, "many" if not a.shape else how) for a, how in sources]
        return self.scope.node(shape, dtype, element, sources, cost, self.users_of(equation, result), self.number)

    def overwritable(self, array: Array) -> Buffer:
        """Returns a writable buffer with the entries of an array: its own if nothing else needs it, or a copy."""
        buffer = self.scope.stored(array)
        fresh = not isinstance(array, Buffer)
        if fresh and isinstance(array, Node):
            fresh = not (array.users - self.scope.computed - {self.number})
        if fresh and not isinstance(array, Apart | Pending):
            return buffer
        if isinstance(array, Buffer) and buffer.writable and not buffer.shared and self.is_last_use(buffer):
            self.scope.release(buffer)
            return buffer
        copy = self.scope.workspace.buffer(array.shape, array.dtype, self.scope)
        self.scope.write(array, copy)
        return copy

    def inner(self, program: Program, mask) -> "Lowering":
        """Returns a lowering for a branch or a loop's body."""
        return Lowering(Scope(self.f, self.scope.workspace, mask), program)

    def handed_in(self, array: Array, inner: "Lowering", writable: bool = False) -> Array:
        """Returns an array for use in an inner scope; a large one is stored in memory first."""
        if isinstance(array, Node):
            array = self.scope.stored(array)
        if isinstance(array, Buffer):
            view = Buffer(array.base, array.shape, array.dtype, inner.scope, shared=array.shared, writable=writable)
            view.origin = array.origin
            return view
        return Apart(self.scope.apart(array).items, array.dtype, inner.scope)

    def export(self, array: Array, scope: Scope) -> Array:
        """Returns a result of an inner program for the outer scope, which continues on the same path of control."""
        if array.size > SMALL:
            buffer = self.scope.stored(array)
            view = Buffer(buffer.base, array.shape, array.dtype, scope, shared=buffer.shared, writable=buffer.writable)
            view.origin = buffer.origin
            return view
        return Apart(self.scope.apart(array).items, array.dtype, scope)

    def write_home(self, array: Array, home: Buffer, mask) -> None:
        """Writes a result to its home, unless it was made there."""
        if isinstance(array, Buffer) and array.origin is home.origin:
            return
        self.scope.release(home)
        self.scope.write(array, home, mask)

    def row(self, array: Buffer, place) -> Array:
        """Returns one row of an array in memory."""
        shape = array.shape[1:]
        if math.prod(shape) > SMALL:
            base = self.f.address(
                array.base,
                self.scope.times(place, math.prod(shape)),
                array.kind,
                1 if array.shared else self.f.stride,
            )
            view = Buffer(Value(base, "ptr", False), shape, array.dtype, self.scope, shared=array.shared)
            view.origin = array.origin
            return view
        items = np.empty(shape, object)
        for index in np.ndindex(*shape):
            items[index] = array.at((place, *index))
        return Apart(items, array.dtype, self.scope)


_RULES: dict[str, Callable[..., list[Array]]] = {
    **shapes.RULES,
    **reductions.RULES,
    **indexing.RULES,
    **ordering.RULES,
    **branches.RULES,
    **loops.RULES,
    **words.RULES,
}


def _where(equation: Equation) -> str:
    """Returns " at " and the line of the user's code that an equation comes from; nothing if it is not known."""
    from jax._src import source_info_util  # no public module has it

    for source in equation.sources:
        try:
            frame = source_info_util.user_frame(getattr(source, "traceback", source))
        except Exception:  # an error of another version of JAX
            return ""
        if frame:
            return f" at {frame.file_name}:{frame.start_line}"
    return ""

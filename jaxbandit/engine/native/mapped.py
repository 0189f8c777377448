"""The machine code of a function of arrays, which maps it over many arguments at once, one lane for each."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit.engine.native import cache, program
from jaxbandit.engine.native.arrays import SMALL, Array, Buffer
from jaxbandit.engine.native.emit import Function, Value
from jaxbandit.engine.native.layout import Layout, aligned
from jaxbandit.engine.native.lower import Lowering
from jaxbandit.engine.native.scope import Scope
from jaxbandit.engine.native.workspace import Workspace

VERSION = 2  # raise it when the same function becomes other machine code


class Mapped:
    """The machine code of ``function(*shared, *arrays)``.

    Args:
      function: A function of the arrays of one lane that returns a tree of arrays.
      shared: Shapes and dtypes of arguments that all lanes share.
      arrays: Shapes and dtypes of the other arguments, for one lane.
      width: Lanes of a vector.
      cpu: LLVM's name of the processor; default this processor.
      features: The processor's features; default those of this processor.
    """

    def __init__(
        self,
        function: Callable,
        shared: Sequence[Any],
        arrays: Sequence[Any],
        width: int = 8,
        cpu: str | None = None,
        features: str | None = None,
    ):
        from jaxbandit.engine.native import compile as compiler

        self.width = width
        traced, out = program.traced(lambda *given: jax.tree.leaves(function(*given)), *shared, *arrays)
        self._layouts = Layout(arrays, width), Layout(out, width)
        f = Function(width)
        f.llvm_version = compiler.llvm_version()[0]
        work = Workspace(Value("%work", "ptr", False), width)
        f.loop(f.constant(0, "i64"), Value("%groups", "i64", False), [], self._body(f, work, traced, shared))
        arguments = "ptr noalias %in, ptr noalias %out, ptr noalias %shared, ptr noalias %work, i64 %groups"
        head, tail = f"define void @run({arguments}) {{\nentry:", "  ret void\n}"
        text = "\n".join([*work.globals, *f.declared.values(), head, *f.lines, tail])
        self._workspace = max(work.bytes, 64)
        cpu, features = cpu or compiler.host_name(), compiler.host_features() if features is None else features
        key = cache.name(f"mapped {VERSION}", str(compiler.llvm_version()), cpu, features, text)
        code = cache.read(key)
        if code is None:
            code = compiler.object_code(text, cpu, features)
            cache.write(key, code)
        self._code = compiler.Code(code, cpu, features)
        self._run = self._code.function("run", *[ctypes.c_void_p] * 4, ctypes.c_int64)

    def __call__(
        self, shared: Sequence[np.ndarray], arrays: Sequence[np.ndarray], allocate: Callable = aligned
    ) -> list[np.ndarray]:
        """Returns the leaves of the result for every lane; arrays and results end in the lane axis."""
        lanes = arrays[0].shape[-1]
        groups = -(-lanes // self.width)
        memory = [allocate((groups, layout.bytes), np.uint8) for layout in self._layouts]
        self._layouts[0].write(memory[0], arrays)
        tables = [np.ascontiguousarray(table) for table in shared]
        pointers = (ctypes.c_void_p * max(len(tables), 1))(*[table.ctypes.data for table in tables])
        work = allocate((self._workspace,), np.uint8)
        where = memory[0].ctypes.data, memory[1].ctypes.data, ctypes.addressof(pointers), work.ctypes.data
        self._run(*where, groups)
        return self._layouts[1].read(memory[1], lanes)

    def _body(self, f: Function, work: Workspace, traced: program.Program, shared: Sequence[Any]) -> Callable:
        def places(layout: Layout, base: str, group: Value, scope: Scope):
            offset = f.mul(group, f.constant(layout.bytes, "i64"))
            start = Value(f.address(Value(base, "ptr", False), offset, "i8", 1), "ptr", False)
            for leaf in layout.leaves:
                where = Value(f.address(start, leaf.offset, "i8", 1), "ptr", False)
                yield Buffer(where, leaf.shape, leaf.dtype, scope)

        def tables(scope: Scope):
            for number, leaf in enumerate(shared):
                pointer = f.emit(
                    f"load ptr, ptr {f.address(Value('%shared', 'ptr', False), number, 'ptr', 1)}, align 8"
                )
                yield Buffer(Value(pointer, "ptr", False), leaf.shape, leaf.dtype, scope, shared=True)

        def body(group: Value, carried: list[Value]) -> list[Value]:
            scope = Scope(f, work)
            buffers = [*tables(scope), *places(self._layouts[0], "%in", group, scope)]
            given: list[Array] = [scope.apart(buffer) if buffer.size <= SMALL else buffer for buffer in buffers]
            results = Lowering(scope, traced).run(given)
            for result, home in zip(results, places(self._layouts[1], "%out", group, scope), strict=True):
                scope.write(result, home)
            return carried

        return body

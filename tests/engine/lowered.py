"""Any function of one game's arrays as machine code, for tests of the lowering."""

import ctypes

import jax
import numpy as np

from jaxbandit.engine.native import compile as compiler
from jaxbandit.engine.native import program
from jaxbandit.engine.native.arrays import SMALL, Buffer
from jaxbandit.engine.native.emit import Function, Value
from jaxbandit.engine.native.layout import Layout, aligned
from jaxbandit.engine.native.lower import Lowering
from jaxbandit.engine.native.scope import Scope
from jaxbandit.engine.native.workspace import Workspace


def lowered(function, *arrays, width=8, cpu=None, features=None, allocate=aligned):
    """Returns the results of ``function`` for every lane; arrays and results end in the lane axis."""
    arrays = [np.asarray(a) for a in arrays]
    lanes = arrays[0].shape[-1]
    groups = -(-lanes // width)
    examples = [jax.ShapeDtypeStruct(a.shape[:-1], a.dtype) for a in arrays]
    traced, out = program.traced(lambda *a: jax.tree.leaves(function(*a)), *examples)
    layouts = Layout(examples, width), Layout(out, width)
    f = Function(width)
    f.llvm_version = compiler.llvm_version()[0]
    work = Workspace(Value("%work", "ptr", False), width)

    def places(layout, base, group, scope):
        start = f.address(Value(base, "ptr", False), f.mul(group, f.constant(layout.bytes, "i64")), "i8", 1)
        for leaf in layout.leaves:
            where = Value(f.address(Value(start, "ptr", False), leaf.offset, "i8", 1), "ptr", False)
            yield Buffer(where, leaf.shape, leaf.dtype, scope)

    def body(group, carried):
        scope = Scope(f, work)
        given = [scope.apart(b) if b.size <= SMALL else b for b in places(layouts[0], "%in", group, scope)]
        results = Lowering(scope, traced).run(given)
        for result, home in zip(results, places(layouts[1], "%out", group, scope), strict=True):
            scope.write(result, home)
        return carried

    f.loop(f.constant(0, "i64"), Value("%groups", "i64", False), [], body)
    text = "\n".join(
        [
            *work.globals,
            *f.declared.values(),
            "define void @run(ptr noalias %in, ptr noalias %out, ptr noalias %work, i64 %groups) {\nentry:",
            *f.lines,
            "  ret void\n}",
        ]
    )
    cpu = cpu or compiler.host_name()
    features = compiler.host_features() if features is None else features
    code = compiler.Code(compiler.object_code(text, cpu, features), cpu, features)
    memory = [allocate((groups, layout.bytes), np.uint8) for layout in layouts]
    layouts[0].write(memory[0], arrays)
    space = allocate((max(work.bytes, 64),), np.uint8)
    pointer = ctypes.c_void_p
    run = code.function("run", pointer, pointer, pointer, ctypes.c_int64)
    run(memory[0].ctypes.data, memory[1].ctypes.data, space.ctypes.data, groups)
    return layouts[1].read(memory[1], lanes)

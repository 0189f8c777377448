"""Branches inside a round: one runs if at least one lane takes it; the other lanes keep their values."""

from collections.abc import Sequence

import numpy as np

from jaxbandit.engine.native.arrays import SMALL, Apart, Array, Buffer
from jaxbandit.engine.native.emit import Value
from jaxbandit.engine.native.parts import closed, flat, shaped


def _cond(low, equation, index: Array, *given: Array):
    branches = [closed(branch) for branch in equation.params["branches"]]
    f, scope = low.f, low.scope
    which = index.at(())
    if which.kind == "i1":
        which = f.cast("zext", which, "i32")
    if which.constant is not None:
        number = min(max(int(which.constant) if which.constant < 1 << 31 else 0, 0), len(branches) - 1)
        return _inline(low, branches[number], given)
    operands = [scope.stored(a) if a.size > SMALL else scope.apart(a) for a in given]
    avals = [name.aval for name in equation.outvars]
    large = [n for n, aval in enumerate(avals) if aval.size > SMALL]

    homes = {n: _home(low, branches, operands, n, avals[n]) for n in large}
    for home in homes.values():
        scope.release(home)
    merged: list[Value] | None = None
    small = [n for n in range(len(avals)) if n not in large]
    last = len(branches) - 1
    # Branches that only return their operands come first: the others are merged into them.
    order = sorted(range(len(branches)), key=lambda n: bool(branches[n].equations))
    for k in order:
        here = _takes(f, which, k, last)
        program = branches[k]
        if not program.equations and not any(_changes(program, n, operands, homes) for n in large):
            nested = low.inner(program, scope.mask)
            results = nested.run([low.handed_in(a, nested) for a in operands])
            values = flat([scope.apart(results[n]) for n in small])
            merged = values if merged is None else [f.select(here, v, m) for v, m in zip(values, merged, strict=True)]
            continue
        mask = here if scope.mask is None else f.binary("and", *f.alike(here, scope.mask))
        with f.branch(f.any_lane(mask)) as (before, end):
            # A thread of its own, in contrast to a vector, is here only if it takes the branch.
            divergent = mask if f.width > 1 and (mask.wide or scope.mask is not None) else None
            nested = low.inner(program, divergent)
            arguments = [
                low.handed_in(a, nested, isinstance(a, Buffer) and _is_home(a, homes) and a.writable) for a in operands
            ]
            results = nested.run(arguments)
            values = [f.widened(v) for v in flat([nested.scope.apart(results[n]) for n in small])]
            for n in large:
                nested.write_home(results[n], homes[n], divergent)
        if merged is None:
            merged = [_nothing(v) for v in values]
        # A phi cannot join a value that all lanes share with a vector: it gets a placeholder, and the select chooses.
        known = [
            m if m.wide or f.width == 1 or m.constant is not None else _nothing(v)
            for v, m in zip(values, merged, strict=True)
        ]
        taken = [f.phi(v, end(), m, before) for v, m in zip(values, known, strict=True)]
        joined = [
            t if m.text == "poison" or ((f.width == 1 or not here.wide) and k is m) else f.select(here, t, m)
            for t, k, m in zip(taken, known, merged, strict=True)
        ]
        merged = joined
    small_results = iter(
        shaped(merged or [], [Apart(np.empty(avals[n].shape, object), avals[n].dtype, scope) for n in small], scope)
    )
    results: list[Array] = []
    for n, aval in enumerate(avals):
        if n in homes:
            home = homes[n]
            view = Buffer(home.base, aval.shape, aval.dtype, scope, writable=True)
            view.origin = home.origin
            results.append(view)
        else:
            results.append(next(small_results))
    return results


def _nothing(like: Value) -> Value:
    return Value("poison", like.kind, like.wide)


def _takes(f, which: Value, k: int, last: int) -> Value:
    """Returns whether branch ``k`` is taken; an index out of range takes the nearest branch."""
    if k == 0:
        return f.compare("le", which, f.constant(0, which.kind))
    return f.compare("ge" if k == last else "eq", which, f.constant(k, which.kind))


def _is_home(buffer: Buffer, homes: dict[int, Buffer]) -> bool:
    return any(home.origin is buffer.origin for home in homes.values())


def _changes(program, n: int, operands, homes) -> bool:
    """Returns whether a branch without equations still has to move a large result."""
    result = program.results[n]
    if result not in program.arguments:
        return True
    array = operands[program.arguments.index(result)]
    return not (isinstance(array, Buffer) and array.origin is homes[n].origin)


def _home(low, branches, operands, n: int, aval) -> Buffer:
    """Returns the buffer of a large result: that of an operand that a branch returns, if it is free, or a new one."""
    for program in branches:
        result = program.results[n]
        if result in program.arguments and program.results.count(result) == 1:
            array = operands[program.arguments.index(result)]
            free = isinstance(array, Buffer) and array.writable and not array.shared
            if free and low.is_last_use(array) and array.shape == tuple(aval.shape):
                return array
    return low.scope.workspace.buffer(aval.shape, aval.dtype, low.scope)


def _inline(low, program, operands: Sequence[Array]) -> list[Array]:
    nested = low.inner(program, low.scope.mask)
    results = nested.run([low.handed_in(a, nested) for a in operands])
    return [nested.export(result, low.scope) for result in results]


def _platform_index(low, equation):
    """Returns the index of the branch of ``lax.platform_dependent`` for CPUs."""
    for number, names in enumerate(equation.params["platforms"]):
        if names is None or "cpu" in names:
            return [low.constant(np.int32(number))]
    raise KeyError("platform_index without a branch for CPUs")


RULES = {"cond": _cond, "platform_index": _platform_index}

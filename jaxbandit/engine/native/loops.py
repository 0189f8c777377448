"""Loops inside a round: a counted loop is the same for all lanes, any other runs until no lane continues."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun

from jaxbandit.engine.native.arrays import SMALL, Apart, Array, Buffer
from jaxbandit.engine.native.emit import Value
from jaxbandit.engine.native.parts import closed, flat, shaped
from jaxbandit.engine.native.program import Equation

WRITTEN_OUT = 1500  # most entries that a counted loop computes if it is written out


def _counts(equation) -> tuple[int, int]:
    """Returns the numbers of constant and of carried operands of a scan."""
    params = equation.params
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carried, _ = params["ft_in"].unpack()  # since jax 0.11
    return len(list(consts.vals)), len(list(carried.vals))


def _scan(low, equation, *operands: Array):
    scope = low.scope
    num_consts, num_carry = _counts(equation)
    program, length, reverse = closed(equation.params["jaxpr"]), equation.params["length"], equation.params["reverse"]
    consts, carry, xs = (
        operands[:num_consts],
        operands[num_consts : num_consts + num_carry],
        operands[num_consts + num_carry :],
    )
    avals = [name.aval for name in equation.outvars]
    small = all(a.size <= SMALL for a in (*carry, *xs)) and length * _weight(program) <= WRITTEN_OUT
    if length == 0 or (small and not _holds_loops(program)):
        return _written_out(low, program, consts, carry, xs, length, reverse, avals[num_carry:])
    xs = [scope.stored(a) for a in xs]
    consts = [scope.stored(a) if a.size > SMALL else scope.apart(a) for a in consts]
    ys = [scope.workspace.buffer(aval.shape, aval.dtype, scope) for aval in avals[num_carry:]]

    def body(i: Value, nested, carried: list[Array]) -> list[Array]:
        place = i if not reverse else scope.plus(scope.times(i, -1), length - 1)
        arguments = [low.handed_in(a, nested) for a in consts] + carried
        for a in xs:
            arguments.append(nested.row(a, place))
        results = nested.run(arguments)
        for y, result in zip(ys, results[num_carry:], strict=True):
            for index in np.ndindex(*result.shape) if result.size <= SMALL else ():
                y.put((place, *index), result.at(index))
            if result.size > SMALL:
                nested.scope.fill(y, result, lambda index, place=place: (place, *index))
        return results[:num_carry]

    final = _looped(low, program, carry, body, length)
    out: list[Array] = [*final]
    for y in ys:
        out.append(y if y.size > SMALL else scope.apart(y))
    return out


def _weight(program) -> int:
    """Returns the number of entries that a program computes."""
    return sum(max(name.aval.size for name in equation.outvars) for equation in program.equations)


def _holds_loops(program) -> bool:
    """Returns whether a program has a loop inside, which would be compiled once for every turn written out."""
    return any(equation.primitive.name in ("while", "random_gamma") for equation in program.equations)


def _written_out(low, program, consts, carry, xs, length, reverse, out_avals):
    scope = low.scope
    carry = list(carry)
    ys: list[list[Apart]] = [[] for _ in out_avals]
    for n in reversed(range(length)) if reverse else range(length):
        nested = low.inner(program, scope.mask)
        rows = [
            Apart(
                scope.apart(a).items[n] if len(a.shape) > 1 else _boxed(scope.apart(a).items[n]), a.dtype, nested.scope
            )
            for a in xs
        ]
        arguments = [*(low.handed_in(a, nested) for a in (*consts, *carry)), *rows]
        results = [nested.export(r, scope) for r in nested.run(arguments)]
        carry = results[: len(carry)]
        for y, r in zip(ys, results[len(carry) :], strict=True):
            y.append(scope.apart(r))
    stacked = []
    for y, aval in zip(ys, out_avals, strict=True):
        if reverse:
            y = y[::-1]
        items = np.stack([r.items for r in y]) if y else np.empty(aval.shape, object)
        array = Apart(items, aval.dtype, scope)
        stacked.append(array if items.size <= SMALL else scope.stored(array))
    return [*carry, *stacked]


def _boxed(value: Value) -> np.ndarray:
    items = np.empty((), object)
    items[()] = value
    return items


def _carried(low, carry: Sequence[Array], write: Callable) -> list[Array]:
    """Writes a loop and returns its carried values, which are spread over the lanes only if that is necessary.

    ``write(large, small, first, start, wide)`` writes the loop once. ``start`` has the entries of the small arrays, and
    ``wide`` says which of them have a lane axis. It returns the entries at the end, and which of them need a lane axis.
    The loop is written again until no further one does.
    """
    f, scope = low.f, low.scope
    large = {n: _owned(low, a) for n, a in enumerate(carry) if a.size > SMALL}
    small = [n for n in range(len(carry)) if n not in large]
    first = [scope.apart(carry[n]) for n in small]
    values = flat(first)
    wide = [v.wide for v in values]
    while True:
        mark, block = len(f.lines), f.block
        start = [f.widened(v) if w else v for v, w in zip(values, wide, strict=True)]
        end, grown = write(large, small, first, start, wide)
        after = [w or g for w, g in zip(wide, grown, strict=True)]
        if after == wide:
            break
        del f.lines[mark:]
        f.block, wide = block, after
    results: list[Any] = [None] * len(carry)
    for n, array in zip(small, shaped(end, first, scope), strict=True):
        results[n] = array
    for n, buffer in large.items():
        results[n] = buffer
    return results


def _looped(low, program, carry: Sequence[Array], body: Callable, length: int) -> list[Array]:
    """Writes a counted loop."""
    return _carried(low, carry, lambda *parts: _looped_once(low, program, carry, body, length, *parts))


def _looped_once(low, program, carry, body, length: int, large, small, first, start, wide):
    """Writes the loop; returns its values, and which of them must have a lane axis from the start."""
    f, scope = low.f, low.scope
    grown = list(wide)

    def turn(i: Value, now: list[Value]) -> list[Value]:
        nested = low.inner(program, scope.mask)
        arguments: list[Any] = [None] * len(carry)
        for n, array in zip(small, shaped(now, first, nested.scope), strict=True):
            arguments[n] = array
        for n, buffer in large.items():
            arguments[n] = low.handed_in(buffer, nested, writable=True)
        results = body(i, nested, arguments)
        after = flat([nested.scope.apart(results[n]) for n in small])
        grown[:] = [v.wide for v in after]
        for n, buffer in large.items():
            nested.write_home(results[n], buffer, scope.mask)
        return [f.widened(v) if w else v for v, w in zip(after, wide, strict=True)]

    return f.loop(f.constant(0, "i64"), f.constant(length, "i64"), start, turn), grown


def _owned(low, array: Array) -> Buffer:
    """Returns a large carried array in its own memory."""
    return low.overwritable(array)


def _entrywise(equation: Equation) -> tuple[Any, Any]:
    """Returns the test and the body of a loop whose test has many entries, as ``vmap`` of a loop makes them.

    The loop runs while any entry continues, and an entry that does not continue keeps its values. The body has the
    constants of the test before its own.
    """
    params = equation.params
    num_test, num_step = params["cond_nconsts"], params["body_nconsts"]
    test, step = jaxpr_as_fun(params["cond_jaxpr"]), jaxpr_as_fun(params["body_jaxpr"])

    def any_continues(*operands):
        return [jnp.any(test(*operands)[0])]

    def body(*operands):
        carry = operands[num_test + num_step :]
        continues, after = test(*operands[:num_test], *carry)[0], step(*operands[num_test:])
        return [
            lax.select(lax.broadcast_in_dim(continues, old.shape, range(continues.ndim)), new, old)
            for old, new in zip(carry, after, strict=True)
        ]

    examples = [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]
    tested = [*examples[:num_test], *examples[num_test + num_step :]]
    return jax.make_jaxpr(any_continues)(*tested), jax.make_jaxpr(body)(*examples)


def _while(low, equation, *given: Array):
    scope, params = low.scope, equation.params
    test, step = closed(params["cond_jaxpr"]), closed(params["body_jaxpr"])
    num_test, num_step = params["cond_nconsts"], params["body_nconsts"]
    if test.results[0].aval.shape:
        test, step = map(closed, _entrywise(equation))
        num_step += num_test
        given = (*given[:num_test], *given)
    operands = [scope.stored(a) if a.size > SMALL else scope.apart(a) for a in given]
    test_consts, step_consts = operands[:num_test], operands[num_test : num_test + num_step]
    carry = operands[num_test + num_step :]

    def write(large, small, first, start, wide):
        return _while_once(low, test, step, test_consts, step_consts, carry, large, small, first, start)

    return _carried(low, carry, write)


def _while_once(low, test, step, test_consts, step_consts, carry, large, small, first, start):
    """Writes the loop; returns its values and which of them need a lane axis."""
    f, scope = low.f, low.scope
    before, top, inside, after = f.block, f.label("while"), f.label("do"), f.label("done")
    f.jump(top)
    f.start_block(top)
    places = []
    now = []
    for value in start:
        now.append(Value(f.fresh(), value.kind, value.wide))
        places.append(len(f.lines))
        f.lines.append("")

    def arguments(nested, values, writable):
        built: list[Any] = [None] * len(carry)
        for n, array in zip(small, shaped(values, first, nested.scope), strict=True):
            built[n] = array
        for n, buffer in large.items():
            built[n] = low.handed_in(buffer, nested, writable=writable)
        return built

    nested = low.inner(test, scope.mask)
    inputs = [*(low.handed_in(a, nested) for a in test_consts), *arguments(nested, now, False)]
    goes_on = nested.scope.apart(nested.run(inputs)[0]).items[()]
    active = goes_on if scope.mask is None else f.binary("and", *f.alike(goes_on, scope.mask))
    divergent = active if active.wide and f.width > 1 else None
    if f.width == 1 and goes_on.wide:
        divergent = None
    f.jump_if(f.any_lane(active), inside, after)
    f.start_block(inside)
    nested = low.inner(step, divergent if divergent is not None else scope.mask)
    inputs = [*(low.handed_in(a, nested) for a in step_consts), *arguments(nested, now, True)]
    results = nested.run(inputs)
    new = flat([nested.scope.apart(results[n]) for n in small])
    for n, buffer in large.items():
        nested.write_home(results[n], buffer, nested.scope.mask)
    if divergent is not None:
        new = [f.select(divergent, a, b) for a, b in zip(new, now, strict=True)]
    grown = [a.wide and not b.wide for a, b in zip(new, now, strict=True)]
    new = [f.widened(a) if b.wide else a for a, b in zip(new, now, strict=True)]
    end = f.block
    f.jump(top)
    for place, phi, a, b in zip(places, now, start, new, strict=True):
        kind = f.type_of(phi.kind, phi.wide)
        f.lines[place] = f"  {phi.text} = phi {kind} [ {a.text}, %{before} ], [ {b.text}, %{end} ]"
    f.start_block(after)
    return now, grown


RULES = {"scan": _scan, "while": _while}

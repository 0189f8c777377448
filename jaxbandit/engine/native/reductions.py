"""Primitives that reduce along axes, and running reductions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.native import rules
from jaxbandit.engine.native.arrays import KINDS, SMALL, Apart, Array, Pending, merged
from jaxbandit.engine.native.conversions import convert
from jaxbandit.engine.native.emit import BITS, Function, Value


def least(kind: str, is_signed: bool) -> float | int:
    """Returns the smallest number of a kind."""
    if kind in ("float", "double"):
        return -math.inf
    return -(1 << (BITS[kind] - 1)) if is_signed and kind != "i1" else 0


def greatest(kind: str, is_signed: bool) -> float | int:
    """Returns the largest number of a kind."""
    if kind in ("float", "double"):
        return math.inf
    return (1 << (BITS[kind] - 1)) - 1 if is_signed and kind != "i1" else (1 << BITS[kind]) - 1


def combiner(f: Function, name: str, kind: str, is_signed: bool) -> tuple[Callable[[Value, Value], Value], float | int]:
    """Returns the function that combines two entries, and its neutral element."""
    if name in ("max", "min"):
        start = least(kind, is_signed) if name == "max" else greatest(kind, is_signed)
        return lambda a, b: rules.extreme(f, name, a, b, is_signed), start
    if name == "logsumexp":
        return (lambda a, b: rules.log_add_exp(f, a, b)), -math.inf
    if name == "sum":
        return (lambda a, b: f.binary("or", a, b) if kind == "i1" else f.add(a, b)), 0
    if name == "prod":
        return (lambda a, b: f.mul(a, b)), 1
    start = {"and": -1, "or": 0, "xor": 0}[name]
    return (lambda a, b: f.binary(name, a, b)), start


def _reduce(low, equation, operand: Array):
    name = equation.primitive.name.removeprefix("reduce_")
    kind, is_signed = operand.kind, operand.dtype.kind != "u"
    combine, start = combiner(low.f, name, kind, is_signed)
    return [
        reduced(
            low,
            equation,
            operand,
            equation.params["axes"],
            lambda: [low.f.constant(start, kind)],
            lambda entry, index: [entry],
            lambda a, b: [combine(a[0], b[0])],
            lambda a: a[0],
        )
    ]


def _arg(low, equation, operand: Array):
    f, (axis,) = low.f, equation.params["axes"]
    target = np.dtype(equation.params["index_dtype"])
    largest = equation.primitive.name == "argmax"
    is_signed = operand.dtype.kind not in "ub"
    start = (least if largest else greatest)(operand.kind, is_signed)
    number = KINDS[target]

    def position(index) -> Value:
        (i,) = index
        return f.constant(i, number) if isinstance(i, int) else convert(f, i, np.dtype(np.int64), target)

    def merge(a, b):
        """Returns the better entry, the first of equal ones. NaN is better than every number."""
        (x, i), (y, j) = a, b
        better = f.compare("gt" if largest else "lt", y, x, signed=is_signed)
        if operand.dtype.kind == "f":
            better = f.binary(
                "or", better, f.binary("and", f.is_nan(y), f.binary("xor", f.is_nan(x), f.constant(1, "i1")))
            )
            equal = f.binary("or", f.compare("eq", x, y), f.binary("and", f.is_nan(x), f.is_nan(y)))
        else:
            equal = f.compare("eq", x, y)
        if i.constant is not None and j.constant is not None:
            takes = better if i.constant < j.constant else f.binary("or", better, equal)
        else:
            takes = f.binary("or", better, f.binary("and", equal, f.compare("lt", j, i)))
        return [f.select(takes, y, x), f.select(takes, j, i)]

    return [
        reduced(
            low,
            equation,
            operand,
            (axis,),
            lambda: [f.constant(start, operand.kind), f.constant((1 << (BITS[number] - 1)) - 1, number)],
            lambda entry, index: [entry, position(index)],
            merge,
            lambda a: a[1],
        )
    ]


def reduced(low, equation, operand: Array, axes: Sequence[int], start, single, merge, finish) -> Array:
    """Reduces an array along axes.

    ``single(entry, index)`` makes accumulators of one entry, ``merge`` joins two, ``finish`` makes the result.
    """
    scope, aval = low.scope, equation.outvars[0].aval
    axes = tuple(sorted(axes))
    outer = [axis for axis in range(len(operand.shape)) if axis not in axes]
    shape = tuple(operand.shape[axis] for axis in outer)
    along = [operand.shape[axis] for axis in axes]

    def places(result):
        for index in np.ndindex(*along):
            full = [0] * len(operand.shape)
            for axis, i in (*zip(axes, index, strict=True), *zip(outer, result, strict=True)):
                full[axis] = i
            yield tuple(full), index

    if operand.size <= SMALL or (math.prod(shape) <= SMALL and math.prod(along) <= 8):
        if isinstance(operand, Pending):
            operand = operand.apart()
        items = np.empty(shape, object)
        for result in np.ndindex(*shape):
            entries = [single(operand.at(full), index) for full, index in places(result)]
            items[result] = finish(merged(entries, merge)) if entries else finish(start())
        return Apart(items, aval.dtype, scope)
    if math.prod(shape) <= SMALL:

        def absorb(accumulators, entry, index):
            return merge(accumulators, single(entry, index))

        pending = Pending(shape, aval.dtype, scope, operand, axes, start, absorb, merge, finish, low.number)
        scope.pending.append(pending)
        return pending
    if math.prod(along) <= 16:  # few entries for each of many results

        def element(result):
            entries = []
            for index in np.ndindex(*along):
                full: list[Any] = [None] * len(operand.shape)
                for axis, i in (*zip(axes, index, strict=True), *zip(outer, result, strict=True)):
                    full[axis] = i
                entries.append(single(operand.at(tuple(full)), index))
            return finish(merged(entries, merge))

        return low.make(equation, shape, aval.dtype, element, [(operand, "once")], 2 * math.prod(along))
    return scope.reduce_rows(operand, axes, shape, aval.dtype, start, single, merge, finish)


def _running(low, equation, operand: Array):
    axis, reverse = equation.params["axis"], equation.params["reverse"]
    name = equation.primitive.name.removeprefix("cum")
    combine, start = combiner(low.f, name, operand.kind, operand.dtype.kind != "u")
    scope, length = low.scope, operand.shape[axis]
    others = [n for a, n in enumerate(operand.shape) if a != axis]
    if operand.size <= SMALL:
        items = scope.apart(operand).items.copy()
        order = range(length - 2, -1, -1) if reverse else range(1, length)
        for i in order:
            for rest in np.ndindex(*others):
                here = (*rest[:axis], i, *rest[axis:])
                before = (*rest[:axis], i + 1 if reverse else i - 1, *rest[axis:])
                items[here] = combine(items[before], items[here])
        return [Apart(items, operand.dtype, scope)]
    return [scope.running(operand, axis, reverse, combine, low.f.constant(start, operand.kind))]


def _dot(low, equation, a: Array, b: Array):
    (a_sums, b_sums), (a_batch, b_batch) = equation.params["dimension_numbers"]
    aval, f, scope = equation.outvars[0].aval, low.f, low.scope
    a_free = [d for d in range(len(a.shape)) if d not in (*a_sums, *a_batch)]
    b_free = [d for d in range(len(b.shape)) if d not in (*b_sums, *b_batch)]
    along = [a.shape[d] for d in a_sums]
    if a.dtype != b.dtype or a.dtype != aval.dtype:
        raise KeyError("dot_general of mixed dtypes")
    if math.prod(along) > SMALL and aval.size > SMALL:
        raise KeyError("dot_general of large arrays")

    def product(index, inner):
        at_a, at_b = [0] * len(a.shape), [0] * len(b.shape)
        places = iter(index)
        for i, j in zip(a_batch, b_batch, strict=True):
            at_a[i] = at_b[j] = next(places)
        for i in a_free:
            at_a[i] = next(places)
        for j in b_free:
            at_b[j] = next(places)
        for n, (i, j) in enumerate(zip(a_sums, b_sums, strict=True)):
            at_a[i] = at_b[j] = inner[n]
        return rules.RULES["mul"](f, equation, a.at(tuple(at_a)), b.at(tuple(at_b)))

    combine, start = combiner(f, "sum", a.kind, a.dtype.kind != "u")
    if math.prod(along) <= SMALL:

        def element(index):
            terms = [product(index, inner) for inner in np.ndindex(*along)]
            return merged(terms, combine) if terms else f.constant(0, a.kind)

        return [low.make(equation, aval.shape, aval.dtype, element, [(a, "many"), (b, "many")], 2 * math.prod(along))]
    # Few results with a long sum each: the table of products is reduced.
    number = low.number
    table = scope.node(
        (*along, *aval.shape),
        aval.dtype,
        lambda index: product(index[len(along) :], index[: len(along)]),
        [(a, "many"), (b, "many")],
        1,
        {number},
        number,
    )
    axes = range(len(along))
    return [
        reduced(
            low,
            equation,
            table,
            axes,
            lambda: [f.constant(start, a.kind)],
            lambda entry, index: [entry],
            lambda x, y: [combine(x[0], y[0])],
            lambda x: x[0],
        )
    ]


RULES = {
    **dict.fromkeys(
        ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "reduce_xor"), _reduce
    ),
    "argmax": _arg,
    "argmin": _arg,
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _running),
    "dot_general": _dot,
}

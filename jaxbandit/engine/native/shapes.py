"""Primitives that move entries without changing them: each maps places of the result to places of its operand."""

import math
from typing import Any

import numpy as np

from jaxbandit.engine.native.arrays import KINDS, SMALL, Apart, Array, Buffer
from jaxbandit.engine.native.conversions import convert
from jaxbandit.engine.native.emit import Value


def _aval(equation, result: int = 0):
    return equation.outvars[result].aval


def _broadcast(low, equation, source: Array, *_):
    shape, dims = equation.params["shape"], equation.params["broadcast_dimensions"]

    def element(index):
        return source.at(tuple(index[d] if n > 1 else 0 for d, n in zip(dims, source.shape, strict=True)))

    how = "same" if tuple(shape) == source.shape else "many"
    return [low.make(equation, shape, source.dtype, element, [(source, how)], 0)]


def _reshape(low, equation, source: Array, *_):
    return [reshaped(low, equation, source, _aval(equation).shape)]


def reshaped(low, equation, source: Array, shape) -> Array:
    """Returns the entries in the same order under another shape."""
    if isinstance(source, Buffer):
        return source.viewed(shape)
    if math.prod(shape) <= SMALL:
        return Apart(low.scope.apart(source).items.reshape(shape), source.dtype, low.scope)
    kept, left = [n for n in source.shape if n > 1], [n for n in shape if n > 1]
    if kept != left:
        return low.scope.stored(source).viewed(shape)

    def element(index):
        moving = iter(i for i, n in zip(index, shape, strict=True) if n > 1)
        return source.at(tuple(next(moving) if n > 1 else 0 for n in source.shape))

    return low.make(equation, shape, source.dtype, element, [(source, "once")], 0)


def _slice(low, equation, source: Array):
    starts = equation.params["start_indices"]
    strides = equation.params["strides"] or (1,) * len(starts)
    return [_cut(low, equation, source, starts, strides, _aval(equation).shape)]


def _cut(low, equation, source: Array, starts, strides, shape) -> Array:
    """Returns the entries from ``starts`` on, one in every ``strides``."""

    def element(index):
        scope = low.scope
        return source.at(
            tuple(scope.plus(scope.times(i, s), b) for i, s, b in zip(index, strides, starts, strict=True))
        )

    return low.make(equation, shape, source.dtype, element, [(source, "once")], 0)


def _transpose(low, equation, source: Array):
    permutation = equation.params["permutation"]

    def element(index):
        before: list[Any] = [None] * len(index)
        for place, axis in zip(index, permutation, strict=True):
            before[axis] = place
        return source.at(tuple(before))

    return [low.make(equation, _aval(equation).shape, source.dtype, element, [(source, "once")], 0)]


def _reverse(low, equation, source: Array):
    dims = equation.params["dimensions"]

    def element(index):
        turned = [
            low.scope.plus(low.scope.times(i, -1), n - 1) if axis in dims else i
            for axis, (i, n) in enumerate(zip(index, source.shape, strict=True))
        ]
        return source.at(tuple(turned))

    return [low.make(equation, source.shape, source.dtype, element, [(source, "once")], 0)]


def _concatenate(low, equation, *sources: Array):
    axis, aval = equation.params["dimension"], _aval(equation)
    firsts = np.cumsum([0, *(source.shape[axis] for source in sources[:-1])]).tolist()
    return [_joined(low, aval, [(s, {axis: (first, 1)}) for s, first in zip(sources, firsts, strict=True)])]


def _stack(low, equation, *sources: Array):
    axis, aval = equation.params["axis"], _aval(equation)
    if aval.size <= SMALL:
        return [Apart(np.stack([low.scope.apart(s).items for s in sources], axis), aval.dtype, low.scope)]
    out = low.scope.workspace.buffer(aval.shape, aval.dtype, low.scope)
    for n, source in enumerate(sources):
        low.scope.fill(out, source, lambda index, n=n: (*index[:axis], n, *index[axis:]))
    return [out]


def _unstack(low, equation, source: Array):
    axis = equation.params["axis"]

    def part(n: int, result: int) -> Array:
        def element(index):
            return source.at((*index[:axis], n, *index[axis:]))

        return low.make(equation, _aval(equation, result).shape, source.dtype, element, [(source, "once")], 0, result)

    return [part(n, n) for n in range(source.shape[axis])]


def _split(low, equation, source: Array):
    axis, sizes = equation.params["axis"], equation.params["sizes"]
    firsts = np.cumsum([0, *sizes[:-1]]).tolist()

    def part(first: int, result: int) -> Array:
        def element(index):
            return source.at((*index[:axis], low.scope.plus(index[axis], first), *index[axis + 1 :]))

        return low.make(equation, _aval(equation, result).shape, source.dtype, element, [(source, "once")], 0, result)

    return [part(first, n) for n, first in enumerate(firsts)]


def _pad(low, equation, source: Array, fill: Array):
    config, aval = equation.params["padding_config"], _aval(equation)
    befores, steps = [before for before, _, _ in config], [inside + 1 for _, _, inside in config]
    # A negative width cuts entries off: those from ``firsts`` to before ``ends`` remain.
    firsts = [max(-(before // step), 0) for before, step in zip(befores, steps, strict=True)]
    ends = [-((before - n) // step) for before, step, n in zip(befores, steps, aval.shape, strict=True)]
    kept = [max(min(end, n) - first, 0) for first, end, n in zip(firsts, ends, source.shape, strict=True)]
    if tuple(kept) != source.shape:
        source = _cut(low, equation, source, firsts, [1] * len(kept), kept)
    places = [(before + first * step, step) for before, first, step in zip(befores, firsts, steps, strict=True)]
    return [_joined(low, aval, [(source, dict(enumerate(places)))], fill.at(()))]


def _joined(low, aval, parts, fill: Value | None = None) -> Array:
    """Joins parts into an array; each part has its target places as {axis: (first place, step)}."""
    scope = low.scope

    def place(index, places):
        moved = list(index)
        for axis, (first, step) in places.items():
            moved[axis] = scope.plus(scope.times(index[axis], step), first)
        return tuple(moved)

    if aval.size <= SMALL:
        items = np.empty(aval.shape, object)
        for index in np.ndindex(*aval.shape):
            items[index] = fill
        for source, places in parts:
            apart = scope.apart(source).items
            for index in np.ndindex(*apart.shape):
                items[place(index, places)] = apart[index]
        return Apart(items, aval.dtype, scope)
    out = scope.workspace.buffer(aval.shape, aval.dtype, scope)
    if fill is not None:
        scope.fill_with(out, fill)
    for source, places in parts:
        scope.fill(out, source, lambda index, places=places: place(index, places))
    return out


def _iota(low, equation):
    axis, aval = equation.params["dimension"], _aval(equation)

    def element(index):
        i = index[axis]
        if isinstance(i, int):
            return low.f.constant(i, KINDS[np.dtype(aval.dtype)])
        return convert(low.f, i, np.dtype(np.int64 if i.kind == "i64" else np.int32), np.dtype(aval.dtype))

    return [low.make(equation, aval.shape, aval.dtype, element, [], 0)]


RULES = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "slice": _slice,
    "transpose": _transpose,
    "rev": _reverse,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "split": _split,
    "pad": _pad,
    "iota": _iota,
}

"""Primitives that read and write at computed places: slices, gathers, scatters.

They never read or write outside of an array: places are clamped or left out, as JAX defines for each mode.
"""

import math
from typing import Any

import numpy as np

from jaxbandit.engine.native import rules
from jaxbandit.engine.native.arrays import SMALL, Apart, Array, Buffer
from jaxbandit.engine.native.emit import BITS, Value


def _as_place(low, value: Value, is_signed: bool = True) -> int | Value:
    """Returns an index as a number if it is known, else as a signed value of at least 32 bits."""
    if value.constant is not None:
        number, bits = int(value.constant), BITS[value.kind]
        return number - (1 << bits) if is_signed and number >> (bits - 1) else number
    if BITS[value.kind] < 32:
        return low.f.cast("sext" if is_signed else "zext", value, "i32")
    if not is_signed and value.kind == "i32":
        return low.f.cast("zext", value, "i64")
    return value


def _clamped(low, place: int | Value, last: int) -> int | Value:
    """Clamps a place to the range from 0 to ``last``."""
    if isinstance(place, int):
        return min(max(place, 0), last)
    if last == 0:
        return 0
    f = low.f
    return f.intrinsic("smin", f.intrinsic("smax", place, f.constant(0, place.kind)), f.constant(last, place.kind))


def _inside(low, place: int | Value, last: int) -> Value:
    """Returns whether a place lies from 0 to ``last``."""
    f = low.f
    if isinstance(place, int):
        return f.constant(0 <= place <= last, "i1")
    return f.compare("le", place, f.constant(last, place.kind), signed=False)


def _both(low, a: Value | None, b: Value) -> Value:
    return b if a is None or a.constant == 1 else a if b.constant == 1 else low.f.binary("and", a, b)


def _starts(low, equation, operand: Array, indices, sizes) -> list:
    places = []
    for array, length, size in zip(indices, operand.shape, sizes, strict=True):
        is_signed = np.dtype(array.dtype).kind != "u"
        places.append(_clamped(low, _as_place(low, array.at(()), is_signed), length - size))
    return places


def _dynamic_slice(low, equation, operand: Array, *indices: Array):
    starts = _starts(low, equation, operand, indices, equation.params["slice_sizes"])
    scope = low.scope

    def element(index):
        return operand.at(tuple(scope.plus(start, i) for start, i in zip(starts, index, strict=True)))

    aval = equation.outvars[0].aval
    return [low.make(equation, aval.shape, operand.dtype, element, [(operand, "once")], 0)]


def _dynamic_update_slice(low, equation, operand: Array, update: Array, *indices: Array):
    starts = _starts(low, equation, operand, indices, update.shape)

    def target(index):
        return tuple(low.scope.plus(start, i) for start, i in zip(starts, index, strict=True)), None

    return [_written(low, operand, update, target, lambda old, new: new)]


def _gather(low, equation, operand: Array, indices: Array):
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    mode = str(getattr(equation.params["mode"], "name", equation.params["mode"])).upper()
    aval, f, scope = equation.outvars[0].aval, low.f, low.scope
    collapsed = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [d for d in range(len(operand.shape)) if d not in collapsed]
    is_signed = indices.dtype.kind != "u"
    fills = "FILL" in mode
    fill = equation.params.get("fill_value")
    if fill is None:
        ends = {"f": math.nan, "b": True, "u": -1, "i": -(1 << (operand.dtype.itemsize * 8 - 1))}
        fill = ends[operand.dtype.kind]

    def element(index):
        batch = [i for d, i in enumerate(index) if d not in numbers.offset_dims]
        offsets = dict(zip(kept, (index[d] for d in numbers.offset_dims), strict=True))
        where: list[Any] = [offsets.get(d, 0) for d in range(len(operand.shape))]
        inside: Value | None = None
        for n, d in enumerate(numbers.start_index_map):
            start = _as_place(low, indices.at((*batch, n)), is_signed)
            last = operand.shape[d] - sizes[d]
            if fills:
                inside = _both(low, inside, _inside(low, start, last))
            where[d] = scope.plus(_clamped(low, start, last), where[d])
        for d, b in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            where[d] = batch[b]
        found = operand.at(tuple(where))
        return found if inside is None else f.select(inside, found, f.constant(fill, operand.kind))

    return [low.make(equation, aval.shape, operand.dtype, element, [(operand, "gather"), (indices, "many")], 4)]


_COMBINE = {
    "scatter": lambda f, old, new: new,
    "scatter-add": lambda f, old, new: f.add(old, new),
    "scatter_add": lambda f, old, new: f.add(old, new),
    "scatter-sub": lambda f, old, new: f.sub(old, new),
    "scatter_sub": lambda f, old, new: f.sub(old, new),
    "scatter-mul": lambda f, old, new: f.mul(old, new),
    "scatter_mul": lambda f, old, new: f.mul(old, new),
}


def _scatter(low, equation, operand: Array, indices: Array, updates: Array):
    numbers, f, scope = equation.params["dimension_numbers"], low.f, low.scope
    mode = str(getattr(equation.params["mode"], "name", equation.params["mode"])).upper()
    name = equation.primitive.name
    missing = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = [d for d in range(len(operand.shape)) if d not in missing]
    sizes = [1] * len(operand.shape)
    for d, u in zip(window, numbers.update_window_dims, strict=True):
        sizes[d] = updates.shape[u]
    is_signed = indices.dtype.kind != "u"

    def combine(old: Value, new: Value) -> Value:
        if name in _COMBINE:
            if old.kind == "i1" and name != "scatter":
                raise KeyError(f"{name} of truth values")
            return _COMBINE[name](f, old, new)
        return rules.extreme(f, name[-3:], old, new, operand.dtype.kind != "u")

    def target(index):
        batch = [i for d, i in enumerate(index) if d not in numbers.update_window_dims]
        offsets = dict(zip(window, (index[d] for d in numbers.update_window_dims), strict=True))
        where: list[Any] = [offsets.get(d, 0) for d in range(len(operand.shape))]
        inside: Value | None = None
        for n, d in enumerate(numbers.scatter_dims_to_operand_dims):
            start = _as_place(low, indices.at((*batch, n)), is_signed)
            last = operand.shape[d] - sizes[d]
            if "CLIP" not in mode:
                inside = _both(low, inside, _inside(low, start, last))
            where[d] = scope.plus(_clamped(low, start, last), where[d])
        for d, b in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
            where[d] = batch[b]
        return tuple(where), inside

    return [_written(low, operand, updates, target, combine)]


def _written(low, operand: Array, updates: Array, target, combine) -> Array:
    """Combines updates into the operand; ``target(index)`` gives an update's place and whether it counts."""
    f, scope = low.f, low.scope
    if operand.size <= SMALL and updates.size <= SMALL:
        items = scope.apart(operand).items.copy()
        for index in np.ndindex(*updates.shape):
            where, inside = target(index)
            if inside is not None and inside.constant == 0:
                continue
            new = updates.at(index)
            for place in np.ndindex(*operand.shape):
                here: Value | None = inside
                for i, n in zip(where, place, strict=True):
                    if isinstance(i, int):
                        here = here if i == n else f.constant(0, "i1")
                    else:
                        here = _both(low, here, f.compare("eq", i, f.constant(n, i.kind)))
                    if here is not None and here.constant == 0:
                        break
                if here is None or here.constant != 0:
                    value = combine(items[place], new)
                    items[place] = value if here is None else f.select(here, value, items[place])
        return Apart(items, operand.dtype, scope)
    updates = scope.stored(updates) if updates.size > SMALL else scope.apart(updates)
    buffer = low.overwritable(operand)

    def put(index):
        where, inside = target(index)
        if inside is not None and inside.constant == 0:
            return
        inside = None if inside is not None and inside.constant == 1 else inside
        if scope.mask is not None:
            inside = _both(low, inside, scope.mask) if inside is not None else scope.mask
        buffer.put(where, combine(buffer.at(where), updates.at(index)), inside)

    if updates.size <= SMALL:
        for index in np.ndindex(*updates.shape):
            put(index)
    else:
        scope.loop_over(updates.shape, put)
    result = Buffer(buffer.base, operand.shape, operand.dtype, scope, writable=True)
    result.origin = buffer.origin
    return result


RULES = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    **dict.fromkeys((*_COMBINE, "scatter-min", "scatter-max", "scatter_min", "scatter_max"), _scatter),
}

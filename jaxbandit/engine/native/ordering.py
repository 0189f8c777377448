"""Sorting by a network of comparisons, the same for all lanes; small arrays are taken apart, large ones in memory."""

from collections.abc import Iterator

import numpy as np

from jaxbandit.engine.native import conversions
from jaxbandit.engine.native.arrays import SMALL, Apart, Array, Buffer
from jaxbandit.engine.native.emit import Value

APART = 16  # most entries that are sorted without memory


def _phases(length: int) -> Iterator[tuple[int, int, int]]:
    """Yields (p, r, d) of Batcher's merge exchange (Knuth, 5.2.2 M): compare all i < length - d with i & p == r."""
    top = 1 << max((length - 1).bit_length() - 1, 0)
    p = top
    while length > 1 and p > 0:
        q, r, d = top, 0, p
        while True:
            yield p, r, d
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2


def _sort(low, equation, *operands: Array):
    return sorted_along(low, equation, operands, equation.params["dimension"], equation.params["num_keys"], False)


def _top_k(low, equation, operand: Array):
    k = equation.params["k"]
    axis = len(operand.shape) - 1
    index = _places(low, operand.shape, axis)
    values, places = sorted_along(low, equation, [operand, index], axis, 1, True)
    cut = [low.scope.apart(array) if array.size <= SMALL else array for array in (values, places)]
    results = []
    for n, array in enumerate(cut):
        aval = equation.outvars[n].aval
        results.append(low.make(equation, (*operand.shape[:-1], k), aval.dtype, array.at, [(array, "once")], 0, n))
    return results


def _places(low, shape, axis: int) -> Array:
    items = np.empty(shape, object)
    if items.size <= SMALL:
        for index in np.ndindex(*shape):
            items[index] = low.f.constant(index[axis], "i32")
        return Apart(items, np.int32, low.scope)
    buffer = low.scope.workspace.buffer(shape, np.int32, low.scope)
    low.scope.loop_over(shape, lambda index: buffer.put(index, _as_number(low, index[axis])))
    return buffer


def _as_number(low, i) -> Value:
    if isinstance(i, int):
        return low.f.constant(i, "i32")
    return low.f.cast("trunc", i, "i32")


def sorted_along(low, equation, operands, axis: int, num_keys: int, descending: bool) -> list[Array]:
    """Sorts operands together by the first ``num_keys`` of them; equal entries keep their order."""
    f, scope, shape = low.f, low.scope, operands[0].shape
    operands = [*operands, _places(low, shape, axis)]  # the last key is the old place of an entry
    keys = [*range(num_keys), len(operands) - 1]
    dtypes = [np.dtype(array.dtype) for array in operands]

    def before(a, b) -> Value:
        """Returns whether entries ``a`` come before entries ``b``."""
        result = f.constant(0, "i1")
        for n in reversed(keys):
            x, y = (_ordered(low, v[n]) for v in (a, b))
            if descending and n != keys[-1]:
                x, y = y, x
            is_signed = dtypes[n].kind not in "ub"
            less, equal = f.compare("lt", x, y, signed=is_signed), f.compare("eq", x, y)
            result = f.binary("or", less, f.binary("and", equal, result))
        return result

    def exchange(a, b):
        swap = before(b, a)
        return (
            [f.select(swap, y, x) for x, y in zip(a, b, strict=True)],
            [f.select(swap, x, y) for x, y in zip(a, b, strict=True)],
        )

    length, rest = shape[axis], [n for d, n in enumerate(shape) if d != axis]
    if operands[0].size <= SMALL and length <= APART:
        items = [scope.apart(array).items.copy() for array in operands]
        for p, r, d in _phases(length):
            for i in range(length - d):
                if i & p == r:
                    for other in np.ndindex(*rest):
                        low_at, high_at = ((*other[:axis], n, *other[axis:]) for n in (i, i + d))
                        a, b = exchange([x[low_at] for x in items], [x[high_at] for x in items])
                        for x, u, v in zip(items, a, b, strict=True):
                            x[low_at], x[high_at] = u, v
        return [Apart(x, t, scope) for x, t in zip(items[:-1], dtypes, strict=False)]

    buffers: list[Buffer] = []
    for array in operands:
        copy = scope.workspace.buffer(shape, array.dtype, scope)
        scope.write(array, copy)
        buffers.append(copy)
    for p, r, d in _phases(length):

        def compare(index, p=p, r=r, d=d):
            i, other = index[0], index[1:]
            if isinstance(i, int):
                if i & p == r:
                    swap_at(i, other, d)
                return
            here = f.compare("eq", f.binary("and", i, f.constant(p, i.kind)), f.constant(r, i.kind))
            with f.branch(here):
                swap_at(i, other, d)

        def swap_at(i, other, d):
            low_at = (*other[:axis], i, *other[axis:])
            high_at = (*other[:axis], scope.plus(i, d), *other[axis:])
            a, b = exchange([x.at(low_at) for x in buffers], [x.at(high_at) for x in buffers])
            for x, u, v in zip(buffers, a, b, strict=True):
                x.put(low_at, u)
                x.put(high_at, v)

        scope.loop_over((length - d, *rest), compare)
    return [x if x.size > SMALL else scope.apart(x) for x in buffers[:-1]]


def _ordered(low, value: Value) -> Value:
    """Returns the value to compare: it puts NaN last and makes both zeros equal."""
    f = low.f
    if not value.is_float:
        return value
    zero = f.constant(0.0, value.kind)
    return conversions.total_order(f, f.select(f.compare("eq", value, zero), zero, value))


RULES = {"sort": _sort, "top_k": _top_k}

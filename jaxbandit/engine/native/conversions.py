"""Conversions of numbers as JAX defines them, orders of bits, and exact remainders."""

import numpy as np

from jaxbandit.engine.native.arrays import KINDS
from jaxbandit.engine.native.emit import BITS, INTEGER_OF, Function, Value


def convert(f: Function, a: Value, source: np.dtype, target: np.dtype) -> Value:
    """Converts a value to another dtype as JAX does: to integers towards zero, cut off at the ends, NaN to 0."""
    kind = KINDS[target]
    if a.constant is not None and not (a.is_float and not np.isfinite(a.constant)):
        number = np.array(a.constant).astype(np.uint64 if source.kind == "u" else None)
        if source.kind == "i":
            number = np.array(_as_signed(int(a.constant), BITS[a.kind]))
        with np.errstate(all="ignore"):
            if not (a.is_float and target.kind in "iu" and abs(a.constant) >= 2.0 ** (BITS[kind] - 2)):
                return f.constant((number.astype(target)).item(), kind)
    if source == target or (source.kind in "iu" and target.kind in "iu" and source.itemsize == target.itemsize):
        return a
    if target == np.bool_:
        return f.compare("ne", a, f.constant(0, a.kind))
    if source == np.bool_:
        return f.cast("uitofp" if target.kind == "f" else "zext", a, kind)
    if source.kind == "f" and target.kind == "f":
        return f.cast("fpext" if target.itemsize > source.itemsize else "fptrunc", a, kind)
    if source.kind == "f":
        return f.convert_saturating(a, kind, target.kind == "i")
    if target.kind == "f":
        return f.cast("sitofp" if source.kind == "i" else "uitofp", a, kind)
    if target.itemsize < source.itemsize:
        return f.cast("trunc", a, kind)
    return f.cast("sext" if source.kind == "i" else "zext", a, kind)


def _as_signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number


def canonical(f: Function, a: Value) -> Value:
    """Replaces every NaN by one pattern of bits, because processors differ in the pattern that they make."""
    return f.select(f.is_nan(a), f.constant(float("nan"), a.kind), a)


def total_order(f: Function, a: Value) -> Value:
    """Returns an integer whose order is IEEE's total order of the numbers."""
    raw = f.bits(canonical(f, a))
    flipped = f.binary("xor", raw, f.constant((1 << (BITS[raw.kind] - 1)) - 1, raw.kind))
    return f.select(f.compare("lt", raw, f.constant(0, raw.kind)), flipped, raw)


def rounded(f: Function, a: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """Rounds a number to a format with fewer bits, ties to even; subnormal numbers of that format become 0."""
    integer, bits = INTEGER_OF[a.kind], BITS[a.kind]
    mantissa = {"float": 23, "double": 52}[a.kind]
    drop, raw = mantissa - mantissa_bits, f.bits(a)
    if drop > 0:
        last = f.binary("and", f.binary("lshr", raw, f.constant(drop, integer)), f.constant(1, integer))
        up = f.add(last, f.constant((1 << (drop - 1)) - 1, integer))
        raw = f.binary("and", f.add(raw, up), f.constant(-1 << drop, integer))
    result = f.from_bits(raw, a.kind)
    if exponent_bits < bits - 1 - mantissa:
        bias = (1 << (exponent_bits - 1)) - 1
        size = f.intrinsic("fabs", result)
        least, most = 2.0 ** (1 - bias), 2.0**bias * (2.0 - 2.0 ** -min(mantissa, mantissa_bits))
        zero, inf = (f.intrinsic("copysign", f.constant(value, a.kind), a) for value in (0.0, float("inf")))
        result = f.select(f.compare("lt", size, f.constant(least, a.kind)), zero, result)
        result = f.select(f.compare("gt", size, f.constant(most, a.kind)), inf, result)
    return f.select(f.is_nan(a), a, result)


def remainder(f: Function, a: Value, b: Value) -> Value:
    """Returns ``a - trunc(a / b) b`` exactly: the quotient is subtracted in pieces of 20 bits, from the top."""
    size, divisor = f.intrinsic("fabs", a), f.intrinsic("fabs", b)
    inf = f.constant(float("inf"), a.kind)
    valid = f.binary("and", f.compare("lt", size, inf), f.compare("gt", divisor, f.constant(0.0, a.kind)))
    left = f.select(valid, size, f.constant(0.0, a.kind))

    def goes_on(now: list[Value]) -> Value:
        return f.binary("and", valid, f.compare("ge", now[0], divisor))

    def step(now: list[Value]) -> list[Value]:
        # A quotient cut to its 20 leading bits is at most the true one plus rounding, so one divisor too many is
        # added back. If the quotient overflows, a multiple of the divisor is subtracted first.
        quotient = f.div(now[0], divisor)
        far = f.compare("eq", quotient, inf)
        by = f.select(far, f.mul(divisor, f.constant(_HUGE[a.kind], a.kind)), divisor)
        quotient = f.select(far, f.div(now[0], by), quotient)
        drop = 3 if a.kind == "float" else 32
        cut = f.binary("and", f.bits(f.intrinsic("trunc", quotient)), f.constant(-1 << drop, INTEGER_OF[a.kind]))
        rest = f.fma(f.neg(f.from_bits(cut, a.kind)), by, now[0])
        lower = f.from_bits(f.sub(cut, f.constant(1 << drop, cut.kind)), a.kind)
        few = f.compare("lt", quotient, f.constant(2.0**20, a.kind))
        given_back = f.select(few, f.add(rest, by), f.fma(f.neg(lower), by, now[0]))
        return [f.select(f.compare("lt", rest, f.constant(0.0, a.kind)), given_back, rest)]

    (left,) = f.repeat(goes_on, [left], step)
    nan = f.constant(float("nan"), a.kind)
    left = f.select(f.binary("or", valid, f.compare("eq", divisor, inf)), left, nan)
    left = f.select(f.binary("and", f.compare("eq", divisor, inf), f.compare("lt", size, inf)), size, left)
    left = f.select(f.binary("or", f.is_nan(a), f.is_nan(b)), nan, left)
    left = f.select(f.compare("eq", size, inf), nan, left)
    return f.intrinsic("copysign", left, a)


_HUGE = {"float": 2.0**100, "double": 2.0**1000}

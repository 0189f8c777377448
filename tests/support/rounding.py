"""Operations of PTX that NumPy lacks, among them fma in both precisions, rounded once."""

import fractions
import math

import numpy as np

f32, f64 = np.float32, np.float64


def _odd(high, low):
    """Rounds the exact sum of two float64, of which ``high`` is the nearest float64, to odd.

    A number rounded to odd can be rounded again to at least two bits less, as if it had been rounded once.
    """
    even = (high.view(np.int64) & 1) == 0
    moved = np.nextafter(high, np.where(low > 0, np.inf, -np.inf))
    return np.where(even & (low != 0) & np.isfinite(high), moved, high)


def _two_sum(a, b):
    """Returns the rounded sum and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fma32(a, b, c):
    """Returns a * b + c of float32, rounded once: the product is exact in float64, the sum is rounded to odd.

    A second rounding can only go wrong from a number half-way between two float32, which ends in 28 zeros. Without
    such numbers the sum need not be odd.
    """
    product, c = np.multiply(a, b, dtype=f64), np.asarray(c, f64)
    total = product + c
    if not np.logical_or.reduce((total.view(np.int64) & 0xFFFFFFF) == 0):
        return total.astype(f32)
    return _odd(*_two_sum(product, c)).astype(f32)


_SPLIT = f64(2.0**27 + 1)


def _two_product(a, b):
    """Returns the rounded product and its exact error; exponents must be moderate."""
    product = a * b
    ah, bh = (x * _SPLIT - (x * _SPLIT - x) for x in (a, b))
    al, bl = a - ah, b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def fma64(a, b, c):
    """Returns a * b + c of float64, rounded once (Boldo and Melquiond, 2008); by fractions if exponents are extreme."""
    a, b, c = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, f64)) for x in (a, b, c)))
    high, low = _two_product(a, b)
    mid, rest = _two_sum(c, low)
    top, error = _two_sum(high, mid)
    inner, lost = _two_sum(rest, error)
    result = top + _odd(inner, lost)
    size = np.abs([a, b, c])
    extreme = ((size > 2.0**400) | ((size < 2.0**-400) & (size != 0))).any(axis=0) | ~np.isfinite(result)
    for n in np.flatnonzero(extreme):
        result[n] = _exact(a[n], b[n], c[n])
    zero = result == 0  # the sign of a zero is that of IEEE's sum
    return np.where(zero, a * b + c, result) if zero.any() else result


def _exact(a, b, c) -> float:
    a, b, c = float(a), float(b), float(c)
    if not (math.isfinite(a) and math.isfinite(b)):
        return float(np.multiply(a, b) + c)
    if not math.isfinite(c):
        return c
    total = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    try:
        return total.numerator / total.denominator  # Python rounds the quotient of integers once
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def to_integer(x, dtype):
    """Converts numbers without fractions to integers as PTX does: cut off at the ends, NaN to 0."""
    info = np.iinfo(dtype)
    low, high = f64(info.min), f64(info.max)  # the upper end may be rounded up
    wide = np.where(np.isnan(x), 0, x).astype(f64)
    inside = np.clip(wide, low, np.nextafter(high, 0) if info.bits == 64 else high).astype(dtype)
    return np.where(wide >= high, info.max, np.where(wide <= low, info.min, inside)).astype(dtype)


def canonical(x):
    """Gives every NaN the bits that a card gives it, which are not a CPU's."""
    nan = x != x
    if not np.logical_or.reduce(nan):
        return x
    x = np.atleast_1d(x).copy()
    x.view(f"uint{8 * x.dtype.itemsize}")[nan] = 0x7FFFFFFF if x.dtype.itemsize == 4 else 0x7FFFFFFFFFFFFFFF
    return x


def wide_mul(a, b, dtype):
    """Returns the upper half of a product."""
    bits = 8 * dtype.itemsize
    if bits == 32:
        wider = np.int64 if dtype.kind == "i" else np.uint64
        return ((a.astype(wider) * b.astype(wider)) >> wider(32)).astype(dtype)
    products = [(int(x) * int(y)) >> 64 for x, y in zip(*np.broadcast_arrays(np.atleast_1d(a), b), strict=True)]
    return np.array([p & (2**64 - 1) for p in products], np.uint64).view(dtype)


def clz(x):
    """Returns the number of leading zeros."""
    bits = 8 * x.dtype.itemsize
    length = np.array([int(v).bit_length() for v in np.atleast_1d(x)])
    return (bits - length).astype(np.uint32)


def popc(x):
    """Returns the number of bits that are set."""
    return np.bitwise_count(x).astype(np.uint32)


def extreme(function, a, b):
    """Returns min or max as PTX defines it: a number if either is one, and -0 below +0."""
    result = function(a, b)
    zeros = (a == 0) & (b == 0)
    sign = np.signbit(a) | np.signbit(b) if function is np.fmin else np.signbit(a) & np.signbit(b)
    return np.where(zeros, np.where(sign, -result.dtype.type(0), result.dtype.type(0)), result)


def approximate(name, *values):
    """Returns what an approximate instruction may give: quotients by a rounded reciprocal."""
    one = values[0].dtype.type(1)
    return {"div": lambda a, b: a * (one / b), "rcp": lambda a: one / a, "sqrt": lambda a: a * (one / np.sqrt(a))}[
        name
    ](*values)

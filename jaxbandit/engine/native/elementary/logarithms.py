"""Logarithms: log, log1p and log2."""

import math

from jaxbandit.engine.native.elementary.number import (
    FORMATS,
    Number,
    bits_of,
    by_double,
    each_precision,
    fma,
    horner,
    where,
)
from jaxbandit.engine.native.elementary.pairs import fast_two_sum, pair_product

# (log(1 + t) - t) / t**2 for abs(t) <= 1/3, for float32: relative error 2**-27.7 in log(1 + t).
LOG_TERMS = (
    -0.5, 0.333332092, -0.249997184, 0.20010747, -0.166823, 0.140011683, -0.121672086, 0.140047118, -0.129488096,
)  # fmt: skip
# (2 * atanh(s) / s - 2) / z, z = s**2 <= 0.04: relative error 2**-55.9 in atanh(s).
ATANH_TERMS = (
    0.6666666666667281, 0.3999999999610341, 0.28571429405742194, 0.22222137648257767, 0.18186391006438787,
    0.15249489606814803, 0.15373627757933742,
)  # fmt: skip

# (2 * atanh(s) / s - 2 - 2 * z / 3) / z**2, z = s**2 <= 0.04: relative error 2**-69 in atanh(s).
ATANH_TAIL_TERMS = (
    0.3999999999999972, 0.2857142857157984, 0.22222222190797444, 0.18181821566722162, 0.15384404601387536,
    0.13341202707668046, 0.11591484452609108, 0.1257681392107682,
)  # fmt: skip
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LOG_2_E = (1.4426950408889634, 2.0355273740931033e-17)  # The sum is log2(e) to 107 bits.


def _biased_bits(x: Number) -> Number:
    """Returns bits with biased exponent k and the mantissa of m / (2/3), where x = m * 2**k, 2/3 <= m < 4/3."""
    return x.bits() + (bits_of(1.0, x.kind) - bits_of(2 / 3, x.kind))


def _exponent(biased: Number, kind: str) -> Number:
    """Returns k + bias + shift as a floating-point number; a conversion of integers would be slow in float64."""
    layout = FORMATS[kind]
    return ((biased >> layout.mantissa) + bits_of(layout.shift, kind)).from_bits(kind)


def split(x: Number) -> tuple[Number, Number]:
    """Returns t and k with x = (1 + t) * 2**k and -1/3 <= t < 1/3, for positive finite x."""
    layout = x.format
    tiny = x < 2.0 ** (1 - layout.bias)
    x = where(tiny, x * 2.0**layout.mantissa, x)
    biased = _biased_bits(x)
    m = ((biased & ((1 << layout.mantissa) - 1)) + bits_of(2 / 3, x.kind)).from_bits(x.kind)
    offset = layout.shift + layout.bias
    return m - 1.0, _exponent(biased, x.kind) - where(tiny, x.lift(offset + layout.mantissa), offset)


def log_sum(t: Number, k: Number) -> Number:
    """Returns log(1 + t) + k * log(2) for abs(t) <= 1/3."""
    high, low = t.format.ln_2
    square = t * t
    if t.kind == "float":
        return fma(k, high, fma(square, horner(t, *LOG_TERMS), t))
    # log(1 + t) = 2 * atanh(s), written as t plus a correction so that s's rounding error hardly counts (fdlibm).
    s = t / (t + 2.0)
    z = s * s
    half_square = square * 0.5
    correction = fma(s, fma(z, horner(z, *ATANH_TERMS), half_square), k * low)
    return fma(k, high, t - (half_square - correction))


def _log_near_one(t: Number) -> tuple[Number, Number]:
    """Returns log(1 + t) for abs(t) <= 1/3 in float64 as a sum of two numbers; relative error about 2**-64."""
    denominator, rest = fast_two_sum(t.lift(2.0), t)
    reciprocal = 1.0 / denominator
    s = t * reciprocal
    s = (s, fma(-s, rest, fma(-s, denominator, t)) * reciprocal)
    # 2 * atanh(s) = s * (2 + z * (2/3 + z * tail)): only the tail is small enough for plain float64.
    z = pair_product(s, s)
    inner, error = fast_two_sum(t.lift(TWO_THIRDS[0]), z[0] * horner(z[0], *ATANH_TAIL_TERMS))
    product = pair_product(z, (inner, error + TWO_THIRDS[1]))
    factor, error = fast_two_sum(t.lift(2.0), product[0])
    return pair_product(s, (factor, error + product[1]))


def log_pair(t: Number, k: Number) -> tuple[Number, Number]:
    """Returns log(1 + t) + k * log(2) as a sum of two numbers; relative error about 2**-64."""
    logarithm = _log_near_one(t)
    high, low = t.format.ln_2
    total, error = fast_two_sum(k * high, logarithm[0])
    return total, error + fma(k, low, logarithm[1])


def log_ends(x: Number, result: Number) -> Number:
    """Returns log(x) if x is zero, negative, infinite or NaN, else the result."""
    result = where(x < math.inf, result, x)
    return where(x > 0.0, result, where(x.equals(0.0), x.lift(-math.inf), math.nan))


def log_of(x: Number) -> Number:
    """Returns the natural logarithm of x."""
    return log_ends(x, log_sum(*split(x)))


@each_precision
def log(x: Number) -> Number:
    """Returns the natural logarithm of x."""
    return log_of(x)


def log1p_of(x: Number) -> Number:
    """Returns the natural logarithm of 1 + x."""
    kind, layout = x.kind, x.format
    whole = x + 1.0
    biased = _biased_bits(whole)
    # The power is 4 * 2**-k, as 2**-k could be subnormal. 1 + t = (1 + x) * 2**-k then needs no rounded 1 + x.
    power = (bits_of(4.0, kind) + bits_of(1.0, kind) - (biased & -(1 << layout.mantissa))).from_bits(kind)
    t = fma(x * power, 0.25, fma(power, 0.25, -1.0))
    return log_ends(whole, log_sum(t, _exponent(biased, kind) - (layout.shift + layout.bias))).copysign(x)


@each_precision
def log1p(x: Number) -> Number:
    """Returns the natural logarithm of 1 + x."""
    return log1p_of(x)


@by_double
def log2(x: Number) -> Number:
    """Returns the logarithm of x to base 2; that of a power of two is exact."""
    t, k = split(x)
    product = pair_product(_log_near_one(t), (t.lift(LOG_2_E[0]), t.lift(LOG_2_E[1])))
    total, error = fast_two_sum(k, product[0])
    return log_ends(x, total + (error + product[1]))

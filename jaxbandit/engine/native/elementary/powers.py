"""Powers and roots: pow, cbrt and rsqrt."""

import math

from jaxbandit.engine.native.elementary.exponentials import EXP_RANGES, clamp, exp_near_zero, reduce_exp, scale
from jaxbandit.engine.native.elementary.logarithms import log_ends, log_pair, log_sum, split
from jaxbandit.engine.native.elementary.number import Number, by_double, each_precision, fma, horner, where

# m**(-1/3) for 0.235 <= m <= 3.8: relative error 2**-5.4, a start for iterations.
INVERSE_CBRT_TERMS = (
    1.9434565026821677, -1.785757391226578, 1.1058625419832337, -0.3134585854852722, 0.032277570508801395,
)  # fmt: skip


def _power(x: Number, y: Number, logarithm: tuple[Number, Number | float]) -> Number:
    """Returns x to the power of y in float64, given log(abs(x)) as a sum of two numbers."""
    size = abs(x)
    high = log_ends(size, logarithm[0])
    product = y * high
    error = fma(y, logarithm[1], fma(y, high, -product))
    error = where(abs(product) < 800.0, error, 0.0)  # Beyond, it may be infinity minus infinity.
    product = where(size.equals(1.0), 0.0, product)  # y may be infinite.
    r, shifted = reduce_exp(clamp(product, EXP_RANGES[x.kind]))
    result = scale(exp_near_zero(r + error), shifted)
    half = y * 0.5
    fractional = y.exact("floor").differs(y)
    even = half.exact("floor").equals(half)
    result = where(fractional | even, result, result.copysign(x))
    result = where((x < 0.0) & (x > -math.inf) & fractional, math.nan, result)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, result)


@each_precision
def pow(x: Number, y: Number) -> Number:
    """Returns x to the power of y."""
    if x.kind == "double":
        return _power(x, y, log_pair(*split(abs(x))))
    x, y = x.cast("fpext", "double"), y.cast("fpext", "double")
    return _power(x, y, (log_sum(*split(abs(x))), 0.0)).cast("fptrunc", "float")


@by_double
def cbrt(x: Number) -> Number:
    """Returns the cube root of x."""
    size = abs(x)
    t, k = split(size)
    third = fma(k, 1 / 3, x.format.shift)  # x = m * 2**(3 * third).
    m = scale(1.0 + t, (k - 3.0 * (third - x.format.shift)) + x.format.shift)
    y = horner(m, *INVERSE_CBRT_TERMS)
    for _ in range(3):  # Householder's third-order iteration for m**(-1/3).
        h = fma(-(m * y), y * y, 1.0)
        y = fma(y * h, fma(h, 2 / 9, 1 / 3), y)
    root = m * (y * y)
    root = fma(fma(-(root * root), root, m), y * y * (1 / 3), root)
    result = scale(root, third)
    return where((size > 0.0) & (size < math.inf), result, size).copysign(x)


@each_precision
def rsqrt(x: Number) -> Number:
    """Returns 1 / sqrt(x)."""
    return 1.0 / x.exact("sqrt")

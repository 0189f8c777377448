"""Hyperbolic functions and their inverses."""

import math

from jaxbandit.engine.native.elementary.exponentials import LN_2, or_tiny, quarter_expm1
from jaxbandit.engine.native.elementary.logarithms import log1p_of
from jaxbandit.engine.native.elementary.number import Number, by_double, fma, where


@by_double
def sinh(x: Number) -> Number:
    """Returns the hyperbolic sine of x."""
    quarter = quarter_expm1(abs(x))
    return or_tiny(x, (2.0 * (quarter + quarter / fma(quarter, 4.0, 1.0))).copysign(x))


@by_double
def cosh(x: Number) -> Number:
    """Returns the hyperbolic cosine of x."""
    quarter = quarter_expm1(abs(x)) + 0.25
    return 2.0 * (quarter + 0.0625 / quarter)


@by_double
def tanh(x: Number) -> Number:
    """Returns the hyperbolic tangent of x."""
    quarter = quarter_expm1(-2.0 * abs(x))
    return or_tiny(x, (quarter / (quarter + 0.5)).copysign(x))


@by_double
def asinh(x: Number) -> Number:
    """Returns the inverse hyperbolic sine of x."""
    size = abs(x)
    large = size > 2.0**30
    square = size * size
    rest = where(large, size - 1.0, size + square / (1.0 + (square + 1.0).exact("sqrt")))
    return or_tiny(x, (log1p_of(rest) + where(large, x.lift(LN_2), 0.0)).copysign(x))


@by_double
def acosh(x: Number) -> Number:
    """Returns the inverse hyperbolic cosine of x."""
    above = x - 1.0
    large = x > 2.0**30
    rest = where(large, above, above + fma(above, above, 2.0 * above).exact("sqrt"))
    result = log1p_of(rest) + where(large, x.lift(LN_2), 0.0)
    return where(x < 1.0, math.nan, result)


@by_double
def atanh(x: Number) -> Number:
    """Returns the inverse hyperbolic tangent of x."""
    size = abs(x)
    return (0.5 * log1p_of(2.0 * size / (1.0 - size))).copysign(x)

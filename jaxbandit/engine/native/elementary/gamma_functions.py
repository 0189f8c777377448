"""The logarithm of the gamma function and its derivative: lgamma and digamma."""

import math

from jaxbandit.engine.native.elementary.logarithms import log_of, log_pair, split
from jaxbandit.engine.native.elementary.number import Number, by_double, fma, horner, where
from jaxbandit.engine.native.elementary.pairs import two_sum
from jaxbandit.engine.native.elementary.trigonometry import sine

# log(gamma(2 + d)) / d, -3/4 <= d <= 1/4: relative error 2**-58.
LGAMMA_TERMS = (
    0.42278433509846713, 0.32246703342411326, -0.0673523010531982, 0.020580808427762335, -0.007385551028700875,
    0.0028905103328975765, -0.0011927539052134794, 0.0005096694410869178, -0.00022315516572485937,
    9.945864671109282e-05, -4.491581739143842e-05, 2.0515201749723802e-05, -9.540572945477917e-06,
    4.059698115390197e-06, -2.086010262256027e-06, 2.567613524954506e-06, 3.664008761098986e-06, 5.237523543467679e-06,
    3.1770831347420996e-06, 1.0121934946516023e-06,
)  # fmt: skip
# (log(gamma(x)) - (x - 1/2) * log(x) + x - log(2 * pi) / 2) * x in 1 / x**2, x >= 8: its share of the error is 2**-67.
STIRLING_TERMS = (
    0.08333333333333333, -0.0027777777777674355, 0.0007936507864105253, -0.0005952358533840543, 0.0008413922832711812,
    -0.0018864072030596111, 0.004987738140524429,
)  # fmt: skip
HALF_LOG_2_PI = 0.9189385332046728
LOG_PI = 1.1447298858494002
# Bernoulli numbers B(2 * i) / (2 * i): digamma(x) - log(x) + 1 / (2 * x) is minus their series in 1 / x**2.
DIGAMMA_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160, 43867 / 14364)


def _lgamma_positive(x: Number) -> Number:
    """Returns log(gamma(x)) for x > 0."""
    # Below 8: gamma(x) = gamma(2 + d) * product or / product, d near 0.
    divide = x < 1.25
    small = x < 0.25
    d = where(small, x, x - 1.0)
    product = where(small, x * (x + 1.0), x)
    shifted, growth = x, x.lift(1.0)
    for _ in range(6):
        more = shifted >= 2.25
        shifted = where(more, shifted - 1.0, shifted)
        growth = where(more, growth * shifted, growth)
    d = where(divide, d, shifted - 2.0)
    product = where(divide, product, growth)
    large = x >= 8.0
    logarithm = log_of(where(large, x, product))
    near = fma(d, horner(d, *LGAMMA_TERMS), where(divide, -logarithm, logarithm))
    # Stirling's series.
    inverse = 1.0 / x
    series = fma(inverse, horner(inverse * inverse, *STIRLING_TERMS), HALF_LOG_2_PI - 0.5)
    return where(large, fma(x - 0.5, logarithm - 1.0, series), near)


@by_double
def lgamma(x: Number) -> Number:
    """Returns the logarithm of the gamma function's size."""
    size = abs(x)
    result = _lgamma_positive(size)
    # gamma(x) * gamma(-x) = -pi / (x * sin(pi * x)); the nearest integer is subtracted exactly.
    distance = abs(size - (size + 0.5).exact("floor"))
    reflected = (LOG_PI - log_of(size * sine(distance * math.pi, cosine=False))) - result
    result = where(x < 0.0, reflected, result)
    return where(size.equals(math.inf) | x.equals(0.0), math.inf, result)


@by_double
def digamma(x: Number) -> Number:
    """Returns the derivative of log(gamma(x)); NaN at the poles.

    For positive x the error is at most 4 ulp, or 4 eps near the zero at 1.46, where the result has few digits.
    """
    reflect = x < 0.0
    y, rest = two_sum(x.lift(1.0), -x)
    y, rest = where(reflect, y, x), where(reflect, rest, 0.0)
    total, lost = y.lift(0.0), y.lift(0.0)
    for _ in range(8):  # digamma(y) = digamma(y + 1) - 1 / y, in sums of two numbers.
        more = y < 8.0
        inverse = where(more, 1.0 / y, 0.0)
        total, error = two_sum(total, -inverse)
        lost = lost + (error - inverse * (fma(-inverse, y, 1.0) - inverse * rest))
        y, error = two_sum(y, where(more, y.lift(1.0), 0.0))
        rest = rest + error
    inverse = 1.0 / y
    z = inverse * inverse
    logarithm = log_pair(*split(y))
    total, error = two_sum(total, logarithm[0])
    small = logarithm[1] + rest * inverse - fma(inverse, 0.5, z * horner(z, *DIGAMMA_TERMS))
    result = total + (error + (lost + small))
    result = where(x < math.inf, result, x)
    # The reflection is digamma(x) = digamma(1 - x) - pi / tan(pi * x).
    angle = (x - (x + 0.5).exact("floor")) * math.pi
    reflected = result - math.pi * sine(angle, cosine=True) / sine(angle, cosine=False)
    result = where(reflect, reflected, result)
    result = where(abs(x) < 2.0**-60, -1.0 / x, result)  # 1 / x may be infinite
    return where(angle.equals(0.0) & (x <= 0.0), math.nan, result)

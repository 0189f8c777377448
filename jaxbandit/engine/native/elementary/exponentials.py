"""Exponential functions: exp, exp2, expm1 and logistic."""

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

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
# Arguments beyond these give 0 and infinity.
EXP_RANGES = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
EXP2_RANGES = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
# (exp(r) - 1 - r) / r**2 for abs(r) <= log(2) / 2: relative error 2**-28 in exp(r) for float32, 2**-55 in expm1(r) for
# float64.
EXP_TERMS = {
    "float": (0.49999994, 0.166665196, 0.0416683927, 0.00836877897, 0.00138146465),
    "double": (
        0.5000000000000006, 0.16666666666666588, 0.04166666666657613, 0.008333333333389885, 0.0013888888931786402,
        0.00019841269718487878, 2.4801504988895923e-05, 2.7557407764381636e-06, 2.762615752756393e-07,
        2.505379716995953e-08,
    ),
}  # fmt: skip


def clamp(x: Number, limits: tuple[float, float]) -> Number:
    """Returns x cut off at the limits; NaN stays."""
    x = where(x < limits[0], limits[0], x)
    return where(x > limits[1], limits[1], x)


def _power_of_two(shifted: Number, kind: str) -> Number:
    """Returns 2**n as a normal number, made from the bits of n + shift."""
    return ((shifted << FORMATS[kind].mantissa) + bits_of(1.0, kind)).from_bits(kind)


def scale(x: Number, shifted: Number) -> Number:
    """Returns x * 2**n from n + shift, in two steps: 2**n itself may overflow or be subnormal."""
    whole = shifted.bits()
    half = whole >> 1
    return x * _power_of_two(half, x.kind) * _power_of_two(whole - half, x.kind)


def reduce_exp(x: Number) -> tuple[Number, Number]:
    """Returns r and n + shift with x = n * log(2) + r (Cody and Waite's reduction)."""
    shifted = fma(x, LOG2_E, x.format.shift)
    n = shifted - x.format.shift
    high, low = x.format.ln_2
    return fma(n, -low, fma(n, -high, x)), shifted


def exp_near_zero(r: Number) -> Number:
    """Returns e to the power of r for abs(r) <= log(2) / 2."""
    return horner(r, 1.0, 1.0, *EXP_TERMS[r.kind])


def _exp_of(x: Number) -> Number:
    """Returns e to the power of x."""
    r, shifted = reduce_exp(clamp(x, EXP_RANGES[x.kind]))
    return scale(exp_near_zero(r), shifted)


@each_precision
def exp(x: Number) -> Number:
    """Returns e to the power of x."""
    return _exp_of(x)


@each_precision
def exp2(x: Number) -> Number:
    """Returns 2 to the power of x."""
    x = clamp(x, EXP2_RANGES[x.kind])
    shifted = x + x.format.shift
    r = (x - (shifted - x.format.shift)) * LN_2
    return scale(exp_near_zero(r), shifted)


@each_precision
def logistic(x: Number) -> Number:
    """Returns 1 / (1 + exp(-x))."""
    small = _exp_of(-abs(x))
    return where(x < 0.0, small, 1.0) / (1.0 + small)


def quarter_expm1(x: Number) -> Number:
    """Returns (exp(x) - 1) / 4, which overflows only if sinh and cosh do; abs(x) < 710.8 in float64."""
    r, shifted = reduce_exp(clamp(x, (-50.0, 710.8)))
    power = _power_of_two((shifted - 2.0).bits(), x.kind)
    return fma(fma(r * r, horner(r, *EXP_TERMS[x.kind]), r), power, power - 0.25)


def or_tiny(x: Number, result: Number) -> Number:
    """Returns x if it is so small that all odd functions with slope 1 equal it, else the result."""
    return where(abs(x) < 2.0**-60, x, result)


@by_double
def expm1(x: Number) -> Number:
    """Returns exp(x) - 1."""
    return or_tiny(x, 4.0 * quarter_expm1(x))

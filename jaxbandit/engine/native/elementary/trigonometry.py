"""Trigonometric functions and their inverses."""

import math

from jaxbandit.engine.native.elementary.number import Number, by_double, each_precision, fma, horner, where
from jaxbandit.engine.native.elementary.pairs import two_product, two_sum

PI = (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33)  # The sum is pi to 160 bits.
TRIGONOMETRIC_LIMIT = 2.0**45
# (sin(r) / r - 1) / z, z = r**2, abs(r) <= pi/2: relative errors 2**-27.3 and 2**-61.6 in sin(r).
SIN_TERMS = {
    "float": (-0.166666597, 0.00833306462, -0.0001980948, 2.60549291e-06),
    "double": (
        -0.16666666666666666, 0.008333333333333193, -0.00019841269841208486, 2.7557319211008496e-06,
        -2.5052106860731828e-08, 1.6058939085367268e-10, -7.642974992029003e-13, 2.7209977048122573e-15,
    ),
}  # fmt: skip
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
# (asin(x) / x - 1) / z, z = x**2, abs(x) <= 1/2: relative error 2**-59.9 in asin(x).
ASIN_TERMS = (
    0.1666666666666676, 0.07499999999970647, 0.044642857174767264, 0.030381942699879365, 0.022372215222070547,
    0.01735160760717504, 0.013980875565483587, 0.011398445094356972, 0.010782961782972689, 0.003695846929248445,
    0.021733918386607074, -0.021037584507090604, 0.03265335958426207,
)  # fmt: skip
# (atan(t) / t - 1) / z, z = t**2, abs(t) <= tan(pi/8): relative error 2**-59.4 in atan(t).
ATAN_TERMS = (
    -0.3333333333333319, 0.19999999999952803, -0.14285714280119902, 0.11111110779734826, -0.09090897653385521,
    0.07692058402530286, -0.06663083878893122, 0.0584774523550509, -0.050386660208592636, 0.03804856550410803,
    -0.017889915824318713,
)  # fmt: skip


def sine(x: Number, *, cosine: bool) -> Number:
    """Returns sin(x), or cos(x) as the sine of the distance to an odd multiple of pi/2 (Cody and Waite)."""
    single = x.kind == "float"
    argument = x.cast("fpext", "double") if single else x
    shift = argument.format.shift
    if cosine:
        shifted = fma(argument, 1 / math.pi, -0.5) + shift
        multiple = (shifted - shift) + 0.5
        pi = PI
        argument = -argument
    else:
        shifted = fma(argument, 1 / math.pi, shift)
        multiple = shifted - shift
        pi = tuple(-part for part in PI)
    near = abs(x) < TRIGONOMETRIC_LIMIT
    r = fma(multiple, pi[0], argument)  # Exact.
    flip = shifted.bits() << 63  # An odd multiple of pi changes the sign.
    if single:
        r = fma(multiple, pi[1], r).cast("fptrunc", "float")
        r = (r.bits() ^ (flip >> 32).cast("trunc", "i32")).from_bits("float")
        z = r * r
        result = fma(r * z, horner(z, *SIN_TERMS["float"]), r)
        return where(near, result if cosine else result.copysign(r), math.nan)  # The sign is for -0.
    product, error = two_product(multiple, multiple.lift(pi[1]))
    r, rest = two_sum(r, product)
    rest = rest + fma(multiple, pi[2], error)
    z = r * r
    slope = fma(z, -4 / math.pi**2, 1.0)  # About cos(r).
    result = (r + fma(r * z, horner(z, *SIN_TERMS["double"]), rest * slope)).copysign(r)
    return where(near, (result.bits() ^ flip).from_bits("double"), math.nan)


@each_precision
def sin(x: Number) -> Number:
    """Returns the sine of x."""
    return sine(x, cosine=False)


@each_precision
def cos(x: Number) -> Number:
    """Returns the cosine of x."""
    return sine(x, cosine=True)


@by_double
def tan(x: Number) -> Number:
    """Returns the tangent of x."""
    return sine(x, cosine=False) / sine(x, cosine=True)


def _arcs(x: Number) -> tuple[Number, Number]:
    """Returns whether abs(x) <= 1/2, and the arc sine of abs(x) if so, else of sqrt((1 - abs(x)) / 2)."""
    size = abs(x)
    central = size <= 0.5
    z = where(central, x * x, fma(size, -0.5, 0.5))
    arc = where(central, size, z.exact("sqrt"))
    return central, fma(arc * z, horner(z, *ASIN_TERMS), arc)


@by_double
def asin(x: Number) -> Number:
    """Returns the arc sine of x."""
    central, arc = _arcs(x)
    return where(central, arc, HALF_PI[0] - (2.0 * arc - HALF_PI[1])).copysign(x)


@by_double
def acos(x: Number) -> Number:
    """Returns the arc cosine of x."""
    central, arc = _arcs(x)
    outer = where(x < 0.0, PI[0] - (2.0 * arc - PI[1]), 2.0 * arc)
    return where(central, HALF_PI[0] - (arc.copysign(x) - HALF_PI[1]), outer)


def _atan_size(size: Number) -> Number:
    """Returns the arc tangent of a number that is not negative."""
    # atan(x) = pi/4 + atan((x - 1) / (x + 1)) = pi/2 + atan(-1 / x), whichever argument is below tan(pi/8).
    low, high = size < math.sqrt(2) - 1, size > math.sqrt(2) + 1
    numerator = where(low, size, where(high, -1.0, size - 1.0))
    t = numerator / where(low, 1.0, where(high, size, size + 1.0))
    base, rest = (where(low, 0.0, where(high, t.lift(part), part / 2)) for part in HALF_PI)
    z = t * t
    return base + (t + fma(t * z, horner(z, *ATAN_TERMS), rest))


@by_double
def atan(x: Number) -> Number:
    """Returns the arc tangent of x."""
    return _atan_size(abs(x)).copysign(x)


@by_double
def atan2(y: Number, x: Number) -> Number:
    """Returns the angle of the point (x, y)."""
    ratio = abs(y / x)
    ratio = where(y.equals(0.0), 0.0, ratio)  # Zero by zero.
    ratio = where(abs(y).equals(math.inf) & abs(x).equals(math.inf), 1.0, ratio)
    arc = _atan_size(ratio)
    left = x.lift(1.0).copysign(x) < 0.0
    arc = where(left, PI[0] - (arc - PI[1]), arc).copysign(y)
    return where(x.equals(x), arc, x)  # A zero by NaN.

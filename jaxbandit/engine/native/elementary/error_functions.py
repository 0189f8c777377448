"""The error function, its complement and its inverse."""

import math

from jaxbandit.engine.native.elementary.exponentials import exp_near_zero, reduce_exp, scale
from jaxbandit.engine.native.elementary.logarithms import log_of
from jaxbandit.engine.native.elementary.number import Number, by_double, fma, horner, where
from jaxbandit.engine.native.elementary.pairs import two_product

# erf(x) / x - 1 in z = x**2 <= 1: relative error 2**-62.7 in erf(x).
ERF_TERMS = (
    0.1283791670955126, -0.3761263890318375, 0.11283791670954854, -0.026866170645072324, 0.005223977624775106,
    -0.000854832697839897, 0.00012055331023949152, -1.4925593185720026e-05, 1.6460967512266166e-06,
    -1.6349967443642622e-07, 1.465748136618862e-08, -1.1364089588397224e-09, 5.942537162734373e-11,
)  # fmt: skip
# (1 + 2 * x) * exp(x**2) * erfc(x) in (x - 4) / (x + 4), 1/2 <= x <= 28: relative error 2**-58.7.
ERFC_TERMS = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102618909, 0.06809705425468973, -0.10103906603624603,
    0.09373283499847448, -0.06633036581380097, 0.03716751553502343, -0.016197734035832, 0.005031970005107355,
    -0.0007577734660062306, -0.000199256878843169, 0.00015062256947830367, -2.4398401729605435e-05,
    -1.1224928067311923e-05, 5.707347592695363e-06, 2.998674231446466e-07, -8.2079024083155e-07, 6.675521968140817e-08,
    1.0432575062395135e-07, -1.2124941042767505e-08, -1.0031732837657344e-08,
)  # fmt: skip
# erf_inv(x) / x for w = -log(1 - x**2): in w - 3.125 for w <= 6.25 (relative error 2**-55.6), in sqrt(w) - 3.25 for
# w <= 16 (2**-55.8) and in sqrt(w) - 5 for w <= 36.06 (2**-54.6), after Giles.
ERF_INV_CENTRAL = (
    1.6536545626831027, 0.24015818242558826, -0.006033670871427757, -0.0007407025341539591, 0.00018673420802426744,
    -1.3882523395780398e-05, -1.36546918445283e-06, 4.2347881906309594e-07, -2.907038275965607e-08,
    -4.112661967007427e-09, 1.0512183908428192e-09, -5.414239491466277e-11, -1.2976955925585592e-11,
    2.6303560336175727e-12, -8.117055883072555e-14, -3.9990060123772336e-14, 6.5947606603277376e-15,
    -4.283044185776358e-17, -1.3004391216941095e-16, 1.575704057574134e-17, 1.1446297257091067e-18,
    -3.5742915549694333e-19, -1.0133211601976416e-21, 3.373449427476365e-21,
)  # fmt: skip
ERF_INV_OUTER = (
    3.0838856104922208, 1.0052589676941657, 0.005370914553571084, -0.003751208508263457, 0.002491442097009159,
    -0.0016882755342370343, 0.0009532893632594265, -0.0003550378310212234, 2.4031261290605046e-05,
    6.828725016685107e-05, -4.7319005286223796e-05, 1.246442748589528e-05, 2.9257906247044048e-06,
    -3.984063347047352e-06, 1.49860934529586e-06, -3.028605821875156e-08, -2.7125082907985063e-07,
    1.339579242790318e-07, 6.612869158555281e-10, -1.6192436708850573e-08,
)  # fmt: skip
ERF_INV_FAR = (
    4.849906401408584, 1.0103004648645462, -0.00013871931835452927, -0.00021503011986661257, 7.599527741212839e-05,
    -1.9681770171579645e-05, 4.526059556470745e-06, -9.930326320764058e-07, 2.290167073102096e-07,
    -6.754558671441424e-08, 2.912272466035576e-08, -1.5274770965109465e-08, 7.645371599478153e-09,
    -3.4504724283077355e-09, 1.4894862811555241e-09, -4.492762506004556e-10, -2.258868649148443e-11,
    4.557610081157529e-11,
)  # fmt: skip


def _erf_small(size: Number) -> Number:
    """Returns erf for 0 <= size <= 1."""
    return fma(size, horner(size * size, *ERF_TERMS), size)


def _erfc_large(size: Number) -> Number:
    """Returns erfc for size >= 1/2: exp(-size**2) times a smooth factor (Shepherd and Laframboise)."""
    size = where(size > 28.0, 28.0, size)  # erfc(28) rounds to 0.
    factor = horner((size - 4.0) / (size + 4.0), *ERFC_TERMS) / fma(size, 2.0, 1.0)
    square, error = two_product(size, size)
    r, shifted = reduce_exp(-square)
    return scale(exp_near_zero(r - error) * factor, shifted)


@by_double
def erf(x: Number) -> Number:
    """Returns the error function of x."""
    size = abs(x)
    return where(size < 1.0, _erf_small(size), 1.0 - _erfc_large(size)).copysign(x)


@by_double
def erfc(x: Number) -> Number:
    """Returns 1 - erf(x)."""
    size = abs(x)
    outer = _erfc_large(size)
    return where(size < 0.5, 1.0 - _erf_small(size).copysign(x), where(x < 0.0, 2.0 - outer, outer))


@by_double
def erf_inv(x: Number) -> Number:
    """Returns the inverse of the error function."""
    w = -log_of((1.0 - x) * (1.0 + x))
    root = w.exact("sqrt")
    ratio = where(w < 16.0, horner(root - 3.25, *ERF_INV_OUTER), horner(root - 5.0, *ERF_INV_FAR))
    ratio = where(w < 6.25, horner(w - 3.125, *ERF_INV_CENTRAL), ratio)
    return x * where(abs(x).equals(1.0), math.inf, ratio)

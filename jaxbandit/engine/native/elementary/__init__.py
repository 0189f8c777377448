"""Elementary functions as fixed sequences of IEEE operations.

Each function here writes a straight line of additions, multiplications, fused multiply-adds, divisions, square roots
and bit operations. None of it calls a mathematical library, reads a table or branches, and IEEE fixes the result of
every step, so the bits are the same on every processor and for every number of lanes.

The float32 versions of exp, exp2, log, log1p, sin, cos and logistic work in float32 (the argument of sin and cos is
reduced in float64). All other float32 functions compute in float64 and round. The polynomials' coefficients are
minimax fits by Remez's algorithm, from the lowest power up; the comment at each says what it approximates, where, and
how well.

Sine, cosine and tangent return NaN beyond ``2 ** 45``, where their argument's reduction would lose its accuracy.
"""

from collections.abc import Callable

from jaxbandit.engine.native.elementary.error_functions import erf, erf_inv, erfc
from jaxbandit.engine.native.elementary.exponentials import exp, exp2, expm1, logistic
from jaxbandit.engine.native.elementary.gamma_functions import digamma, lgamma
from jaxbandit.engine.native.elementary.hyperbolics import acosh, asinh, atanh, cosh, sinh, tanh
from jaxbandit.engine.native.elementary.logarithms import log, log1p, log2
from jaxbandit.engine.native.elementary.powers import cbrt, pow, rsqrt
from jaxbandit.engine.native.elementary.trigonometry import acos, asin, atan, atan2, cos, sin, tan
from jaxbandit.engine.native.emit import Value

FUNCTIONS: dict[str, Callable[..., Value]] = {
    function.__name__: function
    for function in (
        exp, exp2, expm1, log, log1p, log2, pow, sin, cos, tan, tanh, sinh, cosh, asin, acos, atan, atan2, asinh, acosh,
        atanh, erf, erfc, erf_inv, lgamma, digamma, cbrt, logistic, rsqrt,
    )
}  # fmt: skip

"""The rules that write an elementwise primitive of JAX in LLVM IR, for one entry.

A rule takes the function being written, the equation and the entries of its operands, and returns the entry of its
result. Results are those that JAX defines, even if LLVM leaves them undefined: shifts by the width or more, divisions
by zero, conversions out of range, minima of NaN.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbandit.engine.native import elementary
from jaxbandit.engine.native.arrays import KINDS
from jaxbandit.engine.native.conversions import canonical, convert, remainder, rounded, total_order
from jaxbandit.engine.native.emit import BITS, INTEGER_OF, Function, Value

Rule = Callable[..., Value]

RULES: dict[str, Rule] = {}
COSTS: dict[str, float] = {"div": 8, "sqrt": 8, "rem": 20, "integer_pow": 4, "threefry2x32": 100}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


def signed(eqn: Any, operand: int = 0) -> bool:
    """Returns whether an operand of an equation is a signed integer (or no integer)."""
    return np.dtype(eqn.invars[operand].aval.dtype).kind != "u"


def kind_of(var: Any) -> str:
    """Returns the LLVM type of a variable's entries."""
    return KINDS[np.dtype(var.aval.dtype)]


@_rule("add", "add_any")
def _add(f: Function, eqn, a, b):
    return f.binary("or", a, b) if a.kind == "i1" else f.add(a, b)


@_rule("sub")
def _sub(f: Function, eqn, a, b):
    return f.sub(a, b)


@_rule("mul")
def _mul(f: Function, eqn, a, b):
    return f.binary("and", a, b) if a.kind == "i1" else f.mul(a, b)


@_rule("neg")
def _neg(f: Function, eqn, a):
    return f.neg(a)


@_rule("square")
def _square(f: Function, eqn, a):
    return f.mul(a, a)


@_rule("div")
def _div(f: Function, eqn, a, b):
    if a.is_float:
        return f.div(a, b)
    quotient, zero = _divide(f, "div", a, b, signed(eqn))
    return f.select(zero, f.constant(-1, a.kind), quotient)


@_rule("rem")
def _rem(f: Function, eqn, a, b):
    if not a.is_float:
        rest, zero = _divide(f, "rem", a, b, signed(eqn))
        return f.select(zero, a, rest)
    return remainder(f, a, b)


def _divide(f: Function, what: str, a: Value, b: Value, is_signed: bool) -> tuple[Value, Value]:
    """Returns the quotient or remainder of integers, and whether the divisor is 0: then the first is meaningless."""
    zero = f.compare("eq", b, f.constant(0, b.kind))
    safe = f.select(zero, f.constant(1, b.kind), b)
    if not is_signed:
        return f.binary(f"u{what}", a, safe), zero
    # The least integer divided by -1 overflows, so it is divided by 1: the quotient is itself, the remainder 0.
    least = f.constant(1 << (BITS[a.kind] - 1), a.kind)
    overflows = f.binary("and", f.compare("eq", a, least), f.compare("eq", b, f.constant(-1, b.kind)))
    safe = f.select(overflows, f.constant(1, b.kind), safe)
    return f.binary(f"s{what}", a, safe), zero


@_rule("and")
def _and(f: Function, eqn, a, b):
    return f.binary("and", a, b)


@_rule("or")
def _or(f: Function, eqn, a, b):
    return f.binary("or", a, b)


@_rule("xor")
def _xor(f: Function, eqn, a, b):
    return f.binary("xor", a, b)


@_rule("not")
def _not(f: Function, eqn, a):
    return f.binary("xor", a, f.constant(-1, a.kind))


@_rule("shift_left", "shift_right_logical", "shift_right_arithmetic")
def _shift(f: Function, eqn, a, b):
    operation = {"shift_left": "shl", "shift_right_logical": "lshr", "shift_right_arithmetic": "ashr"}
    name, bits = eqn.primitive.name, BITS[a.kind]
    if b.constant is not None and b.constant < bits:
        return f.binary(operation[name], a, b)
    inside = f.compare("lt", b, f.constant(bits, b.kind), signed=False)
    safe = f.select(inside, b, f.constant(bits - 1, b.kind))
    shifted = f.binary(operation[name], a, safe)
    if name == "shift_right_arithmetic":
        return shifted
    return f.select(inside, shifted, f.constant(0, a.kind))


@_rule("eq", "ne", "lt", "le", "gt", "ge")
def _compare(f: Function, eqn, a, b):
    return f.compare(eqn.primitive.name, a, b, signed=signed(eqn) and a.kind != "i1")


@_rule("eq_to", "lt_to", "le_to")
def _compare_total(f: Function, eqn, a, b):
    """Compares in the total order of floating-point numbers."""
    if not a.is_float:
        return f.compare(eqn.primitive.name[:2], a, b, signed=signed(eqn))
    keys = [total_order(f, v) for v in (a, b)]
    return f.compare(eqn.primitive.name[:2], *keys)


@_rule("max", "min")
def _extreme(f: Function, eqn, a, b):
    return extreme(f, eqn.primitive.name, a, b, signed(eqn))


def extreme(f: Function, which: str, a: Value, b: Value, is_signed: bool) -> Value:
    """Returns the larger or the smaller of two values; NaN if either is NaN."""
    if a.kind == "i1":
        return f.binary("or" if which == "max" else "and", a, b)
    better = "gt" if which == "max" else "lt"
    if not a.is_float:
        return f.select(f.compare(better, a, b, signed=is_signed), a, b)
    for first, second in ((a, b), (b, a)):
        if second.constant is not None and second.constant == second.constant:
            # One value is a known number: the comparison is false if the other is NaN, which then is the result.
            worse = "lt" if which == "max" else "gt"
            return f.select(f.compare(worse, first, second), second, first)
    chosen = f.select(f.compare(better, a, b), a, b)  # b if either is NaN
    return f.select(f.is_nan(a), a, chosen)


def log_add_exp(f: Function, a: Value, b: Value) -> Value:
    """Returns log(exp(a) + exp(b)) as ``jnp.logaddexp`` computes it."""
    apart = f.sub(a, b)
    more = elementary.FUNCTIONS["log1p"](f, elementary.FUNCTIONS["exp"](f, f.neg(f.intrinsic("fabs", apart))))
    # The difference is NaN if either is NaN or both are the same infinity, which then is the result.
    return f.select(f.is_nan(apart), f.add(a, b), f.add(extreme(f, "max", a, b, True), more))


@_rule("select_n")
def _select(f: Function, eqn, which, *cases):
    if which.kind == "i1":
        return f.select(which, cases[1], cases[0])
    chosen = cases[0]
    for n, case in enumerate(cases[1:], start=1):
        chosen = f.select(f.compare("ge", which, f.constant(n, which.kind)), case, chosen)
    return chosen


@_rule("clamp")
def _clamp(f: Function, eqn, low, a, high):
    return extreme(f, "min", extreme(f, "max", a, low, signed(eqn, 1)), high, signed(eqn, 1))


@_rule("abs")
def _abs(f: Function, eqn, a):
    if a.is_float:
        return f.intrinsic("fabs", a)
    if not signed(eqn):
        return a
    return f.select(f.compare("lt", a, f.constant(0, a.kind)), f.neg(a), a)


@_rule("sign")
def _sign(f: Function, eqn, a):
    zero, one = f.constant(0, a.kind), f.constant(1, a.kind)
    if not signed(eqn):
        return f.select(f.compare("eq", a, zero), zero, one)
    minus = f.constant(-1, a.kind)
    rest = f.select(f.compare("lt", a, zero), minus, a)  # zeros with their sign, and NaN
    return f.select(f.compare("gt", a, zero), one, rest)


@_rule("is_finite")
def _is_finite(f: Function, eqn, a):
    return f.compare("lt", f.intrinsic("fabs", a), f.constant(float("inf"), a.kind))


@_rule("floor", "ceil", "sqrt")
def _exact(f: Function, eqn, a):
    return f.intrinsic(eqn.primitive.name, a)


@_rule("round")
def _round(f: Function, eqn, a):
    to_even = (
        "EVEN" in str(getattr(eqn.params["rounding_method"], "name", "")) or int(eqn.params["rounding_method"]) == 1
    )
    return f.intrinsic("roundeven" if to_even else "round", a)


@_rule("nextafter")
def _nextafter(f: Function, eqn, a, b):
    integer = INTEGER_OF[a.kind]
    raw, one = f.bits(a), f.constant(1, integer)
    zero = f.constant(0.0, a.kind)
    away = f.compare("eq", f.compare("lt", a, b), f.compare("gt", a, zero))  # from zero
    moved = f.from_bits(f.select(away, f.add(raw, one), f.sub(raw, one)), a.kind)
    least = f.intrinsic("copysign", f.from_bits(one, a.kind), b)
    moved = f.select(f.compare("eq", a, zero), least, moved)
    moved = f.select(f.compare("eq", a, b), b, moved)
    nan = f.binary("or", f.is_nan(a), f.is_nan(b))
    return f.select(nan, f.constant(float("nan"), a.kind), moved)


@_rule("integer_pow")
def _integer_pow(f: Function, eqn, a):
    exponent = eqn.params["y"]
    power, square, left = None, a, abs(exponent)
    while left:
        if left & 1:
            power = square if power is None else f.mul(power, square)
        left >>= 1
        square = f.mul(square, square) if left else square
    if power is None:
        return f.constant(1, a.kind)
    return f.div(f.constant(1, a.kind), power) if exponent < 0 else power


@_rule("pow")
def _pow(f: Function, eqn, a, b):
    if not a.is_float:
        raise KeyError("pow of integers")
    if not b.is_float:
        b = f.cast("sitofp" if signed(eqn, 1) else "uitofp", b, a.kind)
    return elementary.FUNCTIONS["pow"](f, a, b)


@_rule("polynomial")
def _polynomial(f: Function, eqn, a, *coefficients):
    """Evaluates a polynomial by Horner's rule; the constant term comes first."""
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = f.add(f.mul(total, a), coefficient)
    return total


@_rule("population_count")
def _population_count(f: Function, eqn, a):
    return f.intrinsic("ctpop", a)


@_rule("clz")
def _clz(f: Function, eqn, a):
    return f.intrinsic("ctlz", a, flags=("false",))


@_rule("reduce_precision")
def _reduce_precision(f: Function, eqn, a):
    return rounded(f, a, eqn.params["exponent_bits"], eqn.params["mantissa_bits"])


@_rule("convert_element_type")
def _convert(f: Function, eqn, a):
    return convert(f, a, np.dtype(eqn.invars[0].aval.dtype), np.dtype(eqn.params["new_dtype"]))


@_rule("bitcast_convert_type")
def _bitcast(f: Function, eqn, a):
    kind = KINDS[np.dtype(eqn.params["new_dtype"])]
    if BITS[kind] != BITS[a.kind]:
        raise KeyError("bitcast_convert_type between widths")
    if kind == a.kind:
        return a
    return f.cast("bitcast", canonical(f, a) if a.is_float else a, kind)


@_rule("copy", "copy_p", "stop_gradient", "optimization_barrier", "reshard")  # zeros_like reshards in a shard_map
def _same(f: Function, eqn, a):
    return a


for _name, _function in elementary.FUNCTIONS.items():
    if _name not in RULES:
        RULES[_name] = lambda f, eqn, *values, _function=_function: _function(f, *values)
    COSTS.setdefault(_name, 20)

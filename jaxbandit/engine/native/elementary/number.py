"""Numbers whose operators write instructions, and helpers of all elementary functions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from jaxbandit.engine.native.emit import Function, Value


class Format(NamedTuple):
    """The constants of a precision.

    Attributes:
      mantissa: Bits of the mantissa.
      bias: Bias of the exponent.
      shift: 1.5 * 2**mantissa. Adding it rounds to an integer, which is then stored in the lowest bits.
      ln_2: Parts of log(2) for Cody and Waite's reduction. The first of float64 ends in 21 zero bits, so that its
        product with an exponent is exact.
    """

    mantissa: int
    bias: int
    shift: float
    ln_2: tuple[float, float]


FORMATS = {
    "float": Format(mantissa=23, bias=127, shift=1.5 * 2.0**23, ln_2=(0.6931471824645996, -1.904654212e-09)),
    "double": Format(mantissa=52, bias=1023, shift=1.5 * 2.0**52, ln_2=(0.6931471803691238, 1.9082149292705877e-10)),
}


def _arithmetic(name: str) -> tuple[Callable[..., Number], Callable[..., Number]]:
    """Returns the methods for ``number + other`` and ``other + number``, if ``name`` is add."""

    def direct(self: Number, other: Number | float) -> Number:
        return self.new(getattr(self.f, name)(self.value, self.lift(other).value))

    def swapped(self: Number, other: float) -> Number:
        return direct(self.lift(other), self)

    return direct, swapped


def _comparison(predicate: str) -> Callable[..., Number]:
    return lambda self, other: self.new(self.f.compare(predicate, self.value, self.lift(other).value))


def _integer(operation: str) -> Callable[..., Number]:
    return lambda self, other: self.new(self.f.binary(operation, self.value, self.lift(other).value))


class Number:
    """A value with Python's operators; each writes one instruction."""

    def __init__(self, f: Function, value: Value):
        self.f, self.value, self.kind = f, value, value.kind

    __add__, __radd__ = _arithmetic("add")
    __sub__, __rsub__ = _arithmetic("sub")
    __mul__, __rmul__ = _arithmetic("mul")
    __truediv__, __rtruediv__ = _arithmetic("div")
    __lt__, __le__, __gt__, __ge__ = (_comparison(predicate) for predicate in ("lt", "le", "gt", "ge"))
    equals, differs = _comparison("eq"), _comparison("ne")
    # Operators of integers and conditions. The shift is logical, because older vector units lack the arithmetic one.
    __and__, __or__, __xor__, __lshift__, __rshift__ = map(_integer, ("and", "or", "xor", "shl", "lshr"))

    def __neg__(self) -> Number:
        return self.new(self.f.neg(self.value))

    def __abs__(self) -> Number:
        return self.exact("fabs")

    @property
    def format(self) -> Format:
        """The constants of its precision."""
        return FORMATS[self.kind]

    def new(self, value: Value) -> Number:
        """Returns a number in the same function."""
        return Number(self.f, value)

    def lift(self, other: Number | float) -> Number:
        """Returns a Python number as a constant of the same kind."""
        return other if isinstance(other, Number) else self.new(self.f.constant(other, self.kind))

    def bits(self) -> Number:
        """Returns the number's bits as an integer."""
        return self.new(self.f.bits(self.value))

    def from_bits(self, kind: str) -> Number:
        """Returns the floating-point number with these bits."""
        return self.new(self.f.from_bits(self.value, kind))

    def cast(self, operation: str, kind: str) -> Number:
        """Converts the number by one of LLVM's conversions."""
        return self.new(self.f.cast(operation, self.value, kind))

    def exact(self, name: str, *others: Number) -> Number:
        """Applies one of LLVM's intrinsics that round correctly."""
        return self.new(self.f.intrinsic(name, self.value, *(other.value for other in others)))

    def copysign(self, sign: Number) -> Number:
        """Returns the number with the sign of another."""
        return self.exact("copysign", sign)


def fma(a: Number, b: Number | float, c: Number | float) -> Number:
    """Returns a * b + c, rounded once."""
    return a.exact("fma", a.lift(b), a.lift(c))


def where(condition: Number, yes: Number | float, no: Number | float) -> Number:
    """Returns ``yes`` if the condition holds, else ``no``; at least one of them is a ``Number``."""
    example = yes if isinstance(yes, Number) else no
    assert isinstance(example, Number)
    return example.new(condition.f.select(condition.value, example.lift(yes).value, example.lift(no).value))


def horner(x: Number, *coefficients: float) -> Number:
    """Returns the polynomial with these coefficients, the lowest power first."""
    result = x.lift(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result


def bits_of(number: float, kind: str) -> int:
    """Returns the bits of a constant as an integer."""
    codes = ("<f", "<I") if kind == "float" else ("<d", "<Q")
    return struct.unpack(codes[1], struct.pack(codes[0], number))[0]


def each_precision(body: Callable[..., Number]) -> Callable[..., Value]:
    """Makes a function of values from a function of numbers that handles both precisions itself."""

    def function(f: Function, *arguments: Value) -> Value:
        return body(*(Number(f, argument) for argument in arguments)).value

    function.__name__, function.__qualname__, function.__doc__ = body.__name__, body.__qualname__, body.__doc__
    return function


def by_double(body: Callable[..., Number]) -> Callable[..., Value]:
    """Makes a function of values from a function of float64 numbers; float32 is converted and rounded."""

    def function(f: Function, *arguments: Value) -> Value:
        numbers = [Number(f, argument) for argument in arguments]
        if numbers[0].kind == "double":
            return body(*numbers).value
        return body(*(number.cast("fpext", "double") for number in numbers)).cast("fptrunc", "float").value

    function.__name__, function.__qualname__, function.__doc__ = body.__name__, body.__qualname__, body.__doc__
    return function

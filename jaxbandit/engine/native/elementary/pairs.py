"""Sums of two numbers, the second a small correction of the first ("double-double")."""

from jaxbandit.engine.native.elementary.number import Number, fma


def two_sum(a: Number, b: Number) -> tuple[Number, Number]:
    """Returns a + b and the sum's rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fast_two_sum(a: Number, b: Number) -> tuple[Number, Number]:
    """Returns a + b and the sum's rounding error if abs(a) >= abs(b) (Dekker)."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Number, b: Number) -> tuple[Number, Number]:
    """Returns a * b and the product's rounding error."""
    product = a * b
    return product, fma(a, b, -product)


def pair_product(a: tuple[Number, Number], b: tuple[Number, Number]) -> tuple[Number, Number]:
    """Returns the product of two sums as a sum of two numbers."""
    high, low = two_product(a[0], b[0])
    return high, low + fma(a[0], b[1], a[1] * b[0])

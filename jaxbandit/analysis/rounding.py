"""Numbers to the place that their errors allow: two digits of the error, the value to the same place, a true minus."""

import math


def place(error: float, value: float) -> int:
    """Returns the power of ten to round to: two digits of the error, or four of the value if it has no error."""
    if math.isfinite(error) and error > 0:
        return math.floor(math.log10(error)) - 1
    return math.floor(math.log10(abs(value))) - 3 if math.isfinite(value) and value else 0


def fixed(value: float, place: int) -> str:
    """Returns a number rounded to a power of ten, with a true minus."""
    if not math.isfinite(value):
        return "–"
    return f"{round(value, -place):,.{max(-place, 0)}f}".replace("-", "−")


def with_error(value: float, error: float) -> str:
    """Returns a value with its standard error.

    Example:
      >>> with_error(-0.8312, 0.07041), with_error(1234.5, 31.0)
      ('−0.831 ± 0.070', '1,234 ± 31')
    """
    at = place(error, value)
    return f"{fixed(value, at)} ± {fixed(error, at)}"


def with_limits(value: float, low: float, high: float) -> str:
    """Returns a value with its limits, to two digits of half their distance.

    Example:
      >>> with_limits(-18.783, -28.161, -11.512)
      '−18.8 (−28.2 to −11.5)'
    """
    at = place((high - low) / 2, value)
    return f"{fixed(value, at)} ({fixed(low, at)} to {fixed(high, at)})"

"""Numbers to the place that their errors allow: two digits of the error, the value to the same place, a true minus."""

import math

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


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


def short(value: float, digits: int = 4) -> str:
    """Returns a number to some digits, with a power of ten if it is very small or very large, and a true minus.

    Example:
      >>> short(1234.56), short(-0.0218, 2), short(7.27e-07, 3), short(4.4e-16, 2), short(0.0)
      ('1,235', '−0.022', '7.27 × 10⁻⁷', '4.4 × 10⁻¹⁶', '0')
    """
    if not math.isfinite(value):
        return "–"
    if value and not 1e-3 <= abs(value) < 1e6:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}".replace("-", "−")
    whole = max(digits, math.floor(math.log10(abs(value))) + 1) if value else 1  # 12,346 to four digits stays whole
    return f"{value:,.{whole}g}".replace("-", "−")


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

"""Numbers and lists as a reader wants them."""

import html
import math
import re
from collections.abc import Sequence


def number(value: float) -> str:
    """A regret, to about four digits.

    Example:
      >>> [number(x) for x in (0.01234, -12.3456, 1234.56, 12_345_678.0, float("nan"))]
      ['0.0123', '−12.3', '1,235', '1.23e7', '–']
    """
    if not math.isfinite(value):
        return "–"
    size, sign = abs(value), "−" if value < 0 else ""
    if size >= 1e7:
        mantissa, _, exponent = f"{size:.2e}".partition("e")
        return f"{sign}{mantissa}e{int(exponent)}"
    return f"{sign}{size:,.0f}" if size >= 1000 else f"{sign}{size:.3g}"


def estimate(numbers: Sequence[float | None]) -> str:
    """A number alone, with its standard error, or with its limits; None for what is not there.

    Example:
      >>> estimate([1.5]), estimate([1.5, 0.25]), estimate([1.5, 1, 2]), estimate([None, None])
      ('1.5', '1.5 ± 0.25', '1.5 (1 to 2)', '–')
    """
    value, *error = (number(math.nan if n is None else n) for n in numbers)
    if not error or value == "–":
        return value
    return f"{value} ± {error[0]}" if len(error) == 1 else f"{value} ({error[0]} to {error[1]})"


def limits(low: float, high: float) -> str:
    """An interval; one sign where there is none, one side where the other is not bounded.

    Example:
      >>> limits(1.0, 2.5), limits(3.0, math.inf), limits(math.nan, math.nan)
      ('1 to 2.5', 'at least 3', '–')
    """
    if math.isfinite(low) and math.isfinite(high):
        return f"{number(low)} to {number(high)}"
    if math.isfinite(low):
        return f"at least {number(low)}"
    return f"at most {number(high)}" if math.isfinite(high) else "–"


def times(value: float, best: float) -> str:
    """How many times the best one's regret; nothing where that says nothing."""
    if not (math.isfinite(value) and best > 0 and value > 0):
        return "–"
    ratio = value / best
    return f"{ratio:.2f} ×" if ratio < 10 else f"{number(ratio)} ×"


def probability(p: float) -> str:
    """A p-value; small ones by their bound.

    Example:
      >>> [probability(p) for p in (0.2345, 0.00321, 1e-9, float("nan"))]
      ['0.23', '0.0032', '< 0.0001', '–']
    """
    if math.isnan(p):
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def breakable(label: str) -> str:
    """A label as HTML that may be broken where its parts end, and nowhere else.

    Example:
      >>> breakable("uniinf[a=1,b<2]")
      'uniinf[<wbr>a=1,<wbr>b&lt;2]'
    """
    return re.sub(r"([\[(,])", r"\1<wbr>", html.escape(label))


def count(n: int, noun: str) -> str:
    """``1 environment``, ``20 environments``, ``3 policies``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def listed(names: Sequence[str], at_most: int = 4) -> str:
    """``a, b and c``; of many, the first few.

    Example:
      >>> listed(["a", "b", "c"]), listed(list("abcdef"))
      ('a, b and c', 'a, b, c and 3 others')
    """
    names = list(names)
    if len(names) > at_most:
        names = [*names[: at_most - 1], f"{len(names) - at_most + 1} others"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""

"""Numbers of published tables as text, and tables in Markdown."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from jaxbandit.analysis import comparison, risk, statistics
from jaxbandit.analysis.table import percents

LOST = (
    r"Lost is the share of games with $R > T \Delta / 4$, with exact 95 % limits. It is left out if it is 0, and in "
    "environments in which every policy loses its median game."
)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Returns a table in GitHub's Markdown; the first ``left`` columns are text, the others numbers."""
    lines = [heads, ["---"] * left + ["---:"] * (len(heads) - left), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def noted(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Returns a table with sentences on the marks and words that its entries have."""
    entries = [entry for row in rows for entry in row[1:]]
    notes = [comparison.FRAGILE.replace("*", "\\*")] if any("\\*" in entry for entry in entries) else []
    notes += [LOST] if any("; lost " in entry for entry in entries) else []
    return "\n\n".join([markdown(heads, rows, left), *notes])


def final_text(regret: xr.DataArray, gaps: risk.Gaps | None, unit: float = 1) -> str:
    """Returns the final regret of a pair: mean with its error, 99 % quantile, and the share of lost games.

    Args:
      regret: Regret by seed and round.
      gaps: Gaps of the environment, if lost games are counted.
      unit: Divides the regret.
    """
    last = regret.isel(round=-1).values / unit
    if last.size == 0:
        return "–"
    found = None if gaps is None else risk.lost(regret, gaps)
    lost = ""
    if found is not None and found[0] > 0:
        rate, low, high = percents(found)
        lost = f"; lost {rate} %, {low} to {high}"
    return f"{mean_text(last)}{star(last)} ({number(float(np.quantile(last, 0.99)))}{lost})"


def star(values: np.ndarray) -> str:
    """Returns the mark of a mean that rests on few games; empty for the others."""
    return "\\*" if values.size and risk.fragile(values) else ""


def mean_text(values: np.ndarray) -> str:
    """Returns a mean with its standard error, the error to two digits and the mean to the same place.

    Example:
      >>> mean_text(np.array([1.0, 2.0, 3.0, 6.0])), mean_text(np.array([1234.5, 1210.0])), mean_text(np.array([7.0]))
      ('3.0 ± 1.1', '1,222 ± 12', '7')
    """
    if values.size == 0:
        return "–"
    mean, error = (float(part) for part in statistics.mean_and_stderr(np.asarray(values, np.float64)))
    if not math.isfinite(error) or error == 0:
        return number(mean)
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{_places(mean, places)} ± {_places(error, places)}"


def interval_text(value: float, low: float, high: float) -> str:
    """Returns a value with its limits, to two digits of half the interval.

    Example:
      >>> interval_text(1234.5, 1200.2, 1270.9), interval_text(-0.5, -0.61, -0.41)
      ('1,234 (1,200 to 1,271)', '−0.50 (−0.61 to −0.41)')
    """
    half = (high - low) / 2
    if not math.isfinite(half) or half <= 0:
        return number(value)
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{_places(value, places)} ({_places(low, places)} to {_places(high, places)})"


def number(value: float) -> str:
    """Returns a number to four digits, or all digits before the point, with a true minus.

    Example:
      >>> number(0.012345), number(-12.345), number(123456.7)
      ('0.01235', '−12.35', '123,457')
    """
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    text = f"{size:,.0f}" if size >= 1000 else f"{size:.4g}"
    return ("−" if value < 0 else "") + text


def _places(value: float, places: int) -> str:
    return f"{value:,.{places}f}".replace("-", "−")

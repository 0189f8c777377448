"""The results of a study as one table: for a paper, for a page, or for a spreadsheet."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import escapes
from jaxbandit.analysis.multiples import NOTE, multiple_text
from jaxbandit.analysis.outcomes import Outcome, outcomes
from jaxbandit.analysis.rounding import fixed, place
from jaxbandit.checks import check_choice
from jaxbandit.dataset.labels import shown
from jaxbandit.dataset.results import labelled
from jaxbandit.theory.assumptions import OUTSIDE

NUMBERS = ("mean ± s.e.", "median", "99 %", "lost", "× bound")  # headings of the numbers
MOST_DIGITS = 6  # further digits of a share, to tell it from its limits
_TEXTS = 2  # leading columns that are text
NOTES = {
    "lost": "lost: share of games with regret above T Δ / 4, Δ the smallest gap, with exact 95 % limits",
    "× bound": f"× bound: {NOTE}",
}


def table(ds: xr.Dataset, format: str = "markdown", *, environments: Mapping[str, Any] | None = None) -> str:
    """Returns final regret of every policy in every environment as a table.

    LaTeX and Markdown have the mean with its standard error, the median, the 99 % quantile, the share of lost games and
    the multiple of the asymptotic lower bound; a policy outside its assumptions has these words beside its name. CSV
    has the same numbers unrounded, one pair a row, with limits, counts and swept values. Labels are escaped: none is
    read as a command, as HTML or as a formula of a spreadsheet.

    Args:
      ds: A dataset that ``simulate`` or ``load`` returned.
      format: ``"latex"`` (for a document that loads booktabs), ``"markdown"`` or ``"csv"``.
      environments: The environments by label, for lost games and bounds. Datasets of a study carry them.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.2, 0.8])
      >>> ds = jb.simulate([jb.UCB1()], [environment], horizon=100, num_seeds=64)
      >>> print(jb.table(ds, environments={"bernoulli": environment}).splitlines()[0])
      | environment | policy | mean ± s.e. | median |  99 % |           lost |
    """
    check_choice("format", format, tuple(WRITERS))
    return WRITERS[format](outcomes(labelled(ds), environments=environments))


def to_csv(found: Sequence[Outcome]) -> str:
    """Returns outcomes as CSV with a line of names; text that a spreadsheet would compute starts with an apostrophe."""
    return rows_csv([one.row() for one in found])


def rows_csv(rows: Sequence[Mapping[str, Any]], digits: int | None = None) -> str:
    """Returns rows as CSV with a line of names; numbers are rounded to ``digits`` if that is given."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([escapes.spreadsheet(name) for name in names])
    for row in rows:
        writer.writerow([_csv_cell(row.get(name), digits) for name in names])
    return out.getvalue()


def to_markdown(found: Sequence[Outcome]) -> str:
    """Returns outcomes as a table in GitHub's Markdown, whose columns are aligned in plain text too."""
    heads, rows = entries(found)
    lines = [heads, *([escapes.markdown(entry) for entry in row] for row in rows)]
    widths = [max(3, *(len(line[n]) for line in lines)) for n in range(len(heads))]
    text = [_line([_padded(entry, n, widths[n]) for n, entry in enumerate(line)]) for line in lines]
    rule = _line(["-" * width if n < _TEXTS else "-" * (width - 1) + ":" for n, width in enumerate(widths)])
    note = "".join(f"\n{sentence}\n" for sentence in notes(heads))
    return "\n".join([text[0], rule, *text[1:]]) + "\n" + note


def _padded(entry: str, column: int, width: int) -> str:
    """Pads an entry to the width of its column: text to the left, numbers to the right."""
    return entry.ljust(width) if column < _TEXTS else entry.rjust(width)


def _line(entries: Sequence[str]) -> str:
    return f"| {' | '.join(entries)} |"


def to_latex(found: Sequence[Outcome]) -> str:
    """Returns outcomes as a LaTeX table for a document that loads booktabs."""
    heads, rows = entries(found)
    out = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{ll{'r' * (len(heads) - 2)}}}",
        r"\toprule",
        " & ".join(map(escapes.latex, heads)) + r" \\",
    ]
    before = None
    for row in rows:
        out += [r"\midrule"] if row[0] != before else []
        shown = [row[0] if row[0] != before else "", *row[1:]]
        out.append(" & ".join(map(escapes.latex, shown)) + r" \\")
        before = row[0]
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in notes(heads)), ""])


WRITERS: dict[str, Callable[[Sequence[Outcome]], str]] = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}


def entries(found: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and the rows of a table for readers; a column that would be empty is left out."""
    heads = ["environment", "policy", *NUMBERS]
    rows = [[shown(one.environment), shown(one.policy) + _remark(one), *number_entries(one)] for one in found]
    kept = [n for n in range(len(heads)) if n < 3 or any(row[n] != "–" for row in rows)]
    return [heads[n] for n in kept], [[row[n] for n in kept] for row in rows]


def notes(heads: Sequence[str]) -> list[str]:
    """Returns sentences about the columns of a table, given their headings."""
    return [note for head, note in NOTES.items() if head in heads]


def number_entries(one: Outcome) -> list[str]:
    """Returns the numbers under ``NUMBERS`` as text; regret has the digits that the error of the mean allows."""
    at = place(one.stderr, one.mean)
    mean = fixed(one.mean, at)
    error = f" ± {fixed(one.stderr, at)}" if math.isfinite(one.stderr) else ""  # one seed has none
    lost = rate_text(one.lost) if one.telling else "–"
    multiple = multiple_text(one.multiple) if math.isfinite(one.multiple) else "–"
    return [f"{mean}{error}", fixed(one.median, at), fixed(one.tail, at), lost, multiple]


def rate_text(rate: tuple[float, float, float]) -> str:
    """Returns a share with its limits in percent.

    Example:
      >>> rate_text((0.015625, 0.0003955, 0.08399)), rate_text((0.0, 0.0, 0.0009))
      ('1.6 % (0.04 to 8.4)', '0 % (0 to 0.09)')
    """
    if any(math.isnan(number) for number in rate):
        return "–"
    share, low, high = percents(rate)
    return f"{share} % ({low} to {high})"


def percents(rate: tuple[float, float, float]) -> tuple[str, ...]:
    """Returns a share and its limits in percent, with enough digits to tell them apart.

    Example:
      >>> percents((0.8903, 0.8884, 0.8922)), percents((1.0, 0.99996, 1.0))
      (('89.0', '88.8', '89.2'), ('100', '99.996', '100'))
    """
    texts: tuple[str, ...] = ()
    for more in range(MOST_DIGITS):
        texts = tuple(percent(number, more) for number in rate)
        if len(set(map(float, texts))) == len(set(rate)):
            break
    return texts


def percent(share: float, more: int = 0) -> str:
    """Returns a share in percent, to two digits, to whole ones from 10 on, and to more near 100.

    Args:
      share: The share.
      more: Number of further digits.

    Example:
      >>> percent(0.0000371), percent(0.0523), percent(0.9996), percent(1.0)
      ('0.0037', '5.2', '99.96', '100')
    """
    value = 100 * share
    if 99 < value < 100:
        return f"{value:.{2 + more}f}"
    if value >= 10:
        return f"{value:.{0 if value == 100 else more}f}"
    return np.format_float_positional(float(f"{value:.{2 + more}g}"), trim="-")


def _remark(one: Outcome) -> str:
    return f" ({OUTSIDE})" if one.outside else ""


def _csv_cell(value: Any, digits: int | None) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    value = int(value) if isinstance(value, bool) else value
    if isinstance(value, float) and digits is not None:
        return f"{value:.{digits}g}"
    return escapes.spreadsheet(value) if isinstance(value, str) else value


def curves(stats: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Yields a row for every policy, environment and recorded round of a ``summary``."""
    numbers = ("regret_mean", "regret_stderr", "regret_low", "regret_high")
    for environment in stats.environment.values:
        for policy in stats.policy.values:
            at = stats.sel(policy=policy, environment=environment)
            columns = {name: at[name].values for name in numbers}
            columns |= {
                f"regret_q{100 * float(q):g}": at.regret_quantile.sel(quantile=q).values for q in at["quantile"]
            }
            for n, t in enumerate(at["round"].values):
                if math.isfinite(columns["regret_mean"][n]):
                    row = {"policy": str(policy), "environment": str(environment), "round": int(t)}
                    yield row | {name: float(values[n]) for name, values in columns.items()}

"""Writers of the measured table as HTML, Markdown and LaTeX."""

import html
import math
import re
from collections.abc import Callable
from typing import Any

from jaxbandit.analysis import escapes, growth
from jaxbandit.analysis.comparison.form import LOWER_BOUND, Comparison, Entry, Footnotes, Line, Row
from jaxbandit.analysis.multiples import multiple_text
from jaxbandit.analysis.table import rate_text
from jaxbandit.theory.assumptions import OUTSIDE

HEADS = (
    "algorithm",
    "α-free?",
    "σ-free?",
    "given T?",
    "given unit?",
    "environment",
    "proved",
    "optimal up to logarithms?",
)

STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse; margin: 0.5rem 0 2rem; }
th, td { border: 1px solid #8886; padding: 0.3rem 0.5rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid; }
td.cell { font-variant-numeric: tabular-nums; white-space: nowrap; }
td.cell small { display: block; }
td.cell b { font-weight: 600; }
tr.first td { border-top: 2px solid #888; }
@media print { body { margin: 0; font-size: 9px; } }
"""


def to_markdown(table: Comparison) -> str:
    """Returns the table in GitHub's Markdown, with one table for each number of arms."""
    out, notes = [f"# {escapes.markdown(table.title)}", "", f"T = {table.horizon:,}.", ""], Footnotes()
    for block in table.blocks:
        out += [f"## K = {block.num_arms}", ""]
        heads = [*HEADS, *(_column(value) for value in block.columns)]
        out += [_bar(heads), _bar(["---"] * len(heads))]
        for row in block.rows:
            for n, line in enumerate(row.lines):
                entries = [_markdown_entry(entry, line) for entry in line.entries]
                out.append(_bar([*markdown_front(row, n, notes), *entries]))
        out.append("")
    said = [*notes.listed(), *table.notes]
    return "\n".join([*out, *(f"- {escapes.markdown(note)}" for note in said), ""])


def markdown_front(row: Row, n: int, notes: Footnotes) -> list[str]:
    """Returns the columns of the row's line n that are not measured, in Markdown."""
    name = f"**{escapes.markdown(row.policy)}** {notes.mark(row.note)}".strip() + _remark(row)
    front = [name, *_free(row)] if n == 0 else [""] * 5
    return [*front, escapes.markdown(_environment(row.lines[n])), *_proved(row, n, notes, formulas=True)]


def to_html(table: Comparison) -> str:
    """Returns the table as an HTML page that loads no other file."""
    text, notes = html.escape, Footnotes()
    out = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(table.title)}</title>',
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{text(table.title)}</h1>",
        f"<p>T = {table.horizon:,}</p>",
    ]
    for block in table.blocks:
        heads = [*HEADS, *(_column(value) for value in block.columns)]
        out.append(f"<h2>K = {block.num_arms}</h2>\n<table><thead><tr>")
        out.append("".join(f"<th>{text(head)}</th>" for head in heads) + "</tr></thead><tbody>")
        for row in block.rows:
            for n, line in enumerate(row.lines):
                out.append('<tr class="first">' if n == 0 else "<tr>")
                if n == 0:
                    span = f' rowspan="{len(row.lines)}"'
                    out.append(f"<td{span}><b>{text(row.policy)}</b> {notes.mark(row.note)}{_remark(row)}</td>")
                    out += [f"<td{span}>{value}</td>" for value in _free(row)]
                out += [f"<td>{text(value)}</td>" for value in (_environment(line), *_proved(row, n, notes))]
                out += [_html_entry(entry, line) for entry in line.entries] + ["</tr>"]
        out.append("</tbody></table>")
    said = [*notes.listed(), *table.notes]
    out += ["<ul>", *(f"<li>{text(note)}</li>" for note in said), "</ul></body></html>\n"]
    return "\n".join(out)


def to_latex(table: Comparison) -> str:
    """Returns LaTeX tables for a document that loads booktabs, graphicx and amssymb."""
    notes = Footnotes()
    out = [
        f"% {escapes.plain(table.title)}",  # a second line would be no comment
        r"% Needs \usepackage{booktabs,graphicx,amssymb}",
    ]
    for block in table.blocks:
        columns = "".join("l" for _ in block.columns)
        heads = [_tex_note(head) for head in HEADS[:-1]] + [r"\shortstack{optimal up\\to logarithms?}"]
        heads += ["--" if math.isnan(value) else rf"$\alpha = {value:g}$" for value in block.columns]
        out += [
            r"\begin{table}[t]",
            rf"\caption{{{escapes.latex(table.title)}: $K = {block.num_arms}$, $T = {_tex_number(table.horizon)}$}}",
            r"\resizebox{\textwidth}{!}{%",
            rf"\begin{{tabular}}{{lcccclll{columns}}}",
            r"\toprule",
            " & ".join(heads) + r" \\",
        ]
        for row in block.rows:
            out.append(r"\midrule")
            for n, line in enumerate(row.lines):
                free = [_TEX_MARKS.get(mark, mark) for mark in _free(row)]
                name = rf"\texttt{{{escapes.latex(row.policy)}}}{_tex_raised(notes.mark(row.note))}{_remark(row)}"
                front = [name, *free] if n == 0 else [""] * 5
                proved, optimal = map(_tex_marks, _proved(row, n, notes, formulas=True))
                entries = [_latex_entry(entry, line) for entry in line.entries]
                out.append(" & ".join([*front, escapes.latex(_environment(line)), proved, optimal, *entries]) + r" \\")
        out += [r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""]
    said = [*notes.listed(), *table.notes]
    out += [r"\begin{itemize}\footnotesize", *(rf"\item {_tex_note(note)}" for note in said), r"\end{itemize}"]
    return "\n".join([*out, ""])


def number(value: float) -> str:
    """Returns a number to three digits with separated thousands: ``5,270``, ``12.3``, ``1.20e6``."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1e6:
        return f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


MOST = 100  # larger ratios of gains are shown as "over 100"
_SEEN = {
    "logarithmic": "like log T",
    "faster": "faster than log T",
    "transient": "gains still fall",
    "open": "open",
    "falling": "falls",
}


def regime(entry: Entry) -> str:
    """Returns how regret was seen to grow: the verdict on its gains, and how it lies to a promised power."""
    if entry.below_zero:
        return "below 0"
    seen = _SEEN.get(entry.verdict, "too short")
    if not math.isnan(entry.ratio[0]):
        ratio, low, high = (f"{one:.2f}" if one < MOST else f"over {MOST}" for one in entry.ratio)
        seen += f" ({ratio}, {low} to {high})"
    power = f"T^{entry.promised:.2g}" if entry.promised else ""
    return seen + (f"; above {power}" if entry.above else f"; below {power}" if entry.below else "")


def _exponent(entry: Entry) -> str:
    """Returns the exponent of T and the multiple of the bound, as far as the entry has them."""
    multiple = "" if entry.multiple is None else f"{multiple_text(entry.multiple)} × bound"
    return "; ".join(filter(None, (growth.exponent_text(*entry.exponent), multiple)))


def _risk(entry: Entry) -> str:
    """Returns the 99 % quantile, and the share of lost games if there were any."""
    lost = f"; lost {rate_text(entry.lost)}" if entry.lost and entry.lost[0] > 0 else ""
    return f"99 %: {number(entry.tail)}{lost}"


def _star(entry: Entry, *, escaped: bool = False) -> str:
    """Returns the mark of a mean that rests on few games, escaped for Markdown if asked."""
    return ("\\*" if escaped else "*") if entry.fragile else ""


def _outside(entry: Entry, line: Line) -> str:
    """Returns the words for an entry outside its assumptions, unless the whole line has them."""
    return OUTSIDE if entry.outside and not line.outside else ""


def _markdown_entry(entry: Entry | None, line: Line) -> str:
    if entry is None:
        return "–"
    mean, low, high = _limits(entry)
    said = [f"**{mean}**{_star(entry, escaped=True)} ({low} to {high})", _risk(entry), _exponent(entry)]
    said += [regime(entry) + _stop(entry), _outside(entry, line)]
    return "<br>".join(filter(None, said)).replace("-", "−")


def _html_entry(entry: Entry | None, line: Line) -> str:
    if entry is None:
        return '<td class="cell">–</td>'
    mean, low, high = _limits(entry)
    said = (_risk(entry), _exponent(entry), regime(entry) + _stop(entry), _outside(entry, line))
    parts = [f"<b>{mean}</b>{_star(entry)} ({low} to {high})"]
    parts += [f"<small>{html.escape(words)}</small>" for words in said if words]
    return f'<td class="cell">{"".join(parts).replace("-", "−")}</td>'


def _latex_entry(entry: Entry | None, line: Line) -> str:
    if entry is None:
        return "--"
    mean, low, high = (value.replace(",", "{,}") for value in _limits(entry))
    risk = re.sub(r"^99 %: (\S+?)(?=;|$)", r"99 %: $\1$", _risk(entry)).replace(",", "{,}").replace("%", r"\%")
    lines = [f"${mean}${_star(entry)} (${low}$ to ${high}$)", risk]
    if exponent := _exponent(entry):
        lines.append(_tex_powers(exponent).replace("×", r"$\times$").replace("<", "$<$"))
    said = _tex_powers(regime(entry).replace("log T", r"$\log T$"))
    stop = rf" $\dagger$ ($T = {_tex_number(entry.played)}$)" if _stop(entry) else ""
    outside = [words] if (words := _outside(entry, line)) else []
    return r"\shortstack[l]{" + r" \\ ".join([*lines, said + stop, *outside]) + "}"


def _tex_powers(text: str) -> str:
    return re.sub(r"T\^([0-9.]+)", r"$T^{\1}$", text)


def _limits(entry: Entry) -> tuple[str, str, str]:
    """Returns mean and limits to three digits of the mean, and to at least one of the interval's half-width."""
    mean, low, high = entry.regret
    half = (high - low) / 2
    if not half > 0 or not math.isfinite(mean) or mean == 0:
        return number(mean), number(low), number(high)
    place = min(math.floor(math.log10(half)), math.floor(math.log10(abs(mean))) - 2)
    mean, low, high = (f"{round(value, -place):,.{max(-place, 0)}f}" for value in entry.regret)
    return mean, low, high


def _stop(entry: Entry) -> str:
    return f" † T = {entry.played:,}" if entry.stopped else ""


def _column(value: float) -> str:
    return "no declared moment" if math.isnan(value) else f"α = {value:g}"


def _environment(line: Line) -> str:
    return f"{'stochastic' if line.stochastic else 'adversarial'}: {line.kind}"


def _proved(row: Row, n: int, notes: Footnotes, *, formulas: bool = False) -> tuple[str, str]:
    """Returns the proved orders of the row's line n, and whether each is optimal up to logarithms.

    Args:
      row: Row of the table.
      n: Number of the line in the row.
      notes: Footnotes so far.
      formulas: Whether an order is a formula of LaTeX between dollar signs, and not in plain characters.
    """
    line, lower = row.lines[n], row.policy == LOWER_BOUND
    texts = [f"{OUTSIDE} for one instance, as several arms are best"] if line.tied else []
    for order in line.orders:
        worst = "worst case: " if order is line.worst else ""
        if formulas:
            bound = f"${order.flat}$".replace("$O", r"$\Omega" if lower else "$O")
        else:
            bound = f"Ω({order.text})" if lower else order.bound
        space = " " if formulas and order.note else ""  # a code host reads no formula that a digit follows
        texts.append(worst + bound + space + notes.mark(order.note))
    if line.outside:
        return OUTSIDE, ""
    return "; ".join(texts) or "–", "; ".join("✓" if order.optimal else "✗" for order in line.orders if not lower)


def promises(line: Line, notes: Footnotes) -> str:
    """Returns the proved orders of a line in plain characters; an empty text if nothing is proved."""
    shown, _ = _proved(Row("", None, (line,)), 0, notes)
    return shown if line.orders else ""


def _free(row: Row) -> list[str]:
    """Returns whether a policy is free of alpha and of sigma, and whether it is given T and the unit."""
    if row.given is None:
        return ["–" if row.policy == LOWER_BOUND else "?"] * 4
    free = ["✗" if name in row.given else "✓" for name in ("α", "σ")]
    return [*free, *("yes" if name in row.given else "no" for name in ("T", "unit"))]


def _remark(row: Row) -> str:
    return f" ({row.remark})" if row.remark else ""


def _bar(entries: list[str]) -> str:
    return f"| {' | '.join(entries)} |"


_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_TEX_MARKS = {"✓": r"$\checkmark$", "✗": r"$\times$"}


def _tex_marks(text: str) -> str:
    """Returns the proved orders, or the marks beside them, in LaTeX."""
    text = "".join(_TEX_MARKS.get(mark, mark) for mark in text).replace("–", "--")
    return re.sub(r"(?<=\$) ([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: _tex_raised(found[1]), text)


def _tex_raised(mark: str) -> str:
    """Returns a footnote's raised number in LaTeX."""
    return rf"$^{{{mark.translate(_LOWERED)}}}$" if mark else ""


def _tex_note(note: str) -> str:
    """Returns a sentence of the notes in LaTeX."""
    number, space, rest = note.partition(" ")
    if space and not number.translate(_LOWERED).strip("0123456789"):
        return f"{_tex_raised(number)} {_tex_note(rest)}"
    note = escapes.latex(note).replace(r"T\textasciicircum{}e", "$T^e$")
    return (
        note.replace("✓", r"\checkmark")
        .replace("†", r"$\dagger$")
        .replace("log T", r"$\log T$")
        .replace("Õ", r"$\tilde O$")
        .replace("Ω", r"$\Omega$")
    )


def _tex_number(value: float) -> str:
    return number(value).replace(",", "{,}").replace("–", "-")


WRITERS: dict[str, Callable[[Any], str]] = {"html": to_html, "md": to_markdown, "tex": to_latex}

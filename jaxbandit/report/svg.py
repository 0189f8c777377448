"""Small figures drawn as SVG when the page is written: they need no script, and they print."""

import dataclasses
import html
import math
from collections.abc import Iterable, Sequence

import matplotlib
import matplotlib.colors
import numpy as np

from jaxbandit.plots import style

Numbers = Sequence[float] | np.ndarray

WIDTH, HEIGHT = 420, 280  # of a figure in its own units; a browser scales it to its place
LEFT, RIGHT, TOP, BOTTOM = 52, 190, 12, 40  # margins; the names of the lines are in the right one
LETTER = 7  # width of a digit
SMALL, LARGE = 6.8, 9.6  # width of a small and of a large letter of a name, in the widest usual font
LINE = 13  # height of a name
DASHES = {"-": "", "--": "7 4", "-.": "7 3 2 3", ":": "2 3", style.LONG: "12 3 2 3 2 3"}
DECADES = 1.3  # positive values that span more powers of ten are drawn on a logarithmic axis


@dataclasses.dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high``, linear or logarithmic."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Returns where a value is on the axis, from 0 to 1; values outside are put at the ends."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Returns round values on the axis with their texts."""
        values = _log_ticks(self.low, self.high, most) if self.log else _linear_ticks(self.low, self.high, most)
        return [(value, tick(value)) for value in values]


def axis(values: Iterable[float], log: bool | None = None, pad: float = 0.04) -> Axis:
    """Makes an axis for values: logarithmic if all are positive and span much, else linear, with 0 if it is near.

    An axis never bends around 0: if signs mix, it is linear.

    Example:
      >>> axis([1.0, 1000.0]).log, axis([-1.0, 1000.0]).log, axis([2.0, 3.0]).low
      (True, False, 0.0)
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if log is None:
        log = low > 0 and high / low > 10**DECADES
    if log and low > 0:
        stretch = max((high / low) ** pad, 1.05)
        return Axis(low / stretch, high * stretch, True)
    low, high = min(low, 0.0), max(high, 0.0)
    room = pad * (high - low) or 0.5
    return Axis(low - room if low < 0 else 0.0, high + room if high > 0 else 0.0)


def tick(value: float) -> str:
    """Formats a value of an axis.

    Example:
      >>> [tick(value) for value in (0.05, 2000.0, 20_000.0, -3e6, 2e9)]
      ['0.05', '2,000', '20k', '−3M', '2e9']
    """
    size, sign = abs(value), "−" if value < 0 else ""
    if size >= 1e9:
        return sign + f"{size:.3g}".replace("e+0", "e").replace("e+", "e")
    if size >= 1e6:
        return f"{sign}{size / 1e6:.3g}M"
    return f"{sign}{size / 1e3:.3g}k" if size >= 1e4 else f"{sign}{size:,.4g}"


@dataclasses.dataclass(frozen=True)
class Line:
    """A curve of a figure.

    Attributes:
      name: The text at its end.
      x: Its places.
      y: Its values; NaN is left out.
      colour: A colour in CSS.
      low: The lower limit of its band, if any.
      high: The upper limit.
      dash: The pattern of its dashes.
      title: The text that a pointer shows.
      dots: Whether to mark the places.
    """

    name: str
    x: Numbers
    y: Numbers
    colour: str
    low: Numbers | None = None
    high: Numbers | None = None
    dash: str = ""
    title: str = ""
    dots: bool = False


def figure(
    lines: Sequence[Line], label: str, x: Axis, y: Axis, x_title: str, y_title: str, marks: Sequence[tuple] = ()
) -> str:
    """Draws lines with their bands, and names them at their ends.

    Args:
      lines: The lines; the first is drawn on top.
      label: The description for readers who do not see the figure.
      x: The axis of places.
      y: The axis of values.
      x_title: The text under the figure.
      y_title: The text above it.
      marks: Places to mark by a vertical line, each with a text.
    """
    right = min(RIGHT, 18 + max((width(line.name) for line in lines), default=0))
    wide, tall = WIDTH - LEFT - right, HEIGHT - TOP - BOTTOM

    def across(value: float) -> float:
        return LEFT + wide * x.place(value)

    def up(value: float) -> float:
        return TOP + tall * (1 - y.place(value))

    out = [f'<svg class="figure" viewBox="0 0 {WIDTH} {HEIGHT + 14}" role="img" aria-label="{html.escape(label)}">']
    out.append(f'<g transform="translate(0 14)"><text class="axis" x="2" y="-2">{html.escape(y_title)}</text>')
    for value, text in y.ticks(5):
        at = up(value)
        zero = ' class="zero"' if value == 0 and y.low < 0 else ""
        out.append(f'<path{zero} d="M{LEFT} {at:.1f}H{LEFT + wide:.1f}"/>')
        out.append(f'<text x="{LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    for value, text in x.ticks(5):
        at = across(value)
        out.append(f'<path d="M{at:.1f} {TOP}V{TOP + tall}"/>')
        out.append(f'<text x="{at:.1f}" y="{TOP + tall + 15}" text-anchor="middle">{text}</text>')
    under = f'x="{LEFT + wide / 2:.1f}" y="{HEIGHT - 6}" text-anchor="middle"'
    out.append(f'<text class="axis" {under}>{html.escape(x_title)}</text>')
    for value, text in marks:
        at = across(value)
        out.append(f'<path class="mark-line" d="M{at:.1f} {TOP}V{TOP + tall}"/>')
        # Beside the line on the side that has room: the other side may hold the names.
        place = f'x="{at - 3:.1f}" text-anchor="end"' if at > LEFT + 0.7 * wide else f'x="{at + 3:.1f}"'
        out.append(f'<text class="axis" {place} y="{TOP - 3}">{html.escape(text)}</text>')
    for line in reversed(lines):
        out.append(_drawn(line, across, up, y))
    out += _names(lines, across, up, LEFT + wide, tall)
    return "".join([*out, "</g></svg>"])


def heat_map(
    table: np.ndarray,
    values: Sequence[Sequence[float]],
    titles: Sequence[str],
    label: str,
    mark: Sequence[int] = (-1, -1),
) -> str:
    """Draws a table of numbers as coloured cells.

    Args:
      table: The numbers, rows by columns; NaN is left blank.
      values: The values of the columns and of the rows.
      titles: What the columns and the rows are.
      label: The description for readers who do not see the figure.
      mark: The column and the row of a cell to frame; -1 for none.
    """
    across, down = ([tick(value) for value in some] for some in values)
    left = max(LEFT - 10, 12 + LETTER * max(map(len, down)))
    wide, tall = (WIDTH - left - 6) / len(across), (HEIGHT - TOP - BOTTOM) / len(down)
    shades = _shades(table)
    out = [f'<svg class="figure" viewBox="0 0 {WIDTH} {HEIGHT + 14}" role="img" aria-label="{html.escape(label)}">']
    out.append(f'<g transform="translate(0 14)"><text class="axis" x="2" y="-2">{html.escape(titles[1])}</text>')
    for row, text in enumerate(down):
        y = TOP + tall * row
        out.append(f'<text x="{left - 5:.1f}" y="{y + tall / 2 + 4:.1f}" text-anchor="end">{text}</text>')
        for column in range(len(across)):
            if not math.isfinite(table[row, column]):
                continue
            x, number = left + wide * column, tick(float(f"{table[row, column]:.3g}"))
            fill, ink = _colours(shades[row, column])
            out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide - 1:.1f}" height="{tall - 1:.1f}" fill="{fill}"/>')
            if LETTER * len(number) < wide and tall > LINE:
                middle = f'x="{x + wide / 2:.1f}" y="{y + tall / 2 + 4:.1f}" text-anchor="middle"'
                out.append(f'<text class="in-cell" {middle} style="fill:{ink}">{number}</text>')
            if (column, row) == tuple(mark):
                inside = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 3:.1f}" height="{tall - 3:.1f}"'
                out.append(f'<rect class="cell-mark" {inside} fill="none" stroke="{ink}" stroke-width="2"/>')
    every = math.ceil(LETTER * max(map(len, across)) / wide)
    for column in range(0, len(across), every):
        x = left + wide * (column + 0.5)
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{across[column]}</text>')
    under = f'x="{left + wide * len(across) / 2:.1f}" y="{HEIGHT - 6}" text-anchor="middle"'
    out.append(f'<text class="axis" {under}>{html.escape(titles[0])}</text>')
    return "".join([*out, "</g></svg>"])


def _shades(table: np.ndarray) -> np.ndarray:
    """Returns the places of numbers on a scale of colours, from 0 to 1: logarithmic if they span much."""
    finite = table[np.isfinite(table)]
    if finite.min() > 0 and finite.max() > 10 * finite.min():
        table, finite = np.log(table), np.log(finite)
    return (table - finite.min()) / ((finite.max() - finite.min()) or 1.0)


def _colours(shade: float) -> tuple[str, str]:
    """Returns the colour of a cell, and black or white for the number in it."""
    fill = matplotlib.colors.to_hex(matplotlib.colormaps[style.HEAT](float(shade)))
    return fill, max("#000000", "#ffffff", key=lambda ink: style.contrast(ink, fill))


def width(name: str) -> float:
    """Returns the room that a name takes at the end of a line, in the units of a figure."""
    return sum(LARGE if letter.isupper() else SMALL for letter in name)


def _drawn(line: Line, across, up, y: Axis) -> str:
    seen = [(a, b) for a, b in zip(line.x, line.y, strict=True) if math.isfinite(b) and not (y.log and b < y.low)]
    out = []
    if line.low is not None and line.high is not None:
        band = [
            (a, low, high)
            for a, low, high in zip(line.x, line.low, line.high, strict=True)
            if math.isfinite(low) and math.isfinite(high) and not (y.log and high <= 0)
        ]
        edge = [(across(a), up(high)) for a, _, high in band]
        edge += [(across(a), up(max(low, y.low))) for a, low, _ in reversed(band)]
        if len(edge) > 2:
            out.append(f'<path class="band" style="fill:{line.colour}" d="{path(edge)}z"/>')
    if seen:
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        title = f"<title>{html.escape(line.title or line.name)}</title>"
        places = [(across(a), up(b)) for a, b in seen]
        out.append(f'<path class="line" style="stroke:{line.colour}"{dash} d="{path(places)}">{title}</path>')
        if line.dots or len(places) == 1:
            out += [f'<circle style="fill:{line.colour}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in places]
    return "".join(out)


def _names(lines: Sequence[Line], across, up, right: float, tall: float) -> list[str]:
    ends = []
    for line in lines:
        seen = [(a, b) for a, b in zip(line.x, line.y, strict=True) if math.isfinite(b)]
        if line.name and seen:
            ends.append((line, across(seen[-1][0]), up(seen[-1][1])))
    if not ends:
        return []
    places = style.spread(np.array([at for _, _, at in ends]), LINE)
    places += max(0.0, TOP + 4 - places.min()) - max(0.0, places.max() - (TOP + tall + 4))
    out = []
    for (line, x, y), place in zip(ends, places, strict=True):
        name, start = html.escape(line.name), right + 12
        out.append(
            f'<path class="leader" style="stroke:{line.colour}" d="M{x + 2:.1f} {y:.1f}L{start - 2:.1f} {place:.1f}"/>'
        )
        out.append(f'<text class="name" style="fill:{line.colour}" x="{start:.1f}" y="{place + 4:.1f}">{name}</text>')
    return out


def path(places: Sequence[tuple[float, float]]) -> str:
    """Returns the path through places."""
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [factor * 10.0**power for power in powers for factor in factors]
        inside = [value for value in values if low * 0.999 <= value <= high * 1.001]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]

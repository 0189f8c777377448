"""Ticks that neither overprint nor leave a logarithmic axis without a number, and numbers with commas."""

import itertools
from typing import Any

import numpy as np
from matplotlib import ticker

STEPS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(range(1, 10)))  # multiples of powers of ten


class LogTicks(ticker.Locator):
    """Places a few ticks on a logarithmic axis: powers of ten, multiples of them, or evenly spaced numbers.

    As many ticks are placed as the axis has room for. An axis of less than half a decade has evenly spaced numbers.
    """

    def __call__(self) -> list[float]:
        """Returns the ticks of the axis within its limits."""
        return self.tick_values(*self.axis.get_view_interval())  # pyright: ignore[reportOptionalMemberAccess]

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Returns the ticks between two limits."""
        room = 5 if self.axis is None else int(np.clip(self.axis.get_tick_space() - 1, 2, 6))  # pyright: ignore[reportAttributeAccessIssue]
        return log_ticks(min(vmin, vmax), max(vmin, vmax), room).tolist()


def log_ticks(low: float, high: float, most: int) -> np.ndarray:
    """Returns at most ``most`` round numbers between two positive numbers, as many as possible.

    Example:
      >>> log_ticks(1, 1e6, 4).tolist(), log_ticks(300, 900, 5).tolist()
      ([1.0, 100.0, 10000.0, 1000000.0], [300.0, 500.0, 700.0])
    """
    if not 0 < low < high:
        return np.array([low])
    powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    best = np.array([])
    for steps in STEPS:
        found = np.array([step * 10.0**power for power in powers for step in steps])
        found = found[(found >= low * (1 - 1e-9)) & (found <= high * (1 + 1e-9))]
        if steps == (1,):
            found = found[:: max(1, -(-found.size // most))]
        if best.size < found.size <= most:
            best = found
        if steps == (1,) and found.size >= 3:
            return found
    if best.size >= 2:
        return best
    even = np.asarray(ticker.MaxNLocator(max(2, most - 1), steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    return even[(even >= low) & (even <= high)]


class LogNumbers(ticker.Formatter):
    """Writes the numbers of a logarithmic axis: all as powers of ten if they are, and some are far from 1."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Returns a single number."""
        del pos
        return number(x)

    def format_ticks(self, values: Any) -> list[str]:
        """Returns the numbers of all ticks."""
        far = any(value >= 1e5 or 0 < value < 1e-3 for value in values)
        return [f"$10^{{{round(np.log10(value))}}}$" if far and _is_power(value) else number(value) for value in values]


def number(value: float) -> str:
    """Returns a tick's number in figures, or as a multiple of a power of ten if it is long.

    Example:
      >>> number(1500.0), number(0.02)
      ('1,500', '0.02')
    """
    if value >= 1e6 or 0 < value < 1e-3:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"${float(digits):g}{{\\times}}10^{{{int(exponent)}}}$"
    return f"{value:,.10g}"


def _is_power(value: float) -> bool:
    return value > 0 and abs(np.log10(value) - round(np.log10(value))) < 1e-9


class LinearNumbers(ticker.ScalarFormatter):
    """Writes the numbers of a linear axis with a comma between thousands and a true minus."""

    def format_ticks(self, values: Any) -> list[str]:
        """Returns the numbers of all ticks."""
        shown = super().format_ticks(values)
        if self.get_offset() or max(map(abs, values), default=0.0) < 1e3:
            return shown
        return [f"{value:,.10g}".replace("-", "−") for value in values]


def tidy(panel: Any) -> None:
    """Gives the logarithmic axes of a panel few ticks, and no numbers at the small ones; linear ones get commas."""
    for axis in (panel.xaxis, panel.yaxis):
        if axis.get_scale() == "log" and isinstance(axis.get_major_locator(), ticker.LogLocator):
            axis.set_major_locator(LogTicks())
            axis.set_major_formatter(LogNumbers())
            axis.set_minor_formatter(ticker.NullFormatter())
        elif axis.get_scale() == "linear" and isinstance(axis.get_major_formatter(), ticker.ScalarFormatter):
            axis.set_major_formatter(LinearNumbers())


def thin_out(panel: Any) -> None:
    """Leaves out numbers of an axis that would overprint: every second row or column of a map, or places on a line."""
    for axis, low, high in ((panel.xaxis, "x0", "x1"), (panel.yaxis, "y0", "y1")):
        if isinstance(axis.get_major_formatter(), ticker.FixedFormatter):
            names = [text.get_text() for text in axis.get_ticklabels()]
            every = 1
            while _overprint(axis, low, high) and every < len(names):
                every += 1
                kept = [name if n % every == 0 else "" for n, name in enumerate(names)]
                axis.set_major_formatter(ticker.FixedFormatter(kept))
        elif axis.get_scale() == "linear" and isinstance(axis.get_major_locator(), ticker.MaxNLocator):
            for most in (4, 3, 2, 1):
                if not _overprint(axis, low, high):
                    break
                axis.set_major_locator(ticker.MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))


def _overprint(axis: Any, low: str, high: str) -> bool:
    """Returns whether two neighbouring numbers of an axis touch."""
    boxes = [text.get_window_extent() for text in axis.get_ticklabels() if text.get_text()]
    boxes.sort(key=lambda box: getattr(box, low))
    return any(getattr(a, high) > getattr(b, low) for a, b in itertools.pairwise(boxes))


def tick(value: Any) -> str:
    """Formats a swept value for an axis."""
    if not isinstance(value, int | float | np.number):
        return str(value)
    return f"{value:,.10g}" if 1e3 <= abs(value) < 1e6 else f"{value:g}"


def cell_size(panel: Any) -> tuple[float, float]:
    """Returns width and height of a cell of a map whose cells are 1 wide and 1 high, in pixels."""
    box = panel.get_window_extent()
    return box.width / float(np.ptp(panel.get_xlim())), box.height / float(np.ptp(panel.get_ylim()))

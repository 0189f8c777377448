"""The look of a figure: colours that colour-blind readers tell apart, panels, legend, note on how it was made."""

import contextlib
import pathlib
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import numpy as np

# Okabe-Ito, distinct for colour-blind readers and in grey, without its yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
ON_DARK = {"#000000": "#F2F2F2"}  # what stands in for a colour that is lost on a dark page
LINES = ("-", "--", "-.", ":")  # one for each round through the colours
HEAT = "cividis"  # even in grey, the same to every kind of colour vision

LINE = 0.18  # inches of a legend's line

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # letters stay letters: journals refuse Type 3
    "savefig.dpi": 160,
}


@contextlib.contextmanager
def panels(
    titles: Sequence[str], title: str, *, columns: int = 0, lines: int = 0, common_lines: int = 0
) -> Iterator[tuple[Any, list]]:
    """A figure with a panel for each of ``titles``, closed at the end.

    Args:
      titles: Of the panels.
      title: Of the figure.
      columns: Panels in a row; default three, or two by two.
      lines: Room for a legend of so many lines under each panel.
      common_lines: Likewise under the figure.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    columns = columns or (2 if len(titles) == 4 else min(len(titles), 3))
    rows = -(-len(titles) // columns)
    with plt.rc_context(STYLE):
        size = (4.2 * columns, (3.1 + LINE * lines) * rows + LINE * common_lines + 0.3)
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
        for unused in axes.flat[len(titles) :]:
            unused.set_visible(False)
        for panel, text in zip(axes.flat, titles, strict=False):
            panel.set_title("\n".join(textwrap.wrap(text, 48)))
        figure.suptitle(title)
        try:
            yield figure, list(axes.flat[: len(titles)])
        finally:
            plt.close(figure)


def look(n: int) -> dict[str, Any]:
    """Colour and line of curve ``n``."""
    return {"color": COLOURS[n % len(COLOURS)], "linestyle": LINES[n // len(COLOURS) % len(LINES)]}


def legend(figure: Any, panel: Any, note: str) -> None:
    """One legend for all panels, under them, with a note on how the figure was made."""
    handles, names = panel.get_legend_handles_labels()
    columns = max(1, round(figure.get_figwidth() / 3))
    options = {"title": note, "title_fontsize": 7, "ncols": min(len(names), columns), "fontsize": 8}
    figure.legend(handles, names, loc="outside lower center", **options)


def save(figure: Any, path: str | pathlib.Path, also: Sequence[str] = ()) -> pathlib.Path:
    """Writes the figure, and once more beside it for every other ending."""
    path = pathlib.Path(path)
    for one in (path, *(path.with_suffix(f".{ending}") for ending in also)):
        figure.savefig(one)
    return path


def tick(value: Any) -> str:
    """A swept value on an axis."""
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)

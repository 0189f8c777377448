"""The look of a figure: colours that colour-blind readers tell apart, panels, legend and note."""

import contextlib
import itertools
import pathlib
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np

# Okabe-Ito, distinct for colour-blind readers and in grey, without its yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
ON_DARK = {"#000000": "#F2F2F2"}  # replacements of colours that a dark page would hide
LINES = ("-", "--", "-.", ":")  # one for each pass through the colours
HEAT = "cividis"  # monotone in grey, and the same for every kind of colour vision

# (colour, line) of the shipped policies: a policy looks the same on every figure.
POLICY_LOOKS = {
    "uniinf": (0, 0),
    "uniinf_variant": (0, 1),
    "uniinf_first_losses": (0, 2),
    "delayed": (0, 3),
    "ada_hedge": (2, 2),
    "clipped_sgd_ucb": (2, 3),
    "exp3_plus_plus": (3, 3),
    "ftpl": (4, 2),
    "lb_inf_v": (4, 3),
    "htinf": (1, 0),
    "opt_htinf": (4, 0),
    "ada_tinf": (3, 0),
    "robust_ucb": (2, 0),
    "robust_moss": (2, 1),
    "ape2": (5, 0),
    "adar_ucb": (6, 0),
    "sao_ht": (1, 1),
    "omd_lb_ht": (1, 2),
    "tsallis_inf": (3, 1),
    "exp3": (3, 2),
    "mr_ucb": (5, 1),
    "mr_ape": (5, 2),
    "ucb1": (6, 1),
    "moss": (6, 2),
    "thompson": (4, 1),
    "uniform": (6, 3),
}

LINE = 0.18  # height of a legend's line, in inches
NOTE = 7  # size of the letters of a figure's note, in points
LETTERS = 17  # letters of that size in an inch
BOUND = {"color": "#777777", "linestyle": (0, (9, 3)), "linewidth": 1.3}  # a lower bound, unlike any curve

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
    "pdf.fonttype": 42,  # embeds TrueType letters, since journals refuse Type 3
    "savefig.dpi": 160,
}


@contextlib.contextmanager
def panels(
    titles: Sequence[str],
    title: str,
    *,
    columns: int = 0,
    lines: int = 0,
    common_lines: int = 0,
    width: float = 4.2,
    height: float = 3.1,
) -> Iterator[tuple[Any, list]]:
    """Makes a figure with a panel for each of ``titles`` and closes it at the end.

    Args:
      titles: The titles of the panels.
      title: The title of the figure.
      columns: Panels in a row; default three, or two by two.
      lines: The number of legend lines to leave room for under each panel.
      common_lines: The number of legend lines under the figure.
      width: The width of a panel, in inches.
      height: The height of a panel, in inches.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    columns = columns or (2 if len(titles) == 4 else min(len(titles), 3))
    rows = -(-len(titles) // columns)
    with plt.rc_context(STYLE):
        size = (width * columns, (height + LINE * lines) * rows + LINE * common_lines + 0.3)
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
        for unused in axes.flat[len(titles) :]:
            unused.set_visible(False)
        for panel, text in zip(axes.flat, titles, strict=False):
            panel.set_title("\n".join(textwrap.wrap(text, round(48 * width / 4.2))))
        figure.suptitle(title)
        try:
            yield figure, list(axes.flat[: len(titles)])
        finally:
            plt.close(figure)


def look(n: int) -> dict[str, Any]:
    """Returns colour and line of curve ``n``."""
    return {"color": COLOURS[n % len(COLOURS)], "linestyle": LINES[n // len(COLOURS) % len(LINES)]}


def looks(labels: Iterable[Any]) -> list[dict[str, Any]]:
    """Returns colour and line of every labelled curve.

    A shipped policy has a look of its own, and the points of its sweep share its colour.

    Example:
      >>> [look["color"] for look in looks(["uniinf[initial_scale=1]", "uniinf[initial_scale=4]", "htinf"])]
      ['#0072B2', '#0072B2', '#D55E00']
    """
    heads = [str(label).split("[")[0].split("#")[0] for label in labels]
    if len(set(heads)) == 1 and len(heads) > 1:  # all points are of one policy, so each gets a colour
        return [look(n) for n in range(len(heads))]
    size = len(COLOURS)
    taken = {colour + size * line for colour, line in (POLICY_LOOKS[head] for head in heads if head in POLICY_LOOKS)}
    free = (n for n in itertools.count() if n % (size * len(LINES)) not in taken)
    of_head: dict[str, int] = {}
    for head in heads:
        if head not in of_head:
            known = POLICY_LOOKS.get(head)
            of_head[head] = next(free) if known is None else known[0] + size * known[1]
    return [look(of_head[head] + size * heads[:n].count(head)) for n, head in enumerate(heads)]


def end_labels(panel: Any, ends: Sequence[tuple[float, float, str, str]], size: float = 7.5) -> None:
    """Names curves at their ends, to the right of the panel, without overlap.

    Args:
      panel: A panel whose scales and limits are set.
      ends: x and y of every curve's end, its name and colour.
      size: The size of the letters, in points.
    """
    into_panel = panel.transAxes.inverted()
    heights = np.asarray([into_panel.transform(panel.transData.transform((x, y)))[1] for x, y, _, _ in ends])
    step = 1.25 * size / (72 * panel.get_window_extent().height / panel.figure.dpi)
    places = spread(np.clip(heights, 0, 1), step)
    places += max(0.0, -places.min()) - max(0.0, places.max() - 1)  # beside the panel, not above its title
    for (x, y, text, colour), place in zip(ends, places, strict=True):
        panel.annotate(
            text,
            (x, y),
            (1.04, place),
            textcoords="axes fraction",
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )


def spread(places: np.ndarray, step: float) -> np.ndarray:
    """Moves places apart to at least ``step``, in their order, around their old positions.

    Example:
      >>> spread(np.array([0.5, 0.5, 0.0]), 0.2).round(2).tolist()
      [0.4, 0.6, 0.0]
    """
    order = np.argsort(places, kind="stable")
    groups: list[list[float]] = []  # [mean place, count] of runs that touch
    for place in places[order]:
        groups.append([float(place), 1])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < step * (groups[-1][1] + groups[-2][1]) / 2:
            (upper, many), (lower, more) = groups.pop(), groups.pop()
            groups.append([(upper * many + lower * more) / (many + more), many + more])
    moved = np.concatenate([middle + step * (np.arange(n) - (n - 1) / 2) for middle, n in groups])
    out = np.empty_like(moved)
    out[order] = moved
    return out


def legend(figure: Any, panel: Any, note: str, handles: Mapping[str, Any] | None = None) -> None:
    """Adds one legend under all panels, with a note that describes the figure.

    Args:
      figure: The figure.
      panel: The panel whose curves the legend names, unless ``handles`` are given.
      note: The title of the legend.
      handles: The entries of the legend, by name.
    """
    if handles is None:
        drawn, names = panel.get_legend_handles_labels()
    else:
        drawn, names = list(handles.values()), list(handles)
    columns = max(1, round(figure.get_figwidth() / 3))
    options = {"title": wrapped(figure, note), "title_fontsize": NOTE, "ncols": min(len(names), columns), "fontsize": 8}
    figure.legend(drawn, names, loc="outside lower center", **options)


def check_formats(formats: Sequence[str]) -> None:
    """Raises an error if there are no file endings or a figure cannot be written with one of them."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    wrong = [ending for ending in formats if ending.lower() not in known]
    if wrong or not formats:
        what = f"no figure can be written as {wrong[0]!r}" if wrong else "formats is empty"
        raise ValueError(f"{what}; possible file endings are {', '.join(sorted(known))}")


def note(figure: Any, text: str) -> None:
    """Writes a note under a figure that has no common legend."""
    figure.supxlabel(wrapped(figure, text), fontsize=NOTE)


def wrapped(figure: Any, text: str) -> str:
    """Wraps a note to the width of a figure."""
    width = round(LETTERS * figure.get_figwidth())
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


def save(figure: Any, path: str | pathlib.Path, also: Sequence[str] = ()) -> pathlib.Path:
    """Writes the figure to a path, and beside it once for every other ending."""
    path = pathlib.Path(path)
    for one in (path, *(path.with_suffix(f".{ending}") for ending in also)):
        figure.savefig(one)
    return path


def tick(value: Any) -> str:
    """Formats a swept value for an axis."""
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)

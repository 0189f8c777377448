"""Text of a figure: the size of its letters, folded titles, names moved apart, and the note under its panels."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np

SMALL = 0.8  # size of notes, legends and names, as a share of the size of the letters
ZERO = "zero"  # the mark of a line at regret 0
BELOW = "below 0: better than every fixed arm"


def letters(share: float = SMALL) -> float:
    """Returns a size of letters, as a share of the figure's, in points."""
    return share * matplotlib.rcParams["font.size"]


def folded(text: str, width: int) -> str:
    """Folds each line of a title at spaces, but not around equals and multiplication signs or before a gap's value.

    Example:
      >>> folded("stochastic: Pareto, gap 0.5", 23).splitlines()
      ['stochastic: Pareto,', 'gap 0.5']
    """
    kept = re.sub(r" (=|×) |(?<=gap) (?=[\d.])", lambda found: found[0].replace(" ", "\u00a0"), text)
    lines = [line for part in kept.split("\n") for line in textwrap.wrap(part, max(12, width)) or [""]]
    return "\n".join(lines).replace("\u00a0", " ")


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


def explained(figure: Any, text: str) -> str:
    """Adds to the first line of a note what regret below 0 means, if a panel shows any."""
    if not any(line.get_gid() == ZERO for panel in figure.axes for line in panel.get_lines()):
        return text
    first, *rest = text.split("\n")
    return "\n".join([f"{first}; {BELOW}" if first else BELOW, *rest])


def wrapped(figure: Any, text: str) -> str:
    """Wraps a note to the width of a figure, and explains regret below 0."""
    text = explained(figure, text)
    width = round(125 / letters() * figure.get_figwidth())
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


def fold_labels(panels: Sequence[Any]) -> bool:
    """Folds the labels of axes that are longer than their panels; returns whether there are any."""
    found = False
    for panel in panels:
        for axis, size in ((panel.xaxis, "width"), (panel.yaxis, "height")):
            room, long = (getattr(one.get_window_extent(), size) for one in (panel, axis.label))
            if axis.label.get_text() and long > room:
                lines = np.ceil(long / room)
                axis.label.set_text(folded(axis.label.get_text(), round(len(axis.label.get_text()) / lines + 5)))
                found = True
    return found

"""The picture of a table's tails, for ``jaxbandit inspect``."""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from jaxbandit.plots import style
from jaxbandit.tables.inspection import Inspection, hill_path

MOST = 300  # arms that are drawn: of more, the best and an even choice of the others


def tails(
    losses: np.ndarray,
    found: Inspection,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    ax: Any = None,
    venue: str = "",
) -> Figure:
    """Draws a table's tails: Hill's estimate over the number of losses it uses, and each arm's survival function.

    Args:
      losses: The table [T, K], missing entries NaN.
      found: The result of ``inspect`` for this table.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      ax: Two axes to draw on; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.

    Returns:
      The figure.
    """
    columns = [column[np.isfinite(column)] for column in np.asarray(losses, np.float64).T]
    ranked = np.argsort(found.means, kind="stable").tolist()
    # The best arms are drawn in colour, all further arms in one grey.
    colours = {arm: style.COLOURS[n] for n, arm in enumerate(ranked[: len(style.COLOURS)])}
    with style.panels(["tail index by Hill", "survival of |loss|"], title, columns=2, ax=ax, venue=venue) as (
        figure,
        (left, right),
    ):
        drawn = ranked if len(ranked) <= MOST else ranked[: len(colours)] + ranked[len(colours) :: len(ranked) // MOST]
        for arm in reversed(drawn):
            look = {"color": colours.get(arm, "#BBBBBB"), "linewidth": 1.2 if arm in colours else 0.6}
            column = np.sort(np.abs(columns[arm]))
            counts = np.unique(np.geomspace(5, max(6, column.size // 4), 200).astype(int))
            left.plot(counts, hill_path(column, counts), **look)
            seen = column > 0
            beyond = (column.size - np.arange(column.size)) / column.size
            label = found.arms[arm] if arm in colours else None
            right.step(column[seen], beyond[seen], where="pre", label=label, **look)
        left.axhspan(1, 2, color="#000000", alpha=0.07, linewidth=0)
        left.set(xscale="log", ylim=(0, 6), xlabel="largest losses used, k", ylabel="Hill estimate of the tail index")
        left.annotate(
            "theory: heavy tails have 1 to 2",
            (0.02, 1.05),
            xycoords=("axes fraction", "data"),
            fontsize=style.letters(),
        )
        right.set(xlabel="z", ylabel="share of rounds with |loss| at least z")
        if found.quantiles[-1] > 0:  # otherwise a logarithmic axis would be empty
            right.set(xscale="log", yscale="log")
            right.axvline(found.quantiles[-1], color="black", linewidth=0.6, linestyle="--")
            right.annotate("99 %", (found.quantiles[-1], 1.0), fontsize=style.letters())
        handles, labels = right.get_legend_handles_labels()
        right.legend(
            handles[::-1],
            labels[::-1],
            frameon=False,
            fontsize=style.letters(),
            title="least mean first",
            title_fontsize=style.letters(),
        )
        return style.save(figure, path)

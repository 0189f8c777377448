"""Sizes, letters and lines of a figure, for a screen, for the paper of a venue, and for slides."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxbandit.grid import suggest

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": "medium",
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
# Times, and a face for the letters that it lacks, such as the index of S₁; matplotlib brings both along.
SERIF = {"font.family": ["STIXGeneral", "DejaVu Serif"], "mathtext.fontset": "stix"}


@dataclasses.dataclass(frozen=True)
class Venue:
    """The place that a figure is made for.

    Attributes:
      column: The width of a figure with one panel, in inches.
      width: The width of a figure with several panels, in inches.
      rc: Letters and lines, as matplotlib's settings.
      paper: Whether a caption stands under the figure, so that it needs no title.
    """

    column: float
    width: float
    rc: Mapping[Any, Any]
    paper: bool = True


VENUES = {
    "neurips": Venue(3.6, 5.5, SERIF | {"font.size": 8, "lines.linewidth": 1.2}),
    "icml": Venue(3.25, 6.75, SERIF | {"font.size": 8, "lines.linewidth": 1.2}),
    "jmlr": Venue(4.0, 6.0, SERIF | {"font.size": 9, "lines.linewidth": 1.3}),
    "slides": Venue(
        9.0, 12.5, {"font.size": 17, "lines.linewidth": 3.0, "grid.linewidth": 0.8, "axes.titlepad": 12.0}, paper=False
    ),
}


def venue_named(name: str) -> Venue | None:
    """Returns a venue; None without a name."""
    if name and name not in VENUES:
        raise ValueError(f"unknown venue {name!r}; {suggest(name, VENUES)}")
    return VENUES.get(name)

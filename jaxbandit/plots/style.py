"""The look of a figure: its sheet and panels, sizes for papers and slides, legend, names at curves, and note."""

import contextlib
import io
import pathlib
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from jaxbandit import outputs
from jaxbandit.plots.looks import COLOURS as COLOURS
from jaxbandit.plots.looks import HEAT as HEAT
from jaxbandit.plots.looks import LINES as LINES
from jaxbandit.plots.looks import LONG as LONG
from jaxbandit.plots.looks import ON_DARK as ON_DARK
from jaxbandit.plots.looks import POLICY_LOOKS as POLICY_LOOKS
from jaxbandit.plots.looks import contrast as contrast
from jaxbandit.plots.looks import look as look
from jaxbandit.plots.looks import looks as looks
from jaxbandit.plots.looks import mixed as mixed
from jaxbandit.plots.looks import on_dark as on_dark
from jaxbandit.plots.notes import SMALL as SMALL
from jaxbandit.plots.notes import ZERO as ZERO
from jaxbandit.plots.notes import explained as explained
from jaxbandit.plots.notes import fold_labels as fold_labels
from jaxbandit.plots.notes import folded as folded
from jaxbandit.plots.notes import letters as letters
from jaxbandit.plots.notes import spread as spread
from jaxbandit.plots.notes import wrapped as wrapped
from jaxbandit.plots.ticks import cell_size as cell_size
from jaxbandit.plots.ticks import thin_out as thin_out
from jaxbandit.plots.ticks import tick as tick
from jaxbandit.plots.ticks import tidy
from jaxbandit.plots.venues import STYLE
from jaxbandit.plots.venues import VENUES as VENUES
from jaxbandit.plots.venues import venue_named as venue_named

BOUND = {"color": "#6B6B6B", "linestyle": (0, (9, 3)), "linewidth": 1.3}  # a lower bound, unlike any curve
WIDEST = 10.0  # inches of a figure for screens: at 800 pixels its smallest letters are 8 pixels high
GROWTHS = 5  # times that a figure may become higher by half to make room for its panels
NAMES = 9  # curves that may have their names at their ends


class Sheet(Figure):
    """A figure with its own style, which a notebook shows as the result of a cell.

    Attributes:
      rc: The settings that it is drawn with, now and when it is saved later.
      direct: Whether curves have their names at their ends. If not, they are in a legend.
      grid: The panels, their rows, and the height of a panel in inches, until the figure is fitted to them.
    """

    rc: Mapping[Any, Any] = STYLE
    direct: bool = False
    grid: tuple[list[Any], int, float] | None = None

    def fit(self) -> None:
        """Makes the figure as high as its panels, titles, legend and note need, once."""
        if self.grid is not None:
            (panels, rows, height), self.grid = self.grid, None
            _label_rows_once(panels)
            for panel in self.axes:
                tidy(panel)
            self._lay_out()
            there = min(panel.get_position().height for panel in panels if panel.get_visible()) * self.get_figheight()
            self.set_figheight(self.get_figheight() + rows * (height - there))
            self.draw_without_rendering()
            if fold_labels(self.axes):
                self.draw_without_rendering()
            for panel in self.axes:
                thin_out(panel)

    def _lay_out(self) -> None:
        """Places everything, and makes the figure higher while legend, titles and note leave no room for panels."""
        for _ in range(GROWTHS):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.draw_without_rendering()
            if not any("collapsed to zero" in str(warning.message) for warning in caught):
                return
            self.set_figheight(1.5 * self.get_figheight())

    def draw(self, renderer: Any) -> None:
        """Draws the figure with its own settings."""
        with matplotlib.rc_context(dict(self.rc)):
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """Writes the figure with its own settings."""
        with matplotlib.rc_context(dict(self.rc)):
            super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        """Returns the picture that a notebook shows."""
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


@contextlib.contextmanager
def panels(
    titles: Sequence[str],
    title: str,
    *,
    columns: int = 0,
    names: Sequence[str] = (),
    width: float = 4.2,
    height: float = 3.1,
    wide: bool = False,
    ax: Any = None,
    venue: str = "",
) -> Iterator[tuple[Any, list]]:
    """Makes a figure with a panel for each of ``titles``, or takes the panels that are given.

    Args:
      titles: The titles of the panels.
      title: The title of the figure.
      columns: Panels in a row; default three, or two by two.
      names: Names of curves. If there is room, they will be written at the ends of the curves, else in a legend.
      width: The width of a panel, in inches; less if the figure would be too wide for its letters.
      height: The height of a panel, in inches.
      wide: Whether a single panel takes the width of several, if a venue sets it.
      ax: The panels to draw on, one for each title; by default a figure is made.
      venue: A name of ``VENUES``, which sets width, letters and lines.
    """
    place, rc = venue_named(venue), dict(STYLE)
    with matplotlib.rc_context(rc | dict(place.rc if place else {})):
        if ax is not None:
            given = _given(ax, titles)
            for panel, text in zip(given, titles, strict=True):
                panel.set_title(text)
            yield given[0].figure, given
            for panel in given:
                tidy(panel)
            return
        size = matplotlib.rcParams["font.size"]
        columns = columns or (2 if len(titles) == 4 else min(len(titles), 3))
        rows = -(-len(titles) // columns)
        if place:
            across = (place.width if columns > 1 or wide else place.column) / columns
            width, height = across, max(height * across / width, 0.19 * size)
        elif width * columns > WIDEST:
            width, height = WIDEST / columns, max(height * WIDEST / columns / width, min(height, 2.7))
        widest = max(map(len, names), default=0) * 0.5 * SMALL * size / 72
        direct = 0 < len(names) <= NAMES and width - widest > 0.9 + 0.02 * size
        figure = Sheet(figsize=(width * columns, height * rows + 0.3), layout="constrained")
        figure.rc, figure.direct = rc | dict(place.rc if place else {}), direct
        axes = figure.subplots(rows, columns, squeeze=False)
        for unused in axes.flat[len(titles) :]:
            unused.set_visible(False)
        for panel, text in zip(axes.flat, titles, strict=False):
            panel.set_title(folded(text, round(103 / size * width)))
        if title:
            figure.suptitle(folded(title, round(90 / size * width * columns)))
        figure.grid = list(axes.flat[: len(titles)]), rows, 0.75 * height
        yield figure, list(axes.flat[: len(titles)])


def _label_rows_once(panels: Sequence[Any]) -> None:
    """Removes the label of a vertical axis that repeats the label of the panel to its left, if three are in a row."""
    columns = [panel.get_subplotspec().colspan.start for panel in panels]
    if max(columns) < 2:
        return
    labels = [panel.get_ylabel() for panel in panels]
    for n, column in enumerate(columns):
        if column and labels[n] == labels[n - 1]:
            panels[n].set_ylabel("")


def panel_height(panel: Any) -> float:
    """Returns the height of a panel in points; a figure that is not laid out yet will have it."""
    grid = getattr(panel.figure, "grid", None)
    return 72 * (grid[2] if grid else panel.get_window_extent().height / panel.figure.dpi)


def _given(ax: Any, titles: Sequence[str]) -> list[Any]:
    given = list(np.asarray(ax, object).ravel())
    if len(given) != len(titles):
        raise ValueError(
            f"the figure has {len(titles)} panels ({', '.join(filter(None, titles)) or 'without titles'}) and ax has "
            f"{len(given)}; pass as many axes, e.g. plt.subplots(1, {len(titles)})[1], or choose one environment with "
            "ds.sel(environment=[...])"
        )
    return given


def name_curves(figure: Any, axes: Sequence[Any], note_text: str, handles: Mapping[str, Any] | None = None) -> None:
    """Names the labelled curves of all panels: at their ends if there is room, else in one legend.

    Args:
      figure: The figure.
      axes: Its panels, with their scales set.
      note_text: A note that describes the figure.
      handles: Further entries, for a legend.
    """
    if not getattr(figure, "direct", False):
        legend(figure, axes[0], note_text, handles_of(axes) | dict(handles or {}))
        return
    if handles:
        legend(figure, axes[0], note_text, handles)
    else:
        note(figure, note_text)
    figure.fit()  # so that the height of a panel is known to its names
    for panel in axes:
        end_labels(panel, [end for line in panel.get_lines() for end in _end(line)])


def handles_of(axes: Sequence[Any]) -> dict[str, Any]:
    """Returns the labelled curves of all panels by name; the first of a name counts."""
    found: dict[str, Any] = {}
    for panel in axes:
        for line, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, line)
    return found


def _end(line: Any) -> list[tuple[float, float, str, str]]:
    x, y = (np.asarray(values, np.float64) for values in line.get_data())
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if line.get_label().startswith("_") or not there.size:
        return []
    return [(float(x[there[-1]]), float(y[there[-1]]), line.get_label(), line.get_color())]


def end_labels(panel: Any, ends: Sequence[tuple[float, float, str, str]], size: float = 0) -> None:
    """Names curves at their ends, to the right of the panel, without overlap.

    Args:
      panel: A panel whose scales and limits are set.
      ends: x and y of every curve's end, its name and colour.
      size: The size of the letters, in points.
    """
    if not ends:
        return
    size = size or letters()
    into_panel = panel.transAxes.inverted()
    heights = np.asarray([into_panel.transform(panel.transData.transform((x, y)))[1] for x, y, _, _ in ends])
    step = 1.25 * size / (72 * panel.get_window_extent().height / panel.figure.dpi)
    places = spread(np.clip(np.nan_to_num(heights), 0, 1), step)
    places += max(0.0, -places.min()) - max(0.0, places.max() - 1 + 0.3 * step)  # beside the panel, below its title
    for (x, y, text, colour), place in zip(ends, places, strict=True):
        arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
        options = {"color": colour, "fontsize": size, "va": "center", "annotation_clip": False, "arrowprops": arrow}
        panel.annotate(text, (x, y), (1.04, place), textcoords="axes fraction", **options)


def legend(figure: Any, panel: Any, note: str, handles: Mapping[str, Any] | None = None) -> None:
    """Adds one legend under all panels, with a note that describes the figure; on given panels, a legend inside.

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
    options: dict[str, Any] = {"fontsize": letters(), "title_fontsize": letters()}
    if not isinstance(figure, Sheet):
        panel.legend(drawn, names, title="\n".join(textwrap.wrap(explained(figure, note), 48)), **options)
        return
    widest = max(map(len, names), default=1) * 0.5 * letters() / 72 + 0.5
    columns = max(1, int(figure.get_figwidth() / widest))
    rows = -(-max(1, len(names)) // columns)
    options |= {"title": wrapped(figure, note), "ncols": -(-max(1, len(names)) // rows)}
    figure.legend(drawn, names, loc="outside lower center", **options)


def note(figure: Any, text: str) -> None:
    """Writes a note under a figure that has no common legend; figures of given panels have none."""
    if isinstance(figure, Sheet):
        figure.supxlabel(wrapped(figure, text), fontsize=letters())


def check_formats(formats: Sequence[str]) -> None:
    """Raises an error if there are no file endings or a figure cannot be written with one of them."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes().keys() - {"pgf"}  # TeX would run labels, which are no TeX
    wrong = [ending for ending in formats if ending.lower() not in known]
    if wrong or not formats:
        what = f"no figure can be written as {wrong[0]!r}" if wrong else "formats is empty"
        raise ValueError(f"{what}; possible file endings are {', '.join(sorted(known))}")


def save(figure: Any, path: str | pathlib.Path | None, also: Sequence[str] = ()) -> Any:
    """Writes the figure to a path, if there is one, and beside it once for every other ending; returns the figure."""
    if isinstance(figure, Sheet):
        for panel in figure.axes:
            tidy(panel)
        figure.fit()
    if path is not None:
        path = pathlib.Path(path)
        for one in (path, *(path.with_suffix(f".{ending}") for ending in also)):
            one = one if one.suffix else one.with_suffix(".png")
            with outputs.replacing(one) as temporary:
                figure.savefig(temporary, format=one.suffix[1:].lower())
    return figure

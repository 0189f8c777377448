"""The panel, a part of the page."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

Render = Callable[..., str]  # (name of a template, **what it shows) -> HTML


@dataclasses.dataclass(frozen=True)
class Panel:
    """A part of the page: a heading, text under it, and perhaps figures.

    Attributes:
      title: The heading; the table of contents links to it.
      html: A fragment of HTML, put on the page unchanged. Escape any text that you do not control.
      figure: A plotly figure, or a mapping with ``data`` and ``layout``, drawn under the fragment when it comes into
        view. Leave colours of paper, text and grid to the page, which has a light and a dark theme.
      views: Further figures by heading, side by side if there is room.

    Example:
      >>> Panel("Where the time went", html="<p>All of it in one cell.</p>").anchor
      'where-the-time-went'
    """

    title: str
    html: str = ""
    figure: Any = None
    views: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """Returns the name of the panel in links."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")

    def drawings(self) -> dict[str, dict[str, Any]]:
        """Returns every figure as plotly's JSON, by name: the panel's anchor, then the anchor with a number."""
        named = {self.anchor: self.figure} | {f"{self.anchor}-{n}": view for n, view in enumerate(self.views.values())}
        return {name: _plain(figure) for name, figure in named.items() if figure is not None}


def _plain(figure: Any) -> dict[str, Any]:
    plain = figure.to_plotly_json() if hasattr(figure, "to_plotly_json") else figure
    return {"data": list(plain["data"]), "layout": dict(plain.get("layout", {}))}

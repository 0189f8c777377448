"""A part of the page."""

import dataclasses
import re
from typing import Any


@dataclasses.dataclass(frozen=True)
class Panel:
    """A heading, what stands under it, and perhaps a figure.

    Attributes:
      title: The heading; the table of contents links to it.
      html: A fragment of HTML, put on the page as it is: escape what is not yours.
      figure: A plotly figure, or a mapping with ``data`` and ``layout``, drawn under the fragment when it comes into
        view. Leave colours of paper, text and grid to the page, which has a light and a dark form.

    Example:
      >>> Panel("Where the time went", html="<p>All of it in one cell.</p>").anchor
      'where-the-time-went'
    """

    title: str
    html: str = ""
    figure: Any = None

    @property
    def anchor(self) -> str:
        """The name of the panel in links."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")

    def drawing(self) -> dict[str, Any] | None:
        """The figure as plotly's JSON holds it."""
        if self.figure is None:
            return None
        plain = self.figure.to_plotly_json() if hasattr(self.figure, "to_plotly_json") else self.figure
        return {"data": list(plain["data"]), "layout": dict(plain.get("layout", {}))}

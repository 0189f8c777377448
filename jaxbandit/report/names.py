"""Names on the page: a shipped policy has the name that its paper gives it, and a point of a sweep its values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbandit.dataset.labels import shown as pretty
from jaxbandit.theory.assumptions import remark

LONGEST = 24  # letters of a name at the end of a line


def head(label: Any) -> str:
    """Returns the name that a label starts with: ``uniinf`` of ``uniinf[initial_scale=4]``."""
    return str(label).split("[")[0].split("#")[0]


def marked(attrs: Mapping[str, Any], label: Any, environments: Sequence[Any]) -> str:
    """Returns a policy's name, and in parentheses in which of some environments it is outside its assumptions."""
    words = remark(attrs, label, environments)
    return pretty(label) + (f" ({words})" if words else "")


def short(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns names for the ends of lines: the labels, or class and swept values alone if a label is long.

    Args:
      points: What ``points.points`` returned.

    Example:
      >>> short([{"label": "uniinf[initial_scale=4]", "values": {"initial_scale": 4}}])
      ['uniINF, S₁ = 4']
      >>> values = {"initial_scale": 4, "threshold_constant": 0.25}
      >>> short([{"label": "uniinf[initial_scale=4,threshold_constant=0.25]", "title": "uniINF", "values": values}])
      ['uniINF, 4, 0.25']
    """
    bare = {point["title"] for point in points if _is_bare(point)}
    names = [
        cut(", ".join([point["title"], *map(str, point["values"].values())]))
        if point.get("title") in bare and point.get("values")
        else cut(pretty(point["label"]))
        for point in points
    ]
    return names if len(set(names)) == len(names) else [cut(pretty(point["label"]), 40) for point in points]


def of_bare(points: Sequence[Mapping[str, Any]]) -> str:
    """Explains the short names that have values alone: which fields these are, class by class; empty if there are none.

    Example:
      >>> values = {"initial_scale": 4, "threshold_constant": 0.25}
      >>> of_bare([{"label": "uniinf[initial_scale=4,threshold_constant=0.25]", "title": "uniINF", "values": values}])
      'The values behind uniINF are initial scale and threshold constant.'
    """
    fields = {
        point["title"]: " and ".join(map(spaced, point["values"]))
        for point, name in zip(points, short(points), strict=True)
        if _is_bare(point) and "=" not in name
    }
    return " ".join(f"The values behind {title} are {names}." for title, names in fields.items())


def _is_bare(point: Mapping[str, Any]) -> bool:
    return len(pretty(point["label"])) > LONGEST and bool(point.get("values"))


def cut(text: str, most: int = LONGEST) -> str:
    """Shortens a text to at most so many letters, in its middle."""
    return text if len(text) <= most else f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"


def spaced(name: str) -> str:
    """Returns the name of a field in words: ``initial_scale`` becomes ``initial scale``."""
    return re.sub(r"_+", " ", name)

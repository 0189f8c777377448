"""Names on the page: a shipped policy has the name that its paper gives it, and a point of a sweep its values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbandit.dataset.labels import shown as pretty
from jaxbandit.theory.assumptions import remark


def head(label: Any) -> str:
    """Returns the name that a label starts with: ``uniinf`` of ``uniinf[initial_scale=4]``."""
    return str(label).split("[")[0].split("#")[0]


def marked(attrs: Mapping[str, Any], label: Any, environments: Sequence[Any]) -> str:
    """Returns a policy's name, and in parentheses in which of some environments it is outside its assumptions."""
    words = remark(attrs, label, environments)
    return pretty(label) + (f" ({words})" if words else "")


def short(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns names for the ends of lines: the labels, cut if they are long.

    Args:
      points: What ``points.points`` returned.

    Example:
      >>> short([{"label": "uniinf[initial_scale=4]"}])
      ['uniINF, S₁ = 4']
    """
    names = [cut(pretty(point["label"])) for point in points]
    return names if len(set(names)) == len(names) else [cut(pretty(point["label"]), 40) for point in points]


def cut(text: str, most: int = 24) -> str:
    """Shortens a text to at most so many letters, in its middle."""
    return text if len(text) <= most else f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"


def spaced(name: str) -> str:
    """Returns the name of a field in words: ``initial_scale`` becomes ``initial scale``."""
    return re.sub(r"_+", " ", name)

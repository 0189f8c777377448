"""The figures of a study: names and options, which are checked before any game is played."""

import dataclasses
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbandit.checks import check_shown
from jaxbandit.grid import suggest

# Name of a figure -> its own options. `jaxbandit.plots` draws them, `jaxbandit.analysis.comparison` writes the table.
FIGURES: dict[str, tuple[str, ...]] = {
    "regret": (),
    "growth": ("guides",),
    "gains": (),
    "heat": (),
    "exceedance": (),
    "decomposition": (),
    "balance": (),
    "both_worlds": (),
    "sweep": ("x", "relative"),
    "ablation": (),
    "atlas": ("x", "y"),
    "worst_gap": (),
    "headline": ("left", "middle", "right"),
    "table": (),
}
REQUIRED = {"sweep": ("x",), "atlas": ("x", "y"), "headline": ("left", "middle", "right")}
# They distinguish stochastic environments from adversarial ones, or need gaps.
NEED_ENVIRONMENTS = ("both_worlds", "headline", "table", "worst_gap")
_NAME = re.compile(r"(?!\.)[^/\\:\x00-\x1f]{1,200}")  # of a file: it stays in the directory that the user chose
COMMON = ("policies", "environments", "file", "title")


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of a study.

    Attributes:
      name: A name of ``FIGURES``.
      options: The figure's own options, e.g. the axes of an atlas.
      policies: Labels, or first words of labels, of the policies to show; all if empty.
      environments: Labels, or first words of labels, of the environments to show; all if empty.
      file: Name of the figure's file without the ending.
      title: Title of the figure; the study's title if empty.
    """

    name: str
    options: Mapping[str, Any]
    policies: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    file: str = ""
    title: str = ""


def listed(study: str) -> list[str | dict[str, Any]]:
    """Returns the entries of the figures of a study, which is given as text."""
    named = tomllib.loads(study).get("figures", [])
    read_figures(named)
    return named


def lacking(entries: Sequence[str | Mapping[str, Any]]) -> list[str | Mapping[str, Any]]:
    """Returns the figures that cannot be drawn without the environments."""
    return [entry for entry in entries if _read(entry).name in NEED_ENVIRONMENTS]


def read_figures(entries: Sequence[str | Mapping[str, Any]]) -> list[Figure]:
    """Reads and checks the figures of a study; an entry is a name, or a table with a ``name`` and options.

    Example:
      >>> [figure.file for figure in read_figures(["table", {"name": "sweep", "x": "moment_bound_factor"}])]
      ['table', 'sweep']
    """
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, str | Mapping) for entry in entries):
        raise ValueError(f"figures must be a list of names, or of tables with a name, got {entries!r:.100}")
    figures = [_read(entry) for entry in entries]
    files = [figure.file for figure in figures]
    for file in files:
        if files.count(file) > 1:
            raise ValueError(f'two figures would be written to {file!r}; give one of them a name: file = "..."')
    return figures


def _read(entry: str | Mapping[str, Any]) -> Figure:
    table = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = table.pop("name", None)
    if not isinstance(name, str) or name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}; {suggest(str(name), FIGURES)}")
    for key in table:
        if key not in (*FIGURES[name], *COMMON):
            raise ValueError(f"figure {name!r} has no option {key!r}; {suggest(key, [*FIGURES[name], *COMMON])}")
    for key in REQUIRED.get(name, ()):
        if key not in table:
            wanted = "an environment of the study" if name == "headline" else 'a swept value such as "tail_index"'
            raise ValueError(f"figure {name!r} needs {key}, the name of {wanted}")
    for key in ("file", "title"):
        if not isinstance(table.get(key, ""), str):
            raise ValueError(f"figure {name!r}: {key} must be text, got {table[key]!r}")
    check_shown(f"figure {name!r}: title", table.get("title", ""))
    chosen = {side: _names(table.pop(side, [])) for side in ("policies", "environments")}
    if table.get("file") and not _NAME.fullmatch(table["file"]):
        raise ValueError(
            f"figure {name!r}: file must be a name without directories, of at most 200 letters, got {table['file']!r}"
        )
    file, title = table.pop("file", "") or name, table.pop("title", "")
    return Figure(name, table, **chosen, file=file, title=title)


def _names(given: Any) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"a figure's policies and environments must be labels, got {given!r}")
    return tuple(names)

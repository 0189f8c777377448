"""Generated parts of the site: the sidebar, and the reference of registered classes and commands.

A line ``<!-- policies -->`` of a page is replaced by what ``MARKERS["policies"]()`` returns. The sidebar has the groups
of the landing page, and below the reference the pages that its table names.
"""

import inspect
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import typer.cli
from typer.testing import CliRunner

import jaxbandit as jb

ROOT = pathlib.Path(__file__).parents[2]
MARKER = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)
GROUP = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
FENCE_OR_ROW = re.compile(r"^(?:```.*?^```|\|.*\|)$", re.DOTALL | re.MULTILINE)
TOGETHER = re.compile(  # formulas and code, and the spaces within "1.0 ± 0.1", "(1 to 2)" and "lost 5 % [1, 9]"
    r"\$[^$]*\$|`[^`]*`|(?<=\d) (?=±|to [−\d]|%)|(?<=\d\\\*) (?=±)|(?<=±) (?=\d)|(?<=\d to) (?=[−\d])|(?<=lost) (?=\d)"
    r"|(?<=%) (?=\[\d)|(?<=\d,) (?=[−\d.,]+[\])])"
)
ENTRY = re.compile(r"^(?:- |\|.*\| )\[([^\]]+)\]\(([\w/]+)\.md\)", re.MULTILINE)  # first in a list, last in a table
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//|<link\b[^>]*\bhref="(?:https?:)?//"""
)


def expanded(page: str) -> str:
    """A page with its markers replaced."""
    return MARKER.sub(lambda found: MARKERS[found[1]]() if found[1] in MARKERS else found[0], page)


def unbroken(page: str) -> str:
    """Returns a page whose tables break no line within an interval, an error or a percentage."""

    def together(row: str) -> str:
        return TOGETHER.sub(lambda found: "\N{NO-BREAK SPACE}" if found[0] == " " else found[0], row)

    return FENCE_OR_ROW.sub(lambda found: found[0] if found[0].startswith("`") else together(found[0]), page)


def sidebar(page: str) -> str:
    """Returns a hidden table of contents for each group of links; a page without groups is one group."""
    groups = [(title, ENTRY.findall(body)) for title, body in GROUP.findall(page) or [("", page)]]
    return "\n".join(_contents(title, links) for title, links in groups if links)


def _contents(title: str, links: list[tuple[str, str]]) -> str:
    options = [":hidden:", *([f":caption: {title}"] if title else []), ""]
    return "\n".join(["```{toctree}", *options, *(f"{name} <{path}>" for name, path in links), "```\n"])


def policies() -> str:
    """The policies by setting: heavy tails first, both worlds before one."""
    settings = {cls.setting for cls in jb.POLICIES.values()}
    settings = sorted(settings, key=lambda s: ("heavy" not in s, "bounded" not in s, " and " not in s, s))
    return "\n\n".join(
        f"## {setting[0].upper()}{setting[1:]}\n\n"
        + members({key: cls for key, cls in jb.POLICIES.items() if cls.setting == setting})
        for setting in settings
    )


def environments(part: str) -> str:
    """The environments that one part of ``jaxbandit.environments`` defines."""
    inside = f"jaxbandit.environments.{part}"
    return members({key: cls for key, cls in jb.ENVIRONMENTS.items() if cls.__module__.startswith(inside)})


def members(classes: Mapping[str, type]) -> str:
    """A table of classes, then each of them."""
    listed = sorted(classes.items(), key=lambda item: item[1].__name__.lower())
    rows = [f"| {{py:class}}`~jaxbandit.{cls.__name__}` | `{key}` | {summary(cls)} |" for key, cls in listed]
    blocks = "\n".join(f".. autoclass:: jaxbandit.{cls.__name__}" for _, cls in listed)
    table = "\n".join(["| class | in study files | |", "|---|---|---|", *rows])
    return f"{table}\n\n```{{eval-rst}}\n{blocks}\n```"


def summary(obj: object) -> str:
    """The first line of a docstring, without its full stop."""
    return (inspect.getdoc(obj) or "").partition("\n")[0].rstrip(".").replace("|", r"\|").replace("``", "`")


def commands() -> str:
    """Every command of the command line with its arguments and options."""
    asked = ["jaxbandit.cli.entry", "utils", "docs", "--name", "jaxbandit"]
    text = CliRunner().invoke(typer.cli.app, asked, catch_exceptions=False).stdout
    return text[text.index("\n## ") :].replace("```console\n$ ", "```bash\n")


MARKERS = {
    "policies": policies,
    "laws": lambda: environments("laws"),
    "huber": lambda: environments("huber"),
    "schedules": lambda: environments("schedules"),
    "replay": lambda: environments("replay"),
    "commands": commands,
    "contributing": lambda: (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    "changelog": lambda: (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
}


def setup(app: Any) -> dict[str, Any]:
    """Tells Sphinx; a page that would fetch anything from another host stops the build."""

    def read(app: Any, name: str, source: list[str]) -> None:
        page = unbroken(expanded(source[0]))
        source[0] = f"{page}\n{sidebar(page)}" if name.endswith("index") else page

    def finished(app: Any, exception: Exception | None) -> None:
        from sphinx.errors import ExtensionError

        if exception is not None:
            return
        for page in app.outdir.rglob("*.html"):
            if found := FETCHED.search(page.read_text(encoding="utf-8")):
                raise ExtensionError(f"{page.name} fetches from another host: {found[0]}")

    app.connect("source-read", read)
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

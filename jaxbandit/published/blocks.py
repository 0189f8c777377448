"""Blocks of Markdown pages: a generated table between two marks, with a line that says how it was made.

A page places the table ``ties`` with two lines, ``<!-- reproduce ties -->`` and ``<!-- end of ties -->``. Between them
is the table, and a last line with the command, the size of the study, the version, the numerics, the platform and the
digest.
"""

import dataclasses
import pathlib
import platform
import re

from jaxbandit.store.cells import NUMERICS
from jaxbandit.version import __version__

_MARKS = re.compile(r"^<!-- reproduce (?P<name>\S+) -->\n(?P<inside>.*?)^<!-- end of (?P=name) -->$", re.M | re.S)
_STARTS = re.compile(r"^<!-- reproduce (\S+) -->$", re.M)
_LINE = re.compile(
    r"^`jaxbandit reproduce (?P<study>\S+)` \((?P<size>[^)]*)\): jaxbandit (?P<version>\S+), "
    r"numerics (?P<numerics>\d+), (?P<platform>[^,]+), digest (?P<digest>[0-9a-f]+)\.$",
    re.M,
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A table on a page.

    Attributes:
      page: The file.
      name: The table's name in the registry.
      table: The Markdown between the marks, without the last line.
      made: The parts of the last line: study, size, version, numerics, platform, digest; empty if there is none yet.
    """

    page: pathlib.Path
    name: str
    table: str
    made: dict[str, str]


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    """Returns the pages of a checkout that may hold tables: README.md and docs/*.md."""
    return [path for path in (root / "README.md", *sorted((root / "docs").glob("*.md"))) if path.is_file()]


def find(root: pathlib.Path) -> list[Block]:
    """Returns the blocks of all pages; raises ``ValueError`` if a mark lacks its end."""
    found = []
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        matches = list(_MARKS.finditer(text))
        opened, whole = _STARTS.findall(text), [match["name"] for match in matches]
        if opened != whole:
            broken = next((name for name in opened if name not in whole), opened[-1])
            raise ValueError(f"{page}: the block {broken} has no line <!-- end of {broken} -->; add it after the table")
        found += [_read(page, match["name"], match["inside"]) for match in matches]
    return found


def _read(page: pathlib.Path, name: str, inside: str) -> Block:
    line = _LINE.search(inside)
    return Block(page, name, _LINE.sub("", inside).strip(), line.groupdict() if line else {})


def made_line(study: str, size: str, digest: str) -> str:
    """Returns the last line of a block that is made here and now."""
    here = f"{platform.system()} {platform.machine()}"
    version = f"jaxbandit {__version__}, numerics {NUMERICS}"
    return f"`jaxbandit reproduce {study}` ({size}): {version}, {here}, digest {digest}."


def write(block: Block, table: str, line: str) -> None:
    """Writes a table and its last line between the marks of a block."""
    text = block.page.read_text(encoding="utf-8")

    def changed(match: re.Match) -> str:
        if match["name"] != block.name:
            return match[0]
        return f"<!-- reproduce {block.name} -->\n{table.strip()}\n\n{line}\n<!-- end of {block.name} -->"

    block.page.write_text(_MARKS.sub(changed, text), encoding="utf-8")

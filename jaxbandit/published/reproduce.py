"""Plays the studies behind published tables, and rewrites or compares the tables digit for digit."""

import dataclasses
import difflib
import pathlib
import shutil
import threading
from collections.abc import Iterator
from typing import Any

from jaxbandit.engine import Engine
from jaxbandit.grid import suggest
from jaxbandit.published import blocks
from jaxbandit.published.blocks import Block
from jaxbandit.published.digests import digest, text_digest
from jaxbandit.published.proofs import COMPUTED
from jaxbandit.published.registry import TABLES
from jaxbandit.published.results import Results
from jaxbandit.runs import run_study
from jaxbandit.studies.study import Study

SMALL = 1.5e9  # most rounds in all of a small study, which plays in some ten seconds


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A table that was compared with its page, or written to it.

    Attributes:
      block: The block on the page.
      difference: Lines of a diff from the page to the table made anew; empty if they are equal.
    """

    block: Block
    difference: list[str]


def checkout(given: pathlib.Path | None = None) -> pathlib.Path:
    """Returns the checkout whose pages and studies are meant: the given one, the current directory, or the package's.

    An installed package has neither pages nor studies, so the command needs a checkout.
    """
    tried = [given] if given else [pathlib.Path(), pathlib.Path(__file__).parents[2]]
    for root in tried:
        if (root / "docs").is_dir() and (root / "experiments").is_dir():
            return root
    raise ValueError(
        f"{tried[0].resolve()} is no checkout of jaxbandit: it lacks docs/ and experiments/. The published tables are "
        "not part of the installed package; clone the repository and run the command there, or name it with --root DIR"
    )


def studies(name: str | None = None) -> list[str]:
    """Returns the studies behind published tables; only that of ``name``, a study or a table, if it is given."""
    every = list(dict.fromkeys(table.study for table in TABLES.values()))
    if name is None:
        return every
    if name in TABLES:
        return [TABLES[name].study]
    if name not in every:
        raise ValueError(f"no published table or study is called {name!r}; {suggest(name, sorted({*every, *TABLES}))}")
    return [name]


def study_file(root: pathlib.Path, study: str) -> pathlib.Path:
    """Returns the file of a study."""
    return root / "experiments" / f"{study}.toml"


def is_small(root: pathlib.Path, name: str, data: pathlib.Path | None = None) -> bool:
    """Returns whether a study, or a computation, takes a minute or two."""
    if name in COMPUTED:
        return COMPUTED[name].short is None
    study = Study.load(study_file(root, name), data)
    pairs = sum(len(grids[0].points) for grids in study.resolved.policy_grids) * len(study.resolved.points)
    return pairs * study.num_seeds * study.rounds()[-1] <= SMALL


def current_digest(root: pathlib.Path, table: str, data: pathlib.Path | None = None) -> str:
    """Returns the digest that a table would carry if it were made now.

    That of a study takes seconds, because only its first games are played.
    """
    name = TABLES[table].study
    if name in COMPUTED:
        return _short(root, name) or text_digest(TABLES[table].make(COMPUTED[name].compute(root, None)))
    return digest(Study.load(study_file(root, name), data))


def reproduce(
    root: pathlib.Path,
    name: str,
    directory: pathlib.Path,
    *,
    check: bool,
    data: pathlib.Path | None = None,
    notice: Any = None,
    stop: threading.Event | None = None,
) -> Iterator[Outcome]:
    """Plays what a study's directory lacks, makes its tables, and writes them to their pages or compares them.

    Figures of the study that a page shows from docs/img are replaced when its tables are written.

    Args:
      root: The checkout.
      name: The study, or a computation.
      directory: Its results directory.
      check: Whether the pages are only compared.
      data: Directory of the study's tables, if it needs any.
      notice: As in ``jb.run``.
      stop: As in ``jb.run``.
    """
    found = [block for block in blocks.find(root) if block.name in TABLES and TABLES[block.name].study == name]
    if not found:
        raise ValueError(
            f"no page has a table of {name}; put <!-- reproduce {name} --> and <!-- end of {name} --> on one"
        )
    if name in COMPUTED:
        study, results, ended = None, COMPUTED[name].compute(root, directory), COMPUTED[name].size
    else:
        study = Study.load(study_file(root, name), data)
        results = Results(study, run_study.run(study, directory, engine=Engine(), notice=notice, stop=stop))
        ended = size(study)
    made = {block.name: TABLES[block.name].make(results).strip() for block in found}
    short = digest(study) if study else _short(root, name)
    for block in found:
        now = short or text_digest(made[block.name])
        before = [*block.table.splitlines(), f"digest {block.made.get('digest', 'missing')}"]
        after = [*made[block.name].splitlines(), f"digest {now}"]
        yield Outcome(block, list(difflib.unified_diff(before, after, "page", "now", lineterm="", n=0)))
        if not check:
            blocks.write(block, made[block.name], blocks.made_line(name, ended, now))
    if study and not check:
        _copy_figures(root, directory, study, results)


def _short(root: pathlib.Path, name: str) -> str:
    """Returns the digest of a computation's short form; empty if it is short itself."""
    short = COMPUTED[name].short
    return short(root) if short else ""


def size(study: Study) -> str:
    """Returns the size of a study in words."""
    return f"{study.num_seeds:,} seeds, {study.rounds()[-1]:,} rounds"


def _copy_figures(root: pathlib.Path, directory: pathlib.Path, study: Study, results: Results) -> None:
    """Draws the study's figures and copies those that a page shows to docs/img."""
    from jaxbandit import plots

    text = "\n".join(page.read_text(encoding="utf-8") for page in blocks.pages(root))
    shown = [figure for figure in study.figure_list() if f"img/{figure.file}.png" in text]
    if shown:
        drawn = plots.draw(
            results.ds, directory / "figures", formats=("png",), environments=results.environments, strict=False
        )
        for path in drawn:
            if f"img/{path.name}" in text:
                shutil.copy(path, root / "docs" / "img" / path.name)

"""Panels of the other results in a directory: sensitivity, tuning and worst cases."""

import dataclasses
import pathlib
from typing import Any

import xarray as xr

from jaxbandit import sensitivity
from jaxbandit.report import searches
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.sensitivity import panel as sensitivity_panel
from jaxbandit.report.sensitivity import remarks
from jaxbandit.search import study as search_study
from jaxbandit.sensitivity.run import FOLDER

COMMON = (
    "title",
    "jaxbandit",
    "commit",
    "dtype",
    "seed",
    "device",
    "way",
)  # attributes that all answers of a study share


@dataclasses.dataclass(frozen=True)
class Answers:
    """Panels of sensitivity, tuning and worst cases, with the warnings that belong to them.

    Attributes:
      panels: One for each kind of answer.
      troubles: Warnings to read before relying on them.
      commands: The commands of the command line that made them.
      attrs: The attributes they have in common: title, version, seed.
      study: The study file, if it was kept.
      quick: Whether one of them was cut down by ``--quick``.
    """

    panels: list[Panel]
    troubles: list[str]
    commands: list[str]
    attrs: dict[str, Any]
    study: str
    quick: bool


def answers(directory: pathlib.Path, render: Render) -> Answers | None:
    """Makes the panels of a directory; returns None if it holds no answers."""
    panels, troubles, commands, kept = [], [], [], []
    if (directory / FOLDER).is_dir():
        results = _sensitivity(directory)
        if results:
            panels.append(sensitivity_panel(results, render))
            troubles += [sentence for ds in results.values() for sentence in remarks(ds)]
            commands.append("sensitivity")
            kept += list(results.values())
    found = search_study.load(directory)
    for command, make in (("tune", searches.tuning), ("worst", searches.worst)):
        mine = [one for one in found if (command == "tune") == ("tuned" in one.ds)]
        if mine:
            panels.append(make(mine, render))
            troubles += searches.failures(mine, command)
            commands.append(command)
            kept += [one.ds for one in mine]
    if not kept:
        return None
    attrs = {name: value for ds in reversed(kept) for name, value in ds.attrs.items()}
    # Verified with its dataset, unlike the file sensitivity/study.toml, which may be a link to anything.
    study = next((text for ds in kept if (text := ds.attrs.get("study"))), "")
    quick = any(ds.attrs.get("quick") for ds in kept)
    if quick:
        troubles.insert(0, f"{' and '.join(commands)}: a quick run, cut down by --quick, so nothing is claimed")
    common = {name: attrs[name] for name in COMMON if name in attrs}
    return Answers(panels, troubles, commands, common, study, quick)


def _sensitivity(directory: pathlib.Path) -> dict[str, xr.Dataset]:
    try:
        return sensitivity.load(directory)
    except ValueError:  # no result in the folder is finished yet
        return {}

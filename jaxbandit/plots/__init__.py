"""Figures for print: matplotlib, one style, colours that colour-blind readers tell apart.

Every function takes a dataset and a path whose ending chooses the format (``.pdf``, ``.png``, ``.svg``), and states on
the figure how its bands were made. ``draw`` makes those that a study names, or all that a dataset allows.
"""

import functools
import pathlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from jaxbandit import comparison
from jaxbandit.figures import Figure, read_figures
from jaxbandit.plots import common, heat
from jaxbandit.plots.ablation import ablation as ablation
from jaxbandit.plots.atlas import atlas as atlas
from jaxbandit.plots.atlas import winners as winners
from jaxbandit.plots.both_worlds import both_worlds as both_worlds
from jaxbandit.plots.common import RESAMPLES as RESAMPLES
from jaxbandit.plots.common import labelled as labelled
from jaxbandit.plots.common import worlds_of as worlds_of
from jaxbandit.plots.curves import growth_curves as growth_curves
from jaxbandit.plots.curves import lower_bound as lower_bound
from jaxbandit.plots.curves import regret_curves as regret_curves
from jaxbandit.plots.decomposition import PARTS as PARTS
from jaxbandit.plots.decomposition import balance as balance
from jaxbandit.plots.decomposition import decomposition as decomposition
from jaxbandit.plots.heat import heat_map as heat_map
from jaxbandit.plots.sweep import sweep as sweep


def draw(
    ds: xr.Dataset,
    directory: str | pathlib.Path,
    *,
    formats: Sequence[str] = ("pdf", "png"),
    worlds: Mapping[str, Any] | None = None,
    method: str = "normal",
    simultaneous: bool = False,
    figures: Sequence[str | Mapping[str, Any]] | None = None,
) -> list[pathlib.Path]:
    """The figures that a study names, or else every one the dataset allows.

    Args:
      ds: What ``simulate`` returned or ``run`` left.
      directory: Where to write; by default ``regret``, ``growth``, ``heat-<policy>-<world>`` and ``decomposition``.
      formats: File endings.
      worlds: The worlds by label, for the lower bounds; without them none are drawn.
      method: Of the bands: ``"normal"`` or ``"bootstrap"``.
      simultaneous: Whether a band covers its whole curve at once.
      figures: As in a study file; default those of the study that the dataset carries.
    """
    if not formats:
        raise ValueError("formats is empty; give at least one file ending such as 'pdf'")
    directory, title = pathlib.Path(directory), str(ds.attrs.get("title", ""))
    named = figures if figures is not None else _of_study(ds)
    wanted = read_figures(named) or _allowed(ds)
    directory.mkdir(parents=True, exist_ok=True)
    first, *also = formats
    bands = {"method": method, "simultaneous": simultaneous}
    made = []
    for figure in wanted:
        part = common.chosen(common.labelled(ds), figure.policies, figure.environments) if named else ds
        if figure.name == "table":
            made += comparison.write(part, directory / figure.file, worlds=worlds or {}, title=figure.title or title)
            continue
        for draw_one, name in _artists(figure, part, worlds or {}, bands):
            path = directory / f"{name}.{first}"
            draw_one(path=path, title=figure.title or title, also=also)
            made += [path.with_suffix(f".{ending}") for ending in formats]
    return made


def _of_study(ds: xr.Dataset) -> list[Any]:
    return tomllib.loads(ds.attrs["study"]).get("figures", []) if "study" in ds.attrs else []


def _allowed(ds: xr.Dataset) -> list[Figure]:
    return read_figures(["regret", "growth", "heat", *(["decomposition"] if all(p in ds for p in PARTS) else [])])


def _artists(
    figure: Figure, ds: xr.Dataset, worlds: Mapping[str, Any], bands: Mapping[str, Any]
) -> list[tuple[Callable[..., Any], str]]:
    """Who draws a figure, and its file's name; a heat map for every pair of classes that is swept."""
    about: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "regret": (regret_curves, dict(bands)),
        "growth": (growth_curves, {"worlds": worlds}),
        "decomposition": (decomposition, {"worlds": worlds}),
        "balance": (balance, {"worlds": worlds}),
        "both_worlds": (both_worlds, {"worlds": worlds, "method": bands["method"]}),
        "sweep": (sweep, {"worlds": worlds}),
        "ablation": (ablation, {"worlds": worlds}),
        "atlas": (atlas, {"worlds": worlds}),
    }
    if figure.name == "heat":
        return [(functools.partial(heat_map, grid), f"{figure.file}{name}") for name, grid in heat.sweeps(ds)]
    function, options = about[figure.name]
    return [(functools.partial(function, ds, **options, **figure.options), figure.file)]

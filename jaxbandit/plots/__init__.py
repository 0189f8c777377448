"""Figures for print: matplotlib, one style, colours that colour-blind readers tell apart.

Every function takes a dataset and returns the figure, which a notebook shows. If it gets a path, it also writes the
figure in the format of the path's ending (``.pdf``, ``.png``, ``.svg``). ``ax`` draws on axes that exist, and ``venue``
sizes the figure for a paper or for slides. A figure states how its bands were made. ``draw`` makes the figures that a
study names, or all that a dataset allows.
"""

import functools
import pathlib
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from jaxbandit.analysis import comparison
from jaxbandit.plots import common, heat, style
from jaxbandit.plots.ablation import ablation
from jaxbandit.plots.atlas import atlas, winners
from jaxbandit.plots.both_worlds import both_worlds
from jaxbandit.plots.common import RESAMPLES, environments_of, labelled
from jaxbandit.plots.curves import growth_curves, regret_curves, slope_guide
from jaxbandit.plots.decomposition import PARTS, balance, decomposition
from jaxbandit.plots.exceedance import exceedance
from jaxbandit.plots.gains import gains
from jaxbandit.plots.game import game, trace_game
from jaxbandit.plots.headline import headline
from jaxbandit.plots.heat import heat_map
from jaxbandit.plots.sweep import sweep
from jaxbandit.plots.watch import watch
from jaxbandit.plots.worst_gap import worst_gap, worst_gaps
from jaxbandit.studies.figures import Figure, read_figures

__all__ = [
    "MANY_SEEDS",
    "PARTS",
    "RESAMPLES",
    "ablation",
    "atlas",
    "balance",
    "bands",
    "both_worlds",
    "common",
    "decomposition",
    "draw",
    "environments_of",
    "exceedance",
    "gains",
    "game",
    "growth_curves",
    "headline",
    "heat_map",
    "labelled",
    "regret_curves",
    "slope_guide",
    "style",
    "sweep",
    "tails",
    "trace_game",
    "watch",
    "winners",
    "worst_gap",
    "worst_gaps",
]

MANY_SEEDS = 64  # with this many seeds or more, tails are drawn by default


def draw(
    ds: xr.Dataset,
    directory: str | pathlib.Path,
    *,
    formats: Sequence[str] = ("pdf", "png"),
    environments: Mapping[str, Any] | None = None,
    method: str = "normal",
    simultaneous: bool = False,
    figures: Sequence[str | Mapping[str, Any]] | None = None,
    strict: bool = True,
    venue: str = "",
    titled: bool | None = None,
) -> list[pathlib.Path]:
    """Draws the figures that a study names, or every figure that the dataset allows if the study names none.

    Args:
      ds: The dataset that ``simulate`` returned or ``run`` wrote.
      directory: The directory to write to. By default the files are ``regret``, ``growth``,
        ``heat-<policy>-<environment>``, ``exceedance`` (from 64 seeds on) and ``decomposition``.
      formats: File endings.
      environments: The environments by label. Multiples of lower bounds are shown only if they are given.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"``.
      simultaneous: Whether a band covers its whole curve at once.
      figures: The figures, written as in a study file; default those of the study that the dataset carries.
      strict: Whether a figure that cannot be drawn raises an error. If not, it causes a warning, and the other figures
        are drawn.
      venue: The place that the figures are made for: ``"neurips"``, ``"icml"``, ``"jmlr"`` or ``"slides"``. It sets
        width, letters and lines.
      titled: Whether a figure has a title inside; default yes, but not for a paper, which has captions.
    """
    style.check_formats(formats)
    place = style.venue_named(venue)
    if titled is None:
        titled = place is None or not place.paper
    directory, title = pathlib.Path(directory), str(ds.attrs.get("title", ""))
    named = figures if figures is not None else _of_study(ds)
    wanted = read_figures(named) or _allowed(ds)
    directory.mkdir(parents=True, exist_ok=True)
    bands = {"method": method, "simultaneous": simultaneous}
    made = []
    for figure in wanted:
        try:
            part = common.chosen(common.labelled(ds), figure.policies, figure.environments) if named else ds
            if figure.name == "table":
                heading = figure.title or title
                made += comparison.write(part, directory / figure.file, environments=environments or {}, title=heading)
                continue
            for draw_one, name in _artists(figure, part, environments or {}, bands):
                heading = (figure.title or title) if titled else ""
                made += _drawn(draw_one, directory / name, heading, venue, formats)
        except Exception as error:
            if strict:
                raise
            warnings.warn(f"figure {figure.file!r} is not drawn: {error}", stacklevel=2)
    return made


def _drawn(
    draw_one: Callable[..., Any], path: pathlib.Path, title: str, venue: str, formats: Sequence[str]
) -> list[pathlib.Path]:
    first, *also = formats
    draw_one(path=path.with_name(f"{path.name}.{first}"), title=title, venue=venue, also=also)
    return [path.with_name(f"{path.name}.{ending}") for ending in formats]


def _of_study(ds: xr.Dataset) -> list[Any]:
    return tomllib.loads(ds.attrs["study"]).get("figures", []) if "study" in ds.attrs else []


def _allowed(ds: xr.Dataset) -> list[Figure]:
    tails = ["exceedance"] if "regret" in ds and ds.sizes["seed"] >= MANY_SEEDS else []
    terms = ["decomposition"] if all(part in ds for part in PARTS) else []
    return read_figures(["regret", "growth", "heat", *tails, *terms])


def _artists(
    figure: Figure, ds: xr.Dataset, environments: Mapping[str, Any], bands: Mapping[str, Any]
) -> list[tuple[Callable[..., Any], str]]:
    """Returns the functions that draw a figure, with file names; there is a heat map for each swept pair of classes."""
    about: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "regret": (regret_curves, {"environments": environments, **bands}),
        "growth": (growth_curves, {"environments": environments}),
        "gains": (gains, {"environments": environments}),
        "exceedance": (exceedance, {"environments": environments}),
        "decomposition": (decomposition, {"environments": environments}),
        "balance": (balance, {"environments": environments}),
        "both_worlds": (both_worlds, {"environments": environments, **bands}),
        "sweep": (sweep, {"environments": environments, **bands}),
        "ablation": (ablation, {"environments": environments, **bands}),
        "atlas": (atlas, {"environments": environments}),
        "worst_gap": (worst_gap, {"environments": environments}),
    }
    if figure.name == "headline":
        sides = [figure.options[side] for side in ("left", "middle", "right")]
        parts = [common.chosen(ds, (), [side] if isinstance(side, str) else side) for side in sides]
        return [(functools.partial(headline, *parts, environments=environments, **bands), figure.file)]
    if figure.name == "heat":
        return [(functools.partial(heat_map, grid), f"{figure.file}{name}") for name, grid in heat.sweeps(ds)]
    function, options = about[figure.name]
    return [(functools.partial(function, ds, **options, **figure.options), figure.file)]

"""The figure of rare games: the probability that final regret exceeds x."""

import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.analysis import statistics
from jaxbandit.dataset.results import played
from jaxbandit.plots import style
from jaxbandit.plots.bands import BAND
from jaxbandit.plots.common import dagger_note, environment_names, labelled, named, seeds_note

# Steps of a curve for the worse half of the games, spaced logarithmically, and for the better half. Up to 512 games,
# every game is a step.
POINTS = 256, 256


def exceedance(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    level: float = 0.95,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws P(R_T > x) over x on doubly logarithmic axes, one panel per environment, with exact binomial bands.

    A curve ends at its worst game. If a policy stops early, its curve shows the regret at its last round.

    Args:
      ds: A dataset with every seed kept.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label, for their names.
      level: The coverage of the band at each single x.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    if "regret" not in ds:
        raise ValueError('P(R_T > x) needs every game, which keep = "summary" drops; run the study with keep = "seeds"')
    ds = labelled(ds)
    titles = environment_names(ds.environment.values, environments)
    looks, last = style.looks(ds.policy.values), int(ds["round"][-1])
    note = f"{seeds_note(ds)} cannot show a distribution"
    with style.panels(titles, title, ax=ax, venue=venue) as (
        figure,
        panels,
    ):
        for panel, environment in zip(panels, ds.environment.values, strict=True):
            least, fewest = [], 1.0
            for policy, look in zip(ds.policy.values, looks, strict=True):
                games = played(ds.regret.sel(policy=policy, environment=environment).load())
                if not games.size or games.sizes["seed"] < 2:
                    continue
                final = np.sort(games.isel(round=-1).values)
                chance = chances(final.size, level)
                x = final[-chance.games.values]
                stop = int(games["round"][-1])
                text = named(ds, policy) + ("" if stop == last else f" (to round {stop:,})")
                # P(R >= x) is constant between two games and drops behind each of them.
                panel.step(x[::-1], chance.probability[::-1], where="pre", label=text, **look)
                area = {"color": look["color"], "alpha": 0.22, "linewidth": 0, "gid": BAND}
                panel.fill_between(x[::-1], chance.low[::-1], chance.high[::-1], step="pre", **area)
                least, fewest = [*least, final[0]], min(fewest, 1 / final.size)
                note = f"bands: {chance.attrs['band']}, each x by itself, {seeds_note(ds)}"
            panel.set(xlabel=f"x: regret after {last:,} rounds", ylabel="P(regret > x)")
            panel.set(yscale="log", ylim=(fewest / 3, 1.5))
            _scale_x(panel, min(least, default=0.0))
        style.legend(figure, panels[0], note + dagger_note(ds), style.handles_of(panels))
        return style.save(figure, path, also)


@functools.lru_cache(maxsize=8)
def chances(count: int, level: float) -> xr.Dataset:
    """Returns ``statistics.exceedance`` if 1, 2, ... of ``count`` games exceed x, along ``games``.

    The result depends on these counts alone, not on the regrets, so it is computed once, from ranks.
    """
    worse, better = np.geomspace(1, count / 2, POINTS[0]), np.linspace(count / 2, count, POINTS[1])
    every = np.arange(1, count + 1)
    games = every if count <= sum(POINTS) else np.unique(np.rint([*worse, *better]).astype(int))
    ranks = xr.DataArray(np.arange(count), dims="seed")
    found = statistics.exceedance(ranks, (count - 1 - games).tolist(), level=level)
    return found.swap_dims(threshold="games").assign_coords(games=("games", games))


def _scale_x(panel: Any, least: float) -> None:
    """Scales the x axis: logarithmic, but linear if games beat every fixed arm or there is no regret."""
    if least > -1 and np.isfinite(panel.dataLim.minposx):
        panel.set_xscale("log")

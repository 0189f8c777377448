"""The figure of gains: how much mean regret each doubling of T adds."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

from jaxbandit.dataset.results import played
from jaxbandit.plots import style
from jaxbandit.plots.bands import BAND
from jaxbandit.plots.common import dagger_note, environment_names, labelled, named, seeds_note

MOST = 12  # doublings that are shown


def gains(
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
    """Draws the gain of mean regret in each doubling of T; growth like log T is a horizontal line.

    Args:
      ds: A dataset with every seed kept.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label, for their names.
      level: The coverage of the band at each single doubling.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    if "regret" not in ds or ds.sizes["seed"] < 2:
        raise ValueError('gains per doubling need two or more seeds; run the study with keep = "seeds"')
    ds = labelled(ds)
    titles = environment_names(ds.environment.values, environments)
    looks, names = style.looks(ds.policy.values), [named(ds, policy) for policy in ds.policy.values]
    with style.panels(titles, title, names=names, ax=ax, venue=venue) as (figure, panels):
        each = getattr(figure, "direct", False)  # a name at a curve speaks of its panel, one in the legend of all
        for panel, environment in zip(panels, ds.environment.values, strict=True):
            for policy, look in zip(ds.policy.values, looks, strict=True):
                ends, gained = per_doubling(ds.regret.sel(policy=policy, environment=environment).load())
                if not ends.size:
                    continue
                mean = gained.mean(0)
                half = stats.t.ppf((1 + level) / 2, len(gained) - 1) * gained.std(0, ddof=1) / np.sqrt(len(gained))
                panel.plot(ends, mean, label=named(ds, policy, [environment] if each else None), **look)
                area = {"color": look["color"], "alpha": 0.22, "linewidth": 0, "gid": BAND}
                panel.fill_between(ends, mean - half, mean + half, **area)
            panel.set(xscale="log", xlabel="T", ylabel="mean regret of rounds T/2 to T")
            if panel.dataLim.ymin > 0:
                panel.set_yscale("log")
        note = f"bands: {100 * level:g} % intervals by Student's t, each T by itself, {seeds_note(ds)}"
        style.name_curves(figure, panels, note + dagger_note(ds, each))
        return style.save(figure, path, also)


def per_doubling(games: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ends T of doublings, [D], and what each game lost from T/2 to T, [seed, D].

    Regret between two recorded rounds is interpolated linearly in log t.
    """
    games = played(games)
    rounds = games["round"].values.astype(float)
    if rounds.size < 2:
        return np.zeros(0), np.zeros((0, 0))
    count = min(MOST, int(np.log2(rounds[-1] / rounds[0])))
    ends = rounds[-1] / 2.0 ** np.arange(count, -1, -1)
    regret = games.transpose("seed", "round").values
    at = np.array([np.interp(np.log(ends), np.log(rounds), game) for game in regret])
    return ends[1:], np.diff(at, axis=1)

"""The atlas: a map of the best policy over two properties of the environment, with its significance."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.analysis.ranks import holm, ranking
from jaxbandit.plots import style
from jaxbandit.plots.common import axis_name, axis_values, dagger, labelled, pretty

NARROW = 4  # columns of cells that a narrow figure of a venue has room for


def winners(
    ds: xr.Dataset, *, x: str, y: str, environments: Mapping[str, Any] | None = None, level: float = 0.95
) -> xr.Dataset:
    """Finds the winner of every environment at the last round and lays the winners out over two properties.

    Every pair of policies is tested seed by seed in every environment, and the p-values of all pairs in all
    environments are corrected together by Holm's method: with the stated confidence no win on the whole map is due
    to chance. Policies that stop before the last round do not compete. With a single seed no win is sure.

    Args:
      ds: A dataset with every seed kept.
      x: A property of the environments: a coordinate, a field, ``gap`` or ``unit``.
      y: Another property.
      environments: The environments by label, for properties that are no coordinates.
      level: Confidence over the whole map.

    Returns:
      A dataset. It has by ``y`` and ``x`` the ``winner`` (its place in ``policy``, -1 if there is no environment),
      ``margin`` (the share of the runner-up's regret that it saves), ``sure`` (whether it beats every other policy
      significantly), ``outside`` (whether it is outside its assumptions there), and the ``mean`` by ``policy``.
    """
    ds = labelled(ds)
    there = ds.regret.isel(round=-1).notnull().all(["seed", "environment"])
    ds = ds.isel(policy=np.flatnonzero(there.values))
    means = ds.regret.isel(round=-1).mean("seed").transpose("environment", "policy").values
    corrected, test = np.ones((*means.shape, means.shape[1])), "no win is tested, as there is only 1 seed"
    if ds.sizes["seed"] > 1:
        p = ranking(ds, level=level).p.transpose("environment", "policy", "rival").values
        pairs = np.triu_indices(ds.sizes["policy"], 1)
        corrected[:, *pairs] = holm(p[:, *pairs].ravel()).reshape(len(p), -1)
        corrected = np.minimum(corrected, corrected.swapaxes(1, 2))  # the other triangle is 1
        correction = "Holm over all pairs in all environments"
        test = f"paired over {ds.sizes['seed']} seeds (Hall's t), {correction}, {100 * level:g} %"
    places = [axis_values(ds, name, environments or {}) for name in (y, x)]
    axes = [np.unique(values[~_missing(values)]) for values in places]
    shape = tuple(map(len, axes))
    winner, sure, outside = np.full(shape, -1), np.zeros(shape, bool), np.zeros(shape, bool)
    margin, mean = np.full(shape, np.nan), np.full((*shape, ds.sizes["policy"]), np.nan)
    for e, (at_y, at_x) in enumerate(zip(*places, strict=True)):
        row, column = np.flatnonzero(axes[0] == at_y), np.flatnonzero(axes[1] == at_x)
        if not (row.size and column.size):
            continue
        cell = int(row[0]), int(column[0])
        if winner[cell] >= 0:
            raise ValueError(f"two environments share {y} = {at_y} and {x} = {at_x}; choose with environments = [...]")
        best, second = np.argsort(means[e], kind="stable")[:2]
        winner[cell], mean[cell] = best, means[e]
        outside[cell] = bool(dagger(ds.isel(policy=best, environment=e)))
        margin[cell] = 1 - means[e][best] / means[e][second] if means[e][second] > 0 else np.nan
        sure[cell] = bool((np.delete(corrected[e, best], best) < 1 - level).all())
    return xr.Dataset(
        {
            "winner": (("y", "x"), winner),
            "margin": (("y", "x"), margin),
            "sure": (("y", "x"), sure),
            "outside": (("y", "x"), outside),
            "mean": (("y", "x", "policy"), mean),
        },
        coords={"y": axes[0], "x": axes[1], "policy": ds.policy.values},
        attrs={"test": test},
    )


def atlas(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    x: str,
    y: str,
    environments: Mapping[str, Any] | None = None,
    level: float = 0.95,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws a map of winners: colour shows the winner, the number its margin, hatching a win that may be chance.

    Args:
      ds: A dataset with every seed kept.
      path: The file to write; its ending chooses the format. Without it, nothing is written.
      title: Heads the figure.
      x: The property of the environments on the horizontal axis.
      y: The property on the vertical axis.
      environments: The environments by label, for properties that are no coordinates.
      level: Confidence over the whole map.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    from matplotlib.patches import Patch, Rectangle

    found = winners(ds, x=x, y=y, environments=environments, level=level)
    colours = [area(look) for look in style.looks(found.policy.values)]
    shown = [n for n in range(found.sizes["policy"]) if (found.winner == n).any()]
    width = max(4.6, 0.95 * found.sizes["x"] + 1.6)
    height = max(3.1, 0.62 * found.sizes["y"])  # two lines a row
    wide = found.sizes["x"] > NARROW
    with style.panels([""], title, width=width, height=height, wide=wide, ax=ax, venue=venue) as (figure, (panel,)):
        for (row, column), n in np.ndenumerate(found.winner.values):
            if n < 0:
                continue
            margin, sure = float(found.margin[row, column]), bool(found.sure[row, column])
            look = {"facecolor": colours[n], "edgecolor": "white", "linewidth": 0, "hatch": None if sure else "////"}
            panel.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))
            text = pretty(found.policy.values[n]) + ("†" if found.outside[row, column] else "")
            text += f"\n−{100 * margin:.0f} %" if np.isfinite(margin) else ""
            box = None if sure else {"facecolor": colours[n], "edgecolor": "none", "pad": 1.0}
            panel.text(column, row, text, ha="center", va="center", fontsize=style.letters(), bbox=box)
        panel.set(xlim=(-0.5, found.sizes["x"] - 0.5), ylim=(-0.5, found.sizes["y"] - 0.5))
        panel.set(xlabel=axis_name(x), ylabel=axis_name(y))
        panel.set_xticks(range(found.sizes["x"]), [style.tick(value) for value in found["x"].values])
        panel.set_yticks(range(found.sizes["y"]), [style.tick(value) for value in found["y"].values])
        panel.grid(False)
        handles = {pretty(found.policy.values[n]): Patch(color=colours[n]) for n in shown}
        handles["hatched: the win may be chance"] = Patch(facecolor="#bbbbbb", edgecolor="white", hatch="////")
        note = (
            f"numbers: the share of the runner-up's regret that is saved after {int(ds['round'][-1]):,} rounds\n"
            f"{found.attrs['test']}"
        )
        note += "\n† outside its assumptions" if found.outside.any() else ""
        style.legend(figure, None, note, handles=handles)
        _leave_out_names(figure, panel)
        return style.save(figure, path, also)


def _leave_out_names(figure: Any, panel: Any) -> None:
    """Leaves the names of winners to the legend if one is wider than its cell, so that no text reaches another."""
    if isinstance(figure, style.Sheet):
        figure.fit()
    cell, _ = style.cell_size(panel)
    if any(text.get_window_extent().width > cell for text in panel.texts):
        for text in panel.texts:
            text.set_text(text.get_text().partition("\n")[2])


def area(look: Mapping[str, Any]) -> str:
    """Returns the tint of a policy's area. An area has no dashes, so a dashed look has a stronger tint instead."""
    return style.mixed(look["color"], 0.35 + 0.15 * style.LINES.index(look["linestyle"]))


def _missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else values == ""

"""The terms that bound uniINF's regret: their sum beside the regret, and the balance of the two large ones."""

import itertools
import pathlib
from collections.abc import Sequence

import xarray as xr

from jaxbandit import style
from jaxbandit.plots.common import labelled, pretty
from jaxbandit.results import summary

PARTS = {"div": "Div", "shift": "Shift", "skip_error": "|SkipErr|"}
OPTIONAL = {"calibration": "calibration"}  # drawn where it was recorded


def decomposition(
    ds: xr.Dataset, path: str | pathlib.Path, title: str = "", *, also: Sequence[str] = ()
) -> pathlib.Path:
    """The terms that bound uniINF's regret, stacked over rounds, beside the regret itself.

    Args:
      ds: Recorded with ``measures=("div", "shift", "skip_error")``, and perhaps ``"calibration"``.
      path: Where to write.
      title: Heads the figure.
      also: Further endings to write it with.
    """
    missing = [part for part in PARTS if part not in ds]
    if missing:
        raise ValueError(f"no {', '.join(missing)} in the dataset; run with measures = {list(PARTS)}")
    ds = labelled(ds)
    parts = PARTS | {name: text for name, text in OPTIONAL.items() if name in ds}
    means = {name: ds[name].mean("seed") if "seed" in ds[name].dims else ds[name] for name in parts}
    regret = summary(ds).regret_mean
    cells = list(itertools.product(ds.policy.values, ds.environment.values))
    titles = [f"{policy} in {world}" for policy, world in cells]
    with style.panels(titles, title, columns=min(ds.sizes["environment"], 4)) as (figure, panels):
        for panel, (policy, world) in zip(panels, cells, strict=True):
            where = {"policy": policy, "environment": world}
            stack = [means[name].sel(where).values for name in parts]
            colours = [style.COLOURS[n] for n in (4, 5, 3, 2)][: len(parts)]
            panel.stackplot(ds["round"].values, *stack, labels=parts.values(), colors=colours, alpha=0.85)
            panel.plot(ds["round"], regret.sel(where), color="black", label="pseudo-regret")
            panel.set(xscale="log", xlabel="round", ylabel="mean over seeds")
        note = "|SkipErr| is that of all arms, the best one included"
        note += "" if "calibration" in parts else "; the bound adds 2σ(K − 1)"
        style.legend(figure, panels[0], note)
        return style.save(figure, path, also)


def balance(ds: xr.Dataset, path: str | pathlib.Path, title: str = "", *, also: Sequence[str] = ()) -> pathlib.Path:
    """Every term over rounds on doubly logarithmic axes, with the ratio Div / Shift that the scale is to hold constant.

    Args:
      ds: Recorded with ``measures=("div", "shift", "skip_error")``, and perhaps ``"calibration"``.
      path: Where to write.
      title: Heads the figure.
      also: Further endings to write it with.
    """
    missing = [part for part in PARTS if part not in ds]
    if missing:
        raise ValueError(f"no {', '.join(missing)} in the dataset; run with measures = {list(PARTS)}")
    ds = labelled(ds)
    parts = PARTS | {name: text for name, text in OPTIONAL.items() if name in ds}
    means = {name: ds[name].mean("seed") if "seed" in ds[name].dims else ds[name] for name in parts}
    regret = summary(ds).regret_mean
    cells = list(itertools.product(ds.policy.values, ds.environment.values))
    titles = [f"{pretty(policy)} in {world}" for policy, world in cells]
    with style.panels(titles, title, columns=min(ds.sizes["environment"], 3)) as (figure, panels):
        for panel, (policy, world) in zip(panels, cells, strict=True):
            where = {"policy": policy, "environment": world}
            for (name, text), n in zip(parts.items(), (4, 5, 3, 2), strict=False):
                curve = means[name].sel(where)
                panel.plot(ds["round"], curve.where(curve > 0), color=style.COLOURS[n], label=text)
            curve = regret.sel(where)
            panel.plot(ds["round"], curve.where(curve > 0), color="black", label="pseudo-regret")
            panel.set(xscale="log", yscale="log", xlabel="round", ylabel="mean over seeds")
            panel.set_ylim(bottom=max(panel.get_ylim()[0], 1e-2))
            last = {**where, "round": ds["round"][-1]}
            ratio = float(means["div"].sel(last)) / float(means["shift"].sel(last))
            panel.text(
                0.03, 0.96, f"Div / Shift = {ratio:.2f} at the end", transform=panel.transAxes, va="top", fontsize=8
            )
        style.legend(figure, panels[0], "the scale is designed to keep Div and Shift in balance")
        return style.save(figure, path, also)

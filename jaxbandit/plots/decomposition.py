"""Figures of the terms that bound uniINF's regret: their sum beside the regret, and the balance of Div and Shift."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from jaxbandit.dataset.results import summary
from jaxbandit.engine import best_fixed_arms
from jaxbandit.plots import style
from jaxbandit.plots.common import dagger_note, environment_name, labelled, named

PARTS = {"div": "Div", "shift": "Shift", "skip_error": "|SkipErr|"}
BY_ARM, OFF_BEST = "skip_error_by_arm", "|SkipErr| off the best arm"  # the term of the bound, if it was recorded
OPTIONAL = {"calibration": "calibration"}  # drawn if it was recorded
COLOURS = {name: style.COLOURS[n] for name, n in (("div", 4), ("shift", 5), ("skip_error", 3), ("calibration", 2))}


def decomposition(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws the terms that bound uniINF's regret, stacked over rounds, beside the regret itself.

    Args:
      ds: A dataset recorded with ``measures=("div", "shift", "skip_error")``, and perhaps ``"calibration"``. The bound
        uses the skipping error off the best arm, so record ``"skip_error_by_arm"`` too.
      path: The file to write. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label, for their names and best arms.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    terms = mean_terms(ds, environments)
    ds = labelled(ds)
    regret = summary(ds).regret_mean
    with style.panels(_titles(ds, environments), title, ax=ax, venue=venue) as (figure, panels):
        for panel, where in zip(panels, _cells(ds), strict=True):
            stack = [means.sel(where).values for means in terms.values()]
            panel.stackplot(ds["round"].values, *stack, labels=terms, colors=list(COLOURS.values()), alpha=0.85)
            panel.plot(ds["round"], regret.sel(where), color="black", label="pseudo-regret")
            panel.set(xscale="log", xlabel="round", ylabel="mean over seeds")
            bound, last = sum(part[-1] for part in stack), float(regret.sel(where)[-1])
            if last > 0:
                note = f"sum of the terms / regret = {bound / last:.3g}"
                panel.text(0.03, 0.96, note, transform=panel.transAxes, va="top", fontsize=style.letters())
        notes = [] if OFF_BEST in terms else ["|SkipErr| counts all arms, including the best one"]
        notes += [] if OPTIONAL["calibration"] in terms else ["the bound also has a term 2σ(K − 1), which is not drawn"]
        style.legend(figure, panels[0], "; ".join(notes) + dagger_note(ds, each=True))
        return style.save(figure, path, also)


def balance(
    ds: xr.Dataset,
    path: str | pathlib.Path | None = None,
    title: str = "",
    *,
    environments: Mapping[str, Any] | None = None,
    ax: Any = None,
    venue: str = "",
    also: Sequence[str] = (),
) -> Figure:
    """Draws every term over rounds on doubly logarithmic axes, to show whether Div and Shift grow together.

    The scale is designed to keep the two in balance. The first term of Shift, of order S_1 K log T, is present
    before any loss is seen. The dashed curve and the ratio on the panel leave it out.

    Args:
      ds: A dataset recorded with ``measures=("div", "shift", "skip_error")``, and perhaps ``"calibration"``.
      path: The file to write. Without it, nothing is written.
      title: Heads the figure.
      environments: The environments by label, for their names.
      ax: The axes to draw on, one for each panel; by default a figure is made.
      venue: A name of ``style.VENUES``, which sets width, letters and lines.
      also: Further endings to write it with.

    Returns:
      The figure.
    """
    terms = mean_terms(ds, environments)
    ds = labelled(ds)
    regret, rounds = summary(ds).regret_mean, ds["round"].values
    grown = terms["Shift"] - terms["Shift"].isel(round=0)
    with style.panels(_titles(ds, environments), title, ax=ax, venue=venue) as (figure, panels):
        for panel, where in zip(panels, _cells(ds), strict=True):
            for (name, means), colour in zip(terms.items(), COLOURS.values(), strict=False):
                curve = means.sel(where)
                panel.plot(rounds, curve.where(curve > 0), color=colour, label=name)
            since = grown.sel(where)
            text = "Shift without its first term"
            panel.plot(rounds, since.where(since > 0), color=COLOURS["shift"], linestyle="--", label=text)
            curve = regret.sel(where)
            panel.plot(rounds, curve.where(curve > 0), color="black", label="pseudo-regret")
            panel.set(xscale="log", yscale="log", xlabel="round", ylabel="mean over seeds")
            panel.set_ylim(bottom=max(panel.get_ylim()[0], 1e-2))
            ratio = float(terms["Div"].sel(where)[-1]) / float(since[-1])
            panel.text(
                0.03,
                0.96,
                f"Div / Shift (dashed) = {ratio:.2g}",
                transform=panel.transAxes,
                va="top",
                fontsize=style.letters(),
            )
        note = "the scale is designed to keep Div and Shift in balance" + dagger_note(ds, each=True)
        style.legend(figure, panels[0], note)
        return style.save(figure, path, also)


def mean_terms(ds: xr.Dataset, environments: Mapping[str, Any] | None) -> dict[str, xr.DataArray]:
    """Returns the mean of every recorded term of the bound by the name that figures give it."""
    missing = [part for part in PARTS if part not in ds]
    if missing:
        raise ValueError(f"no {', '.join(missing)} in the dataset; run the study with measures = {list(PARTS)}")
    parts = PARTS | {name: text for name, text in OPTIONAL.items() if name in ds}
    ds = labelled(ds)
    if BY_ARM in ds and all(str(label) in (environments or {}) for label in ds.environment.values):
        ds = ds.assign(skip_error=_off_best(ds, environments or {}))
        parts |= {"skip_error": OFF_BEST}
    return {text: ds[name].mean("seed") if "seed" in ds[name].dims else ds[name] for name, text in parts.items()}


def _off_best(ds: xr.Dataset, environments: Mapping[str, Any]) -> xr.DataArray:
    """Returns the skipping error of all arms except the best fixed arm."""
    rounds = ds["round"].values
    best = [best_fixed_arms(environments[str(label)], rounds) for label in ds.environment.values]
    best = xr.DataArray(best, dims=("environment", "round"), coords={"environment": ds.environment, "round": rounds})
    return ds[BY_ARM].where(ds.arm != best, 0).sum("arm")


def _cells(ds: xr.Dataset) -> list[dict[str, Any]]:
    pairs = itertools.product(ds.policy.values, ds.environment.values)
    return [{"policy": policy, "environment": environment} for policy, environment in pairs]


def _titles(ds: xr.Dataset, environments: Mapping[str, Any] | None) -> list[str]:
    return [
        f"{named(ds, cell['policy'], [cell['environment']])} in "
        f"{environment_name(str(cell['environment']), environments)}"
        for cell in _cells(ds)
    ]

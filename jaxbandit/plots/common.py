"""Helpers that all figures share: datasets in one form, their environments, names and axes of regret."""

import itertools
import pathlib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.dataset.labels import SHORT_NAMES, readable, shown
from jaxbandit.dataset.results import labelled as labelled
from jaxbandit.grid import suggest
from jaxbandit.plots import style
from jaxbandit.studies import recorded
from jaxbandit.theory import assumptions

RESAMPLES = 500  # bootstrap samples of the intervals on a figure
# The names of swept values on the axes of figures.
AXES = {
    "tail_index": "tail index",
    "moment_order": "declared moment order α",
    "gap": "gap Δ between the best two arms",
    "budget": "corrupted rounds",
    "unit": "unit of the losses",
    "moment_bound_factor": "σ given / σ of the environment",
    "moment_order_factor": "α given / α of the environment",
    "initial_scale": "initial scale S₁",
}


def environments_of(ds: xr.Dataset, data: str | pathlib.Path | None = None, *, trust: bool = False) -> dict[str, Any]:
    """Rebuilds the environments of a dataset by label from the study file it carries; none if it carries no study.

    Args:
      ds: The dataset that ``run`` wrote.
      data: The directory of the study's tables, if it names any.
      trust: Whether environments of classes that are not part of jaxbandit are imported. Without it, nothing that the
        dataset names is imported.
    """
    text = ds.attrs.get("study")
    try:
        points = recorded.environments(str(text), data, trust) if text else []
    except ValueError as error:  # for example, the study names a table that is not found
        warnings.warn(f"cannot rebuild the study's environments, so no lower bounds are shown: {error}", stacklevel=2)
        return {}
    labels = [str(label) for label in np.atleast_1d(ds.environment.values)] if points else []
    return dict(zip(labels, points, strict=True)) if len(labels) == len(points) else {}


def head(label: Any) -> str:
    """Returns the name that a label starts with: ``uniinf`` of ``uniinf[initial_scale=4]``."""
    return str(label).split("[")[0].split("#")[0]


def pretty(label: Any) -> str:
    """Returns a label as figures print it: a shipped policy has the name of its paper, or a shorter one."""
    return shown(label, SHORT_NAMES)


def named(ds: xr.Dataset, policy: Any, environments: Sequence[Any] | None = None) -> str:
    """Returns a policy's name, with a dagger if it is outside its assumptions in one of the environments.

    Args:
      ds: The dataset.
      policy: The label of the policy.
      environments: The labels of the environments; default all of the dataset.
    """
    places = np.atleast_1d(ds.environment.values) if environments is None else environments
    return pretty(policy) + ("†" if assumptions.remark(ds.attrs, policy, places) else "")


def dagger(at: xr.Dataset) -> str:
    """Returns the dagger if one of the pairs that a curve is drawn from is outside its assumptions, else nothing."""
    outside = assumptions.outside_of(at.attrs)
    pairs = itertools.product(np.atleast_1d(at.policy.values), np.atleast_1d(at.environment.values))
    return "†" if any((str(policy), str(environment)) in outside for policy, environment in pairs) else ""


def dagger_note(ds: xr.Dataset, each: bool = False) -> str:
    """Explains the dagger in a figure's note, if it is used.

    Args:
      ds: The dataset.
      each: Whether every panel has its own names, so that a dagger speaks of the panel's environment.
    """
    labels = np.atleast_1d(ds.environment.values)
    if not any(assumptions.remark(ds.attrs, policy, labels) for policy in np.atleast_1d(ds.policy.values)):
        return ""
    return "\n† outside its assumptions" + ("" if each or len(labels) == 1 else " in one of these environments or more")


def environment_name(label: str, environments: Mapping[str, Any] | None) -> str:
    """Describes an environment by its kind, arms and declared moment; an unknown one keeps its label."""
    environment = (environments or {}).get(label)
    if environment is None:
        return pretty(label)
    order = getattr(environment, "moment_order", None)
    tail = "" if order is None else f", α = {float(order):.3g}"
    law = getattr(environment, "law", None)
    inside = "" if law is None else f" of {getattr(type(law), 'label', type(law).__name__)}"
    return f"{readable(label)[0]}{inside}, K = {environment.num_arms}{tail}"


def environment_names(labels: Iterable[Any], environments: Mapping[str, Any] | None) -> list[str]:
    """Describes the environments of panels; those of the same description show the values that tell them apart."""
    labels = [str(label) for label in labels]
    names = [environment_name(label, environments) for label in labels]
    values = [re.split(r", (?=\w+ = )", readable(label)[1]) for label in labels]
    titles = []
    for name, own in zip(names, values, strict=True):
        alike = [other for other_name, other in zip(names, values, strict=True) if other_name == name]
        apart = [value for value in own if not all(value in other for other in alike)] or own
        shown = ", ".join(apart) if len(alike) > 1 else ""
        shown = re.sub(r"([\d.]+)x(\d+)", r"\2 × \1", shown.replace(",", ", ").replace(",  ", ", "))
        titles.append("\n".join(filter(None, [name, shown])))
    return titles


def chosen(ds: xr.Dataset, policies: Sequence[str] = (), environments: Sequence[str] = ()) -> xr.Dataset:
    """Selects the points whose label, or the head of it, is named; a side without names keeps all its points."""
    for side, names in (("policy", policies), ("environment", environments)):
        labels = [str(label) for label in ds[side].values]
        for name in names:
            if name not in labels and name not in map(head, labels):
                raise ValueError(f"no {side} {name!r} to draw; {suggest(name, list(dict.fromkeys(map(head, labels))))}")
        if names:
            keep = [label in names or head(label) in names for label in labels]
            ds = ds.isel({side: np.flatnonzero(keep)})
    return ds


def last_played(stats: xr.Dataset) -> xr.Dataset:
    """Selects the last played round of each pair in a summary and stores that round in ``played``."""
    there = stats.regret_mean.notnull()
    last = (there * xr.DataArray(np.arange(1, stats.sizes["round"] + 1), dims="round")).max("round") - 1
    at = stats[["regret_mean", "regret_low", "regret_high"]].isel(round=last.clip(min=0))
    at = at.assign(played=stats["round"].isel(round=last.clip(min=0)).where(last >= 0)).drop_vars("round")
    return at.assign_attrs(stats.attrs)


def side_of(ds: xr.Dataset, name: str) -> str:
    """Returns whether policies or environments have a swept value; without a coordinate, the environments decide."""
    return "policy" if name in ds.coords and ds[name].dims == ("policy",) else "environment"


def axis_values(ds: xr.Dataset, name: str, environments: Mapping[str, Any]) -> np.ndarray:
    """Returns a value of every point: a coordinate, or a field of the environment or its law, ``gap`` or ``unit``.

    If a point has no such value, its entry is NaN. If the values are not numbers, the entries are text.
    """
    if name in ds.coords and ds[name].dims == ("policy",):
        return ds[name].values
    held = ds[name].values if name in ds.coords and ds[name].dims == ("environment",) else None
    asked = [_of_environment(environments.get(str(label)), name) for label in ds.environment.values]
    if held is None:
        values = np.asarray(asked, np.float64)
    elif held.dtype.kind == "f":
        values = np.where(np.isnan(held), asked, held)
    else:
        return _of_one_arm([environments.get(str(label)) for label in ds.environment.values], name, held)
    if np.isnan(values).all():
        if name in ("gap", "unit") and not environments:
            raise ValueError(
                f"the dataset has no coordinate {name!r}, which is then computed from the environments; pass "
                "environments = {label: environment} for each label of ds.environment, or "
                "environments = plots.environments_of(ds) for a study that `run` wrote"
            )
        known = [str(key) for key in ds.coords if ds[key].dims in (("policy",), ("environment",))]
        raise ValueError(f"no policy or environment has a {name!r}; {suggest(name, [*known, 'gap', 'unit'])}")
    return values


def _of_one_arm(environments: Sequence[Any], name: str, held: np.ndarray) -> np.ndarray:
    """Returns the values of the one arm whose value differs among environments, or what the dataset holds."""
    values = [np.asarray(getattr(environment, name, np.nan), np.float64) for environment in environments]
    if {value.ndim for value in values} == {1} and len({value.size for value in values}) == 1:
        table = np.stack(values)
        differs = (table != table[0]).any(0)
        if differs.sum() == 1:
            return table[:, int(np.argmax(differs))]
    return held


def _of_environment(environment: Any, name: str) -> float:
    if environment is None:
        return np.nan
    inner = getattr(environment, "law", None) or environment
    if name in ("gap", "unit"):
        means = np.sort(np.asarray(inner.means(1), np.float64))
        return float(f"{means[1] - means[0] if name == 'gap' else means[-1]:.6g}")  # means may be float32
    value = getattr(environment, name, getattr(inner, name, None))
    return float(value) if value is not None and np.ndim(value) == 0 else np.nan


def axis_name(name: str) -> str:
    """Returns the name that a figure writes along an axis."""
    return AXES.get(name, name.replace("_", " "))


def scale_regret(panel: Any, low: np.ndarray) -> None:
    """Scales the regret axis: logarithmic, but linear if there is no regret or a policy beats every fixed arm."""
    low = low[np.isfinite(low)]
    top = panel.dataLim.y1
    if np.min(low, initial=0) > -max(1.0, 1e-3 * top):
        if np.isfinite(panel.dataLim.minposy):
            positive = low[low > 0]
            panel.set_yscale("log")
            panel.set_ylim(bottom=max(np.min(positive) / 2, 1e-2) if positive.size else 0.5)
        return
    panel.axhline(0, color="black", linewidth=0.6, gid=style.ZERO)  # the figure's note explains it
    reach = max(top, 0.0) - np.min(low)
    panel.set_ylim(np.min(low) - 0.08 * reach, max(top, 0.0) + 0.08 * reach)


def seeds_note(ds: xr.Dataset) -> str:
    """Returns the number of seeds of a figure in words."""
    count = ds.attrs.get("num_seeds", ds.sizes.get("seed", "?"))
    shown = f"{count:,}" if isinstance(count, int | np.integer) else str(count)
    return f"{shown} seed{'' if count == 1 else 's'}"

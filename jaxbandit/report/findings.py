"""The material of a report: the dataset in one form, its summary, its verdicts and its warnings."""

import dataclasses
import itertools
import os
import pathlib
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit import plots
from jaxbandit.analysis import final
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.plots import style
from jaxbandit.plots.bands import with_bands
from jaxbandit.policies import POLICIES
from jaxbandit.report.outcomes import Outcome, outcomes
from jaxbandit.report.verdicts import Verdict, verdicts
from jaxbandit.store.assemble import load, opened
from jaxbandit.store.directory import Store

_INNER = ("seed", "round", "arm", "quantile", "policy", "environment", "traced_seed", "t")


@dataclasses.dataclass(frozen=True)
class Findings:
    """The results that the panels show.

    Attributes:
      ds: The dataset with dimensions ``policy`` and ``environment``; its numbers are read when they are used.
      stats: Its ``summary`` with the bands that are drawn, and the number of ``seeds`` of each pair.
      verdicts: The winners, environment by environment.
      notes: Warnings that occurred while the dataset was opened.
      environments: The environments by label, if they are known.
      no_environments: The reason if they are not known.
      outcomes: The risk of every policy and the answers to the two questions, environment by environment.
    """

    ds: xr.Dataset
    stats: xr.Dataset
    verdicts: list[Verdict]
    notes: list[str]
    environments: Mapping[str, Any]
    no_environments: str
    outcomes: list[Outcome]

    @property
    def quick(self) -> bool:
        """Returns whether the study was cut down by ``--quick``."""
        return bool(self.ds.attrs.get("quick"))


def find(
    source: xr.Dataset | str | os.PathLike,
    *,
    method: str = "normal",
    simultaneous: bool = False,
    environments: Mapping[str, Any] | None = None,
    data: str | os.PathLike | None = None,
    trust: bool = False,
) -> Findings:
    """Opens a directory, a file or a dataset and collects its findings.

    Args:
      source: The directory that ``run`` wrote, or the dataset that ``simulate`` returned.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"``.
      simultaneous: Whether a band covers its whole curve at once.
      environments: The environments by label; default those of the study that the dataset carries.
      data: The directory of the study's tables, if it names any.
      trust: Whether environments of classes that are not part of jaxbandit are imported.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ds = source if isinstance(source, xr.Dataset) else _open(pathlib.Path(source))
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    ds = two_sided(ds)
    if not ds.sizes["policy"] * ds.sizes["environment"] * ds.sizes["round"]:
        raise ValueError(f"nothing to report: the dataset is empty ({dict(ds.sizes)}); run the study first")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")  # pairs that are not played yet
        stats = final.final_summary(ds)
    if not np.isfinite(stats.regret_mean.isel(round=-1)).any():
        raise ValueError("nothing to report: no cell of the study is finished; continue it with jaxbandit run")
    stats = with_bands(ds, stats, method=method, simultaneous=simultaneous)
    notes = [str(warning.message) for warning in caught]
    known, why = (environments, "") if environments is not None else _environments(ds, data, trust)
    order = verdicts(ds, stats)
    return Findings(ds, stats, order, notes, known, why, outcomes(ds, stats, order, known))


def has_games(directory: pathlib.Path) -> bool:
    """Returns whether a directory holds a study that was run, or its dataset."""
    return Store(directory).manifest() is not None or (directory / "dataset.nc").is_file()


def two_sided(ds: xr.Dataset) -> xr.Dataset:
    """Returns the dataset by ``policy`` and ``environment``, with a label and the swept values of every point."""
    if not {"regret", "regret_mean"} & set(ds):
        raise ValueError("this dataset has neither `regret` nor `regret_mean`; pass what simulate() or load() returned")
    if not {"policy", "environment"} <= set(ds.dims):
        variable = ds["regret" if "regret" in ds else "regret_mean"]
        axes = [str(dim) for dim in variable.dims if dim not in _INNER]
        of_environment = [axis for axis in axes if _is_of_environment(axis, ds)]
        for side, names in (("policy", [a for a in axes if a not in of_environment]), ("environment", of_environment)):
            ds = _stacked(ds, side, names)
        rest = [dim for dim in ds.dims if dim not in ("policy", "environment")]
        ds = ds.transpose("policy", "environment", *rest)
    if "seeds" not in ds:
        if "regret" in ds:
            ds = ds.assign(seeds=ds.regret.isel(round=0).notnull().sum("seed"))  # a policy may stop early
        else:
            ds = ds.assign(seeds=xr.zeros_like(ds.failed, int) + int(ds.attrs.get("num_seeds", 0)))
    return ds


def _open(source: pathlib.Path) -> xr.Dataset:
    return load(source) if source.is_dir() and Store(source).manifest() is not None else opened(source)


def _environments(ds: xr.Dataset, data: str | os.PathLike | None, trust: bool) -> tuple[Mapping[str, Any], str]:
    """Returns the environments of the study that a dataset carries, or the reason why there are none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plots.environments_of(ds, None if data is None else pathlib.Path(data), trust=trust)
    for warning in caught if found else ():
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    why = "" if found else "the dataset carries no study file; pass environments={label: environment} to report.write"
    return found, str(caught[0].message) if caught and not found else why


def _is_of_environment(axis: str, ds: xr.Dataset) -> bool:
    """Returns whether a swept axis is a field of the environment: only the environment's repr has its name."""
    if axis.startswith(("policy_", "environment_")):
        return axis.startswith("environment_")
    said = {side: str(ds.attrs.get(side, "")) for side in ("policy", "environment")}
    named = {side: re.search(rf"\b{re.escape(axis)}=", text) is not None for side, text in said.items()}
    return named["environment"] and not named["policy"]


def _registry_name(name: str) -> str:
    """Returns the registry name of a class, given by its own name; the name itself if it is not registered."""
    return next((key for key, cls in (POLICIES | ENVIRONMENTS).items() if cls.__name__ == name), name)


def _stacked(ds: xr.Dataset, side: str, axes: list[str]) -> xr.Dataset:
    """Merges the swept axes of a side into one, with the labels that a study gives."""
    if side in ds.dims:
        return ds
    name = _registry_name(str(ds.attrs.get(side, side)).split("(")[0])
    if not axes:
        return ds.expand_dims({side: [name]})
    points = list(itertools.product(*(ds[axis].values for axis in axes)))
    fields = [axis.removeprefix(f"{side}_") for axis in axes]
    labels = [
        f"{name}[{','.join(f'{f}={style.tick(v)}' for f, v in zip(fields, point, strict=True))}]" for point in points
    ]
    riders = {axis: (side, np.asarray(column)) for axis, column in zip(axes, zip(*points, strict=True), strict=True)}
    return ds.stack({side: axes}).drop_vars([side, *axes]).assign_coords({side: labels, **riders})

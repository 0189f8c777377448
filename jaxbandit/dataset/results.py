"""Labelled datasets of results, and their summary."""

import itertools
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.dataset.labels import LONG_NAMES, MEANS, QUANTILES, labelled_axes, product_axes, variable_dims
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import GAP, Grid, suggest, text
from jaxbandit.policies import POLICIES
from jaxbandit.types import public_fields


def product_dataset(
    policies: Grid, environments: Grid, variables: Mapping[str, np.ndarray], coords: Mapping[str, Any]
) -> xr.Dataset:
    """Builds a dataset with one dimension per swept field from variables [P, E, ...]."""
    axes = product_axes(policies, environments)
    shape = (*policies.shape, *environments.shape)
    shaped = {name: values.reshape((*shape, *values.shape[2:])) for name, values in variables.items()}
    return _dataset(shaped, tuple(name for name in axes if not isinstance(axes[name], tuple)), {**axes, **coords})


def labelled_dataset(
    policies: Sequence[tuple[str, Grid]],
    environments: Sequence[tuple[str, Grid]],
    variables: Mapping[str, np.ndarray],
    coords: Mapping[str, Any],
) -> xr.Dataset:
    """Builds a dataset with a label per point along ``policy`` and ``environment``; swept values are coordinates."""
    return _dataset(variables, ("policy", "environment"), {**labelled_axes(policies, environments), **coords})


def product(ds: xr.Dataset, policy: str, environment: str) -> xr.Dataset:
    """Selects one policy class and one environment class of a labelled dataset, with a dimension per swept field.

    Args:
      ds: A dataset with dimensions ``policy`` and ``environment``.
      policy: Registry name, e.g. ``"uniinf"``.
      environment: Registry name, e.g. ``"pareto"``.
    """
    for side, name in (("policy", policy), ("environment", environment)):
        known = list(dict.fromkeys(str(label).split("[")[0] for label in ds[side].values))
        if name not in known:
            raise ValueError(f"no {side} {name!r} in this dataset; {suggest(name, known)}")
        keep = [str(label).split("[")[0] == name for label in ds[side].values]
        ds = ds.isel({side: np.flatnonzero(keep)})
    for side in ("policy", "environment"):
        riders = [
            str(name)
            for name, coord in ds.coords.items()
            if coord.dims == (side,) and name != side and not _is_missing(coord.values).any()
        ]
        riders = _swept(riders, side, ds[side].values)
        place = next((name for name in MEANS if name in riders and GAP in riders), None)  # the gap follows it
        gaps = {} if place is None else dict(zip(ds[place].values, ds[GAP].values, strict=True))
        riders = [name for name in riders if place is None or name != GAP]
        missing = [
            name for name, coord in ds.coords.items() if coord.dims == (side,) and _is_missing(coord.values).any()
        ]
        ds = ds.drop_vars([*missing, *([GAP] if place is not None else [])])
        if len(riders) > 1:
            ds = ds.set_index({side: riders}).unstack(side)
        elif riders:
            ds = ds.swap_dims({side: riders[0]}).drop_vars(side)
        else:
            ds = ds.squeeze(side, drop=True)
        if place is not None:
            ds = ds.assign_coords({GAP: (place, [gaps[value] for value in ds[place].values])})
    last = [dim for dim in ("seed", "round", "arm") if dim in ds.dims]
    return ds.transpose(*(dim for dim in ds.dims if dim not in last), *last)


def _swept(riders: Sequence[str], side: str, labels: np.ndarray) -> list[str]:
    """Returns the coordinates that labels name; others, as a declared moment, follow them. All, if none is named."""
    text = " ".join(map(str, labels))
    named = [name for name in riders if re.search(rf"(?<!\w){re.escape(name.removeprefix(f'{side}_'))}=", text)]
    return [*named, *([GAP] if GAP in riders and GAP not in named else [])] if named else list(riders)


def labelled(ds: xr.Dataset) -> xr.Dataset:
    """Returns a dataset by ``policy`` and ``environment`` with the number of ``seeds`` of every pair.

    Swept fields of one class become labelled points, as in the dataset of several classes.

    Example:
      >>> import jaxbandit as jb
      >>> sweep = jb.grid(jb.UniINF, horizon=50, initial_scale=[1.0, 4.0])
      >>> ds = jb.simulate(sweep, jb.Bernoulli(means=[0.2, 0.8]), horizon=50, num_seeds=8)
      >>> labelled(ds).policy.values.tolist(), labelled(ds).environment.values.tolist()
      (['uniinf[initial_scale=1]', 'uniinf[initial_scale=4]'], ['bernoulli'])
    """
    held = next((ds[name] for name in ("regret", "regret_mean") if name in ds), None)
    if held is None:
        raise ValueError("this dataset has neither `regret` nor `regret_mean`; pass what simulate() or load() returned")
    if not {"policy", "environment"} <= set(held.dims):
        heads = {side: str(ds.attrs.get(side, side)).partition("(")[0] for side in ("policy", "environment")}
        classes = {cls.__name__: (name, cls) for name, cls in (POLICIES | ENVIRONMENTS).items()}
        sides = ("policy", "environment")
        axes = [str(dim) for dim in held.dims if dim not in ("seed", "round", "quantile", *sides)]
        _, known = classes.get(heads["policy"], ("", None))
        mine = [axis for axis in axes if known is None or axis.removeprefix("policy_") in public_fields(known)]
        ds = ds[[name for name in ds if set(axes) <= set(ds[name].dims)]]
        for side, swept in (("environment", [axis for axis in axes if axis not in mine]), ("policy", mine)):
            if side not in held.dims:
                one = str(ds[side].values) if side in ds.coords else classes.get(heads[side], (heads[side], None))[0]
                ds = _one_axis(ds.drop_vars(side, errors="ignore"), side, one, swept)
        ds = ds.transpose(*sides, ...)
    if "seeds" in ds:
        return ds
    count = ds.regret.isel(round=0).notnull().sum("seed") if "regret" in ds else int(ds.attrs.get("num_seeds", 0))
    whole = xr.zeros_like(_pairs(ds), dtype=int) + count
    return ds.assign(seeds=whole)


def _pairs(ds: xr.Dataset) -> xr.DataArray:
    """Returns an array by ``policy`` and ``environment`` of a labelled dataset."""
    held = ds["regret" if "regret" in ds else "regret_mean"]
    return held.isel({dim: 0 for dim in held.dims if dim not in ("policy", "environment")}, drop=True)


def _one_axis(ds: xr.Dataset, side: str, head: str, axes: list[str]) -> xr.Dataset:
    """Joins swept axes to one labelled axis, along which the swept values stay coordinates."""
    if not axes:
        return ds.expand_dims({side: [head]})
    points = list(itertools.product(*(ds[axis].values for axis in axes)))
    names = [",".join(f"{axis}={text(v)}" for axis, v in zip(axes, point, strict=True)) for point in points]
    swept = {axis: (side, np.asarray(values)) for axis, values in zip(axes, zip(*points, strict=True), strict=True)}
    ds = ds.stack({side: axes}).drop_vars([side, *axes])
    return ds.assign_coords({side: [f"{head}[{name}]" for name in names], **swept})


def summary(ds: xr.Dataset, *, level: float = 0.95, quantiles: Sequence[float] = QUANTILES) -> xr.Dataset:
    """Returns the mean regret with its standard error and normal band, and quantiles over seeds.

    The band is ``mean +- t * stderr`` with t Student's quantile for the number of seeds, NaN for one seed. Rare seeds
    that settle on a wrong arm skew regret, so look at the quantiles too. If the dataset was kept as a summary,
    only the band is added.

    Args:
      ds: A dataset that ``simulate`` or ``load`` returned.
      level: Coverage of the band.
      quantiles: Levels of the quantiles over seeds.

    Returns:
      ``regret_mean``, ``regret_stderr``, ``regret_low``, ``regret_high``, ``regret_quantile`` and the
      number of ``failed`` games.

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.Uniform(), jb.Bernoulli(means=[0.0, 1.0]), horizon=100, num_seeds=64)
      >>> bool(abs(jb.summary(ds).regret_mean[-1] - 50) < 5)
      True
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")
    if "regret" in ds:
        out = summarise(ds.regret, quantiles)
        out["failed"] = (ds.failed > 0).sum("seed")
    elif "regret_mean" in ds:
        out = ds[["regret_mean", "regret_stderr", "regret_quantile", "failed"]].copy()
    else:
        raise ValueError("this dataset has neither `regret` nor `regret_mean`; pass what simulate() or load() returned")
    half = student_quantile(0.5 + level / 2, _seeds(ds)) * out.regret_stderr
    out["regret_low"], out["regret_high"] = out.regret_mean - half, out.regret_mean + half
    out.attrs = {**ds.attrs, "band": f"normal, {100 * level:g} %"}
    return out


def summarise(regret: xr.DataArray, quantiles: Sequence[float] = QUANTILES) -> xr.Dataset:
    """Returns the mean, standard error and quantiles of regret over the seeds."""
    count = seed_count(regret)
    several = regret.sizes["seed"] > 1
    spread = regret.std("seed", ddof=1) if several else xr.full_like(regret.isel(seed=0, drop=True), np.nan)
    # The mean of equal numbers may be rounded, and then their spread is that error.
    spread = spread.where(regret.max("seed") != regret.min("seed"), spread * 0)
    with warnings.catch_warnings():  # a policy may stop before the others
        warnings.filterwarnings("ignore", "All-NaN slice encountered", RuntimeWarning)
        levels = regret.quantile(list(quantiles), dim="seed")
    out = xr.Dataset(
        {
            "regret_mean": regret.mean("seed"),
            "regret_stderr": spread / np.sqrt(count),
            "regret_quantile": levels,
        }
    )
    for name in out:
        out[name].attrs["long_name"] = LONG_NAMES[str(name)]
    return out


def seed_count(regret: xr.DataArray) -> Any:
    """Counts the seeds behind each mean; pairs of a study may have different numbers of them."""
    there = regret.notnull()
    return regret.sizes["seed"] if bool(there.all()) else there.sum("seed")


def _seeds(ds: xr.Dataset) -> Any:
    """Counts the seeds behind the means of a dataset, which may be a summary."""
    if "regret" in ds:
        return seed_count(ds.regret)
    return ds.seeds if "seeds" in ds else int(ds.attrs.get("num_seeds", 0))


def student_quantile(p: float, count: Any) -> Any:
    """Returns Student's quantile for means over ``count`` seeds."""
    from scipy import special

    return xr.apply_ufunc(lambda n: special.stdtrit(n - 1, p), count)


def reduce_cell(cell: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Reduces the variables of one pair, [seed, round, ...], to those that ``keep="summary"`` stores."""
    regret = xr.DataArray(cell["regret"], dims=("seed", "round"))
    stats = {str(name): values.values for name, values in summarise(regret).items()}
    others = {name: values for name, values in cell.items() if name not in ("regret", "failed")}
    means = {name: np.asarray(values.mean(axis=0)) for name, values in others.items()}
    return {**stats, **means, "failed": np.asarray((cell["failed"] > 0).sum())}


def _dataset(variables: Mapping[str, np.ndarray], axes: tuple[str, ...], coords: Mapping[str, Any]) -> xr.Dataset:
    data = {}
    for name, values in variables.items():
        tail = variable_dims(name, values.ndim - len(axes), "seed" in coords)
        data[name] = xr.Variable((*axes, *tail), values, {"long_name": LONG_NAMES.get(name, name)})
    return xr.Dataset(data, coords=dict(coords))


def _is_missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else values == ""


def played(games: xr.DataArray) -> xr.DataArray:
    """Selects one policy in one environment, [seed, round], without unplayed rounds and unfinished games."""
    return games.transpose("seed", "round").dropna("round", how="all").dropna("seed", how="any")

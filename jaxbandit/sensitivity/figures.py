"""Figures of a sensitivity study: bars with intervals and response curves, with the labelled numbers they show."""

import pathlib
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.parameters import Range
from jaxbandit.plots import style

LEVEL = 0.95  # coverage of the intervals of elasticities
MEASURES = {
    "local sensitivity": {"elasticity": "d log R / d log θ"},
    "Sobol' indices": {
        "first_order": "share of the variance of regret, alone",
        "total_order": "share of the variance of regret, with others",
    },
    "Morris screening": {"mu_star": "mean absolute effect on regret", "size": "root mean square, free of noise"},
}


def bars(ds: xr.Dataset) -> xr.Dataset:
    """Returns ``value``, ``low`` and ``high`` of bars by ``policy``, ``environment``, ``measure`` and ``parameter``.

    Args:
      ds: The dataset that ``local``, ``sobol`` or ``morris`` returned.
    """
    if ds.attrs.get("kind") not in MEASURES:
        raise ValueError(f"pass what local(), sobol() or morris() returned, got one of kind {ds.attrs.get('kind')!r}")
    ds, measures = labelled(ds), MEASURES[ds.attrs["kind"]]
    parts = {"value": ds[list(measures)]}
    if ds.attrs["kind"] == "local sensitivity":
        half = NormalDist().inv_cdf(0.5 + LEVEL / 2) * ds.elasticity_stderr
        parts |= {"low": xr.Dataset({"elasticity": ds.elasticity - half})}
        parts |= {"high": xr.Dataset({"elasticity": ds.elasticity + half})}
        band = f"normal, {100 * LEVEL:g} %"
    else:
        parts |= {end: xr.Dataset({name: ds[f"{name}_{end}"] for name in measures}) for end in ("low", "high")}
        band = ds.attrs["band"]
    dims = ("policy", "environment", "measure", "parameter")
    arrays = {name: part.to_dataarray("measure").transpose(*dims) for name, part in parts.items()}
    kept = {name: value for name, value in ds.attrs.items() if name in ("kind", "title", "horizon", "num_seeds")}
    found = {name: xr.DataArray(array.values, dims=dims) for name, array in arrays.items()}
    coords = {dim: arrays["value"][dim].values for dim in dims}
    return xr.Dataset(found, coords=coords, attrs=kept | {"band": band})


def curves(ds: xr.Dataset) -> xr.Dataset:
    """Returns the curves of ``sobol``: ``response``, ``low`` and ``high`` over ``response_value``, along ``bin``."""
    if "response" not in ds:
        raise ValueError(f"only sobol() has response curves, got a dataset of kind {ds.attrs.get('kind')!r}")
    ds = labelled(ds)
    half = NormalDist().inv_cdf(0.5 + LEVEL / 2) * ds.response_stderr
    found = ds[["response", "response_value"]]
    found = found.assign(low=found.response - half, high=found.response + half)
    return found.assign_attrs(band=f"normal over the design, {100 * LEVEL:g} %")


def draw(
    results: Mapping[str, xr.Dataset], directory: str | pathlib.Path, *, formats: Sequence[str] = ("png",)
) -> list[pathlib.Path]:
    """Draws every figure of the results that ``run`` returned."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    style.check_formats(formats)
    first, *also = formats
    made = []
    for kind, ds in results.items():
        made.append(bar_chart(ds, directory / f"{kind}.{first}", also=also))
        if kind == "sobol":
            made.append(response_curves(ds, directory / f"response.{first}", also=also))
    return [path.with_suffix(f".{ending}") for path in made for ending in formats]


def bar_chart(ds: xr.Dataset, path: str | pathlib.Path, *, also: Sequence[str] = ()) -> pathlib.Path:
    """Draws bars with intervals, a panel per policy and measure, with environments side by side."""
    data = bars(ds)
    panels = [(policy, measure) for policy in data.policy.values for measure in data.measure.values]
    titles = [f"{policy}: {measure.replace('_', ' ')}" for policy, measure in panels]
    environments, names = data.environment.values, data.parameter.values
    width = 0.8 / len(environments)
    with style.panels(titles, _title(ds)) as (figure, axes):
        for axis, (policy, measure) in zip(axes, panels, strict=True):
            at = data.sel(policy=policy, measure=measure)
            for n, environment in enumerate(environments):
                one = at.sel(environment=environment)
                places = np.arange(len(names)) + (n - (len(environments) - 1) / 2) * width
                reach = np.stack([one.value - one.low, one.high - one.value]).clip(0)
                colour = style.look(n)["color"]
                axis.bar(places, one.value, width, color=colour, alpha=0.8, label=str(environment))
                axis.errorbar(places, one.value, yerr=reach, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
            axis.axhline(0, color="black", linewidth=0.6)
            axis.set_xticks(np.arange(len(names)), [str(name) for name in names], rotation=15, ha="right")
            axis.set_ylabel(MEASURES[ds.attrs["kind"]][str(measure)])
        style.legend(figure, axes[0], f"intervals: {data.attrs['band']}, {ds.attrs['num_seeds']} seeds")
        style.save(figure, path, also)
        return pathlib.Path(path)


def response_curves(ds: xr.Dataset, path: str | pathlib.Path, *, also: Sequence[str] = ()) -> pathlib.Path:
    """Draws mean regret over the box given one parameter, a panel per policy and parameter."""
    data = curves(ds)
    panels = [(policy, name) for policy in data.policy.values for name in data.parameter.values]
    environments = data.environment.values
    with style.panels([f"{p}: {name}" for p, name in panels], _title(ds)) as (
        figure,
        axes,
    ):
        for axis, (policy, name) in zip(axes, panels, strict=True):
            at = data.sel(policy=policy, parameter=name)
            for n, environment in enumerate(environments):
                one, look = at.sel(environment=environment), style.look(n)
                axis.plot(one.response_value, one.response, marker="o", markersize=3, label=str(environment), **look)
                axis.fill_between(one.response_value, one.low, one.high, color=look["color"], alpha=0.2, linewidth=0)
            axis.set(xscale=str(at.range_scale.values), xlabel=str(name), ylabel="mean pseudo-regret")
            ends = Range(*(at[f"range_{end}"].item() for end in Range._fields))
            marks = [ends.value(place) for place in (0.0, 0.25, 0.5, 0.75, 1.0)]
            axis.set_xticks(marks, [short(mark) for mark in marks])
            axis.minorticks_off()
        style.legend(figure, axes[0], f"bands: {data.attrs['band']}")
        style.save(figure, path, also)
        return pathlib.Path(path)


def short(value: float) -> str:
    """Formats a number to three digits; from a thousand on, as a whole number."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def labelled(ds: xr.Dataset) -> xr.Dataset:
    """Returns the dataset by ``policy`` and ``environment``; swept axes become labelled points."""
    if {"policy", "environment"} <= set(ds.dims):
        return ds
    axes = [str(dim) for dim in ds.sizes if dim not in ("parameter", "bin")]
    if not axes:
        return ds.expand_dims(policy=["policy"], environment=["environment"])
    points: Any = [()]
    for axis in axes:
        points = [(*point, f"{axis}={style.tick(value)}") for point in points for value in ds[axis].values]
    stacked = ds.stack(environment=axes).drop_vars(["environment", *axes])
    return stacked.assign_coords(environment=[", ".join(point) for point in points]).expand_dims(policy=["policy"])


def _title(ds: xr.Dataset) -> str:
    return " - ".join(filter(None, (str(ds.attrs.get("title", "")), f"T = {ds.attrs['horizon']:,}")))

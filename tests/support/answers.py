"""Results of sensitivity, tuning and searches with made-up numbers, in the form that the commands write."""

import pathlib

import numpy as np
import xarray as xr

from jaxbandit.sensitivity.tables import COLUMNS
from jaxbandit.store import seal

_PAIR = ("policy", "environment")


def sensitivity(kind: str) -> xr.Dataset:
    rng = np.random.default_rng(1)
    dims, shape = (*_PAIR, "parameter"), (1, 2, 2)
    names = [name for column in COLUMNS[kind].values() for name in column]
    ds = xr.Dataset({name: (dims, rng.random(shape)) for name in ["value", "mu", *names]})
    ds = ds.assign(failed=(_PAIR, np.zeros((1, 2), int)), variance=(_PAIR, np.ones((1, 2))))
    ds = ds.assign(noise_variance=(_PAIR, np.ones((1, 2))))
    for name in ("response", "response_stderr", "response_value"):
        ds[name] = ((*dims, "bin"), rng.random((*shape, 3)))
    coords = {"policy": ["a"], "environment": ["e", "f"], "parameter": ["x", "y"], "bin": range(3)}
    ds = ds.assign_coords(coords).assign_coords(range_scale=("parameter", ["log", "linear"]))
    return ds.assign_attrs(kind=kind, key="k", horizon=60, num_seeds=24, band="normal, 95 %", title="t")


def tuned() -> xr.Dataset:
    rng = np.random.default_rng(2)
    ds = xr.Dataset({name: ("parameter", [2.5, 7.0]) for name in ("default", "tuned")})
    ds = ds.assign(low=("parameter", [1.0, 1.0]), high=("parameter", [9.0, 9.0]))
    ds = ds.assign(value=(("step", "parameter"), 1 + rng.random((3, 2))))
    ds = ds.assign({name: ("step", rng.random(3)) for name in ("objective", "held_out")})
    ds = ds.assign({name: ("candidate", rng.random(2)) for name in ("regret", "regret_low", "regret_high")})
    ds = ds.assign({name: 0.5 for name in ("difference", "difference_low", "difference_high", "p")})
    ds = ds.assign_coords(parameter=["x", "y"], candidate=["default", "tuned"], step=range(3))
    said = {"verdict": "the default is better", "within_noise": 0, "band": "95 %", "failed": 0, "done": 1}
    return ds.assign_attrs(said, policy="a", environment="", title="t", study="")


def worst() -> xr.Dataset:
    rng = np.random.default_rng(3)
    means = ("searched", "regret", "regret_low", "regret_high", "given_regret", "bound")
    ds = xr.Dataset({name: ("horizon", 1 + rng.random(2)) for name in means})
    found = {"worst": 0.5, "low": 0.01, "high": 1.0}
    ds = ds.assign({name: (("horizon", "parameter"), np.full((2, 1), at)) for name, at in found.items()})
    ds = ds.assign(slope=0.5, slope_low=0.4, slope_high=0.6).assign_coords(horizon=[100, 200], parameter=["gap"])
    said = {"objective": "regret", "band": "95 %", "failed": 0, "done": 1}
    return ds.assign_attrs(said, policy="a", environment="e", title="t", study="")


def write(directory: pathlib.Path) -> dict[str, xr.Dataset]:
    """Writes a result of every kind; returns them by file name."""
    kinds = {"local": "local sensitivity", "sobol": "Sobol' indices", "morris": "Morris screening"}
    made = {f"sensitivity/{name}.nc": sensitivity(kind) for name, kind in kinds.items()}
    made |= {"tune-a.nc": tuned(), "worst-a-e.nc": worst()}
    (directory / "sensitivity").mkdir(parents=True)
    for name, ds in made.items():
        (directory / name).write_bytes(seal.dataset_bytes(ds))
    return made

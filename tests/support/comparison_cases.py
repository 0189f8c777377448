"""Games to compare, made up: curves of regret that are given, with noise."""

import numpy as np
import xarray as xr

import jaxbandit as jb

ROUNDS = np.unique(np.rint(np.geomspace(1, 4096, 25)).astype(int))
SEEDS = 64
LAW = jb.Pareto(means=[0.5, 1.0], tail_index=1.5556)
ENVIRONMENTS = {"pareto": LAW, "switching": jb.Switching(LAW)}


def games(curves, policies, environments, spread=0.2, seed=0):
    """A dataset whose regret is ``curves[policy, environment](t)`` times a positive number of mean 1 for each seed."""
    rng = np.random.default_rng(seed)
    shape = (len(policies), len(environments), SEEDS, 1)
    noise = rng.gamma(1 / spread**2, spread**2, size=shape)
    mean = np.asarray([[curves(p, e) for e in environments] for p in policies])[:, :, None, :]
    dims = ("policy", "environment", "seed", "round")
    ds = xr.Dataset(
        {"regret": (dims, mean * noise)},
        coords={"policy": list(policies), "environment": list(environments), "round": ROUNDS},
        attrs={"num_seeds": SEEDS, "title": "synthetic"},
    )
    return ds.assign(failed=(dims[:3], np.zeros(shape[:3])))

"""Short runs of uniINF on Pareto losses, and the comparison of two datasets bit by bit."""

import numpy as np

import jaxbandit as jb

HORIZON, RECORD = 300, [1, 7, 100, 300]
MEASURES = ("scale", "skipped", "div", "shift", "skip_error")


def environment(num_arms):
    return jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)


def run(num_arms=3, policy=None, **options):
    options = {"horizon": HORIZON, "num_seeds": 80, "record": RECORD} | options
    return jb.simulate(policy or jb.UniINF(horizon=HORIZON), environment(num_arms), **options)


def assert_same_bits(ds, other):
    assert set(ds.data_vars) <= set(other.data_vars)
    for name in ds.data_vars:
        np.testing.assert_array_equal(ds[name].values, other[name].values, err_msg=str(name))
        for coord in ds[name].coords:
            np.testing.assert_array_equal(ds[name][coord].values, other[name][coord].values)

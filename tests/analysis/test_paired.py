"""Paired comparisons: the p-value of the ranking, and selection by any coordinate."""

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb

RNG = np.random.default_rng(0)


@pytest.fixture
def several():
    regret = RNG.exponential(size=(4, 2, 50, 3))
    return xr.Dataset(
        {"regret": (("policy", "environment", "seed", "round"), regret)},
        coords={
            "policy": ["a[scale=1,rate=1]", "a[scale=4,rate=1]", "a[scale=4,rate=2]", "b"],
            "scale": ("policy", [1.0, 4.0, 4.0, np.nan]),
            "rate": ("policy", [1.0, 1.0, 2.0, np.nan]),
            "environment": ["x", "y"],
            "round": [1, 10, 100],
        },
    )


def test_the_p_value_is_that_of_the_ranking(several):
    found = jb.compare(several, "a[scale=1,rate=1]", "b")
    ranked = jb.ranking(several).p.sel(policy="a[scale=1,rate=1]", rival="b")
    np.testing.assert_allclose(found.p.isel(round=-1), ranked)
    assert found.p.dims == ("environment", "round")


def test_seeds_that_one_policy_lacks_are_left_out(several):
    fewer = several.copy(deep=True)
    fewer.regret[3, 0, 30:] = np.nan
    found = jb.compare(fewer, "a[scale=1,rate=1]", "b").p
    first = jb.compare(several.isel(seed=slice(30)), "a[scale=1,rate=1]", "b").p
    np.testing.assert_allclose(found.sel(environment="x"), first.sel(environment="x"))
    np.testing.assert_allclose(found.sel(environment="y"), jb.compare(several, "a[scale=1,rate=1]", "b").p[1])


def test_any_coordinate_selects(several):
    by_label = jb.compare(several, "a[scale=4,rate=2]", "a[scale=1,rate=1]")
    xr.testing.assert_equal(jb.compare(several, {"scale": 4, "rate": 2.0}, {"scale": 1.0}), by_label)
    inside = jb.compare(several, {"scale": 1.0, "environment": "x"}, {"policy": "b", "environment": "x"})
    assert inside.difference.dims == ("round",)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({"scale": 4.0}, r"selects 2 entries of 'policy', not one \(a\[scale=4,rate=1\], a\[scale=4,rate=2\]\)"),
        ({"scale": 3.0}, r"no scale 3.0; .*Known: 1.0, 4.0$"),
        ({"scal": 4.0}, "there is no coordinate 'scal'; did you mean 'scale'"),
        ({"scale": 1.0, "rate": 2.0}, r"selects 0 entries .*\(none\)"),
        ({"round": 10}, "there is no coordinate 'round'"),
    ],
)
def test_what_cannot_be_selected_is_said(several, which, message):
    with pytest.raises(ValueError, match=message):
        jb.compare(several, which, "b")

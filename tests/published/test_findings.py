"""Tables of single findings: their digits are those of the figures beside them."""

import types

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.plots.worst_gap import exponent_text, worst_gaps
from jaxbandit.published import findings


@pytest.mark.parametrize(("bend", "shown"), [(0.0, "0.70 (0.70 to 0.70)"), (0.06, "0.7 (0.7 to 0.7)")])
def test_exponents_of_worst_gaps_have_the_digits_that_the_bend_of_the_curve_allows(bend, shown):
    rounds = 2.0 ** np.arange(4, 17)
    power = 0.7 * np.log(rounds) + bend * np.log(rounds / 2.0**14) ** 2 / np.log(4)  # slopes differ between the halves
    level = np.array([1.0, 2.0, 1.5]).reshape(1, 3, 1, 1) * np.linspace(0.99, 1.01, 16).reshape(1, 1, 16, 1)
    environments = {
        f"e{n}": jb.HardPair(num_arms=2, moment_order=1.5, gap=gap) for n, gap in enumerate((0.1, 0.2, 0.3))
    }
    ds = xr.Dataset(
        {"regret": (("policy", "environment", "seed", "round"), level * np.exp(power))},
        coords={"policy": ["uniinf"], "environment": list(environments), "round": rounds},
        attrs={"num_seeds": 16},
    )
    results = types.SimpleNamespace(
        ds=ds, environments=environments, policies=lambda: {"uniinf": "uniINF"}, remark=lambda _: ""
    )
    assert f"| {shown} |" in findings.worst_gaps(results)
    found = worst_gaps(ds, environments=environments).isel(family=0, policy=0)
    assert exponent_text(found, short=True) == f" $T^{{{shown.split()[0]}}}$"

"""The worst gap over a family of environments: grouping, the envelope and its exponent."""

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.analysis import gaps

T = np.geomspace(64, 65536, 11)


def curves(power: float, noise: float = 0.05, seeds: int = 64) -> tuple[xr.DataArray, tuple[float, ...]]:
    """Regret min(gap t, c / gap^p) whose envelope grows like t^power."""
    rng, over = np.random.default_rng(0), tuple(np.geomspace(1e-4, 0.5, 40))
    down = power / (1 - power)
    games = [np.minimum(gap * T, gap**-down) * rng.uniform(1 - noise, 1 + noise, (seeds, 1)) for gap in over]
    return xr.DataArray(np.stack(games), dims=("environment", "seed", "round"), coords={"round": T}), over


@pytest.mark.parametrize("power", [0.4, 0.5, 2 / 3])
def test_the_envelope_has_the_power_that_no_single_gap_has(power):
    regret, over = curves(power)
    found = gaps.worst_gap(regret, over)
    assert abs(float(found.exponent) - power) < 0.03
    assert float(found.exponent_low) <= float(found.exponent) <= float(found.exponent_high)
    alone = np.log(regret.mean("seed"))
    slopes = (alone.isel(round=-1) - alone.isel(round=-5)) / np.log(T[-1] / T[-5])
    assert (abs(slopes - power) > 0.2).mean() > 0.8  # nearly all are linear or flat
    assert (np.diff(found.gap) <= 0).all()


def test_an_interval_holds_the_largest_mean_and_shrinks_with_seeds():
    few, over = curves(0.5, noise=0.5, seeds=16)
    many, _ = curves(0.5, noise=0.5, seeds=1024)
    wide, narrow = gaps.worst_gap(few, over), gaps.worst_gap(many, over)
    for found in (wide, narrow):
        assert (found.low <= found.regret).all() and (found.regret <= found.high).all()
    assert float((narrow.high - narrow.low)[-1]) < 0.5 * float((wide.high - wide.low)[-1])


def test_a_maximum_at_the_edge_of_the_family_is_marked():
    regret, over = curves(0.5)
    found = gaps.worst_gap(regret.isel(environment=slice(0, 5)), over[:5])
    assert bool(found.edge.all()) and float(found.gap[0]) == over[4]


def test_environments_are_grouped_by_all_fields_but_the_gap():
    points = {
        f"{arms}-{alpha}-{gap}": jb.HardPair(num_arms=arms, moment_order=alpha, gap=gap)
        for arms in (2, 10)
        for alpha in (1.2, 1.5)
        for gap in (0.2, 0.1)
    }
    found = gaps.families(points | {"pareto": jb.Pareto(means=[0.5, 1.0], tail_index=1.5)})
    assert [(family.num_arms, round(family.moment_order or 0, 6)) for family in found] == [
        (2, 1.2),
        (2, 1.5),
        (10, 1.2),
        (10, 1.5),
    ]
    assert all(family.gaps == pytest.approx((0.1, 0.2)) for family in found)
    assert found[0].labels == ("2-1.2-0.1", "2-1.2-0.2")
    assert gaps.order(found[3], np.array([1e6]))[0] == pytest.approx(10 ** (1 / 3) * 1e4, rel=1e-5)

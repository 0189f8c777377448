"""The test of logarithmic growth on curves whose growth is known, and the one exponent of figures, pages and tables."""

import numpy as np
import pytest
import xarray as xr

from jaxbandit.analysis import growth

T = 2.0 ** np.arange(4, 21)
SATURATED = 1000 * (1 - np.exp(-T / 100))
CURVES = {
    "log t": 100 * np.log(T),
    "log^2 t": 5 * np.log(T) ** 2,
    "t^0.10": 300 * T**0.10,
    "t^0.13": 200 * T**0.13,
    "saturation + t^(2/3)": SATURATED + 0.02 * T ** (2 / 3),
    "saturation + t": SATURATED + 1e-4 * T,
}


def studies(mean: np.ndarray, count: int, seeds: int, seed: int = 0) -> xr.DataArray:
    """Games whose increments are gamma variables with the increments of a mean curve."""
    rng = np.random.default_rng(seed)
    games = (rng.gamma(2.0, 0.5, size=(count, seeds, T.size)) * np.diff(mean, prepend=0)).cumsum(axis=-1)
    return xr.DataArray(games, dims=("cell", "seed", "round"), coords={"round": T})


def verdicts(curve: str, count: int, seeds: int, **options) -> list[str]:
    return growth.gain_ratio(studies(CURVES[curve], count, seeds), **options).verdict.values.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("curve", CURVES)
def test_growth_is_told_apart_with_enough_seeds(curve):
    """In 95 % of 200 studies: 190 right ones are 5 standard deviations below what 99.5 % give."""
    expected = "logarithmic" if curve == "log t" else "faster"
    assert verdicts(curve, 200, 8192).count(expected) >= 190


@pytest.mark.parametrize("curve", ["log t", "log^2 t", "t^0.10", "t^0.13"])
def test_few_seeds_leave_it_open(curve):
    found = verdicts(curve, 200, 16)
    assert found.count("open") >= 150
    assert found.count("logarithmic" if curve != "log t" else "faster") <= 10


def test_a_ratio_is_that_of_its_curve():
    found = growth.gain_ratio(studies(CURVES["log^2 t"], 4, 65_536))
    np.testing.assert_allclose(found.ratio, 39 / 33, atol=0.02)
    assert growth.gain_ratio(studies(-CURVES["log t"], 1, 8)).verdict.values.tolist() == ["falling"]
    assert growth.gain_ratio(studies(1000 * (1 - T**-0.3), 1, 8192)).verdict.values.tolist() == ["transient"]
    with pytest.raises(ValueError, match="needs 4 doublings of t"):
        growth.gain_ratio(studies(CURVES["log t"], 1, 8).isel(round=slice(-4, None)))


def test_intervals_are_corrected_for_the_table_they_stand_in():
    """One of 20 intervals at 95 % is as wide as one at 99.75 %."""
    regret = studies(CURVES["log t"], 3, 256)
    one, of_twenty = growth.gain_ratio(regret), growth.gain_ratio(regret, entries=20)
    assert (of_twenty.low < one.low).all() and (of_twenty.high > one.high).all()
    with pytest.warns(FutureWarning, match="is now called entries"):
        assert growth.gain_ratio(regret, cells=20).identical(of_twenty)
    alone = growth.gain_ratio(regret, level=0.9975)
    np.testing.assert_allclose(of_twenty.low, alone.low, rtol=1e-12)
    np.testing.assert_allclose(of_twenty.high, alone.high, rtol=1e-12)


@pytest.mark.slow
def test_intervals_cover_at_levels_that_resamples_cannot_reach():
    """2,000 studies at 99.9 %: 2 misses are expected, and more than 12 have probability 1e-6 with 1.5 times as many."""
    found = growth.gain_ratio(studies(CURVES["log t"], 2000, 256), level=0.95, entries=50)
    assert ((found.low > 1) | (found.high < 1)).sum() <= 12
    plain = growth.gain_ratio(studies(CURVES["log t"], 2000, 256))
    assert 60 <= ((plain.low > 1) | (plain.high < 1)).sum() <= 150  # 100 of 2,000 at 95 %


@pytest.mark.slow
def test_digits_follow_the_bend():
    power = growth.exponent(studies(T**0.6, 1, 4096)).isel(cell=0)
    assert float(power.slope) == pytest.approx(0.6, abs=0.02)
    assert float(power.model_error) < 0.02
    bent = growth.exponent(studies(SATURATED + 0.2 * T ** (2 / 3), 1, 4096)).isel(cell=0)
    assert float(bent.model_error) > 0.05
    values = [float(bent[name]) for name in ("slope", "low", "high", "model_error")]
    assert growth.exponent_text(*values) == "T^0.3"  # its interval is narrower than the digit
    assert growth.exponent_text(*[float("nan")] * 4) == ""

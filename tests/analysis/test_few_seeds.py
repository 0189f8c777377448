"""Intervals and tests of few seeds are as wide and as slow to judge as they say: Student's law stands behind them.

Coverage is counted over simulated studies, as in test_statistics.py: ``assert_covers`` is a false alarm in 3.5
million, ``assert_count`` in 1.7 million. Where a test grants more misses than nominal, it says how many.
"""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxbandit as jb
from jaxbandit.analysis import ranks, statistics
from jaxbandit.report import findings, sections
from tests.support.coverage import ROUNDS, assert_covers, curves, lognormal
from tests.support.helpers import assert_count
from tests.support.report_cases import kept_as_summary, study, written

SEEDS = (2, 3, 8, 16)


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_normal_interval_is_exact_on_normal_samples(seeds):
    """20,000 studies, nominal 95 %; with the normal quantile 2, 3, 8, 16 seeds miss 30, 19, 9, 7 % of them."""
    found = statistics.normal_interval(np.random.default_rng(1).standard_normal((20_000, seeds)), 0.95)
    assert_count(int(((found.low > 0) | (found.high < 0)).sum()), 20_000, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_bootstrap_covers_normal_samples(seeds):
    """4000 studies, nominal 95 %, one point granted; with resamples of one value at 0, 2 seeds miss all, 3 19 %."""
    found = statistics.bootstrap_interval(np.random.default_rng(2).standard_normal((4_000, seeds)), 0.95, 1_000)
    assert_covers((found.low <= 0) & (found.high >= 0), 0.95, extra=0.01)
    width = (found.high - found.low) / found.stderr
    assert np.median(width) < 3 * scipy.stats.t.ppf(0.975, seeds - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "extra"), [(2, 0.06), (3, 0.1), (8, 0.06), (16, 0.05)])
def test_the_bootstrap_of_few_skewed_samples_is_short_by_what_is_said(seeds, extra):
    """4000 lognormal studies, nominal 95 %; Student's interval misses more of 3, 8 and 16: 16, 17 and 15 %."""
    samples = lognormal(np.random.default_rng(3), 4_000, seeds)
    found, plain = statistics.bootstrap_interval(samples, 0.95, 1_000), statistics.normal_interval(samples, 0.95)
    covered = (found.low <= 1) & (found.high >= 1)
    assert_covers(covered, 0.95, extra=extra)
    assert covered.mean() >= np.mean((plain.low <= 1) & (plain.high >= 1))


@pytest.mark.parametrize("seeds", SEEDS)
def test_a_mean_of_few_is_tested_at_its_level(seeds):
    """40,000 normal studies; at 5 % exact to half a point, at 0.1 % it may err five times as often (3 seeds: four)."""
    p = ranks.skewness_corrected_p(np.random.default_rng(4).standard_normal((40_000, seeds)))
    assert_covers(p >= 0.05, 0.95, extra=0.005)
    assert_covers(p >= 0.001, 0.999, extra=0.004)


@pytest.mark.parametrize("kind", ["log-log", "log"])
@pytest.mark.parametrize("seeds", [2, 3])
def test_slopes_of_few_games_cover(seeds, kind):
    """500 studies of skewed games, nominal 95 %, six points granted."""
    found = jb.slope(curves(np.random.default_rng(5), 500, seeds), kind=kind, num_resamples=500)
    log_t = np.log(ROUNDS) - np.log(ROUNDS).mean()
    truth = 0.6 if kind == "log-log" else log_t @ ROUNDS**0.6 / (log_t @ log_t)
    assert_covers(((found.low <= truth) & (found.high >= truth)).values, 0.95, extra=0.06)


def test_a_slope_reckons_with_games_below_zero():
    """The mean is positive, but that of the second game alone has no logarithm: it falls without end."""
    games = np.stack([ROUNDS, np.where(ROUNDS > 1000, -0.5 * ROUNDS, ROUNDS)])
    found = jb.slope(xr.DataArray(games, dims=("seed", "round"), coords={"round": ROUNDS}))
    assert float(found.high - found.slope) == pytest.approx(scipy.stats.t.ppf(0.975, 1) * float(found.stderr))
    assert float(found.low) < float(found.slope)


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_simultaneous_bands_of_few_seeds_cover(seeds):
    """500 studies, nominal 95 %: bootstrap bands of skewed games, four points granted."""
    found = jb.band(curves(np.random.default_rng(6), 500, seeds), simultaneous=True, num_resamples=500)
    covered = ((found.low <= ROUNDS**0.6) & (found.high >= ROUNDS**0.6)).all("round").values
    assert_covers(np.append(covered, False), 0.95, extra=0.04)  # some never miss


def test_a_simultaneous_band_of_one_round_is_students():
    """100,000 multipliers: the quantile's standard error is under 1 %."""
    regret = xr.DataArray(np.random.default_rng(7).standard_normal((4, 1)), dims=("seed", "round"))
    found = jb.band(regret, method="normal", simultaneous=True, num_resamples=100_000)
    half = float(((found.high - found.low) / 2 / found.stderr)[0])
    assert half == pytest.approx(scipy.stats.t.ppf(0.975, 3), rel=0.05)


def test_seeds_that_nearly_agree_have_no_limit_nearer_than_students():
    """One game of 64 goes wrong: a third of the resamples never meet it, and have no error to be measured by."""
    games = np.append(np.zeros(63), 100.0)
    found, plain = statistics.bootstrap_interval(games, 0.95), statistics.normal_interval(games, 0.95)
    assert found.high == pytest.approx(plain.high)
    assert found.low < found.value


def test_one_seed_has_neither_interval_nor_test():
    """Warnings are errors here."""
    one = np.array([[3.0]])
    for found in (statistics.normal_interval(one, 0.95), statistics.bootstrap_interval(one, 0.95, 50)):
        assert found.value == 3
        assert np.isnan([found.stderr, found.low, found.high]).all()
    assert np.isnan(ranks.skewness_corrected_p(one)).all()
    stats = jb.summary(study(num_seeds=1))
    assert np.isnan(stats.regret_low).all()


def test_a_summary_knows_its_seeds():
    ds = study(num_seeds=4)
    half = jb.summary(ds).regret_high - jb.summary(ds).regret_mean
    np.testing.assert_allclose(half, scipy.stats.t.ppf(0.975, 3) * jb.summary(ds).regret_stderr)
    whole = jb.summary(kept_as_summary(ds))
    np.testing.assert_allclose(whole.regret_high - whole.regret_mean, half)
    ds["regret"] = ds.regret.where((ds.policy != "htinf") | (ds.seed < 2))
    fewer = jb.summary(ds).sel(policy="htinf")
    np.testing.assert_allclose(
        fewer.regret_high - fewer.regret_mean, scipy.stats.t.ppf(0.975, 1) * fewer.regret_stderr, rtol=1e-9
    )


@pytest.mark.parametrize("keep", [lambda ds: ds, kept_as_summary])
def test_a_report_of_few_seeds_says_so(keep, tmp_path):
    sentence = "intervals and tests rest on 3 seeds, fewer than 8: take care"
    assert sentence in sections.troubles(findings.find(keep(study(num_seeds=3))))
    assert sentence in written(keep(study(num_seeds=3)), tmp_path)
    assert not list(sections.troubles(findings.find(keep(study(num_seeds=8)))))
    assert "they have no interval and no test" in next(sections.troubles(findings.find(keep(study(num_seeds=1)))))


def test_levels_are_written_in_full():
    regret = curves(np.random.default_rng(8), 1, 8)
    for level, text in ((0.995, "99.5 %"), (0.9, "90 %"), (0.29, "29 %")):
        assert text in jb.band(regret, level=level, num_resamples=10).attrs["band"]
        assert text in jb.quantile(regret, [0.5], level=level).attrs["band"]
        assert text in jb.slope(regret, level=level, num_resamples=10).attrs["band"]
        assert text in jb.summary(study(), level=level).attrs["band"]

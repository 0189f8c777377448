"""Intervals cover what they say, on skewed and heavy-tailed samples; tests err as rarely as they say.

Coverage is counted over simulated studies of which the truth is known. An interval of nominal level p that is
honest misses Binomial(n, 1 - p) times in n studies; ``assert_covers`` allows five standard deviations more, a false
alarm in 3.5 million. Skewness costs the studentised bootstrap a little at small samples: where a test
grants it more misses than nominal, it says how many.
"""

import math

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import jaxbandit as jb
from jaxbandit.analysis import statistics
from jaxbandit.analysis.growth import onset, slope
from jaxbandit.analysis.ranks import holm, ranking, skewness_corrected_p
from jaxbandit.analysis.statistics import band, bootstrap_interval, exceedance, normal_interval, quantile
from jaxbandit.dataset.results import summarise
from tests.support.coverage import ROUNDS, assert_covers, curves, lognormal
from tests.support.helpers import assert_count


def settled(rng, *shape):
    """Like regret: most games go well, one in twenty settles on a wrong arm. Mean 2."""
    return rng.exponential(size=shape) + 20 * (rng.random(shape) < 0.05)


@pytest.mark.parametrize(("draw", "mean"), [(settled, 2.0), (lognormal, 1.0)])
def test_bootstrap_intervals_cover_and_normal_ones_do_not(draw, mean):
    """4000 studies of 64 seeds, nominal 95 %; misses on the upper side: normal 9 to 11 %, bootstrap 5 %."""
    samples = draw(np.random.default_rng(1), 4_000, 64)
    honest, naive = bootstrap_interval(samples, 0.95, 1_000), normal_interval(samples, 0.95)
    assert_covers((honest.low <= mean) & (honest.high >= mean), 0.95, extra=0.02)
    with pytest.raises(AssertionError):
        assert_covers((naive.low <= mean) & (naive.high >= mean), 0.95)
    assert np.mean(naive.high < mean) > 1.5 * np.mean(honest.high < mean)


def test_normal_intervals_cover_on_normal_samples():
    """2000 studies of 200 seeds, nominal 90 %."""
    samples = np.random.default_rng(2).standard_normal((2_000, 200))
    found = normal_interval(samples, 0.9)
    assert_count(int(((found.low > 0) | (found.high < 0)).sum()), 2_000, 0.1)
    np.testing.assert_allclose(found.stderr, samples.std(axis=1, ddof=1) / math.sqrt(200))


@pytest.mark.parametrize("method", ["normal", "bootstrap"])
def test_simultaneous_bands_cover_the_whole_curve(method):
    """500 studies of 100 seeds, nominal 90 %; a pointwise band leaves the curve in every other study."""
    regret, truth = curves(np.random.default_rng(3), 500, 100), ROUNDS**0.6

    def whole(**options):
        found = band(regret, level=0.9, method=method, num_resamples=500, **options)
        return ((found.low <= truth) & (found.high >= truth)).all("round").values

    assert_covers(whole(simultaneous=True), 0.9, extra=0.05 if method == "normal" else 0)
    assert whole().mean() < 0.8


def test_bands_keep_labels_and_say_how_they_were_made():
    regret = curves(np.random.default_rng(0), 3, 16).assign_coords(cell=["a", "b", "c"])
    for method in ("normal", "bootstrap"):
        found = band(regret.transpose("round", "seed", "cell"), method=method, level=0.9)
        assert method in found.attrs["band"]
        assert "90 %" in found.attrs["band"]
        assert found["mean"].dims == ("round", "cell")
        np.testing.assert_allclose(found["mean"].sel(cell="b"), regret.sel(cell="b").mean("seed"))
        assert (found.low < found["mean"]).all()
        assert (found["mean"] < found.high).all()
    again = band(regret, num_resamples=100, seed=1)
    assert again.identical(band(regret, num_resamples=100, seed=1))
    assert not again.equals(band(regret, num_resamples=100, seed=2))


def test_seeds_that_agree_have_a_band_of_no_width():
    flat = xr.DataArray(np.full((8, 2), 3.0), dims=("seed", "round"))
    for method in ("normal", "bootstrap"):
        for simultaneous in (False, True):
            found = band(flat, method=method, simultaneous=simultaneous)
            assert (found.low == 3).all()
            assert (found.high == 3).all()
    same = np.full(1_024, 660.36365413967326)
    assert same.std() > 0  # rounding
    assert statistics.mean_and_stderr(same)[1] == 0
    assert float(summarise(xr.DataArray(same[:, None], dims=("seed", "round"))).regret_stderr[0]) == 0


@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_quantiles_cover_without_moments(q):
    """2000 studies of 200 Pareto seeds of index 0.9 (no mean), nominal 95 %."""
    samples = 1 + np.random.default_rng(4).pareto(0.9, size=(2_000, 200))
    found = quantile(xr.DataArray(samples, dims=("cell", "seed")), [q]).isel(quantile=0)
    truth = (1 - q) ** (-1 / 0.9)
    assert_covers(((found.low <= truth) & (found.high >= truth)).values, 0.95)
    assert (found.high - found.low).median() < 10 * truth


def test_a_quantile_beyond_the_seeds_has_no_limit():
    found = quantile(xr.DataArray(np.arange(20.0), dims="seed"), [0.01, 0.5, 0.99])
    assert found.low[0] == -np.inf
    assert found.high[2] == np.inf
    assert np.isfinite(found.low[1])
    assert np.isfinite(found.high[1])


@pytest.mark.parametrize("probability", [0.01, 0.3])
def test_exceedance_covers(probability):
    """3000 studies of 150 seeds, nominal 95 %; Clopper and Pearson's limits are SciPy's."""
    samples = np.random.default_rng(5).random((3_000, 150))
    found = exceedance(xr.DataArray(samples, dims=("cell", "seed")), [1 - probability]).isel(threshold=0)
    covered = ((found.low <= probability) & (found.high >= probability)).values
    assert_covers(covered, 0.95)
    for n in (0, 7):
        count = round(float(found.probability[n]) * 150)
        exact = stats.binomtest(count, 150).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose([found.low[n], found.high[n]], [exact.low, exact.high], atol=1e-10)


@pytest.mark.parametrize("kind", ["log-log", "log"])
def test_slopes_cover(kind):
    """1000 studies of 64 skewed games, nominal 90 %."""
    regret = curves(np.random.default_rng(6), 1_000, 64)
    found = slope(regret, kind=kind, level=0.9, num_resamples=400)
    log_t = np.log(ROUNDS) - np.log(ROUNDS).mean()
    truth = 0.6 if kind == "log-log" else log_t @ ROUNDS**0.6 / (log_t @ log_t)
    assert_covers(((found.low <= truth) & (found.high >= truth)).values, 0.9)
    width = (found.high - found.low).median() / truth
    assert width < (0.2 if kind == "log-log" else 0.5)


def test_a_slope_is_that_of_its_window():
    mean = np.where(ROUNDS < 100, ROUNDS, 10 * np.sqrt(ROUNDS))
    regret = xr.DataArray(np.outer([0.5, 1.0, 1.5], mean), dims=("seed", "round"), coords={"round": ROUNDS})
    assert float(slope(regret, last=90).slope) == pytest.approx(1)
    found = slope(regret, first=100)
    assert float(found.slope) == pytest.approx(0.5)
    assert (found.attrs["first"], found.attrs["last"]) == (128, 2048)
    assert float(found.high - found.low) < 1e-9  # proportional games agree on the exponent
    assert np.isnan(slope(-regret).slope)
    with pytest.raises(ValueError, match="needs 2 recorded rounds between first=2000 and last=None, got 1"):
        slope(regret, first=2000)


def increments(rng, mean: np.ndarray, cells: int, seeds: int) -> xr.DataArray:
    """Games with independent exponential gains and the given mean curve."""
    gains = np.diff(mean, prepend=0) * rng.gamma(1.0, size=(cells, seeds, mean.size))
    return xr.DataArray(np.cumsum(gains, axis=-1), dims=("cell", "seed", "round"), coords={"round": ROUNDS})


def test_onset_is_not_seen_where_gains_grow():
    """400 studies of 64 seeds whose gain grows by just the margin: called past at most 5 %; never at sqrt(t)."""
    rng = np.random.default_rng(7)
    border = onset(increments(rng, np.cumsum(1.1 ** np.arange(12.0)), 400, 64), num_resamples=400)
    assert_covers(~border.passed.values, 0.95)
    roots = onset(increments(rng, ROUNDS**0.5, 400, 64), num_resamples=400)
    assert roots.passed.mean() < 0.02
    np.testing.assert_allclose(roots.ratio.mean("cell").values[-3:], 2**0.5, rtol=0.05)


def test_onset_is_found_where_it_is():
    """Gains double up to round 64 and stay after: with 10,000 seeds each comparison is 6.7 standard errors clear."""
    gains = np.where(ROUNDS <= 64 * 1.01, ROUNDS, 64.0)
    found = onset(increments(np.random.default_rng(8), np.cumsum(gains), 5, 10_000), num_resamples=300)
    assert found.passed.all()
    np.testing.assert_allclose(found.onset, 64)
    np.testing.assert_allclose(found.ratio.mean("cell"), [2.0] * 5 + [1.0] * 5, rtol=0.05)


def correlated(rng, shifts, cells: int, seeds: int) -> xr.Dataset:
    """Policies that share their luck and have skewed regrets of mean 2 + shift."""
    luck = settled(rng, cells, 1, seeds)
    own = rng.exponential(size=(cells, len(shifts), seeds)) - 1
    regret = luck + own + np.asarray(shifts)[:, None]
    coords = {"policy": [f"p{n}" for n in range(len(shifts))]}
    return xr.Dataset(
        {"regret": (("environment", "policy", "seed", "round"), regret[..., None])}, coords | {"round": [9]}
    )


def test_equals_are_seldom_declared_different():
    """1000 environments, six policies with equal means, 15 pairs each: at most 5 % have a false winner."""
    found = ranking(correlated(np.random.default_rng(9), [0.0] * 6, 1_000, 100))
    assert_covers(~(found.beaten_by > 0).any("policy").values, 0.95)
    plain = (found.p < 0.05).any(("policy", "rival"))
    assert plain.mean() > 0.2  # uncorrected, a fifth of the environments and more have one


def test_a_skewed_mean_is_tested_at_its_level():
    """3000 studies of 100 seeds, nominal 5 %; the plain t test errs twice as often."""
    samples = lognormal(np.random.default_rng(10), 3_000, 100) - 1
    assert_covers(skewness_corrected_p(samples) >= 0.05, 0.95, extra=0.025)
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / 10)
    assert np.mean(np.abs(t) > 1.96) > 1.1 * np.mean(skewness_corrected_p(samples) < 0.05)


def test_pairing_finds_what_is_there():
    """A difference of 0.5 against own noise of 1 and common noise of 4.5."""
    found = ranking(correlated(np.random.default_rng(11), [0.5, 0.0, 0.0], 1, 400)).isel(environment=0)
    assert int(found["rank"].sel(policy="p0")) == 3
    assert found.beaten_by.values.tolist() == [2, 0, 0]
    assert float(found.difference.sel(policy="p0", rival="p1")) == pytest.approx(0.5, abs=0.4)
    assert float(found.p_holm.sel(policy="p0", rival="p1")) < 1e-4
    np.testing.assert_array_equal(found.p_holm, found.p_holm.values.T)
    assert (np.diag(found.p_holm) == 1).all()


def test_the_same_policy_twice_is_a_tie():
    policies = [jb.UniINF(horizon=50), jb.UniINF(horizon=50), jb.Uniform()]
    ds = jb.simulate(policies, [jb.Bernoulli(means=[0.1, 0.9])], horizon=50, num_seeds=32, record=[10, 50])
    found = ranking(ds, at=10).isel(environment=0)
    assert int(found["round"]) == 10
    assert float(found.p[0, 1]) == 1
    assert int(found["rank"][0]) == int(found["rank"][1])


def test_holm_is_the_textbook_procedure():
    rng = np.random.default_rng(12)
    for p in rng.random((200, 7)) ** 2:
        order = np.argsort(p)
        rejected = np.zeros(7, bool)
        for step, n in enumerate(order):  # stop at the first that is not rejected
            if p[n] > 0.05 / (7 - step):
                break
            rejected[n] = True
        np.testing.assert_array_equal(holm(p) <= 0.05, rejected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: band(x, level=1.5), "level must lie between 0 and 1, got 1.5"),
        (lambda x: band(x, method="magic"), "method must be 'normal' or 'bootstrap', got 'magic'"),
        (lambda x: band(x.isel(round=0), simultaneous=True), "runs along `round`"),
        (lambda x: band(x.isel(seed=0)), "no dimension `seed`"),
        (lambda x: band(x.isel(seed=[0])), "at least 2 seeds, got 1"),
        (lambda x: quantile(x, [1.0]), "quantile levels must lie between 0 and 1, got 1.0"),
        (lambda x: slope(x, kind="cubic"), "kind must be 'log-log' or 'log', got 'cubic'"),
        (lambda x: onset(x, margin=0.0), "margin must be > 0, got 0.0"),
        (lambda x: onset(x.isel(round=[0, 1])), "compares two doublings"),
        (lambda x: ranking(xr.Dataset({"regret": x})), "needs 'regret' with dimensions `policy` and `seed`"),
        (lambda x: ranking(xr.Dataset({"regret": x.rename(cell="policy")}), at=7), "round 7 was not recorded"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(curves(np.random.default_rng(0), 2, 4))


def test_batches_of_many_seeds_give_the_interval_of_all(monkeypatch):
    """Beside the bootstrap of every seed by itself: the same mean, and limits that are as far away."""
    rng, rounds = np.random.default_rng(0), np.array([1.0, 10.0, 100.0, 1000.0])
    sizes = rng.exponential(size=(2_003, 1)) * rng.uniform(0.5, 1.5, (2_003, 4))
    games = xr.DataArray(sizes * rounds**0.5, dims=("seed", "round"), coords={"round": rounds})
    alone = band(games), slope(games)
    monkeypatch.setattr(statistics, "MOST", 250)
    assert statistics.batched(games.values.T).shape == (4, 222)
    for name, one, other in zip(("mean", "slope"), alone, (band(games), slope(games)), strict=True):
        np.testing.assert_array_equal(one[name], other[name])
        np.testing.assert_allclose(other.high - other[name], one.high - one[name], rtol=0.1)
        np.testing.assert_allclose(other[name] - other.low, one[name] - one.low, rtol=0.1)


def test_exceedance_of_games_with_a_swept_probability():
    values = xr.DataArray(np.arange(8.0), dims="seed").assign_coords(probability="0.5x2", gain=2.0)
    assert float(statistics.exceedance(values, [3.5]).probability[0]) == 0.5

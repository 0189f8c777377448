"""Sensitivity against what is known: closed forms, SALib's own analysis, and noise that must not count.

Every statistical assertion has fixed seeds and says its false-alarm rate.
"""

import functools
import math
import sys

import numpy as np
import pytest
import xarray as xr
from SALib.analyze import morris as salib_morris
from SALib.analyze import sobol as salib_sobol
from SALib.sample import morris as morris_sample

import jaxbandit as jb
from jaxbandit import sensitivity
from jaxbandit.sensitivity import figures, tables
from jaxbandit.sensitivity.design import without_noise
from jaxbandit.sensitivity.local import _estimates
from jaxbandit.sensitivity.morris import elementary_effects, screening
from jaxbandit.sensitivity.sobol import indices
from tests.support.toys import Product

SMALL = jb.Engine(block=64)
UNIT = jb.Exponential(means=[1.0, 2.0])  # a gap of 1


def test_uniform_play_is_linear_in_the_gap():
    ds = sensitivity.local(jb.Uniform(), UNIT, ["gap"], horizon=100, num_seeds=64, engine=SMALL)
    np.testing.assert_allclose(ds.elasticity, 1, rtol=1e-9)
    assert not ds.elasticity_extrapolated.any()
    assert ds.elasticity_stderr.item() < 1e-9


def test_the_bias_of_the_step_is_seen_and_removed():
    # R = gap * pulls: a step of 0.5 is off by sinh(0.5) / 0.5, that is 4 %, in every game alike.
    played = jb.simulate(jb.Uniform(), UNIT, horizon=100, num_seeds=64, record=[100], engine=SMALL)
    pulls = float(played.pulls.isel(arm=1).mean())
    known = functools.partial(sensitivity.local, jb.Uniform(), UNIT, ["gap"], horizon=100, num_seeds=64, step=0.5)
    plain, checked = known(check_seeds=0, engine=SMALL), known(check_seeds=64, engine=SMALL)
    assert plain.gradient.item() == pytest.approx(pulls * math.sinh(0.5) / 0.5, rel=1e-6)
    assert math.isnan(plain.bias.item())
    assert checked.extrapolated.item()
    assert checked.gradient.item() == pytest.approx(pulls, rel=1e-3)
    assert checked.bias.item() == pytest.approx(pulls * (math.sinh(0.5) / 0.5 - 1), rel=0.02)


def test_a_gradient_has_its_truth_within_its_errors():
    sweep = jb.grid(Product, a=[0.3, 0.6], b=0.5)
    ds = sensitivity.local(sweep, UNIT, ["a", "gap"], horizon=100, num_seeds=512, seed=1, step={"a": 0.2}, engine=SMALL)
    assert ds.gradient.dims == ("a", "parameter")
    truth = np.array([[50, 100 * a * 0.5] for a in (0.3, 0.6)])
    # z = 5: a false alarm in 1.7 million for each of four
    assert (abs(ds.gradient - truth) <= 5 * ds.gradient_stderr + 1e-3 * truth).all()
    assert (abs(ds.elasticity - 1) <= 5 * ds.elasticity_stderr + 1e-6).all()
    assert ds.step.values.tolist() == [0.2, 0.1]
    # Half the seeds at each point would share no luck: the difference is then of two binomial counts.
    p = np.array([0.3, 0.6]) * 0.5
    up, down = p * math.exp(0.2), p * math.exp(-0.2)
    expected = (up * (1 - up) + down * (1 - down)) / ((up - down) * (1 - (up - down)))
    np.testing.assert_allclose(ds.variance_reduction.sel(parameter="a"), expected, rtol=0.3)


@pytest.mark.parametrize(("h", "checked"), [(0.1, 0), (1.0, 48)], ids=["plain", "extrapolated"])
def test_standard_errors_are_honest(h, checked):
    # 400 made-up studies of 64 seeds, coupled binomial games that differ in scale: their spread is the standard error
    # they state, within 5 of its own errors (3.5 % each).
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        luck, scale = rng.random((64, 400), dtype=np.float32), rng.gamma(8, size=64)
        regret = [scale * (luck < 0.2 * math.exp(step)).sum(axis=1) for step in (h, -h, h / 2, -h / 2)]
        half = [one[:checked] for one in regret[2:]] if checked else []
        found.append(_estimates(regret[0], regret[1], half, h, 1.0))
    assert np.mean([one["extrapolated"] for one in found]) == (1 if checked else 0)
    for name in ("gradient", "elasticity")[: 1 if checked else 2]:
        stated = math.sqrt(np.mean([one[f"{name}_stderr"] ** 2 for one in found]))
        assert np.std([one[name] for one in found], ddof=1) == pytest.approx(stated, rel=5 / math.sqrt(800))
    truth = {"gradient": 8 * 400 * 0.2, "elasticity": 1}
    for name, value in truth.items():
        # A step of 0.1 leaves 0.17 % of bias, extrapolation from a step of 1 leaves 1/480 of the gradient.
        mean = np.mean([one[name] for one in found])
        error = np.std([one[name] for one in found], ddof=1) / math.sqrt(400)
        assert abs(mean - value) < 5 * error + 0.003 * value


def test_blocks_change_nothing():
    def study(engine):
        return sensitivity.local(Product(), UNIT, ["a", "b"], horizon=50, num_seeds=100, engine=engine)

    xr.testing.assert_identical(study(SMALL), study(jb.Engine(block=192, chunk=7)))


def test_a_list_has_nan_where_a_name_does_not_occur():
    ds = sensitivity.local([Product(), jb.Uniform()], [UNIT], ["a", "gap"], horizon=20, num_seeds=16, engine=SMALL)
    assert ds.gradient.dims == ("policy", "environment", "parameter")
    assert np.isnan(ds.gradient.sel(policy="uniform", parameter="a")).all()
    assert ds.gradient.notnull().sum() == 3
    assert len(tables.rows(ds)) == 3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"parameters": []}, "parameters is empty"),
        ({"parameters": ["num_arms"]}, "no parameter 'num_arms'"),
        ({"step": -1.0}, "step of a must be a number above 0"),
        ({"step": {"b": 0.1}}, "'b', which is not among the parameters: a"),
        ({"step": 1.0}, "a step of 1 takes a from 0.5 to 1.35.*must be < 1.*smaller step"),
        ({"num_seeds": 1}, "num_seeds must be a whole number >= 2"),
        ({"check_seeds": 99}, "check_seeds must be at most num_seeds = 16"),
    ],
)
def test_bad_local_requests_are_refused(values, message):
    given = {"parameters": ["a"], "horizon": 10, "num_seeds": 16} | values
    with pytest.raises(ValueError, match=message):
        sensitivity.local(Product(), UNIT, given.pop("parameters"), **given)


BOX = {"a": [0.1, 0.9], "b": [0.4, 0.6]}


def product_indices():
    """First order and total of a * b, independent and uniform in BOX."""
    means, variances = np.array([0.5, 0.5]), np.array([0.8, 0.2]) ** 2 / 12
    alone, together = variances * means[::-1] ** 2, variances.prod()
    variance = alone.sum() + together
    return alone / variance, (alone + together) / variance, variance


def test_sobol_indices_of_a_product_are_known():
    ds = sensitivity.sobol(
        Product(), UNIT, BOX, horizon=50, num_seeds=16, num_points=256, scale="linear", num_resamples=50, engine=SMALL
    )
    first, total, variance = product_indices()
    np.testing.assert_allclose(ds.first_order, first, atol=0.03)
    np.testing.assert_allclose(ds.total_order, total, atol=0.03)
    np.testing.assert_allclose(ds.variance, 2500 * variance, rtol=0.05)
    for name in ("first_order", "total_order"):
        assert ((ds[f"{name}_low"] < ds[name]) & (ds[name] < ds[f"{name}_high"])).all()
    # The response to a alone is 50 * a * E[b]; a bin has about 50 points that differ in b and in luck.
    np.testing.assert_allclose(ds.response.sel(parameter="a"), 25 * ds.response_value.sel(parameter="a"), rtol=0.15)
    assert ds.range_scale.values.tolist() == ["linear", "linear"]


def test_log_ranges_are_even_in_the_logarithm():
    ds = sensitivity.sobol(
        Product(), UNIT, {"a": [0.01, 0.81]}, horizon=10, num_seeds=2, num_points=8, num_resamples=2, engine=SMALL
    )
    np.testing.assert_allclose(ds.response_value[0], 0.01 * 81 ** ((np.arange(10) + 0.5) / 10))


def rough(rng, num_rows=64, count=3):
    """A made-up Sobol' table of expected regrets, [rows, 2 + D], with independent rows."""
    a, b = rng.random((2, num_rows, count))
    weights = np.arange(1, count + 1)

    def model(x):
        return 10 + x @ weights + 2 * x[:, 0] * x[:, 1]

    mixed = [model(np.where(np.arange(count) == j, b, a)) for j in range(count)]
    return np.stack([model(a), *mixed, model(b)], axis=1)


def test_without_noise_the_indices_are_salibs():
    table = rough(np.random.default_rng(0))
    found = indices(np.stack([table, table]), level=0.95, num_resamples=2, seed=0)
    problem = {"num_vars": 3, "names": ["x", "y", "z"], "bounds": [[0, 1]] * 3}
    known = salib_sobol.analyze(problem, table.ravel(), calc_second_order=False, num_resamples=2, seed=1)
    np.testing.assert_allclose(found["first_order"], known["S1"], rtol=1e-10)
    np.testing.assert_allclose(found["total_order"], known["ST"], rtol=1e-10)
    np.testing.assert_allclose(found["noise_variance"], 0, atol=1e-12)


def test_noise_is_taken_off_without_bias():
    # Noise with a part that all points of a seed share, as under common random numbers, and a part of their own.
    rng = np.random.default_rng(0)
    truth = rough(rng)
    plugged, corrected = [], []

    def spread(table):
        return table.var(axis=(-2, -1))

    for _ in range(400):
        noise = rng.normal(size=(4, 1, 5)) + 2 * rng.normal(size=(4, *truth.shape))
        table = truth + noise
        plugged.append(spread(table.mean(axis=0)))
        corrected.append(without_noise(spread, table)[0])
    error = np.std(corrected, ddof=1) / math.sqrt(400)
    assert abs(np.mean(corrected) - spread(truth)) < 5 * error  # a false alarm in 1.7 million
    assert np.mean(plugged) - spread(truth) > 20 * error


@pytest.mark.slow
def test_intervals_cover():
    # 100 made-up studies of 64 rows and 8 noisy seeds; 95 % intervals of the largest index. A true coverage of 95 %
    # leaves fewer than 85 inside in one of a hundred thousand.
    inside = {"first_order": 0, "total_order": 0}
    rng = np.random.default_rng(0)
    huge = indices(np.stack([rough(rng, 400_000)] * 2), level=0.95, num_resamples=2, seed=0)
    for n in range(100):
        table = rough(rng)
        table = table + rng.normal(size=(8, *table.shape))
        found = indices(table, level=0.95, num_resamples=100, seed=n)
        for name in inside:
            inside[name] += found[f"{name}_low"][2] <= huge[name][2] <= found[f"{name}_high"][2]
    assert min(inside.values()) >= 85, inside


def test_morris_effects_are_salibs():
    problem = {"num_vars": 3, "names": ["x", "y", "z"], "bounds": [[0.0, 1.0]] * 3}
    units = morris_sample.sample(problem, 20, num_levels=4, seed=3)
    regret = 5 + units @ [1.0, -2.0, 0.0] + 4 * units[:, 0] * units[:, 1]
    known = salib_morris.analyze(problem, units, regret, num_resamples=2, seed=1)
    effects = elementary_effects(units, np.stack([regret, regret], axis=1), 20)
    found = screening(effects, level=0.95, num_resamples=20, seed=0)
    np.testing.assert_allclose(found["mu"], known["mu"], atol=1e-12)
    np.testing.assert_allclose(found["mu_star"], known["mu_star"], atol=1e-12)
    np.testing.assert_allclose(found["sigma"], known["sigma"], atol=1e-7)
    assert (found["noise"] == 0).all()


def test_morris_sees_what_matters():
    ds = sensitivity.morris(
        Product(), UNIT, BOX, horizon=50, num_seeds=64, scale="linear", num_resamples=50, engine=SMALL
    )
    # Crossing its range, a adds 50 * 0.8 * b with b from 0.4 to 0.6, and b adds 50 * 0.2 * a.
    assert 15 < ds.mu.sel(parameter="a") < 25
    assert 1 < ds.mu.sel(parameter="b") < 9
    assert (ds.mu_star_low <= ds.mu_star).all()
    assert (ds["size"] <= np.hypot(ds.mu_star, 2 * ds.sigma)).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_points": 100}, "power of two"),
        ({"num_seeds": 1}, "noise of a mean is estimated from at least two"),
        ({"box": {"a": [0.1, 1.5]}}, r"range of a, \[0.1, 1.5\], reaches invalid values: Product.a must be < 1"),
        ({"box": {"num_arms": [1.0, 2.0]}}, "no parameter 'num_arms'"),
        ({"level": 2.0}, "level"),
    ],
)
def test_bad_boxes_are_refused_before_play(values, message):
    given = {"box": BOX, "horizon": 10, "num_seeds": 4} | values
    with pytest.raises(ValueError, match=message):
        sensitivity.sobol(Product(), UNIT, given.pop("box"), **given)


def test_a_box_in_which_nothing_varies_has_no_indices():
    still = jb.Exponential(means=[1.0, 1.0])
    with pytest.warns(UserWarning, match="not above its noise"):
        ds = sensitivity.sobol(
            Product(), still, BOX, horizon=10, num_seeds=4, num_points=8, num_resamples=2, engine=SMALL
        )
    assert ds.total_order.isnull().all()
    assert tables.rows(ds)[0]["total_order"] is None


def test_the_extra_is_named_where_salib_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "SALib.sample.sobol", None)
    with pytest.raises(ValueError, match=r"pip install 'jaxbandit\[sensitivity\]'"):
        sensitivity.sobol(Product(), UNIT, BOX, horizon=10, num_seeds=4)


def test_figures_have_the_numbers(tmp_path):
    sweep = jb.grid(Product, a=[0.3, 0.6])
    local = sensitivity.local(sweep, UNIT, ["b", "gap"], horizon=20, num_seeds=16, engine=SMALL)
    data = figures.bars(local)
    assert data.value.dims == ("policy", "environment", "measure", "parameter")
    assert data.environment.values.tolist() == ["a=0.3", "a=0.6"]
    np.testing.assert_array_equal(data.value.values[0, :, 0], local.elasticity)
    assert ((data.low <= data.value) & (data.value <= data.high)).all()
    sobol = sensitivity.sobol(
        Product(), UNIT, BOX, horizon=20, num_seeds=4, num_points=16, num_resamples=10, engine=SMALL
    )
    assert figures.curves(sobol).response.dims == ("policy", "environment", "parameter", "bin")
    made = sensitivity.draw({"local": local, "sobol": sobol}, tmp_path, formats=["svg"])
    assert sorted(path.name for path in made) == ["local.svg", "response.svg", "sobol.svg"]
    assert all(path.stat().st_size > 1000 for path in made)
    with pytest.raises(ValueError, match="only sobol"):
        figures.curves(local)

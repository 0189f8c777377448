"""Labels, summaries and comparisons."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.analysis import escapes
from jaxbandit.dataset import labels, results
from jaxbandit.grid import vector_label
from jaxbandit.plots import common
from jaxbandit.report import names
from jaxbandit.types import field, pytree
from tests.support.helpers import assert_mean


@pytree
class Scaled:
    """Uniform play with a field it does not need."""

    scale: float = field(gt=0)

    def init(self, num_arms):
        return jnp.full(num_arms, 1 / num_arms)

    def probabilities(self, state, t, key):
        return state

    def update(self, state, t, x, arm, loss):
        return state


KEYS = {"horizon": 40, "num_seeds": 24, "record": [10, 40]}
ENVIRONMENT = jb.Bernoulli(means=[0.2, 0.6])


@pytest.fixture(scope="module")
def sweep():
    policies = jb.grid(jb.UniINF, horizon=40, initial_scale=[1.0, 4.0, 16.0])
    environments = jb.grid(jb.Gaussian, means=[[0.0, 1.0], [0.0, 0.5]], scale=[0.5, 1.0])
    return jb.simulate(policies, environments, **KEYS)


@pytest.fixture(scope="module")
def several():
    policies = [jb.grid(jb.UniINF, horizon=40, initial_scale=[1.0, 4.0]), jb.Uniform()]
    return jb.simulate(policies, [ENVIRONMENT, jb.Gaussian(means=[0.0, 1.0, 1.0])], **KEYS)


def test_one_dimension_per_swept_field(sweep):
    assert sweep.regret.dims == ("initial_scale", "means", "scale", "seed", "round")
    assert sweep.initial_scale.values.tolist() == [1.0, 4.0, 16.0]
    assert sweep.means.values.tolist() == ["0,1", "0,0.5"]
    assert sweep.regret.dtype == np.float64
    alone = jb.simulate(jb.UniINF(horizon=40, initial_scale=4.0), jb.Gaussian(means=[0.0, 0.5], scale=0.5), **KEYS)
    np.testing.assert_array_equal(sweep.regret.sel(initial_scale=4.0, means="0,0.5", scale=0.5), alone.regret)


def test_the_keys_of_a_dictionary_are_labels(several):
    policies = {"mine": jb.grid(jb.UniINF, horizon=40, initial_scale=[1.0, 4.0]), "uniINF": jb.UniINF(horizon=40)}
    ds = jb.simulate(policies, {"coins": ENVIRONMENT}, **KEYS)
    assert ds.policy.values.tolist() == ["mine[initial_scale=1]", "mine[initial_scale=4]", "uniINF"]
    assert ds.environment.values.tolist() == ["coins"]
    np.testing.assert_array_equal(ds.regret.isel(policy=1, environment=0), several.regret.isel(policy=1, environment=0))


def test_same_field_on_both_sides_is_prefixed():
    ds = jb.simulate(
        jb.grid(Scaled, scale=[1.0, 2.0]), jb.grid(jb.Gaussian, means=[0.0, 1.0], scale=[0.5, 1.0]), **KEYS
    )
    assert ds.regret.dims == ("policy_scale", "environment_scale", "seed", "round")


@pytest.mark.slow
def test_several_classes_are_labelled(several):
    assert several.regret.dims == ("policy", "environment", "seed", "round")
    assert several.policy.values.tolist() == ["uniinf[initial_scale=1]", "uniinf[initial_scale=4]", "uniform"]
    assert several.environment.values.tolist() == ["bernoulli", "gaussian"]
    np.testing.assert_array_equal(several.initial_scale, [1.0, 4.0, np.nan])
    assert several.sizes["arm"] == 3
    assert (several.pulls.sel(environment="bernoulli", arm=2) == 0).all()


def test_entries_of_one_class_are_told_apart():
    ds = jb.simulate([jb.UniINF(horizon=40), jb.UniINF(horizon=80)], ENVIRONMENT, **KEYS)
    assert ds.policy.values.tolist() == ["uniinf[horizon=40]", "uniinf[horizon=80]"]
    twice = jb.simulate([jb.Uniform(), jb.Uniform()], ENVIRONMENT, **KEYS)
    assert twice.policy.values.tolist() == ["uniform", "uniform#2"]


def test_product_form_of_one_class_pair(several):
    ds = results.product(several, "uniinf", "gaussian")
    assert ds.regret.dims == ("initial_scale", "seed", "round")
    np.testing.assert_array_equal(
        ds.regret.sel(initial_scale=4.0), several.regret.sel(policy="uniinf[initial_scale=4]", environment="gaussian")
    )
    with pytest.raises(ValueError, match="did you mean 'uniinf'"):
        results.product(several, "uninf", "gaussian")


def test_summary_by_hand(sweep):
    stats = jb.summary(sweep)
    regret = sweep.regret.values
    np.testing.assert_allclose(stats.regret_mean, regret.mean(axis=3))
    stderr = regret.std(axis=3, ddof=1) / np.sqrt(24)
    np.testing.assert_allclose(stats.regret_stderr, stderr)
    np.testing.assert_allclose(stats.regret_high - stats.regret_low, 2 * 2.068658 * stderr, rtol=1e-6)
    np.testing.assert_allclose(stats.regret_quantile.sel(quantile=0.5), np.median(regret, axis=3))
    assert (stats.failed == 0).all()


def test_band_covers():
    """The 95 % band of a normal mean covers it in 93 to 97 % of 2000 repetitions (z = 4)."""
    rng = np.random.default_rng(0)
    data = xr.DataArray(rng.normal(3.0, 2.0, (2000, 50)), dims=("repetition", "seed"))
    stats = jb.summary(xr.Dataset({"regret": data, "failed": xr.zeros_like(data, int)}))
    covered = float(((stats.regret_low <= 3) & (stats.regret_high >= 3)).mean())
    assert 0.92 < covered < 0.97


def test_compare_is_paired(several):
    out = jb.compare(several, "uniinf[initial_scale=1]", "uniform")
    difference = several.regret.sel(policy="uniinf[initial_scale=1]") - several.regret.sel(policy="uniform")
    np.testing.assert_allclose(out.difference, difference.mean("seed"))
    np.testing.assert_allclose(out.stderr, difference.std("seed", ddof=1) / np.sqrt(24))
    assert set(out.difference.dims) == {"environment", "round"}


def test_common_random_numbers_help():
    sweep = jb.grid(jb.UniINF, horizon=400, initial_scale=[4.0, 4.4])
    environment, large = jb.Bernoulli(means=[0.3, 0.5]), {"horizon": 400, "num_seeds": 400, "record": [400]}
    ds = jb.simulate(sweep, environment, **KEYS | large)
    out = jb.compare(ds, {"initial_scale": 4.0}, {"initial_scale": 4.4})
    assert float(out.variance_ratio[-1]) > 1.5


def test_compare_says_what_is_missing(several, sweep):
    with pytest.raises(ValueError, match=r"no policy 'uninf'.*did you mean"):
        jb.compare(several, "uninf", "uniform")
    with pytest.raises(ValueError, match="no coordinate 'policy'"):
        jb.compare(sweep, "uniinf", "uniform")
    kept = jb.simulate([jb.Uniform()], ENVIRONMENT, keep="summary", **KEYS)
    with pytest.raises(ValueError, match='run with keep="seeds"'):
        jb.compare(kept, "uniform", "uniform")


def test_uniform_play_has_its_regret(several):
    """Uniform play loses the mean gap each round."""
    assert_mean(several.regret.sel(policy="uniform", environment="bernoulli").isel(round=-1), 40 * 0.2)


def test_survives_a_file(several, tmp_path):
    several.to_netcdf(tmp_path / "ds.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "ds.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), several)


def test_vector_labels():
    assert vector_label(np.array([0.5] + [1.0] * 9)) == "0.5,1x9"
    assert vector_label(np.array([0.25, 0.5])) == "0.25,0.5"


@pytest.mark.slow
def test_measures_by_arm_of_environments_with_fewer_arms_are_filled_with_zeros():
    environments = [jb.Pareto(means=[0.5] + [1.0] * more, tail_index=1.6) for more in (1, 2)]
    ds = jb.simulate(jb.Uniform(), environments, horizon=20, num_seeds=3, record=[20], trace=2)
    assert ds.pulls.dims[-1] == ds.trace_x.dims[-1] == "arm"
    few, many = (ds.isel(environment=e, arm=2) for e in (0, 1))
    assert (few.pulls == 0).all() and (few.trace_x == 0).all()
    assert (many.trace_x > 0).all()
    kept = jb.simulate(
        jb.UniINF(horizon=20), environments, horizon=20, num_seeds=3, record=[20], measures=["cumulative_lost"]
    ).cumulative_lost
    assert kept.dims[-1] == "arm" and kept.sizes["arm"] == 3
    assert (kept.isel(environment=0, arm=2) == 0).all()


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("uniinf[initial_scale=4]", "uniINF, S₁ = 4"),
        ("UniINF", "uniINF"),
        ("pareto[means=0.5,1x3,tail_index=1.6]", "Pareto, means = 0.5,1x3, tail_index = 1.6"),
        ("mine[a=1]#2", "mine, a = 1, #2"),
    ],
)
def test_a_label_is_printed_in_one_form_everywhere(label, shown):
    assert {name(label) for name in (labels.shown, common.pretty, names.pretty)} == {shown}
    assert names.short([{"label": label}]) == [names.cut(shown)]
    assert escapes.latex(shown) == shown.replace("S₁", "$S_1$").replace("_i", r"\_i").replace("#", r"\#")

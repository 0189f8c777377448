"""Tuning and worst cases of policies whose best value and worst environment are known."""

import json
import threading
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit.cli.entry import app
from jaxbandit.engine.native import games as compiled_games
from jaxbandit.runs.coupled import final_regret
from jaxbandit.search import traces
from jaxbandit.search.arena import TEST, derived_seed
from jaxbandit.search.study import tune_study, worst_study
from jaxbandit.types import Array, field, pytree
from tests.support.helpers import assert_mean

ENVIRONMENT = jb.Bernoulli(means=[0.25, 0.75])
BEST = {"rate": 2.0, "width": 0.5}
TINY = {"num_seeds": 32, "held_out_seeds": 64, "test_seeds": 256, "check_every": 5}
FEW = {"num_environments": 4, "held_out_environments": 4, "test_environments": 16}


class Nothing(NamedTuple):
    """No memory."""

    zero: Array


@pytree
class Valley:
    """Plays the bad arm with a probability that is least, 0.1, at rate = 2 and width = 1/2; learns nothing."""

    label: ClassVar[str] = "valley"

    rate: float = field(default=1.0, gt=0)
    width: float = field(default=0.5, gt=0)
    steps: int = field(default=1, whole=True, ge=1)
    kind: str = field(default="a", choices=("a", "b"))

    def init(self, num_arms):
        return Nothing(jnp.zeros(()))

    def probabilities(self, state, t, key):
        off = (jnp.log(self.rate) - np.log(2.0)) ** 2 + (jnp.log(self.width) - np.log(0.5)) ** 2
        bad = jnp.minimum(0.1 + 0.2 * off, 0.9)
        return jnp.stack([1 - bad, bad])

    def update(self, state, t, x, arm, loss):
        return state


# Plays either arm with probability 1/2, in one compiled program with the rest.
EVEN = Valley(rate=2.0 * np.exp(np.sqrt(2.0)))


def expected_regret(rate, width=0.5, horizon=50):
    """In ``ENVIRONMENT``, whose gap is 1/2."""
    off = np.log(rate / 2.0) ** 2 + np.log(width / 0.5) ** 2
    return horizon * 0.5 * min(0.1 + 0.2 * off, 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["spsa", pytest.param("differences", marks=pytest.mark.slow)])
def test_finds_the_known_minimiser_in_one_compile(gradient):
    family = jb.Family(ENVIRONMENT, {"gap": (0.4, 0.6)})
    box = {"rate": [0.1, 100.0], "width": [0.05, 20.0]}
    start = Valley(rate=0.7, width=1.0)
    jb.tune(start, family, horizon=50, parameters=box, gradient=gradient, steps=1, **TINY, **FEW)
    before = len(compiled_games._known)
    ds = jb.tune(start, family, horizon=50, parameters=box, gradient=gradient, steps=40, **TINY, **FEW)
    assert len(compiled_games._known) == before
    for name, best in BEST.items():
        assert abs(np.log(float(ds.tuned.sel(parameter=name)) / best)) < 0.25, ds.tuned.values
    truth = [expected_regret(0.7, 1.0), expected_regret(*ds.tuned.values)]
    assert float(ds.difference) == pytest.approx(truth[1] - truth[0], rel=0.15)
    assert float(ds.difference_high) < 0 and ds.attrs["within_noise"] == 0 and float(ds.p) < 1e-6
    assert ds.attrs["verdict"].startswith("tuning lowers the mean regret of")
    assert ds.value.dims == ("step", "parameter") and ds.attrs["failed"] == 0


def test_a_default_at_the_optimum_is_said_to_be_within_noise():
    ds = jb.tune(Valley(rate=2.0), ENVIRONMENT, horizon=50, parameters=["rate"], steps=5, **TINY)
    assert ds.attrs["within_noise"] == 1
    assert "the default is within noise of the optimum found" in ds.attrs["verdict"]
    assert "95 % interval" in ds.attrs["verdict"] and "-" not in ds.attrs["verdict"]
    assert ds.attrs["way"] == "native" and ds.attrs["commit"]
    assert float(ds.low[0]) == pytest.approx(0.002) and float(ds.high[0]) == pytest.approx(2_000.0)


def test_stops_early_when_the_held_out_environments_see_no_gain():
    """A rate that leads away from the optimum at every step: the start is kept."""
    uphill = optax.chain(optax.scale(-1.0), optax.adam(0.2))
    settings = TINY | {"check_every": 1}
    ds = jb.tune(
        Valley(rate=1.5),
        ENVIRONMENT,
        horizon=50,
        parameters=["rate"],
        optimiser=uphill,
        steps=50,
        patience=3,
        **settings,
    )
    assert ds.sizes["step"] < 20
    assert float(ds.tuned[0]) == pytest.approx(float(ds.value[int(np.argmin(ds.held_out.values)), 0]))


def test_paired_difference_covers_the_truth():
    """Default and tuned value fixed: 5 standard errors of the difference, a false alarm in 1.7 million."""
    still = optax.sgd(0.0)
    ds = jb.tune(
        lambda environment, horizon: Valley(rate=1.0),
        ENVIRONMENT,
        horizon=50,
        parameters=["rate"],
        optimiser=still,
        steps=1,
        **TINY,
    )
    assert float(ds.difference) == 0 and float(ds.difference_low) == 0
    default = ds.environment_regret.sel(candidate="default").item()
    assert abs(default - expected_regret(1.0)) < 5 * 0.5 * np.sqrt(50 * 0.25 / 256)


def test_resumed_trace_is_the_same_to_the_bit(tmp_path):
    def search(path, **more):
        return jb.tune(
            Valley(rate=0.7), ENVIRONMENT, horizon=50, parameters=["rate", "width"], steps=8, path=path, **TINY, **more
        )

    whole = search(tmp_path / "whole.nc")
    stop = threading.Event()

    def progress(done, total):
        if done > total / 4:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "part.nc", stop=stop, engine=jb.Engine(progress=progress))
    part = xr.load_dataset(tmp_path / "part.nc", engine="h5netcdf")
    assert 0 < part.sizes["step"] < 8 and part.attrs["done"] == 0
    resumed = search(tmp_path / "part.nc")
    names = ("value", "gradient", "gradient_stderr", "objective", "held_out", "tuned", "difference_low", "regret")
    for name in names:
        np.testing.assert_array_equal(resumed[name], whole[name])
    again = search(tmp_path / "part.nc")  # what is done is read, not played
    assert again.attrs["run_seconds"] == resumed.attrs["run_seconds"]
    with pytest.raises(ValueError, match=r"made with other settings .*steps = 8, now 9"):
        jb.tune(
            Valley(rate=0.7),
            ENVIRONMENT,
            horizon=50,
            parameters=["rate", "width"],
            steps=9,
            path=tmp_path / "part.nc",
            **TINY,
        )
    (tmp_path / "foreign.nc").write_bytes(b"no netCDF")
    with pytest.raises(ValueError, match=r"foreign.nc is not the trace of a search"):
        search(tmp_path / "foreign.nc")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parameters": ["kind"]}, "kind cannot be moved: it is static.*can be moved: rate, width"),
        (
            {"parameters": ["steps"]},
            "steps cannot be moved: it takes whole numbers.*these can be moved: rate, width",
        ),
        ({"parameters": {"rate": [-1.0, 2.0]}}, r"bounds of Valley.rate must be positive"),
        ({"parameters": ["rate"], "patients": 3}, "unknown key 'patients'; did you mean 'patience'"),
        ({"parameters": ["rate"], "gradient": "score"}, "gradient must be 'spsa' or 'differences', got 'score'"),
        ({"parameters": ["rate"], "steps": 0}, "steps must be >= 1, got 0"),
    ],
)
def test_bad_settings_name_the_remedy(settings, message):
    with pytest.raises(ValueError, match=message):
        jb.tune(Valley(), ENVIRONMENT, horizon=50, **settings)


def test_uniform_play_is_worst_at_the_largest_gap():
    """Its regret is T gap / 2 in expectation: known for the instance found, and at most that at the edge."""
    family = jb.Family(jb.Bernoulli(means=[0.2, 0.5]), {"gap": (0.05, 0.8)})
    small = {"num_seeds": 32, "final_seeds": 64, "test_seeds": 512}
    ds = jb.worst(EVEN, family, horizon=100, steps=12, **small)
    assert float(ds.worst[0]) == pytest.approx(0.8, rel=1e-3)
    stderr = 0.8 * np.sqrt(100 * 0.25 / 512)
    assert abs(float(ds.regret) - 40.0) < 5 * stderr  # a false alarm in 1.7 million
    assert float(ds.searched) > float(ds.regret)  # the winner's curse
    assert float(ds.given_regret) == pytest.approx(15.0, rel=0.1)
    climbed = jb.worst(EVEN, family, horizon=100, steps=25, method="gradient", **small)
    assert float(climbed.worst[0]) > 0.6
    curve = jb.worst(EVEN, family, horizon=[50, 200], steps=5, **small)
    assert curve.regret.dims == ("horizon",) and float(curve.slope) == pytest.approx(1, abs=0.1)
    assert float(curve.slope_low) < float(curve.slope) < float(curve.slope_high)


def test_fresh_games_are_fresh():
    """Found values of many searches under pure noise have no bias once played again; the search's own have."""
    family = jb.Family(jb.Bernoulli(means=[0.2, 0.7]), {"gap": (0.5, 0.500001)})
    small = {"num_seeds": 4, "final_seeds": 8, "test_seeds": 8, "steps": 5, "population": 4}
    found = [jb.worst(EVEN, family, horizon=20, seed=n, **small) for n in range(6)]
    assert_mean([float(ds.regret) for ds in found], 5.0)
    assert np.mean([float(ds.searched) for ds in found]) > 5.2  # 0.65 above, with a standard error of 0.15


@pytest.mark.parametrize("method", ["evolution", pytest.param("gradient", marks=pytest.mark.slow)])
def test_worst_case_resumes_to_the_same_bits(tmp_path, method):
    path, family = tmp_path / "t.nc", jb.Family(ENVIRONMENT, {"gap": (0.1, 0.6)})
    small = {"num_seeds": 16, "final_seeds": 16, "test_seeds": 32, "steps": 4, "method": method}
    whole = jb.worst(EVEN, family, horizon=40, path=path, **small)
    rows = [name for name in whole.data_vars if "step" in whole[name].dims]
    cut = xr.load_dataset(path, engine="h5netcdf")[rows].isel(step=slice(2)).assign_attrs(done=0)
    traces.write(cut, path)
    resumed = jb.worst(EVEN, family, horizon=40, path=path, **small)
    for name in [*rows, "worst", "regret", "regret_low"]:
        np.testing.assert_array_equal(resumed[name], whole[name])
    cut["point" if method == "evolution" else "value"][0] = 0.2  # a trace of another search
    traces.write(cut, path)
    with pytest.raises(ValueError, match="holds steps that this search would not take"):
        jb.worst(EVEN, family, horizon=40, path=path, **small)


@pytest.mark.slow
def test_a_policy_is_told_the_environment_it_meets():
    def told(environment, horizon):
        return jb.HTINF(
            moment_order=environment.moment_order, moment_bound=environment.moment(environment.moment_order)
        )

    family = jb.Family(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), {"tail_index": (1.2, 1.9), "gap": (0.1, 1.0)})
    small = {"num_seeds": 16, "final_seeds": 16, "test_seeds": 32, "steps": 4}
    ds = jb.worst(told, family, horizon=40, objective="ratio", **small)
    alpha = 1 + 0.9 * (float(ds.worst.sel(parameter="tail_index")) - 1)
    assert float(ds.moment_order) == pytest.approx(alpha)
    environment = family.at(dict(zip(ds.parameter.values.tolist(), ds.worst.values.tolist(), strict=True)))
    again = final_regret([told(environment, 40)], [environment], horizon=40, num_seeds=32, seed=derived_seed(0, TEST))
    assert float(ds.regret) == pytest.approx(again.mean(), rel=1e-6)
    assert float(ds.estimate.max()) < float(ds.searched) + 1e-9 < 2.0  # in units of the bound


@pytest.mark.slow
def test_switch_times_can_be_searched():
    """A policy that stays with arm 0 suffers most where the arms change places early."""
    family = jb.Family(jb.Swap(jb.Bernoulli(means=[0.2, 0.8])), {"at": (0.05, 0.95)})
    ds = jb.worst(Valley(rate=2.0), family, horizon=100, steps=10, num_seeds=16, final_seeds=32, test_seeds=64)
    assert float(ds.worst[0]) < 0.1  # after the swap the arm it plays is the bad one
    with pytest.raises(ValueError, match=r"horizon cannot be moved: it takes whole numbers only|horizon.*not set"):
        jb.worst(Valley(), jb.Family(jb.Swap(ENVIRONMENT), {"horizon": (5.0, 10.0)}), horizon=100)


OTHER = """
[[policies]]
name = "tests.search.test_tune:Valley"
label = "other valley"
rate = 0.5
"""
STUDY = (
    """
title = "a search"
horizon = 60
num_seeds = 8

[[policies]]
name = "tests.search.test_tune:Valley"
label = "valley"
"""
    + OTHER
    + """
[[environments]]
name = "bernoulli"
means = [0.2, 0.6]

[worst]
parameters = {gap = [0.1, 0.6]}
horizons = [30, 60]
steps = 2
num_seeds = 8

[tune]
parameters = {rate = [0.1, 40.0]}
environments = {gap = [0.2, 0.6]}
steps = 2
num_environments = 2
num_seeds = 8
"""
)


def test_command_line(tmp_path):
    path, out = tmp_path / "study.toml", tmp_path / "out"
    path.write_text(STUDY.replace(OTHER, ""))
    run = CliRunner().invoke
    done = run(app, ["tune", str(path), "--out", str(out), "--quick"], catch_exceptions=False)
    assert "tuned values against the defaults" in done.stdout and "valley: " in done.stdout
    assert {p.name for p in out.iterdir()} == {"tune-valley.nc", "tune-valley.png"}


@pytest.mark.slow
def test_command_line_for_programs(tmp_path):
    path, out = tmp_path / "study.toml", tmp_path / "out"
    path.write_text(STUDY)
    run = CliRunner().invoke
    done = run(app, ["worst", str(path), "--out", str(out), "--quick", "--json"], catch_exceptions=False)
    rows = json.loads(done.stdout)["results"]
    expected = [("valley", 30), ("valley", 60), ("other valley", 30), ("other valley", 60)]
    assert [(row["policy"], row["horizon"]) for row in rows] == expected
    assert all(row["regret_low"] <= row["regret"] <= row["regret_high"] and row["bound"] > 0 for row in rows)
    assert {p.name for p in out.glob("*.png")} == {"worst-bernoulli.png"}
    done = run(app, ["worst", str(path), "--out", str(out), "--quick"], catch_exceptions=False)
    assert "worst instances found" in done.stdout and "grows like T^" in done.stdout
    done = run(app, ["tune", str(path), "--out", str(out), "--quick", "--json"], catch_exceptions=False)
    assert [row["steps"] for row in json.loads(done.stdout)["results"]] == [2, 2]


@pytest.mark.parametrize(("first", "second"), [("other/valley", "other_valley"), ("Valley", "valley")])
def test_searches_that_need_the_same_file_are_refused(tmp_path, first, second):
    text = STUDY.replace('"other valley"', f'"{first}"').replace('"valley"', f'"{second}"')
    (tmp_path / "study.toml").write_text(text)
    study = jb.Study.load(tmp_path / "study.toml")
    both = {f"'{label}'" for label in (first, second)}
    for search, file in ((tune_study, f"tune-{second}.nc"), (worst_study, f"worst-{second}-bernoulli.nc")):
        with pytest.raises(
            ValueError, match=r"the searches of .* need the same file.*; give one another label"
        ) as said:
            list(search(study, tmp_path))
        assert all(label in str(said.value) for label in both) and file.casefold() in str(said.value).casefold()
    assert not list(tmp_path.glob("*.nc"))


def test_study_sections_are_checked(tmp_path):
    def load(text):
        (tmp_path / "study.toml").write_text(text)
        return jb.Study.load(tmp_path / "study.toml")

    study = load(STUDY)
    assert jb.Study.load(study.save(tmp_path / "copy.toml")).tune == study.tune
    with pytest.raises(ValueError, match="tune: unknown key 'num_environment'; did you mean 'num_environments'"):
        load(STUDY.replace("num_environments", "num_environment"))
    with pytest.raises(ValueError, match="Valley has no parameter 'rat' that can be moved; did you mean 'rate'"):
        list(tune_study(load(STUDY.replace("{rate", "{rat")), tmp_path))
    with pytest.raises(ValueError, match=r"no \[tune\] section"):
        list(tune_study(load(STUDY[: STUDY.index("[tune]")]), tmp_path))
    with pytest.raises(ValueError, match=r"Valley sweeps rate; a search starts from one policy"):
        list(worst_study(load(STUDY.replace("rate = 0.5", "rate = [0.5, 1.0]")), tmp_path))
    with pytest.raises(ValueError, match=r"horizons: .*must be increasing rounds"):
        load(STUDY.replace("[30, 60]", "[60, 30]"))
    told = STUDY.replace(
        '"tests.search.test_tune:Valley"', '"htinf"\nmoment_order = "environment"\nmoment_bound = "environment"', 1
    )
    with pytest.raises(ValueError, match="leave the key moment_order out"):
        list(worst_study(load(told.replace("means = [0.2, 0.6]", "means = [0.2, 0.6]\nmoment_order = 1.5")), tmp_path))


@pytest.mark.slow
def test_tuning_for_the_tail_of_regret():
    """Mean and CVaR have one optimum in the valley; the CVaR's own value is that of the worst tenth."""
    ds = jb.tune(
        Valley(rate=0.5),
        ENVIRONMENT,
        horizon=100,
        parameters={"rate": [0.05, 50.0]},
        objective="cvar",
        steps=60,
        **TINY,
    )
    assert abs(np.log(float(ds.tuned[0]) / 2.0)) < 0.35
    regret = ds.environment_regret.sel(candidate="tuned").item()
    assert float(ds.regret.sel(candidate="tuned")) > regret + 1
    assert "CVaR" in ds.attrs["verdict"]


@pytest.mark.slow
def test_tuned_uniinf_beats_its_default_on_unseen_environments():
    """The gain is far beyond noise (some 40 % at this horizon), so that the sign cannot flip."""
    family = jb.Family(jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6), {"tail_index": (1.2, 2.0), "gap": (0.2, 1.0)})
    ds = jb.tune(
        jb.UniINFVariant(horizon=1_000),
        family,
        horizon=1_000,
        parameters={"initial_scale": [0.05, 50.0], "threshold_constant": [0.02, 5.0]},
        steps=30,
        num_seeds=32,
    )
    assert float(ds.difference_high) < 0

"""The experiments load and are cut down well; study files mean what they say."""

import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit.cli import entry as cli
from jaxbandit.store import cells
from jaxbandit.studies.figures import read_figures
from jaxbandit.studies.quick import thinned
from jaxbandit.studies.study import DataNeededError, Study, parse
from jaxbandit.theory import guarantees as theory

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"


def study(policies, environments, **options):
    options = {"horizon": 100, "num_seeds": 8} | options
    return parse(options | {"policies": policies, "environments": environments})


PARETO = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.5}


# The files.


def paths():
    return sorted(path for path in EXPERIMENTS.glob("*.toml") if "needs_data" not in path.read_text())


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_experiments_load_and_are_cut_down(path):
    full = Study.load(path)
    searched = full.sensitivity or full.tune or full.worst  # these commands draw their own
    assert full.figures or searched or path.stem == "quickstart"
    quick = full.quick()
    assert quick.horizon <= 2_000
    assert quick.num_seeds <= 64
    assert [one.file for one in quick.figure_list()] == [one.file for one in full.figure_list()]
    programs = {
        (type(game.policy), getattr(game.policy, "scale_loss", ""), type(game.environment), game.environment.num_arms)
        for game in cells.pairs(quick)
    }
    assert len(programs) <= 9  # compiling is what a quick run takes


def test_table_1_has_the_environments_asked_for():
    full = Study.load(EXPERIMENTS / "table1.toml")
    environments = [environment.environment for environment in full.resolved.declared]
    orders = {round(float(environment.moment_order), 3) for environment in environments}
    assert orders == {1.1, 1.3, 1.5, 1.8, 2.0}
    assert {environment.num_arms for environment in environments} == {2, 10, 50}
    kinds = [type(environment) for environment in environments]
    assert {kind: kinds.count(kind) for kind in kinds} == {jb.Pareto: 15, jb.Switching: 15, jb.Shifting: 10}
    assert {entry.name for entry in full.resolved.policies} <= set(theory.GUARANTEES)
    assert (full.horizon, full.num_seeds >= 128) == (1_000_000, True)


def test_measured_tables_come_from_the_user(tmp_path):
    path = EXPERIMENTS / "real_tables.toml"
    with pytest.raises(DataNeededError, match="--data DIR: a directory of tables"):
        Study.load(path)
    done = CliRunner().invoke(cli.app, ["run", str(path), "--quick"])
    assert (done.exit_code, done.output.startswith("skipped: ")) == (0, True)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "long.npy", rng.exponential(size=(5_000, 3)))
    np.save(tmp_path / "short.npy", 50 * rng.exponential(size=(40, 2)))
    np.savez(tmp_path / "two.npz", day=rng.exponential(size=(60, 2)), night=np.ones((3_000, 2)), hours=np.arange(9))
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n")
    (tmp_path / "notes.md").write_text("no table")
    left_out = r"(short.npy|two.npz, day,) is left out: in stored order its [46]0 rows|bad.csv is left out: "
    with pytest.warns(UserWarning, match=left_out):
        environments = Study.load(path, tmp_path).resolved.environment_grids
    found = [(point.name, point.order) for grid in environments for point in grid.points]
    resampled = [(name, "resampled") for name in ("long", "short", "two:day", "two:night")]
    assert found == [*resampled, ("long", "stored"), ("two:night", "stored")]
    np.testing.assert_allclose(
        [np.quantile(np.abs(point.losses) * point.scale, 0.99) for grid in environments for point in grid.points],
        1,
        rtol=1e-5,
    )
    with pytest.raises(ValueError, match="no usable table of 100 rounds matches 'x\\*'"):
        study([{"name": "uniform"}], [{"name": "replay", "table": "x*"}])


# What a study file can say.


def test_factors_multiply_what_the_environment_declares():
    entry = {
        "name": "htinf",
        "moment_order": "environment",
        "moment_bound": "environment",
        "moment_bound_factor": [0.1, 1.0, 10.0],
    }
    made = study([entry], [PARETO])
    environment = made.resolved.declared[0].environment
    sigma = environment.moment(environment.moment_order)
    ((grid,),) = made.resolved.policy_grids
    np.testing.assert_allclose([point.moment_bound for point in grid.points], sigma * np.array([0.1, 1, 10]), rtol=1e-6)
    assert {point.moment_order for point in grid.points} == {environment.moment_order}
    assert [row["moment_bound_factor"] for row in grid.rows()] == [0.1, 1.0, 10.0]


def test_who_is_told_a_wrong_order_is_told_the_bound_of_the_right_one():
    entry = {"name": "htinf", "moment_order": "environment", "moment_bound": "environment", "moment_order_factor": 1.3}
    environment = study([entry], [PARETO]).resolved.declared[0].environment
    point = study([entry], [PARETO]).resolved.policy_grids[0][0].points[0]
    assert point.moment_order == pytest.approx(1.3 * environment.moment_order)
    assert point.moment_order > 1.5  # the environment has no such moment
    assert point.moment_bound == pytest.approx(environment.moment(environment.moment_order))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"moment_order": 1.5, "moment_bound": 2.0, "moment_bound_factor": 2.0}, 'set moment_bound = "environment"'),
        (
            {"moment_order": "environment", "moment_bound": "environment", "moment_bound_factor": [1.0, -1.0]},
            "above 0.*got -1.0",
        ),
        (
            {"moment_order": "environment", "moment_bound": "environment", "horizon_factor": 2.0},
            "no field 'horizon_factor'",
        ),
        (
            {"moment_order": "environment", "moment_bound": "environment", "moment_order_factor": 3.0},
            "moment_order must be",
        ),
        (
            {"moment_order": "environment", "moment_bound": "environment", "stop_at": 0},
            "stop_at must be a whole number >= 1",
        ),
        (
            {"moment_order": [1.5, 1.6], "moment_bound": 2.0, "zip": [["moment_order", []]]},
            r"zip names \[\], which is not swept",
        ),
    ],
)
def test_bad_entries_say_what_to_do(values, message):
    with pytest.raises(ValueError, match=message):
        study([{"name": "htinf", **values}], [PARETO])


def test_a_policy_may_stop_earlier(tmp_path):
    policies = [{"name": "uniform", "stop_at": stop} for stop in (30, 50, 100)]
    environments = [{"name": "bernoulli", "means": [0.2, 0.8]}, {"name": "bernoulli", "means": [0.1, 0.5, 0.9]}]
    made = study(policies, environments, record=4)
    told = study([{"name": "uniinf", "stop_at": 50}], environments).resolved.policy_grids[0][0].points[0].horizon
    assert told == 50  # as long as it plays
    ds = jb.run(made, tmp_path)
    assert ds["round"].values.tolist() == [1, 5, 22, 30, 50, 100]
    for n, stop in enumerate((30, 50, 100)):
        played = ds.regret.isel(policy=n).notnull().all(["environment", "seed"])
        np.testing.assert_array_equal(played, ds["round"] <= stop)
        pulls = ds.pulls.isel(policy=n, environment=0).sel(round=stop)
        np.testing.assert_array_equal(pulls.sum("arm"), stop)
        np.testing.assert_array_equal(pulls.isel(arm=2), 0)  # an arm the environment lacks
    np.testing.assert_array_equal(ds.regret[0].sel(round=30), ds.regret[2].sel(round=30))
    assert made.changed(horizon=20).rounds()[-1] == 20


def test_figures_are_checked_when_a_study_is_read():
    good = read_figures(
        ["table", {"name": "atlas", "x": "tail_index", "y": "gap", "file": "map", "policies": "uniinf"}]
    )
    assert [(figure.file, dict(figure.options)) for figure in good] == [
        ("table", {}),
        ("map", {"x": "tail_index", "y": "gap"}),
    ]
    for figures, message in (
        (["both_world"], "unknown figure 'both_world'; did you mean 'both_worlds'"),
        ([{"name": "sweep"}], "'sweep' needs x"),
        ([{"name": "sweep", "x": "gap", "z": 1}], "'sweep' has no option 'z'"),
        (["table", "table"], "two figures would be written to 'table'"),
        ([{"name": "table", "file": 3}], "file must be text, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            study([{"name": "uniform"}], [PARETO], figures=figures)


def test_quick_plays_the_policies_it_names():
    policies = [{"name": "uniform"}, {"name": "ucb1", "label": "mine"}, {"name": "exp3"}]
    made = study(policies, [PARETO], quick_policies=["uniform", "mine"])
    assert [entry.name for entry in made.quick().resolved.policies] == ["uniform", "ucb1"]
    with pytest.raises(ValueError, match="quick_policies names 'unifrm'; did you mean 'uniform'"):
        study(policies, [PARETO], quick_policies=["unifrm"])


def test_quick_keeps_the_ends_of_a_sweep():
    entry = {"name": "corrupted", "budget": [10, 100, 1000], "law": {"name": "pareto", "tail_index": [1.1, 1.5, 2.0]}}
    assert thinned(entry, ["budget", "law"], share=0.1) == {
        "name": "corrupted",
        "budget": [1, 100],
        "law": {"name": "pareto", "tail_index": [1.1, 2.0]},
    }
    laws = [{"name": "pareto", "means": [0.5, 1.0]}, {"name": "pareto", "means": [0.5, 1.0, 1.0]}]
    assert thinned({"name": "swap", "law": laws}, ["law"])["law"] == laws[:1]
    for zipped in (["a", "b"], [["a", "b"]]):  # b has values of two shapes, so its first alone is kept, and that of a
        thin = thinned({"a": [1, 2, 3], "b": [1, [2, 2], 3], "c": [1, 2, 3], "zip": zipped}, ["a", "b", "c"])
        assert thin == {"a": [1], "b": [1], "c": [1, 3], "zip": zipped}

"""Environments in studies: laws inside environments, tables from files and Python, dependence on the horizon."""

import dataclasses
import pickle

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import by_program
from jaxbandit.runs import forecast, work
from jaxbandit.runs.campaign import Report
from jaxbandit.store import cells

LAW = {"name": "bernoulli", "means": [0.2, 0.8]}
TABLE = np.random.default_rng(3).normal(0.5, 1.0, (80, 2))
ENGINE = jb.Engine(block=64, devices=1)


def study(*environments, **changes) -> jb.Study:
    content = {"horizon": 40, "num_seeds": 70, "record": [10, 40], "policies": [{"name": "uniform"}]}
    return jb.Study(**content | {"environments": list(environments)} | changes)  # pyright: ignore[reportArgumentType]


def keys(plan: jb.Study) -> list[str]:
    return [game.key for game in cells.pairs(plan)]


def played(plan, directory):
    report = Report()
    return jb.run(plan, directory, engine=ENGINE, report=report).load(), report


def assert_as_simulated(ds, environments, horizon=40, record=(10, 40)):
    known = jb.simulate([jb.Uniform()], environments, horizon=horizon, num_seeds=70, record=record, engine=ENGINE)
    assert ds.environment.values.tolist() == known.environment.values.tolist()
    for name in ("regret", "loss", "pulls"):
        np.testing.assert_array_equal(ds[name].values, known[name].values, err_msg=name)


def test_laws_inside_environments_are_swept():
    laws = [LAW, {"name": "pareto", "means": [0.5, 1.0], "tail_index": [1.2, 1.6]}]
    (grid,) = study({"name": "swap", "law": laws}).resolved.environment_grids
    assert [type(point.law).__name__ for point in grid.points] == ["Bernoulli", "Pareto", "Pareto"]
    assert [point.law.tail_index for point in grid.points[1:]] == [1.2, 1.6]
    with pytest.raises(ValueError, match="bernoulli inside another entry takes no label"):
        study({"name": "swap", "law": LAW | {"label": "coin"}})


COIN = jb.Bernoulli(means=[0.2, 0.8])


@pytest.mark.parametrize(
    ("entry", "environment"),
    [
        ({"name": "swap", "law": LAW, "at": [0.25, 0.5]}, jb.grid(jb.Swap, law=COIN, at=[0.25, 0.5])),
        pytest.param(
            {"name": "corrupted", "law": LAW, "budget": 5}, jb.Corrupted(COIN, budget=5), marks=pytest.mark.slow
        ),
    ],
    ids=["swap", "corrupted"],
)
def test_environments_that_depend_on_the_horizon_play_as_in_simulate(entry, environment, tmp_path):
    ds, report = played(study(entry), tmp_path)
    assert_as_simulated(ds, [environment])
    assert played(study(entry), tmp_path)[1].found == report.played > 0


SWAP, GIVEN = {"name": "swap", "law": LAW}, {"horizon": 40}
HARD = {"name": "minimax_hard", "num_arms": 2, "moment_order": 1.5}
CORRUPTED = {"name": "corrupted", "law": LAW, "budget": 5}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (SWAP, SWAP | GIVEN),
        (CORRUPTED, CORRUPTED | GIVEN),
        (HARD, HARD | GIVEN),
        ({"name": "switching", "law": SWAP}, {"name": "switching", "law": SWAP | GIVEN}),
    ],
    ids=["swap", "corrupted", "minimax_hard", "inside"],
)
def test_another_horizon_is_another_environment_where_it_matters(environment, told):
    assert keys(study(environment)) == keys(study(told))
    assert keys(study(environment)) != keys(study(environment, horizon=50, record=[10, 50]))
    assert keys(study(environment)) == keys(study(environment, horizon=50))  # both end at the last recorded round, 40


def test_moments_of_environments_told_the_horizon_are_found_by_reference():
    told = {"name": "htinf", "moment_order": "environment", "moment_bound": "environment"}
    (policies,) = [grids[0] for grids in study(HARD, policies=[told]).resolved.policy_grids]
    assert policies.points[0].moment_order == 1.5
    assert policies.points[0].moment_bound == jb.MinimaxHard(2, 1.5, horizon=40).moment(1.5)


def test_a_table_may_not_end_before_the_study():
    with pytest.raises(ValueError, match="horizon 81 is beyond the end of Replay's table"):
        study(jb.Replay(losses=TABLE), horizon=81, record=4)
    assert study(jb.Replay(losses=TABLE), horizon=80, record=4)


@pytest.mark.slow
def test_replays_of_a_file_and_of_an_array_are_the_same_cells(tmp_path):
    np.save(tmp_path / "measured.npy", TABLE)
    path = tmp_path / "study.toml"
    path.write_text(
        'horizon = 40\nnum_seeds = 70\nrecord = [10, 40]\npolicies = [{name = "uniform"}]\n'
        '[[environments]]\nname = "replay"\ntable = "measured.npy"\nscale = [1.0, 0.5]\norder = ["stored", "resampled"]'
    )
    plan = jb.Study.load(path)
    ds, report = played(plan, tmp_path / "out")
    assert report.played == 4 and ds.attrs["study"] == path.read_text()
    environment = jb.grid(jb.Replay, losses=TABLE, name="measured", scale=[1.0, 0.5], order=["stored", "resampled"])
    assert_as_simulated(ds, [environment])
    again = study(environment)
    assert keys(again) == keys(plan)
    ds, report = played(again, tmp_path / "out")
    assert report.found == 4 and "study" not in ds.attrs  # a table is not written into the store

    other = TABLE.copy()
    other[-1, -1] += 1e-9
    assert not set(keys(study(dataclasses.replace(environment.points[0], losses=other)))) & set(keys(plan))


def test_environments_with_other_tables_are_played_apart(tmp_path):
    environments = [jb.Replay(losses=TABLE, name="t"), jb.Replay(losses=TABLE[::-1].copy(), name="t")]
    plan = study(*environments)
    games = cells.pairs(plan)
    todo = [cells.Cell(game, 0, 70, (10, 40)) for game in games]
    assert [len(group) for group in work.played_together(todo)] == [1, 1]
    assert by_program([game.sides for game in games]) == [[0], [1]]
    found = forecast.plan(plan, engine=ENGINE)
    assert (found.cells, found.compiles) == (2, 1)
    ds, _ = played(plan, tmp_path)
    known = jb.simulate([jb.Uniform()], environments, horizon=40, num_seeds=70, record=[10, 40], engine=ENGINE)
    np.testing.assert_array_equal(ds.regret.values, known.regret.values)


@pytest.mark.parametrize(
    "environment",
    [
        jb.Replay(losses=TABLE),
        jb.grid(jb.Replay, losses=[TABLE, 2 * TABLE]),
        {"name": "replay", "losses": TABLE},
        jb.Scheduled(jb.Gaussian(means=[0.0, 0.0], scale=0.1), means=TABLE),
        jb.Switching(jb.Replay(losses=TABLE, order="resampled")),
    ],
    ids=["replay", "grid", "entry", "scheduled", "inside"],
)
def test_a_table_from_python_is_not_written_into_a_study_file(environment, tmp_path):
    plan = study(environment)
    with pytest.raises(ValueError, match=r"cannot hold (replay\.losses|scheduled\.means).*write it to a file"):
        plan.save(tmp_path / "study.toml")
    assert not (tmp_path / "study.toml").exists()
    assert plan.changed(num_seeds=3).held_tables()
    content = pickle.loads(pickle.dumps(plan.model_dump(exclude_defaults=True)))  # as it goes to workers
    assert keys(jb.Study.model_validate(content)) == keys(plan)


def test_means_of_a_schedule_come_from_a_file(tmp_path):
    np.save(tmp_path / "means.npy", TABLE)
    law = {"name": "gaussian", "means": [0.0, 0.0], "scale": 0.1}
    content = {"environments": [{"name": "scheduled", "law": law, "table": str(tmp_path / "means.npy")}]}
    plan = study(**content)
    assert keys(plan) == keys(study(jb.Scheduled(jb.Gaussian(means=[0.0, 0.0], scale=0.1), means=TABLE)))
    assert jb.Study.load(plan.save(tmp_path / "study.toml")).toml() == plan.toml()
    with pytest.raises(ValueError, match="scheduled needs table"):
        study({"name": "scheduled", "law": law})


def test_numbers_per_arm_are_not_swept_when_written_down(tmp_path):
    environment = jb.Pareto(means=[0.5, 1.0], tail_index=[1.2, 1.8])
    plan = study(environment, jb.Swap(environment))
    assert [len(grid.points) for grid in plan.resolved.environment_grids] == [1, 1]
    again = jb.Study.load(plan.save(tmp_path / "study.toml"))
    assert keys(again) == keys(plan)
    np.testing.assert_array_equal(again.resolved.declared[0].environment.tail_index, [1.2, 1.8])


def test_the_name_of_a_table_is_not_that_of_its_class(tmp_path):
    np.save(tmp_path / "t.npy", TABLE)
    entry = {"name": "replay", "table": str(tmp_path / "t.npy")}
    names = [
        environment.environment.name for environment in study(entry, entry | {"called": "night"}).resolved.declared
    ]
    assert names == ["t", "night"]


def test_sweeps_of_arrays_are_written_down(tmp_path):
    plan = study({"name": "bernoulli", "means": np.asarray([[0.2, 0.8], [0.4, 0.5]])})
    again = jb.Study.load(plan.save(tmp_path / "study.toml"))
    assert len(keys(again)) == 2 and keys(again) == keys(plan)


def test_the_old_word_for_an_environment_is_still_read():
    """Study files of 0.1 say "world" for what a policy takes from its environment."""
    policy = {"name": "htinf", "moment_order": "world", "moment_bound": "world"}
    arms = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.6}
    with pytest.warns(FutureWarning) as said:
        old = jb.Study(horizon=100, num_seeds=2, policies=[policy], environments=[arms])
        read = old.resolved.policy_grids[0][0].points[0]
    assert 'moment_order = "world" is now written moment_order = "environment"' in str(said[0].message)
    now = policy | {"moment_order": "environment", "moment_bound": "environment"}
    new = jb.Study(horizon=100, num_seeds=2, policies=[now], environments=[arms])
    assert repr(read) == repr(new.resolved.policy_grids[0][0].points[0])


def test_old_keys_of_a_search_are_still_read():
    from jaxbandit.studies.sections import Tune

    with pytest.warns(FutureWarning, match="'num_worlds' is now 'num_environments'"):
        section = Tune.read(parameters=["initial_scale"], num_worlds=5)
    assert section.num_environments == 5
    with pytest.raises(ValueError, match="unknown key 'other_worlds'"):
        Tune.read(parameters=["initial_scale"], other_worlds=5)

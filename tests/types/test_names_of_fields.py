"""Names of fields: a field is given once, by its public name, and the first name of a renamed field is still read."""

import dataclasses
import pathlib

import pytest

import jaxbandit as jb
from jaxbandit import parameters
from jaxbandit.published import digests
from jaxbandit.search.traces import Trace
from jaxbandit.studies.renamed import first_names

PARETO = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.6}
RENAMED = "UniINFVariant.threshold is now called threshold_constant"


def test_a_field_is_not_given_by_two_names():
    with pytest.raises(TypeError, match=r"Pareto is given both means and arm_means.*give means alone"):
        jb.Pareto(means=[0.5, 1.0], arm_means=[3.0, 4.0], tail_index=1.6)  # pyright: ignore[reportCallIssue]
    pareto = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
    with pytest.raises(TypeError, match=r"dataclasses.replace takes arm_means alone"):
        dataclasses.replace(pareto, means=[3.0, 4.0])
    assert dataclasses.replace(pareto, arm_means=[3.0, 4.0]) == jb.Pareto(means=[3.0, 4.0], tail_index=1.6)
    with pytest.raises(ValueError, match=r"both threshold and threshold_constant.*give threshold_constant"):
        jb.UniINFVariant(horizon=9, threshold=1.0, threshold_constant=2.0)  # pyright: ignore[reportCallIssue]


def test_the_first_name_is_read_with_a_warning():
    now = jb.UniINFVariant(horizon=100, threshold_constant=0.5)
    assert now.threshold_constant == 0.5
    with pytest.warns(FutureWarning, match=RENAMED) as caught:
        assert jb.UniINFVariant(horizon=100, threshold=0.5) == now  # pyright: ignore[reportCallIssue]
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match=RENAMED):
        assert jb.grid(jb.UniINFVariant, horizon=100, threshold=[0.5]).points == [now]
    with pytest.warns(FutureWarning, match=RENAMED):
        assert parameters.with_value(jb.UniINFVariant(horizon=100), "threshold", 0.5) == now
    inside = jb.Delayed(jb.UniINFVariant(horizon=100), delay=1)
    with pytest.warns(FutureWarning, match=RENAMED):
        assert parameters.full_name(inside, "threshold") == "policy.threshold_constant"


def test_a_study_reads_the_first_name():
    def points(name):
        entry = {"name": "uniinf", "initial_scale": [1.0, 4.0], name: [0.5, 1.0], "zip": ["initial_scale", name]}
        return (
            jb.Study(horizon=100, num_seeds=2, policies=[entry], environments=[PARETO])
            .resolved.policies[0]
            .grid()
            .points
        )

    now = points("threshold_constant")
    assert [(point.initial_scale, point.threshold_constant) for point in now] == [(1.0, 0.5), (4.0, 1.0)]
    with pytest.warns(FutureWarning, match=RENAMED):
        assert points("threshold") == now


def test_records_keep_the_first_name(tmp_path):
    names = {"parameters": {"threshold_constant": [1, 2]}, "x": ["policy_threshold_constant"]}
    assert first_names(names) == {"parameters": {"threshold": [1, 2]}, "x": ["policy_threshold"]}
    study = jb.Study.load(pathlib.Path(__file__).parents[2] / "experiments" / "failures.toml")
    assert digests._settings(study)["policies"][-1]["threshold"] == study.policies[-1]["threshold_constant"]
    about = {"policy": repr(jb.UniINFVariant(horizon=9))}
    Trace(tmp_path / "trace.nc", {"policy": about["policy"].replace("threshold_constant", "threshold")}, {}, []).save()
    assert Trace(tmp_path / "trace.nc", about, {}, []).rows == []

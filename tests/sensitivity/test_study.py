"""[sensitivity] of a study file: what it may ask, what is kept, and the command that runs it."""

import json
import pathlib
import re
import sys
import tomllib

import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import sensitivity
from jaxbandit.cli.entry import app
from jaxbandit.runs import coupled
from jaxbandit.sensitivity import kept, tables
from jaxbandit.studies.study import Study, parse

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sensitivity.md").read_text(encoding="utf-8")

STUDY = """
title = "in a second"
horizon = 20
num_seeds = 16

[[policies]]
name = "uniform"

[[environments]]
name = "exponential"
means = [[1.0, 2.0], [1.0, 3.0]]

[sensitivity]
local = ["gap"]
num_points = 4
num_trajectories = 2
num_seeds = 4
methods = ["sobol", "morris"]

[sensitivity.box]
gap = [0.5, 2.0]
"""


def study(**values):
    given = {
        "horizon": 20,
        "num_seeds": 16,
        "policies": [{"name": "uniinf"}, {"name": "uniform"}],
        "environments": [{"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.6}],
    }
    return jb.Study(**given | values)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "names no parameters; add local"),
        ({"locale": ["gap"]}, "unknown key 'locale'; did you mean 'local'"),
        ({"local": ["initial_scal"]}, "sensitivity: .*did you mean 'initial_scale'"),
        ({"local": ["damped"]}, "sensitivity: UniINFVariant.damped cannot be moved: it is static.*be moved: horizon"),
        ({"local": ["gap"], "step": -0.1}, "step"),
        ({"local": ["gap"], "step": {"gab": 0.1}}, "step names 'gab'.*did you mean 'gap'"),
        ({"box": {"tail_index": [0.5, 1.5]}}, "range of tail_index.*reaches invalid values: Pareto.tail_index must be"),
        ({"box": {"gap": [2.0, 1.0]}}, "low < high"),
        ({"box": {"gap": [0.0, 1.0]}}, "no logarithm"),
        ({"box": {"gap": [0.1, 1.0]}, "num_points": 100}, "power of two"),
        ({"box": {"gap": [0.1, 1.0]}, "methods": ["sobel"]}, "sobol"),
    ],
)
def test_a_bad_section_is_found_before_anything_runs(section, message):
    with pytest.raises(ValueError, match=message):
        study(sensitivity=section)


def test_a_section_survives_saving_and_quick(tmp_path):
    section = {"local": ["initial_scale"], "step": {"initial_scale": 0.2}, "box": {"gap": [0.1, 1.0]}}
    made = study(sensitivity=section, horizon=10_000, num_seeds=1000)
    again = Study.load(made.save(tmp_path / "study.toml"))
    assert again.sensitivity == made.sensitivity
    quick = again.quick().sensitivity
    assert (quick.local, quick.step, quick.num_points) == (["initial_scale"], {"initial_scale": 0.2}, 16)


@pytest.mark.slow
def test_results_are_kept_and_found(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    plan = Study.load(tmp_path / "study.toml")
    seen = []

    def run(plan):
        seen.clear()
        return sensitivity.run(
            plan, tmp_path / "out", engine=jb.Engine(block=64), notice=lambda *said: seen.append(said)
        )

    first = run(plan)
    assert seen == [("local", False), ("sobol", False), ("morris", False)]
    assert first["local"].gradient.dims == ("policy", "environment", "parameter")
    assert first["sobol"].environment.size == 2
    second = run(plan)
    assert seen == [("local", True), ("sobol", True), ("morris", True)]
    for kind, ds in sensitivity.load(tmp_path / "out").items():
        xr.testing.assert_identical(ds, first[kind])
        xr.testing.assert_identical(second[kind], first[kind])

    # What a result does not depend on leaves it; what it does depend on makes it anew, as does a damaged file.
    (tmp_path / "out" / "sensitivity" / "sobol.nc").write_bytes(b"half a file")
    content = plan.model_dump(exclude_defaults=True)["sensitivity"] | {"num_trajectories": 4}
    with pytest.warns(UserWarning, match=r"sobol.nc is damaged .*; this file is not used"):
        third = run(plan.changed(sensitivity=content))
    assert seen == [("local", True), ("sobol", False), ("morris", False)]
    same = {"study": first["sobol"].attrs["study"]}  # only the text of the study differs
    xr.testing.assert_identical(third["sobol"].assign_attrs(same), first["sobol"])


@pytest.mark.slow
def test_results_of_the_scan_are_not_taken_for_native_ones(tmp_path):
    plan, seen = study(policies=[{"name": "uniform"}], sensitivity={"local": ["gap"]}), []
    for way in ("native", "scan", "scan", None):
        engine = jb.Engine(way=way)
        sensitivity.run(plan, tmp_path, engine=engine, notice=lambda kind, there: seen.append(there))
    assert seen == [False, False, True, False]


@pytest.mark.slow
def test_an_interrupted_run_continues_to_identical_results(tmp_path, monkeypatch):
    """A part is one point here; the run is stopped in the middle of each kind, and a stored part is damaged."""
    plan = parse(tomllib.loads(STUDY))
    whole = sensitivity.run(plan, tmp_path / "whole")
    monkeypatch.setattr(kept, "LANES", 1)
    monkeypatch.setattr(kept, "ROUNDS", 1)
    calls, out = [], tmp_path / "out"

    def play(*given, **rest):
        if len(calls) == 9:
            raise KeyboardInterrupt
        calls.append(rest)
        return coupled.play_pairs(*given, **rest)

    monkeypatch.setattr(kept, "play_pairs", play)
    for kinds in (["local"], ["local"], ["local"], ["local", "sobol"]):  # of 8 + 24 + 8 points
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            sensitivity.run(plan, out)
        assert len(calls) == 9
        assert [path.stem for path in sorted((out / "sensitivity").glob("*.nc"))] == kinds
    stored = sorted((out / "parts").glob("*.nc"))
    assert len(stored) == 4 and all(path.name.startswith("sensitivity-morris-") for path in stored)
    stored[0].write_bytes(b"half a file")
    calls.clear()
    with pytest.warns(UserWarning, match="damaged .*; its games are played again"):
        found = sensitivity.run(plan, out)
    assert len(calls) == 5 and not list((out / "parts").iterdir())
    for kind, ds in whole.items():
        xr.testing.assert_identical(found[kind], ds)


def test_a_missing_package_is_named_before_anything_is_played(tmp_path, monkeypatch):
    section = {"local": ["initial_scale"], "box": {"initial_scale": [1.0, 4.0]}, "num_points": 2}
    study = jb.Study(
        horizon=20,
        num_seeds=4,
        policies=[jb.UniINF(horizon=20)],
        environments=[jb.Bernoulli(means=[0.2, 0.8])],
        sensitivity=section,
    )
    monkeypatch.setitem(sys.modules, "SALib.sample.sobol", None)
    played = []
    with pytest.raises(ValueError, match=r"pip install 'jaxbandit\[sensitivity\]'"):
        sensitivity.run(study, tmp_path, notice=lambda kind, there: played.append(kind))
    assert not played


def test_a_study_without_the_section_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"no section \[sensitivity\]"):
        sensitivity.run(study(), tmp_path)
    with pytest.raises(ValueError, match="holds no results; run jaxbandit sensitivity"):
        sensitivity.load(tmp_path)


@pytest.mark.slow
def test_the_command_prints_tables_and_leaves_figures(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    command = ["sensitivity", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--format", "svg"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    for text in ("local sensitivity: playing", "elasticity", "Sobol' indices", "mu*", "noise was"):
        assert text in shown.output
    figures = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert figures == {"local.svg", "sobol.svg", "response.svg", "morris.svg"}
    again = CliRunner().invoke(app, [*command, "--json"])
    found = json.loads(again.output)
    assert [row["kind"] for row in found["results"]] == ["local", "local", "sobol", "sobol", "morris", "morris"]
    assert [row["elasticity"] for row in found["local"]] == pytest.approx([1, 1])  # uniform play is linear in the gap


def test_policies_are_given_the_values_of_each_environment():
    made = study(
        policies=[{"name": "htinf", "moment_order": "environment", "moment_bound": "environment"}],
        environments=[{"name": "pareto", "means": [0.5, 1.0], "tail_index": [1.3, 1.6]}],
    )
    pairs = list(made.resolved.pairs())
    assert [pair.policy.moment_order for pair in pairs] == [pair.environment.moment_order for pair in pairs]


def test_the_page_and_the_experiment_are_studies():
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert parse(tomllib.loads(block)).sensitivity is not None
    assert Study.load(ROOT / "experiments" / "constants.toml").sensitivity is not None
    for key in Study.model_fields["sensitivity"].annotation.__args__[0].model_fields:
        assert f"| `{key}` |" in PAGE


@pytest.mark.slow
def test_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/sensitivity.md", "exec"), {})
    assert capsys.readouterr().out == "('tail_index', 'parameter')\n"


def test_numbers_have_the_place_of_their_error_and_a_true_minus():
    assert tables._cell([-0.8312, 0.07041]) == "−0.831 ± 0.070"
    assert tables._cell([0.5, 0.41, 0.62]) == "0.50 (0.41 to 0.62)"
    assert tables._cell([None, None]) == "–" and tables._cell([-2.0]) == "−2"

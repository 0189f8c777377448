"""The first steps: bare jaxbandit, init, shipped studies by name, values from the command line."""

import pathlib
import sys
import zipfile

import pytest
from typer.testing import CliRunner

from jaxbandit.cli import begin, options
from jaxbandit.cli import entry as cli
from jaxbandit.cli.overrides import overridden
from jaxbandit.studies import shipped
from jaxbandit.studies.study import Study

ROOT = pathlib.Path(__file__).parents[2]


def invoke(*args):
    return CliRunner().invoke(cli.app, [*args], catch_exceptions=False)


def test_bare_prints_three_commands():
    done = invoke()
    assert done.exit_code == 0
    commands = [line.split("  ")[1] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert commands == list(begin.FIRST) and len(commands) == 3
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("kind", begin.KINDS)
def test_init_writes_a_commented_study_that_loads(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert f"next: jaxbandit {begin.KINDS[kind]} {kind}.toml" in invoke("init", kind).stdout
    study = Study.load(f"{kind}.toml")
    assert (tmp_path / f"{kind}.toml").read_text().count("#") >= 5
    assert kind in ("quickstart", "sweep") or getattr(study, kind) is not None


@pytest.mark.slow
def test_the_tune_template_needs_no_extra(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "cmaes", None)
    invoke("init", "tune")
    assert "pip install" not in (tmp_path / "tune.toml").read_text()
    assert invoke("tune", "tune.toml", "--quick").exit_code == 0


def test_init_overwrites_only_with_force(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart.toml").write_text("mine")
    with pytest.raises(ValueError, match=r"quickstart.toml exists; choose another file"):
        invoke("init")
    assert (tmp_path / "quickstart.toml").read_text() == "mine"
    invoke("init", "--force")
    assert Study.load("quickstart.toml").horizon == 10_000
    with pytest.raises(ValueError, match=r"must be one of 'quickstart', .*, got 'quick'; did you mean 'quickstart'\?"):
        invoke("init", "quick")


def test_shipped_studies_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(shipped.shipped()) == {path.stem for path in (ROOT / "experiments").glob("*.toml")}
    for name in ("quickstart", "Quickstart", "QUICKSTART.toml"):
        assert shipped.study_path(pathlib.Path(name)) == ROOT / "experiments" / "quickstart.toml"
        assert options.results_directory(pathlib.Path(name), None, False) == pathlib.Path("results/quickstart")
    (tmp_path / "quickstart").write_text("a file of mine")
    assert shipped.study_path(pathlib.Path("quickstart")) == pathlib.Path("quickstart")
    with pytest.raises(ValueError, match="no shipped study 'quikstart'; did you mean 'quickstart'"):
        shipped.study_path(pathlib.Path("quikstart"))
    with pytest.raises(ValueError, match="elsewhere/quickstart does not exist"):
        shipped.study_path(pathlib.Path("elsewhere/quickstart"))
    (tmp_path / "sweep.toml").write_text("a file of mine")
    with pytest.raises(ValueError, match=r"no file and no shipped study 'sweep.tml'; did you mean 'sweep.toml'"):
        shipped.study_path(pathlib.Path("sweep.tml"))
    with pytest.raises(ValueError, match=r"swep.toml does not exist; did you mean 'sweep.toml'\? Or write one with"):
        shipped.study_path(pathlib.Path("swep.toml"))


@pytest.mark.slow
def test_the_wheel_has_the_experiments_and_the_templates(tmp_path):
    builders = pytest.importorskip("hatchling.builders.wheel")
    (made,) = builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(made).namelist()
    assert "jaxbandit/experiments/quickstart.toml" in names
    assert {f"jaxbandit/cli/templates/{kind}.toml" for kind in begin.KINDS} <= set(names)


CONTENT = {"horizon": 50, "policies": [{"name": "uniinf", "initial_scale": 4.0}], "tune": {"steps": 3}}


def test_values_from_the_command_line():
    new = overridden(CONTENT, ["policies.0.initial_scale=1,4", "tune.steps=9", "title=two words"], horizon=7, seed=None)
    assert new["policies"] == [{"name": "uniinf", "initial_scale": [1, 4]}]
    assert (new["tune"]["steps"], new["title"], new["horizon"]) == (9, "two words", 7)
    assert "seed" not in new and CONTENT["policies"][0]["initial_scale"] == 4.0
    assert overridden({}, ["law.name=pareto"]) == {"law": {"name": "pareto"}}
    assert overridden({}, ["a=x, y", "b=[1]", 'c="1,2"', "d=1e3"]) == {"a": ["x", "y"], "b": [1], "c": "1,2", "d": 1e3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("horizon", "has no value; write KEY=VALUE"),
        ("policies.1.initial_scale=1", r"policies has no entry '1'; write its number: policies.0 \(uniinf\)"),
        ("policies.first.initial_scale=1", "policies has no entry 'first'"),
        ("horizon.more=1", "horizon is a value and holds no 'more'"),
    ],
)
def test_a_bad_change_says_what_to_write(change, said):
    with pytest.raises(ValueError, match=said):
        overridden(CONTENT, [change])


def test_a_changed_study_is_recorded_as_it_was_played(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    path.write_text('horizon = 50\nnum_seeds = 8\npolicies = {name = "uniform"}\n'
                    'environments = {name = "bernoulli", means = [0.2, 0.8]}\n')  # fmt: skip
    study = Study.load(path, change=lambda content: overridden(content, ["environments.means=0.3,0.7"], horizon=20))
    assert study.horizon == 20 and study.environments[0]["means"] == [0.3, 0.7]
    assert "[\n    0.3" in study.toml() or "[0.3" in study.toml()
    assert Study.load(path, change=dict).toml() == path.read_text()  # unchanged: the text with its comments


def test_a_quick_run_does_not_cut_a_number_that_is_given(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('horizon = 5000\nnum_seeds = 8\npolicies = {name = "uniform"}\n'
                    'environments = {name = "bernoulli", means = [0.2, 0.8]}\n')  # fmt: skip
    for key, most, value in (("horizon", "2,000", 3_000), ("num_seeds", "64", 100)):
        with pytest.raises(ValueError, match=f"{key} = {most} at most, .* set to {value:,}; lower it, or leave out"):
            Study.load(path, quick=True, change=lambda content, given={key: value}: overridden(content, [], **given))
    change = lambda content: overridden(content, [], horizon=500)  # noqa: E731
    assert Study.load(path, quick=True, change=change).horizon == 500
    assert Study.load(path, quick=True).horizon == 2_000

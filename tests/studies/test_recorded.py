"""Results are data: reading, drawing and reporting them executes nothing and writes nowhere else."""

import subprocess
import sys

import pytest

import jaxbandit as jb
from jaxbandit import plots, report
from jaxbandit.checks import safe_name
from jaxbandit.store import seal
from jaxbandit.studies import recorded
from jaxbandit.studies.figures import read_figures

HOSTILE = """
import pathlib
pathlib.Path("executed").write_text("")
import jaxbandit
Trap = jaxbandit.Bernoulli
TrapPolicy = jaxbandit.Uniform
"""
STUDY = """
horizon = 20
num_seeds = 8
record = 4
[[policies]]
name = "{policy}"
[[environments]]
name = "{environment}"
means = [0.2, 0.8]
"""


@pytest.fixture
def received(tmp_path, monkeypatch):
    """A directory of results, received beside a module of the same name as the one it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "trap.py").write_text(HOSTILE)
    study = jb.Study(
        horizon=20, num_seeds=8, record=4, policies=[jb.Uniform()], environments=[jb.Bernoulli([0.2, 0.8])]
    )
    ds = jb.run(study, tmp_path / "results").load()

    def make(environment="bernoulli", policy="uniform"):
        text = STUDY.format(environment=environment, policy=policy)
        (tmp_path / "dataset.nc").write_bytes(seal.dataset_bytes(ds.assign_attrs(study=text)))
        return ds.assign_attrs(study=text)

    yield make
    sys.modules.pop("trap", None)


def test_results_import_nothing(received, tmp_path):
    ds = received("trap:Trap", "trap:TrapPolicy")
    with pytest.warns(UserWarning, match=r"'trap:Trap' in \[\[environments\]\] is no class of jaxbandit.*--trust"):
        assert plots.environments_of(ds) == {}
    page = report.write(tmp_path / "dataset.nc", tmp_path / "report.html").read_text()
    assert "trap:Trap" in page  # the reader is told why there are no lower bounds
    plots.draw(ds, tmp_path / "figures", formats=("png",))
    assert not (tmp_path / "executed").exists() and "trap" not in sys.modules


def test_a_nested_environment_imports_nothing(received):
    text = STUDY.format(policy="uniform", environment="switching").replace("means", "law = {name='trap:Trap', means")
    text = text.replace("0.8]", "0.8]}")
    with pytest.raises(ValueError, match="no class of jaxbandit"):
        recorded.environments(text)
    assert recorded.foreign_environments(text) == ["trap:Trap"] and "trap" not in sys.modules


def test_a_policy_of_an_unknown_class_does_not_hide_the_environments(received):
    ds = received("bernoulli", "trap:TrapPolicy")
    assert [type(one) for one in plots.environments_of(ds).values()] == [jb.Bernoulli]
    assert "trap" not in sys.modules


def test_trusted_results_say_what_they_import(received, tmp_path):
    ds = received("trap:Trap")
    with pytest.warns(UserWarning, match="importing trap:Trap"):
        found = plots.environments_of(ds, trust=True)
    assert [type(one) for one in found.values()] == [jb.Bernoulli] and (tmp_path / "executed").exists()


@pytest.mark.slow
def test_the_command_line_needs_trust(received, tmp_path):
    received("trap:Trap", "trap:TrapPolicy")
    for command in ("plot", "report"):
        line = [sys.executable, "-m", "jaxbandit", command, "dataset.nc"]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0 and not (tmp_path / "executed").exists(), done.stderr
        done = subprocess.run([*line, "--trust"], capture_output=True, text=True)
        assert "importing trap:Trap" in " ".join(done.stderr.split()) and (tmp_path / "executed").exists()
        (tmp_path / "executed").unlink()


@pytest.mark.parametrize("file", ["../out", "/tmp/out", "a/b", "..", ".hidden", "a\\b", "C:out", "a\0b", "x" * 300])
def test_a_figure_stays_in_its_directory(received, tmp_path, file):
    with pytest.raises(ValueError, match="file must be a name without directories"):
        read_figures([{"name": "regret", "file": file}])
    assert read_figures([{"name": "regret", "file": "my figure.v2"}])[0].file == "my figure.v2"


def test_labels_in_file_names_stay_in_their_directory():
    assert safe_name("../../up[a=1]") == ".._.._up_a=1_"
    long = [safe_name(end + 300 * "ä") for end in "ab"]
    assert all(len(name.encode()) <= 120 for name in long) and long[0] != long[1]

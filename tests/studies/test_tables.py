"""Tables in study files: found beside the study or where --data says, checked before play."""

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxbandit.cli import entry as cli
from jaxbandit.studies import study
from tests.support.tables import LOSSES, write

# In study files and on the command line

STUDY = """
horizon = 4
num_seeds = 2
policies = [{name = "uniform"}]

[[environments]]
name = "replay"
table = "data/latency.csv"
scale = [1.0, 0.5]
"""


@pytest.fixture
def study_file(tmp_path):
    (tmp_path / "data").mkdir()
    write(tmp_path / "data", "csv")
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_study_names_a_table_beside_itself(study_file, monkeypatch):
    monkeypatch.chdir(study_file.parents[1])
    (grid,) = study.Study.load(study_file).resolved.environment_grids
    assert list(grid.axes) == ["scale"]
    assert [point.name for point in grid.points] == ["latency", "latency"]
    np.testing.assert_array_equal(grid.points[0].losses, LOSSES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('table = "data/none.csv"', "none.csv does not exist"),
        ('table = ["data/latency.csv"]', r"table must be the path of one file.*its own entry"),
        ('table = "data/latency.csv"\nlosses = [[1.0]]', "both losses and table"),
        ('table = "data/latency.csv"\narms = ["rome"]', "no arm 'rome'"),
        ("", 'replay needs table = "path of a file"'),
    ],
)
def test_bad_tables_in_a_study(study_file, change, message):
    study_file.write_text(STUDY.replace('table = "data/latency.csv"', change))
    with pytest.raises(ValueError, match=message):
        study.Study.load(study_file)


def test_results_say_how_to_find_tables_that_lie_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "tables").mkdir()
    write(tmp_path / "tables", "csv")
    text = STUDY.replace("data/latency.csv", "latency.csv").replace("scale = [1.0, 0.5]", "")
    (tmp_path / "study.toml").write_text('figures = ["both_worlds"]\n' + text)
    monkeypatch.chdir(tmp_path)

    def asked(*command):
        return CliRunner().invoke(cli.app, command)

    done = asked("run", "study.toml", "--out", "out", "--data", "tables")
    assert done.exit_code == 0, done.output
    assert asked("report", "out", "--data", "tables").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (
        "jaxbandit run study.toml --out results/out --data TABLES\njaxbandit report results/out --data TABLES" in page
    )
    assert "start at the folder of the tables, TABLES" in page
    with pytest.warns(UserWarning, match="latency.csv does not exist"):
        done = asked("plot", "out")
    assert "pass their directory with --data: jaxbandit plot out --data TABLES" in str(done.exception)
    assert asked("plot", "out", "--data", "tables", "--format", "png").exit_code == 0


def test_a_quick_study_plays_on_tables_as_long_as_itself(tmp_path):
    for name, rows in (("long", 2_500), ("short", 1_500)):
        np.save(tmp_path / f"{name}.npy", np.ones((rows, 2)))
    text = STUDY.replace("horizon = 4", "horizon = 5_000").replace("data/latency.csv", "*.npy")
    (tmp_path / "study.toml").write_text(text)
    with pytest.warns(UserWarning, match=r"^short.npy is left out: in stored order its 1500 rows are too few for 2000"):
        made = study.Study.load(tmp_path / "study.toml", quick=True)
    assert [(entry["table"], made.horizon) for entry in made.environments] == [("long.npy", 2_000)]
    with (
        pytest.warns(UserWarning, match=r"too few for 5000 rounds"),
        pytest.raises(ValueError, match=r"no usable table of 5000 rounds matches '\*.npy'"),
    ):
        study.Study.load(tmp_path / "study.toml")

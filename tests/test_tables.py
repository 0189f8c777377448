"""Reading tables: every kind of file gives the same numbers, and a bad one says where it is bad."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit.cli import entry as cli
from jaxbandit.studies import study

LOSSES = np.asarray([[0.25, -1.5, 3.0], [1e-3, 2.0, 7.5], [4.0, 0.0, 1e6], [1.0, 1.0, 1.0]])
ARMS = ("paris", "oslo", "new york")


def write(folder, kind, losses=LOSSES, arms=ARMS):
    path = folder / f"latency.{kind}"
    if kind == "npy":
        np.save(path, losses)
    elif kind == "npz":
        np.savez(path, losses=losses, arms=np.asarray(arms), clients=np.arange(7))
    elif kind == "csv":
        rows = [",".join(map(repr, row)) for row in np.asarray(losses).tolist()]
        path.write_text("\n".join([",".join(arms), *rows, ""]))
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(losses, columns=list(arms)).to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "parquet"])
def test_every_kind_of_file_gives_the_table(kind, tmp_path):
    table = jb.read_table(write(tmp_path, kind))
    np.testing.assert_array_equal(table.losses, LOSSES)
    assert table.losses.dtype == np.float64
    assert table.arms == (("arm0", "arm1", "arm2") if kind == "npy" else ARMS)
    assert table.name == "latency"
    environment = table.replay(order="resampled", scale=0.5)
    assert (environment.name, environment.order, environment.rewards) == ("latency", "resampled", False)
    np.testing.assert_allclose(environment.means(1), 0.5 * LOSSES.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kind", ["npz", "csv", "parquet"])
def test_arms_are_chosen_by_name(kind, tmp_path):
    table = jb.read_table(str(write(tmp_path, kind)), arms=["oslo", "paris"])
    np.testing.assert_array_equal(table.losses, LOSSES[:, [1, 0]])
    assert table.arms == ("oslo", "paris")
    with pytest.raises(ValueError, match="no arm 'rome'; it has paris, oslo, new york"):
        jb.read_table(tmp_path / f"latency.{kind}", arms=["rome"])


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "parquet"])
@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf])
def test_missing_entries_are_named_or_kept(kind, entry, tmp_path):
    losses = LOSSES.copy()
    losses[2, 1] = entry
    path = write(tmp_path, kind, losses)
    with pytest.raises(ValueError, match=rf"latency.* holds {entry} in row 3 of 4, column 2 of 3"):
        jb.read_table(path)
    kept = jb.read_table(path, missing=True).losses
    losses[2, 1] = np.nan
    np.testing.assert_array_equal(kept, losses)
    if kind != "npy":
        np.testing.assert_array_equal(jb.read_table(path, arms=["paris"]).losses, LOSSES[:, :1])


CSV = {
    "text": ("a,b\n1,2\n3,slow\n", r"holds 'slow' in row 2 of 2, column 2 of 2 \('b'\); a loss is a number"),
    "empty cell": ("a,b\n1,2\n3,\n", r"holds nan in row 2 of 2, column 2 of 2 \('b'\)"),
    "two gaps": ("a,b\n1,\n3,NA\n", r"row 1 of 2, column 2 of 2 \('b'\) and at 1 more places"),
    "ragged": ("a,b\n1,2\n3\n", "line 3: 1 entries, but the first line has 2"),
    "long": ("a,b\n1,2\n\n3,4,5\n", "line 4: 3 entries, but the first line has 2"),
    "no rounds": ("a,b\n", r"is empty, of shape \(0, 2\)"),
    "nothing": ("", "is empty; write the names of the arms"),
    "numbers first": ("0,1\n1,2\n", r"starts with numbers \(0, 1\).*header=False.*header=True"),
    "an index": (",a\n0,1\n1,2\n", "column 1 has no name.*index=False"),
    "twins": ("a,a\n1,2\n", "two columns are named 'a'"),
    "open quote": ('a,b\n"1,2\n', "is not valid CSV"),
}


@pytest.mark.parametrize("case", CSV)
def test_bad_csv(case, tmp_path):
    text, message = CSV[case]
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        jb.read_table(path)
    assert "bad.csv" in str(raised.value)


def test_csv_of_other_makes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"first, arm", b\r\n1 ,2\r\n 3e0,-4\r\n'.encode())
    table = jb.read_table(path)
    assert table.arms == ("first, arm", "b")
    np.testing.assert_array_equal(table.losses, [[1, 2], [3, -4]])
    path.write_text("0,1\n1,2\n")
    np.testing.assert_array_equal(jb.read_table(path, header=False).losses, [[0, 1], [1, 2]])
    assert jb.read_table(path, header=True).arms == ("0", "1")


def test_unreadable_files(tmp_path):
    with pytest.raises(ValueError, match=r"none.csv does not exist; give the path of a table: .npy"):
        jb.read_table(tmp_path / "none.csv")
    for kind in ("npy", "npz", "csv", "parquet"):
        if kind == "parquet":
            pytest.importorskip("pyarrow")
        path = tmp_path / f"noise.{kind}"
        path.write_bytes(b"\xff\xfe\x00noise" * 10)
        with pytest.raises(ValueError, match=rf"noise.{kind} cannot be read"):
            jb.read_table(path)
    whole = write(tmp_path, "npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cut.npz cannot be read"):
        jb.read_table(tmp_path / "cut.npz")
    np.save(tmp_path / "objects.npy", np.asarray([[1, None]], dtype=object))
    with pytest.raises(ValueError, match=r"objects.npy cannot be read"):
        jb.read_table(tmp_path / "objects.npy")
    (tmp_path / "table.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"table.xlsx is not a table file of a known kind; tables are .npy, .npz"):
        jb.read_table(tmp_path / "table.xlsx")
    with pytest.raises(ValueError, match=r"has no algorithm_runs.arff"):
        jb.read_table(tmp_path)
    with pytest.raises(ValueError, match=r"key='a' names an array of an .npz file"):
        jb.read_table(write(tmp_path, "csv"), key="a")
    with pytest.raises(ValueError, match=r"header=True is for .csv files"):
        jb.read_table(write(tmp_path, "npy"), header=True)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"must be a table \[rounds, arms\], got shape \(3,\)"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (np.float64(3), r"got shape \(\)"),
        (np.zeros((0, 3)), r"is empty, of shape \(0, 3\)"),
        (np.zeros((2, 2), complex), "entries of type complex128"),
        (np.asarray([["1", "x"]]), "holds 'x' in row 1 of 1, column 2 of 2"),
    ],
)
def test_arrays_that_are_no_tables(array, message, tmp_path):
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(ValueError, match=message):
        jb.read_table(tmp_path / "t.npy")


def test_the_array_of_an_archive(tmp_path):
    path = tmp_path / "two.npz"
    np.savez(path, first=LOSSES, second=2 * LOSSES, arms=np.asarray(ARMS))
    with pytest.raises(ValueError, match="holds tables: first, second; pass the name of one as key"):
        jb.read_table(path)
    with pytest.raises(ValueError, match="holds no array 'third'; tables: first, second"):
        jb.read_table(path, key="third")
    table = jb.read_table(path, key="second")
    np.testing.assert_array_equal(table.losses, 2 * LOSSES)
    assert (table.name, table.arms) == ("two:second", ARMS)
    np.savez(path, only=LOSSES, arms=np.asarray(["a"]))
    assert jb.read_table(path).arms == ("arm0", "arm1", "arm2")


def test_parquet_with_gaps_integers_an_index_and_text(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": [1, 2], "b": [True, False]}, index=["x", "y"]).to_parquet(path)
    table = jb.read_table(path)
    assert table.arms == ("a", "b")
    np.testing.assert_array_equal(table.losses, [[1, 1], [2, 0]])
    pandas.DataFrame({"a": [1, None], "b": [1.0, 2.0]}).astype({"a": "Int64"}).to_parquet(path)
    with pytest.raises(ValueError, match=r"holds nan in row 2 of 2, column 1 of 2 \('a'\)"):
        jb.read_table(path)
    pandas.DataFrame({"a": [1.0, 2.0], "b": ["1", "slow"]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"holds 'slow' in row 2 of 2, column 2 of 2 \('b'\)"):
        jb.read_table(path)


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"needs pyarrow; install it: pip install 'jaxbandit\[data\]'"):
        jb.read_table(tmp_path / "t.parquet")


# ASlib scenarios

RUNS = """% runs of two solvers
@RELATION ALGORITHM_RUNS

@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@attribute algorithm string
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE memory NUMERIC
@ATTRIBUTE runstatus {ok, timeout, memout, not_applicable, crash, other}

@DATA
'b, 1.cnf',1,minisat,2.5,7,ok
'b, 1.cnf',1,kissat,100.0,7,timeout
a.cnf,1,minisat,4,7,ok
a.cnf,2,minisat,8,7,ok
a.cnf,1,kissat,1,7,ok
a.cnf,2,kissat,?,7,crash
"it\\"s.cnf",1,kissat,100,7,ok
"it\\"s.cnf",1,minisat,100.5,7,OK
"""
ABOUT = """scenario_id: SAT-TEST
performance_measures:
  - runtime
maximize:
  - false
performance_type:
  - runtime
algorithm_cutoff_time: 100  # seconds
metainfo_algorithms:
  minisat:
    configuration: ''
    algorithm_cutoff_time: 7
"""


def scenario(folder, runs=RUNS, about=ABOUT):
    folder = folder / "SAT-TEST"
    folder.mkdir(exist_ok=True)
    (folder / "algorithm_runs.arff").write_text(runs)
    (folder / "description.txt").write_text(about)
    return folder


def test_a_scenario_with_time_outs_and_repetitions(tmp_path):
    table = jb.read_table(scenario(tmp_path))
    assert table.arms == ("minisat", "kissat")
    assert table.name == "SAT-TEST"
    assert not table.rewards
    # A time-out, a crash and a run past the cutoff count 1000; repetitions are averaged.
    np.testing.assert_array_equal(table.losses, [[2.5, 1000.0], [6.0, 500.5], [1000.0, 100.0]])


def test_a_scenario_of_quality_keeps_its_numbers_and_direction(tmp_path):
    about = (
        "performance_measures: [quality, time]\nmaximize: [true, false]\nperformance_type: [solution_quality, time]\n"
    )
    runs = RUNS.replace("runtime", "quality").replace("?", "0.5")
    table = jb.read_table(scenario(tmp_path, runs, about))
    assert table.rewards
    assert table.replay().rewards
    np.testing.assert_array_equal(table.losses, [[2.5, 100.0], [6.0, 0.75], [100.5, 100.0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",1,7,ok", ",fast,7,ok", "line 16: 'fast' is not a number"),
        (",1,7,ok", ",1,7", "line 16: 5 entries, but there are 6 attributes"),
        ("'b, 1.cnf',1,kissat", "'b,1,kissat", "line 13: entries with wrong quotes"),
        ("runstatus", "status", "lacks the attribute runstatus; it has instance_id, repetition"),
        ("a.cnf,1,kissat,1,7,ok\na.cnf,2,kissat,?,7,crash\n", "", r"row 2 of 3, column 2 of 2 \('kissat'\)"),
        (RUNS[RUNS.index("'b, 1") :], "", "holds no runs; put them after a line @DATA"),
    ],
)
def test_bad_runs(old, new, message, tmp_path):
    assert old in RUNS
    with pytest.raises(ValueError, match=message):
        jb.read_table(scenario(tmp_path, RUNS.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "algorithm_cutoff_time: 100",
            "algorithm_cutoff_time: ?",
            "line 13: the run did not end, and description.txt has no algorithm_cut",
        ),
        ("algorithm_cutoff_time: 100", "algorithm_cutoff_time: long", "algorithm_cutoff_time is 'long', not a number"),
        ("- runtime\nmax", "- speed\nmax", "names the measure 'speed', but .* has runtime, memory"),
    ],
)
def test_bad_descriptions(old, new, message, tmp_path):
    assert old in ABOUT
    with pytest.raises(ValueError, match=message):
        jb.read_table(scenario(tmp_path, about=ABOUT.replace(old, new)))


def test_runs_that_all_ended_need_no_description(tmp_path):
    folder = scenario(tmp_path, "".join(line for line in RUNS.splitlines(True) if "timeout" not in line or "{" in line))
    (folder / "algorithm_runs.arff").write_text(RUNS.replace("timeout\n", "ok\n").replace("?,7,crash", "3,7,ok"))
    (folder / "description.txt").unlink()
    np.testing.assert_array_equal(jb.read_table(folder).losses, [[2.5, 100.0], [6.0, 2.0], [100.5, 100.0]])


@pytest.mark.slow
def test_the_documented_example_runs(tmp_path):
    page = pathlib.Path(__file__).parents[1] / "docs" / "replay.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    code = block.replace("4_000", "400").replace("num_seeds=64", "num_seeds=8")  # the same lines, shorter
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert "uniinf" in done.stdout


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
    (grid,) = study.Study.load(study_file).environment_grids()
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


def inspected(monkeypatch, capsys, *args):
    monkeypatch.setattr(sys, "argv", ["jaxbandit", "inspect", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, *capsys.readouterr()


def test_inspect_prints_the_facts_and_leaves_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    losses = (1 - rng.random((2000, 3))) ** (-1 / 1.5) * [1.0, 50.0, 60.0]
    losses[3, 2] = np.nan
    path = write(tmp_path, "csv", losses)
    code, out, err = inspected(monkeypatch, capsys, path.name)
    assert (code, err) == (0, "")
    for fact in ("2,000 rounds x 3 arms", "a replay needs every entry", "top 0.5 %", "truncated non-negative"):
        assert fact in out
    scale = 1 / np.quantile(losses[np.isfinite(losses)], 0.99)
    assert f"{scale:.4g} makes the 99 % quantile 1" in out
    assert f"{np.nanmean(losses[:, 2]):.5g}" in out
    assert (tmp_path / "results" / "inspect-latency.png").read_bytes().startswith(b"\x89PNG")


def test_inspect_ends_with_the_message_of_a_bad_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, _, err = inspected(monkeypatch, capsys, "none.csv")
    assert code == 2
    assert "none.csv does not exist" in err


@pytest.mark.parametrize("losses", [[[0.0, 0.0]], [[1.0, 2.0], [3.0, -4.0]], [[5.0]]])
def test_inspect_takes_the_smallest_tables(losses, tmp_path, monkeypatch, capsys):
    path = write(tmp_path, "npy", losses)
    picture = tmp_path / "pictures" / "tails.png"
    code, _, err = inspected(monkeypatch, capsys, str(path), "--out", str(picture), "--rewards")
    assert (code, err) == (0, "")
    assert picture.exists()

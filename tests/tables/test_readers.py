"""Reading tables: every kind of file gives the same numbers, and a bad one says where it is bad."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import jaxbandit as jb
from tests.support.tables import ARMS, LOSSES, write


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
    "text": (
        "a,b\n1,2\n3,slow\n",
        r"holds 'slow' in row 2 of 2, column 2 of 2 \('b'\); give a number, or drop",
    ),
    "dates": (
        "day,b\nmon,2\n",
        r"column 1 of 2 \('day'\); give .* \(index='day' leaves that column out\)",
    ),
    "semicolons": ("a;b\n1;2\n", r"has one column, because no ',' is in its first line, 'a;b'; pass delimiter=';'"),
    "empty cell": ("a,b\n1,2\n3,\n", r"holds nan in row 2 of 2, column 2 of 2 \('b'\)"),
    "two gaps": ("a,b\n1,\n3,NA\n", r"row 1 of 2, column 2 of 2 \('b'\) and at 1 more places"),
    "ragged": ("a,b\n1,2\n3\n", "line 3: 1 entries, but the first line has 2"),
    "long": ("a,b\n1,2\n\n3,4,5\n", "line 4: 3 entries, but the first line has 2"),
    "no rounds": ("a,b\n", r"is empty, of shape \(0, 2\)"),
    "nothing": ("", "is empty; write the names of the arms"),
    "numbers first": ("0,1\n1,2\n", r"starts with numbers \(0, 1\).*header=False.*header=True"),
    "an index": (",a\n0,1\n1,2\n", "column 1 has no name.*index=True"),
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


def test_delimiter_and_index(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("round\ta\tb\n1\t0.5\t2\n2\t0.25\t3\n")
    for index in ("round", True):
        read = jb.read_table(path, index=index)
        assert read.arms == ("a", "b")
        np.testing.assert_array_equal(read.losses, [[0.5, 2], [0.25, 3]])
    assert jb.read_table(path, index="round", arms=["b"]).losses.tolist() == [[2], [3]]
    assert jb.read_table(path).arms == ("round", "a", "b")
    path = tmp_path / "table.csv"
    path.write_text(";x;y\nmon;1;2\ntue;3;4\n")
    np.testing.assert_array_equal(jb.read_table(path, delimiter=";", index=True).losses, [[1, 2], [3, 4]])
    text = path.rename(tmp_path / "table.txt")
    np.testing.assert_array_equal(jb.read_table(text, delimiter=";", index=True).losses, [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"table.txt does not say what is between its entries; pass delimiter"):
        jb.read_table(text)
    path = text.rename(path)
    with pytest.raises(ValueError, match="delimiter must be one sign"):
        jb.read_table(path, delimiter=";;")
    with pytest.raises(ValueError, match="has no arm 'day'"):
        jb.read_table(path, delimiter=";", index="day")
    with pytest.raises(ValueError, match=r"delimiter=';' is for .csv, .tsv and .txt files"):
        jb.read_table(write(tmp_path, "npy"), delimiter=";")


def test_an_array_is_no_file():
    with pytest.raises(ValueError, match=r"read_table reads a file, got ndarray; replay an array: jb.Replay"):
        jb.read_table(np.ones((3, 2)))


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
    with pytest.raises(ValueError, match=r"header=True is for .csv, .tsv and .txt files"):
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


@pytest.mark.slow
def test_the_documented_example_runs(tmp_path):
    page = pathlib.Path(__file__).parents[2] / "docs" / "replay.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    code = block.replace("4_000", "400").replace("num_seeds=64", "num_seeds=8")  # the same lines, shorter
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert "uniinf" in done.stdout

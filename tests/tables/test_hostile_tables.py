"""Tables that a stranger sent: wide, packed, endless or odd ones are read quickly or refused in words."""

import io
import os
import time
import zipfile

import numpy as np
import pytest
from scipy import stats

import jaxbandit as jb
from jaxbandit.tables import inspection, npz


def test_many_columns_take_seconds(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"arm {n}" for n in range(100_000)]
    path.write_text("\n".join([",".join(names), ",".join(["0.5"] * len(names))]) + "\n")
    began = time.process_time()
    assert jb.read_table(path).arms == tuple(names)
    assert jb.read_table(path, arms=names[::2]).losses.shape == (1, 50_000)
    assert time.process_time() - began < 4


def test_only_the_asked_array_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, losses=np.ones((3, 2)), bomb=np.zeros((1000, 1000)))
    monkeypatch.setattr(npz, "total_memory", lambda: 1e6)
    assert jb.read_table(path).losses.shape == (3, 2)
    with pytest.raises(
        ValueError, match=r"array 'bomb' of 8,000,128 bytes needs about .* but this machine has 1,000,000"
    ):
        jb.read_table(path, key="bomb")


def test_a_table_larger_than_memory(tmp_path, monkeypatch):
    path = tmp_path / "large.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000)
    monkeypatch.setattr(npz, "total_memory", lambda: 1e4)
    with pytest.raises(
        ValueError, match=r"4,004 bytes needs about 12,012 bytes of memory, but this machine has 10,000"
    ):
        jb.read_table(path)


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "parquet"])
def test_a_pipe_is_refused(tmp_path, kind):
    os.mkfifo(tmp_path / f"pipe.{kind}")
    with pytest.raises(ValueError, match="is no regular file"):
        jb.read_table(tmp_path / f"pipe.{kind}")


@pytest.mark.parametrize("name", ["losses", "x"])
def test_odd_archives(tmp_path, name):
    path = tmp_path / "odd.npz"
    np.savez(path, **{name: np.ones((3, 2))})
    content = bytearray(path.read_bytes())
    for at in (content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8):
        content[at] |= 1  # marks the entry as encrypted
    path.write_bytes(content)
    with pytest.raises(ValueError, match="it is encrypted"):
        jb.read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", b"text")
    with pytest.raises(ValueError, match=r"odd\.npz cannot be read: "):
        jb.read_table(path)


def test_negative_cut_offs(tmp_path):
    (tmp_path / "description.txt").write_text("algorithm_cutoff_time: -5\nperformance_type: runtime\n")
    (tmp_path / "algorithm_runs.arff").write_text(
        "@attribute instance_id string\n@attribute algorithm string\n@attribute runtime numeric\n"
        "@attribute runstatus {ok}\n@data\na,b,1,ok\n"
    )
    with pytest.raises(ValueError, match="algorithm_cutoff_time is '-5'; it must be above 0"):
        jb.read_table(tmp_path)


def test_many_columns_are_inspected_in_seconds():
    table = np.random.default_rng(0).pareto(1.5, (5, 100_000)).round(1)  # with ties
    began = time.process_time()
    found = inspection.inspect(table, [f"arm {n}" for n in range(table.shape[1])])
    assert time.process_time() - began < 3
    some = table[:, :300]
    each = [stats.spearmanr(column[:-1], column[1:]).statistic for column in some.T if np.ptp(column[:-1] * column[1:])]
    ours = inspection.inspect(some, [f"arm {n}" for n in range(some.shape[1])]).persistence
    assert ours == pytest.approx(np.nanmedian(each)) and abs(found.persistence) <= 1


def test_members_of_an_archive_that_are_no_arrays(tmp_path):
    path = tmp_path / "odd.npz"
    np.savez(path, x=np.ones((3, 2)), flat=np.ones(3))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", b"hello")
        archive.writestr("arms.npy", b"text")
    assert jb.read_table(path).arms == ("arm0", "arm1")
    assert npz.tables_in(path) == ["x"]


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_headers_that_claim_more_than_memory(tmp_path, kind):
    path, head = tmp_path / f"large.{kind}", io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10)}
    np.lib.format.write_array_header_1_0(head, about)
    path.write_bytes(head.getvalue())
    if kind == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", head.getvalue())
    with pytest.raises(ValueError, match=r"of 80,000,000,000,000 bytes needs about .* but this machine has"):
        jb.read_table(path)


def test_files_that_are_small_until_they_are_unpacked(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": np.zeros(10**5), "b": np.zeros(10**5)}), tmp_path / "zeros.parquet")
    head = "@attribute instance_id string\n@attribute algorithm string\n@attribute runtime numeric\n"
    runs = "\n".join(f"i{n},a{n},1,ok" for n in range(400))
    (tmp_path / "algorithm_runs.arff").write_text(f"{head}@attribute runstatus {{ok}}\n@data\n{runs}\n")
    monkeypatch.setattr(npz, "total_memory", lambda: 1e6)
    with pytest.raises(ValueError, match=r"the table of 1,600,000 bytes needs about"):
        jb.read_table(tmp_path / "zeros.parquet")
    with pytest.raises(ValueError, match=r"a table of 400 x 400 runs of 1,280,000 bytes needs about"):
        jb.read_table(tmp_path)

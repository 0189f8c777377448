"""Tables that a stranger sent: wide, packed, endless or odd ones are read quickly or refused in words."""

import os
import time
import zipfile

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.tables import npz


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


def test_odd_archives(tmp_path):
    path = tmp_path / "odd.npz"
    np.savez(path, losses=np.ones((3, 2)))
    content = bytearray(path.read_bytes())
    for at in (content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8):
        content[at] |= 1  # marks the entry as encrypted
    path.write_bytes(content)
    with pytest.raises(ValueError, match="it is encrypted"):
        jb.read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("losses.npy", b"text")
    with pytest.raises(ValueError, match=r"odd\.npz"):
        jb.read_table(path)


def test_negative_cut_offs(tmp_path):
    (tmp_path / "description.txt").write_text("algorithm_cutoff_time: -5\nperformance_type: runtime\n")
    (tmp_path / "algorithm_runs.arff").write_text(
        "@attribute instance_id string\n@attribute algorithm string\n@attribute runtime numeric\n"
        "@attribute runstatus {ok}\n@data\na,b,1,ok\n"
    )
    with pytest.raises(ValueError, match="algorithm_cutoff_time is '-5'; it must be above 0"):
        jb.read_table(tmp_path)

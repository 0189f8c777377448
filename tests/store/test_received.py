"""Results from a stranger: they read no other file, take no more memory than there is, and write nowhere else."""

import io
import os
import sys
import types
import zipfile

import h5py
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import report
from jaxbandit.cli import outcome
from jaxbandit.engine import checkpoint
from jaxbandit.runs import unfinished
from jaxbandit.search import traces
from jaxbandit.store import assemble, cellfile, seal
from jaxbandit.store import directory as directories
from jaxbandit.store.directory import Store, StoreError
from jaxbandit.store.parts import Parts
from tests.support import answers
from tests.support.stores import ENGINE, STUDY, cell_paths


def forged(path, change):
    """Changes an HDF5 file and seals it again."""
    memory = io.BytesIO(seal.read(path).content)
    with h5py.File(memory, "r+") as file:
        change(file)
    path.write_bytes(seal.sealed(memory.getvalue()))


def in_another_file(file, secret):
    """Replaces regret by an array whose numbers are the bytes of another file."""
    shape = file["regret"].shape
    del file["regret"]
    file.create_dataset("regret", shape, "f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def virtual(file, secret):
    shape = file["regret"].shape
    del file["regret"]
    layout = h5py.VirtualLayout(shape, "f8")
    layout[:] = h5py.VirtualSource(str(secret), "regret", shape)
    file.create_virtual_dataset("regret", layout)


def linked(file, secret):
    del file["regret"]
    file["regret"] = h5py.ExternalLink(str(secret), "regret")


@pytest.mark.parametrize(
    ("change", "said"), [(in_another_file, "lie in another file"), (virtual, "lie in another file"), (linked, "a link")]
)
def test_numbers_in_other_files_are_not_read(done, tmp_path, change, said):
    ds, directory = done
    secret = tmp_path / "secret"
    np.arange(10_000.0).tofile(secret)
    outcome.write(ds, directory)
    forged(directory / "dataset.nc", lambda file: change(file, secret))
    with pytest.raises(ValueError, match=said):
        assemble.opened(directory / "dataset.nc")
    forged(cell_paths(directory)[0], lambda file: change(file, secret))
    with pytest.warns(UserWarning, match=said):
        assert jb.load(directory).seeds.values.sum() == 80


def test_arrays_larger_than_memory_are_refused(done):
    """An array of HDF5 that nobody has written to takes no room in its file, and all of it in memory."""
    ds, directory = done
    outcome.write(ds, directory)

    def swell(file):
        file.create_dataset("more", (2**50,), "f8", chunks=(1024,))

    for path in (directory / "dataset.nc", cell_paths(directory)[0]):
        forged(path, swell)
    with pytest.raises(
        ValueError, match=r"its arrays would take 9,007,\d{3},\d{3},\d{3},\d{3} bytes, and this machine"
    ):
        assemble.opened(directory / "dataset.nc")
    with pytest.warns(UserWarning, match="its arrays would take"):
        assert jb.load(directory).seeds.values.sum() == 80


def sparse(file):
    file.create_dataset("more", (10**8,), "f8", chunks=(1024,), fillvalue=1.0)


def deep(file):
    group = file
    for _ in range(20_000):  # HDF5 would end the process while it visits them
        group = group.create_group("g")


def many(file):
    for n in range(1_001):
        file[f"v{n}"] = [1.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (sparse, r"its arrays would take 800,\d{3},\d{3} bytes, and the file has"),
        (deep, "'g/g' in it is a group inside a group"),
        (many, "it has more than 1,000 arrays"),
    ],
    ids=["sparse", "deep", "many"],
)
def test_files_that_are_small_or_simple_until_they_are_read(done, change, said):
    ds, directory = done
    outcome.write(ds, directory)
    for path in (directory / "dataset.nc", cell_paths(directory)[0]):
        forged(path, change)
    with pytest.raises(ValueError, match=said):
        assemble.opened(directory / "dataset.nc")
    with pytest.warns(UserWarning, match=said):
        assert jb.load(directory).seeds.values.sum() == 80


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are not UTF-8")
def test_the_report_names_a_file_whose_name_is_no_text(done):
    _, directory = done
    (directory / "cells" / os.fsdecode(b"\xff\xfe.nc")).write_bytes(b"x")
    with pytest.warns(UserWarning, match="is damaged"):
        page = report.write(directory)
    assert "??.nc is damaged" in page.read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_in_the_place_of_the_lock_is_named(done):
    _, directory = done
    (directory / "lock").unlink()
    os.mkfifo(directory / "lock")
    with pytest.raises(StoreError, match=r"lock \(it is no regular file\); give another directory"):
        jb.run(STUDY, directory, engine=ENGINE)


@pytest.mark.parametrize("seeds", [10**12, 2**62])
def test_a_manifest_that_asks_for_more_seeds_than_memory_holds(done, seeds):
    _, directory = done
    said, _ = seal.read_json(directory / "store.json")
    said["seeds"][0][0] = seeds
    (directory / "store.json").write_bytes(seal.sealed_json(said))
    with pytest.raises(StoreError, match=f"asks for {seeds:,} seeds: the regret of one pair would take"):
        jb.load(directory)


def test_results_larger_than_memory_are_not_loaded_whole(done, monkeypatch):
    ds, directory = done
    monkeypatch.setattr(assemble, "total_memory", lambda: ds.regret.nbytes)
    assert jb.load(directory).sizes == ds.sizes
    with pytest.raises(ValueError, match=r"bytes, and this machine has .*; open them with jb\.load"):
        assemble.opened(directory)


def test_a_file_larger_than_memory_is_not_read(done, monkeypatch):
    _, directory = done
    monkeypatch.setattr(seal, "total_memory", lambda: 100)
    with pytest.raises(StoreError, match="larger than the memory"):
        jb.load(directory)


def test_the_report_shows_no_file_that_a_link_names(tmp_path):
    answers.write(tmp_path / "out")
    (tmp_path / "secret").write_text("my password")
    (tmp_path / "out" / "sensitivity" / "study.toml").symlink_to(tmp_path / "secret")
    assert "my password" not in report.write(tmp_path / "out").read_text(encoding="utf-8")


def test_no_temporary_file_is_written_through_a_link(tmp_path):
    (tmp_path / "victim").write_text("mine")
    store = Store(tmp_path / "out")
    store.prepare()
    writer = directories._writer()
    for name in (f".store.json.{writer}.tmp", f".probe.{writer}.tmp"):
        (tmp_path / "out" / name).symlink_to(tmp_path / "victim")
    store.prepare()
    store.write(tmp_path / "out" / "store.json", b"{}")
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / "out" / "store.json").read_bytes() == b"{}"


def test_temporary_files_of_impossible_processes_are_removed(tmp_path):
    store = Store(tmp_path)
    store.prepare()
    name = f".x.{directories._writer().rpartition('-')[0]}-{10**30}.tmp"
    (tmp_path / name).touch()
    store.clear_temporary()
    assert not (tmp_path / name).exists()


def packed(content: bytes) -> bytes:
    """Returns any content with the mark and the digest of a checkpoint."""
    return checkpoint.MAGIC + checkpoint.hashlib.sha256(content).digest() + content


def compressed() -> bytes:
    memory = io.BytesIO()
    np.savez_compressed(memory, header=np.frombuffer(b"{}", np.uint8), x=np.zeros(10**6))
    return memory.getvalue()


def array_file() -> bytes:
    memory = io.BytesIO()
    np.save(memory, np.zeros(3))
    return memory.getvalue()


def archive() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        file.writestr("header.npy", b"x")
    return memory.getvalue()


WHOLE = {"t": 3, "reached": 1, "rounds": [3], "cells": ["a-0-2-b.nc"], "cell_of": [0, 0], "seed_of": [0, 1]}
STRANGE = {
    "t": -1,
    "reached": "x",
    "cells": [5],
    "cell_of": [0, 1],
    "seed_of": [0, -1],
    "rounds": 3,
}


@pytest.mark.parametrize("make", [compressed, array_file, archive, lambda: b"", lambda: b"PK\x03\x04text"])
def test_sealed_checkpoints_of_another_form_are_refused(make):
    with pytest.raises(ValueError, match="the checkpoint cannot be used"):
        checkpoint.unpack(packed(make()))


@pytest.mark.parametrize("key", STRANGE)
def test_checkpoints_with_strange_descriptions_are_deleted_in_words(key, tmp_path):
    store = Store(tmp_path)
    store.prepare()
    path = store.checkpoints / "a.ckpt"
    path.write_bytes(checkpoint.pack({"carry.0": np.zeros((3, 2))}, WHOLE))
    assert unfinished.read_checkpoint(path) is not None
    assert not unfinished.is_done(path, store, {})
    path.write_bytes(checkpoint.pack({"carry.0": np.zeros((3, 2))}, WHOLE | {key: STRANGE[key]}))
    assert not unfinished.is_done(path, store, {})
    if key != "rounds":
        with pytest.warns(UserWarning, match="is damaged; this run deletes it"):
            assert unfinished.read_checkpoint(path) is None
        assert not path.exists()


PART = {
    "variable.regret": np.zeros((2, 1)),
    "variable.loss": np.zeros((2, 1)),
    "variable.pulls": np.zeros((2, 1, 2), np.int32),
    "carry.0": np.zeros((3, 2)),
    "seeds": np.arange(2),
}


@pytest.mark.parametrize(
    "change",
    [
        {"variable.regret": np.zeros((1, 1))},
        {"variable.loss": np.asarray([["a"], ["b"]])},
        {"carry.0": np.zeros((3, 1))},
        {"carry.0": np.full((3, 2), "a")},
        {"seeds": np.zeros(2)},
        {"seeds": np.zeros((2, 1), int)},
        "variable.pulls",
    ],
)
def test_parts_with_strange_arrays_are_deleted_in_words(change, tmp_path):
    cell, path = types.SimpleNamespace(name=WHOLE["cells"][0], first=0, last=2), tmp_path / "a.part"
    path.write_bytes(checkpoint.pack(PART, WHOLE))
    assert unfinished.read_part(path, cell) is not None
    arrays = PART | change if isinstance(change, dict) else {k: v for k, v in PART.items() if k != change}
    path.write_bytes(checkpoint.pack(arrays, WHOLE))
    with pytest.warns(UserWarning, match="is damaged; this run deletes it"):
        assert unfinished.read_part(path, cell) is None
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.assign_attrs(about="[1]"),
        lambda ds: ds.assign_attrs(about="[" * 100_000),
        lambda ds: ds.assign_attrs(about=3),
        lambda ds: ds.drop_vars("value"),
        lambda ds: ds.isel(parameter=0),
    ],
)
def test_traces_of_another_form_are_refused(change, tmp_path):
    def trace():
        return traces.Trace(tmp_path / "tune-a.nc", {"a": 1}, {"value": ("parameter",)}, ["scale"])

    first = trace()
    first.add(value=[1.0])
    first.save(change(first.dataset()))
    with pytest.raises(ValueError, match="is not the trace of a search"):
        trace()


def test_parts_of_results_with_strange_attributes_are_played_again(tmp_path):
    kept = Parts(tmp_path)
    kept.write("a", {"x": np.zeros(2)}, 1.0)
    assert kept.read("a") is not None
    ds, _ = seal.read_dataset(tmp_path / "parts" / "a.nc")
    for attrs in ({"name": "a"}, {"name": "a", "run_seconds": "long"}):
        (tmp_path / "parts" / "a.nc").write_bytes(seal.dataset_bytes(ds.drop_attrs().assign_attrs(attrs)))
        with pytest.warns(UserWarning, match="does not hold what its name says"):
            assert kept.read("a") is None


def test_states_of_another_form_are_refused(done):
    _, directory = done
    path = cell_paths(directory)[0]
    state = checkpoint.pack({"strange": np.zeros(3)}, {"t": 1})

    def change(file):
        del file["state/packed"]
        file["state/packed"] = np.frombuffer(state, np.uint8)

    forged(path, change)
    with pytest.raises(cellfile.BadFileError, match="the states in"):
        cellfile.read_state(cellfile.read_header(path))
    with pytest.raises((StoreError, ValueError), match="the states in"):
        jb.run(STUDY.changed(horizon=70), directory, engine=ENGINE)

"""Digests of whole files: nothing that was damaged, renamed or written by another version passes for a result."""

import io
import json

import h5py
import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.runs.campaign import Report
from jaxbandit.search import study as searches
from jaxbandit.search import traces
from jaxbandit.store import assemble, cellfile, seal
from jaxbandit.store.directory import StoreError
from tests.support.stores import ENGINE, STUDY, assert_same, cell_paths


def unseal(path):
    """Turns a cell into one of format 1, which had no digest."""
    memory = io.BytesIO(seal.read(path).content)
    with h5py.File(memory, "r+") as file:
        file.attrs["jaxbandit_cell"] = 1
    path.write_bytes(memory.getvalue())


def resealed(path, change):
    """Changes a cell as a careful forger would: with a new digest."""
    memory = io.BytesIO(seal.read(path).content)
    with h5py.File(memory, "r+") as file:
        change(file)
    path.write_bytes(seal.sealed(memory.getvalue()))


def test_a_zeroed_tail_is_no_result(done):
    """HDF5 reads such a file as zeros, or for ever."""
    ds, directory = done
    path = cell_paths(directory)[0]
    content = path.read_bytes()
    for cut in (1, 60, 90, len(content) // 3, len(content) - 600):
        path.write_bytes(content[:-cut] + bytes(cut))
        with pytest.warns(UserWarning, match="is damaged"):
            found = jb.load(directory).load()
        assert found.seeds.values.sum() == 80
        same = (found.regret.values == ds.regret.values).all(axis=(2, 3))
        assert same.sum() == 2 and np.isnan(found.regret.values[~same]).all()


def test_cells_that_swapped_their_names_are_found_again(done):
    ds, directory = done
    one, other, _ = cell_paths(directory)
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    with pytest.warns(UserWarning, match="holds another cell"):
        assert jb.load(directory).seeds.values.sum() == 40
    report = Report()
    with pytest.warns(UserWarning, match="holds another cell"):
        assert_same(jb.run(STUDY, directory, engine=ENGINE, report=report), ds)
    assert report.played == 0 and (one.read_bytes(), other.read_bytes()) == contents


def test_a_cell_in_place_of_another_is_set_aside_and_played(done):
    ds, directory = done
    one, other, _ = cell_paths(directory)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    report = Report()
    with pytest.warns(UserWarning, match="holds another cell"):
        assert_same(jb.run(STUDY, directory, engine=ENGINE, report=report), ds)
    assert report.played == 1
    assert one.with_name(f"{one.name}.damaged").read_bytes() == other.read_bytes()
    assert cellfile.read_header(one).verified and len(one.read_bytes()) == len(content)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file["seed"].write_direct(np.arange(1, 41)), "its seeds are not those of its header"),
        (lambda file: file["round"].write_direct(np.arange(5)), "its rounds are not those of its header"),
        (lambda file: file.move("loss", "regret_loss"), "is damaged"),
        (lambda file: file.attrs.__setitem__("header", "[]"), "is damaged"),
        (lambda file: file.attrs.__setitem__("header", file.attrs["header"].replace("exp3", "exp4")), "its hash"),
        (lambda file: file.attrs.__setitem__("jaxbandit_cell", 7), "has format 7"),
    ],
)
def test_a_header_that_does_not_fit_its_content(done, change, said):
    _, directory = done
    resealed(cell_paths(directory)[0], change)
    with pytest.warns(UserWarning, match=said):
        assert jb.load(directory).seeds.values.sum() == 80


def test_cells_without_a_digest_are_used_but_never_extended(done):
    ds, directory = done
    for path in cell_paths(directory):
        unseal(path)
    with pytest.warns(UserWarning) as said:
        assert_same(jb.load(directory), ds)
    assert [str(warning.message).count("3 of 3 cells") for warning in said] == [1] and "unverified" in str(said[0])
    before = {path: path.read_bytes() for path in cell_paths(directory)}
    report = Report()
    with pytest.warns(UserWarning, match="unverified"):
        jb.run(STUDY, directory, engine=ENGINE, report=report)
    assert report.played == 0 and before == {path: path.read_bytes() for path in cell_paths(directory)}
    longer = STUDY.changed(horizon=70)
    changed = cell_paths(directory)[0]
    broken = before[changed].replace(ds.loss.values[0, 0].tobytes(), bytes(ds.loss.values[0, 0].nbytes))
    changed.write_bytes(broken)  # unseen, as there is no digest, but no game continues from it
    with pytest.warns(UserWarning, match="unverified"):
        extended = jb.run(longer, directory, engine=ENGINE)
    fresh = jb.run(longer.changed(record=[int(n) for n in extended["round"]]), directory / "fresh", engine=ENGINE)
    assert_same(extended, fresh)


def test_a_sealed_cell_without_its_seal_is_not_taken_for_an_old_one(done):
    _, directory = done
    path = cell_paths(directory)[0]
    path.write_bytes(seal.read(path).content)
    with pytest.warns(UserWarning, match="its digest is missing"):
        jb.load(directory)


def test_the_manifest_is_verified(done):
    ds, directory = done
    path = directory / "store.json"
    content = path.read_text()
    for change in (("exp3", "ucb1"), ("40", "41"), ('"format": 2', '"format": 1')):
        path.write_text(content.replace(*change))
        with pytest.raises(StoreError, match=r"store.json is damaged \(its digest differs\)"):
            jb.load(directory)
    said = json.loads(content)
    said.pop("sha256")
    path.write_text(json.dumps(said))
    with pytest.raises(StoreError, match="its digest is missing"):
        jb.load(directory)
    path.write_text(json.dumps(said | {"format": 1}))  # one of an earlier version
    assert_same(jb.load(directory), ds)
    for key in ("rounds", "record", "keep", "games", "seeds", "coords", "attrs"):
        for wrong in ({k: v for k, v in said.items() if k != key}, said | {key: 7.5}, said | {key: [[]]}):
            path.write_bytes(seal.sealed_json(wrong))
            with pytest.raises(StoreError, match=r"store.json cannot be used: .*Move store.json away"):
                jb.load(directory)


def test_a_dataset_in_one_file_is_verified(tmp_path):
    ds = jb.simulate(jb.Uniform(), jb.Bernoulli(means=[0.2, 0.8]), horizon=20, num_seeds=8, record=4)
    path = tmp_path / "dataset.nc"
    path.write_bytes(seal.dataset_bytes(ds))
    assert xr.load_dataset(path).identical(assemble.opened(path))  # xarray finds its own way to read it
    content = bytearray(path.read_bytes())
    content[content.index(ds.regret.values.tobytes()) + 3] ^= 16
    path.write_bytes(content)
    with pytest.raises(ValueError, match="digest differs"):
        assemble.opened(path)
    path.write_bytes(ds.to_netcdf(engine="h5netcdf"))
    with pytest.warns(UserWarning, match="unverified"):
        assert assemble.opened(path).identical(ds)


def test_a_damaged_seal_is_not_taken_for_an_old_file(tmp_path):
    """Without the length that HDF5 recorded, a dataset whose seal was damaged would be read as one that had none."""
    ds, path = xr.Dataset({"regret": ("seed", np.arange(40.0))}), tmp_path / "dataset.nc"
    content = seal.dataset_bytes(ds)
    at = content.rindex(b"jaxbandit sha256")
    for damaged in (content[:at] + b"k" + content[at + 1 :], content[:-1], content[:at], content + b"\n"):
        path.write_bytes(damaged)
        with pytest.raises(seal.BadFileError, match="no digest, and not the length"):
            seal.read_dataset(path)


def test_the_trace_of_a_search_is_verified(tmp_path):
    path = tmp_path / "tune-a.nc"
    trace = traces.Trace(path, {"a": 1}, {"value": ("parameter",)}, ["scale"])
    trace.add(value=[1.0])
    trace.save()
    assert traces.Trace(path, {"a": 1}, {"value": ("parameter",)}, ["scale"]).rows == trace.rows
    path.write_bytes(seal.read(path).content)
    with pytest.warns(UserWarning, match="unverified"), pytest.raises(ValueError, match="no search continues from it"):
        traces.Trace(path, {"a": 1}, {"value": ("parameter",)}, ["scale"])
    trace.save()
    path.write_bytes(path.read_bytes().replace(np.float64(1.0).tobytes(), np.float64(2.0).tobytes()))
    with pytest.raises(ValueError, match="digest differs"):
        traces.Trace(path, {"a": 1}, {"value": ("parameter",)}, ["scale"])
    with pytest.warns(UserWarning, match="digest differs"):
        assert searches.load(tmp_path) == []

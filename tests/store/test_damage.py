"""Files of a directory that are cut, changed, foreign or of another version: named, set aside, never mixed in."""

import json

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.runs.campaign import Report
from jaxbandit.store import cellfile, cells
from jaxbandit.store.directory import StoreError
from tests.support.stores import ENGINE, STUDY, assert_same, cell_paths


def test_a_stationary_environment_has_simulates_numbers(done):
    means = [[0.2, 0.8], [0.4, 0.5], [0.1, 0.3]]
    expected = jb.simulate(
        [jb.Exp3()], [jb.grid(jb.Bernoulli, means=means)], horizon=50, num_seeds=40, record=5, engine=ENGINE
    )
    assert_same(done[0].drop_vars(["seeds", "moment_order", "moment_bound"]), expected)


def test_a_cell_cut_in_half_is_named_and_played_again(done):
    ds, directory = done
    path = cell_paths(directory)[1]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.warns(UserWarning, match=f"{path.name} is damaged"):
        partial = jb.load(directory)
    assert sorted(partial.seeds.values.ravel().tolist()) == [0, 40, 40]
    missing = int(np.argmin(partial.seeds.values[0]))
    assert np.isnan(partial.regret.values[0, missing]).all()
    assert np.isnan(partial.pulls.values[0, missing]).all() and (partial.failed.values[0, missing] == -1).all()
    with pytest.warns(UserWarning, match="is damaged"):
        again = jb.run(STUDY, directory, engine=ENGINE)
    assert_same(again, ds)
    assert path.with_name(f"{path.name}.damaged").exists()  # nothing is thrown away
    assert_same(jb.load(directory), ds)


def test_a_changed_byte_is_seen_when_it_is_opened_and_when_it_is_read(done):
    _, directory = done
    path = cell_paths(directory)[0]
    header = cellfile.read_header(path)
    ds = jb.load(directory)
    values = cellfile.read_part(header, "loss").tobytes()
    content = bytearray(path.read_bytes())
    content[content.index(values) + 9] ^= 1
    path.write_bytes(content)
    with pytest.raises(cellfile.BadFileError, match=r"is damaged.*delete it"):
        ds.loss.load()
    with pytest.warns(UserWarning, match=r"is damaged \(its digest differs\); this file is not used"):
        assert sorted(jb.load(directory).seeds.values.ravel().tolist()) == [0, 40, 40]


def test_a_foreign_file_is_named_and_never_mixed_in(done, tmp_path):
    ds, directory = done
    xr.Dataset({"regret": ("x", [1.0])}).to_netcdf(directory / "cells" / "foreign.nc", engine="h5netcdf")
    (directory / "cells" / "text.nc").write_text("not netCDF")
    with pytest.warns(UserWarning) as said:
        assert_same(jb.load(directory), ds)
    messages = sorted(str(warning.message).split("cells/")[1] for warning in said)
    assert messages[0].startswith("foreign.nc is no cell") and messages[1].startswith("text.nc is damaged")
    assert (directory / "cells" / "foreign.nc").exists()


def test_cells_are_netcdf_that_says_what_it_is(done):
    _, directory = done
    with xr.open_dataset(cell_paths(directory)[0], engine="h5netcdf") as cell:
        assert cell.regret.dims == ("seed", "round")
        assert json.loads(cell.header)["about"]["policy"]["class"] == "exp3"


def test_a_store_of_another_format_is_left_alone(done):
    _, directory = done
    path = directory / "store.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {"format": 99, "jaxbandit": "7.0"}))
    before = path.read_bytes()
    for use in (lambda: jb.load(directory), lambda: jb.run(STUDY, directory, engine=ENGINE)):
        with pytest.raises(StoreError, match=r"written by jaxbandit 7.0 in format 99.*nothing was changed"):
            use()
    assert path.read_bytes() == before
    path.write_text("{")
    with pytest.raises(StoreError, match=r"store.json is damaged.*The cells beside it are kept. Move store.json away"):
        jb.load(directory)


def test_cells_of_another_version_of_the_numerics_stay_beside(done, monkeypatch):
    ds, directory = done
    before = cell_paths(directory)
    monkeypatch.setattr(cells, "NUMERICS", cells.NUMERICS + 1)
    report = Report()
    again = jb.run(STUDY, directory, engine=ENGINE, report=report)
    assert set(before) < set(cell_paths(directory)) and len(cell_paths(directory)) == 6
    assert report.aside == 3
    assert_same(again, ds)


def test_platforms_are_not_mixed_without_a_note(done, monkeypatch):
    _, directory = done
    original = cells.platform

    def another(way):
        return original(way) | {"jaxlib": "0.0.1"}

    monkeypatch.setattr(cells, "platform", another)
    monkeypatch.setattr("jaxbandit.runs.player.platform", another)
    other = jb.run(STUDY, directory, engine=ENGINE)  # plays its own
    assert len(cell_paths(directory)) == 6 and "; " not in other.platforms
    assert "; " not in jb.load(directory).platforms  # one platform has all of it
    headers = sorted(map(cellfile.read_header, cell_paths(directory)), key=lambda h: (h.pair, "jaxlib" in h.platform))
    headers[0].path.unlink()  # the first game's from one platform, the second one's from the other
    headers[3].path.unlink()
    with pytest.warns(UserWarning, match="this directory holds cells of 2 platforms"):
        mixed = jb.load(directory)
    assert "jaxlib 0.0.1" in mixed.platforms

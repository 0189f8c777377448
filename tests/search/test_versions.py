"""Traces of other versions, and a search without its library."""

import json
import sys

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.search.evolution import VERSION, Evolution
from jaxbandit.store import seal
from jaxbandit.store.cells import NUMERICS

FAMILY = jb.Family(jb.Bernoulli(means=[0.25, 0.75]), {"gap": (0.1, 0.6)})
SMALL = {"horizon": 10, "num_seeds": 4, "final_seeds": 4, "test_seeds": 4, "steps": 3, "population": 4}


@pytest.mark.parametrize(("key", "value"), [("evolution", None), ("evolution", 1), ("numerics", 9)])
def test_the_trace_of_another_version_is_neither_continued_nor_taken(tmp_path, key, value):
    """Traces up to 0.1 have neither key."""
    policy, path = jb.UCB1(), tmp_path / "trace.nc"
    about = {"kind": "worst", "evolution": VERSION, "numerics": NUMERICS, key: value}
    attrs = {"about": json.dumps({k: v for k, v in about.items() if v is not None}), "jaxbandit": "0.1.0", "done": 1}
    path.write_bytes(seal.dataset_bytes(xr.Dataset(attrs=attrs)))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"another version of jaxbandit \(0\.1\.0\).*{key} = {value}, now \d+"):
        jb.worst(policy, FAMILY, path=path, **SMALL)
    assert path.read_bytes() == before


def test_a_missing_library_names_its_extra_before_any_game(monkeypatch):
    monkeypatch.setitem(sys.modules, "cmaes", None)
    with pytest.raises(ValueError, match=r"needs cmaes.*pip install 'jaxbandit\[search\]'"):
        jb.worst(jb.UCB1(), FAMILY, **SMALL)


def test_alike_and_missing_values_leave_the_search_in_the_cube():
    """If all values are alike, then the strategy degenerates; warnings are errors here."""
    for value in (0.0, np.nan):
        search = Evolution(2, seed=1, scans=1)
        for _ in range(300):
            search.tell(np.full(search.population, value))
        points = search.ask()
        assert points.shape == (search.population, 2) and points.min() >= 0 and points.max() <= 1
        assert np.ptp(points) > 0

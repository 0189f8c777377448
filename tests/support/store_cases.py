"""A small study, finished once, for tests that damage its directory."""

import pathlib

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb

ENGINE = jb.Engine(block=64, devices=1)
STUDY = jb.Study(
    horizon=50,
    num_seeds=40,
    record=5,
    policies=[{"name": "exp3"}],
    environments=[{"name": "bernoulli", "means": [[0.2, 0.8], [0.4, 0.5], [0.1, 0.3]]}],
)


def assert_same(first: xr.Dataset, second: xr.Dataset) -> None:
    assert set(first.variables) == set(second.variables)
    for name in first.variables:
        np.testing.assert_array_equal(first[name].values, second[name].values, err_msg=str(name))


def cell_paths(directory: pathlib.Path) -> list[pathlib.Path]:
    return sorted((directory / "cells").iterdir())


@pytest.fixture
def done(tmp_path):
    """A finished study: its dataset and its directory."""
    return jb.run(STUDY, tmp_path / "done", engine=ENGINE).load(), tmp_path / "done"

"""The command line, as a user types it."""

import subprocess
import sys

import pytest
import xarray as xr

STUDY = """
title = "two seconds"
horizon = 50
num_seeds = 8

[[policies]]
name = "uniinf"
initial_scale = [1.0, 4.0]

[[policies]]
name = "uniform"

[[environments]]
name = "pareto"
means = [0.5, 1.0]
tail_index = 1.6

[[environments]]
name = "switching"
law = {name = "bernoulli", means = [0.2, 0.8]}
"""


def jaxbandit(*args, cwd, check=True):
    command = [sys.executable, "-m", "jaxbandit", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert not check or done.returncode == 0, done.stderr
    return done


def test_run_leaves_a_table_a_dataset_and_a_figure(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    done = jaxbandit("run", "study.toml", "--out", "out", cwd=tmp_path)
    assert "two seconds" in done.stdout
    assert "±" in done.stdout
    assert "uniinf[initial_scale=4]" in done.stdout
    with xr.open_dataset(tmp_path / "out" / "dataset.nc", engine="h5netcdf") as ds:
        assert ds.regret.dims == ("policy", "environment", "seed", "round")
        assert ds.sizes["policy"] == 3
        assert ds.attrs["study"] == STUDY
    assert (tmp_path / "out" / "regret.png").read_bytes().startswith(b"\x89PNG")


def test_bad_study_ends_with_its_message(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace("num_seeds", "num_seed"))
    done = jaxbandit("run", "study.toml", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "did you mean 'num_seeds'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("doctor", ("devices", "XLA_FLAGS", "compile cache", "jaxlib")),
        ("list", ("uniinf", "pareto")),
        ("--version", ("jaxbandit 0",)),
    ],
)
def test_it_tells(command, shown, tmp_path):
    done = jaxbandit(command, cwd=tmp_path)
    for word in shown:
        assert word in done.stdout

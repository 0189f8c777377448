"""Studies beyond one process: the same bits over executors, Dask workers and processes that started together."""

import concurrent.futures
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.runs import teams
from jaxbandit.runs.campaign import Report

ENGINE = jb.Engine(block=64, devices=1)
STUDY = """
horizon = 50
num_seeds = 70
record = 5

[[policies]]
name = "exp3"

[[environments]]
name = "bernoulli"
means = [[0.2, 0.8], [0.4, 0.5], [0.1, 0.3]]
"""
# Long enough for a worker to be killed in the middle of it.
LONG = STUDY.replace("horizon = 50", "horizon = 600_000").replace(
    "[0.1, 0.3]]", "[0.1, 0.3], [0.2, 0.3], [0.4, 0.6], [0.4, 0.9]]"
)


def assert_same(first, second):
    assert set(first.variables) == set(second.variables)
    for name in first.variables:
        np.testing.assert_array_equal(first[name].values, second[name].values, err_msg=str(name))


def saved(directory, text=STUDY):
    path = directory / "study.toml"
    path.write_text(text)
    return path


def test_an_executor_plays_cells(tmp_path):
    study = jb.Study.load(saved(tmp_path))
    report = Report()
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        team = teams.ExecutorTeam(executor)
        ds = jb.run(study, tmp_path / "team", engine=ENGINE, team=team, report=report)
    assert report.played == 3
    assert_same(ds, jb.run(study, tmp_path / "alone", engine=ENGINE))


def test_tasks_are_cells_of_one_program(tmp_path, monkeypatch):
    monkeypatch.setattr(teams, "TASK_LANES", 150)
    submitted = []

    class Executor(concurrent.futures.ThreadPoolExecutor):
        def submit(self, function, *args):
            submitted.append([spec["game"] for spec in args[3]])
            return super().submit(function, *args)

    study = jb.Study.load(saved(tmp_path))
    with Executor(1) as executor:
        jb.run(study, tmp_path / "team", engine=ENGINE, team=teams.ExecutorTeam(executor))
    assert submitted == [[[0, 0], [0, 1]], [[0, 2]]]


@pytest.mark.parametrize("keep", ["seeds", pytest.param("summary", marks=pytest.mark.slow)])
def test_two_processes_share_the_seeds_of_few_cells(tmp_path, keep):
    """Two members in two threads; the one that is done last joins the parts."""
    study = jb.Study.load(saved(tmp_path)).changed(keep=keep)
    expected = jb.run(study, tmp_path / "alone", engine=ENGINE)
    stop = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        members = [teams.ProcessTeam(n, 2) for n in (0, 1)]
        runs = [both.submit(jb.run, study, tmp_path / "team", engine=ENGINE, team=team, stop=stop) for team in members]
        concurrent.futures.wait(runs, timeout=60, return_when=concurrent.futures.FIRST_EXCEPTION)
        stop.set()  # if one has failed, the other does not wait for it
        errors = [run.exception() for run in runs]
    assert errors == [None, None]
    for run in runs:
        assert_same(run.result(), expected)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def jaxbandit(*args):
    return [sys.executable, "-m", "jaxbandit", *map(str, args)]


@pytest.mark.slow
@pytest.mark.parametrize("text", [STUDY, LONG], ids=["few", "long"])
def test_processes_that_share_a_directory(tmp_path, text):
    path = saved(tmp_path, text)
    coordinator = f"localhost:{free_port()}"
    flags = ["--out", tmp_path / "team", "--coordinator", coordinator, "--num-processes", 2]
    processes = [
        subprocess.Popen(
            jaxbandit("run", path, *flags, "--process-id", n), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for n in (0, 1)
    ]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert "mean ± s.e." in outputs[0][0] and outputs[1][0] == ""
    assert_same(jb.load(tmp_path / "team"), jb.run(jb.Study.load(path), tmp_path / "alone"))

"""What a study must survive: kills, full disks, two runs at once."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import jaxbandit as jb
from jaxbandit.store import directory as store
from jaxbandit.store.directory import Store, StoreError
from tests.support.helpers import PEAK, knows_peak
from tests.support.stores import ENGINE, STUDY, assert_same, cell_paths


def test_two_runs_at_once(done):
    _, directory = done
    with Store(directory).locked(), pytest.raises(StoreError, match=rf"in use by process {os.getpid()} on .*--out"):
        jb.run(STUDY, directory, engine=ENGINE)
    jb.run(STUDY, directory, engine=ENGINE)  # and it is free again


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/out cannot be written to.*--out"):
        jb.run(STUDY, tmp_path / "file" / "out", engine=ENGINE)
    with pytest.raises(StoreError, match="holds no study"):
        jb.load(tmp_path / "nowhere")


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    original, writes = os.fsync, iter(range(4))

    def full(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}") or next(writes, None) is not None:
            return original(handle)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(StoreError, match=r"No space left on device.*bytes are free.*run the same command"):
        jb.run(STUDY, tmp_path, engine=ENGINE)
    monkeypatch.undo()
    kept = {path: path.stat().st_mtime_ns for path in cell_paths(tmp_path)}
    assert kept and not list(tmp_path.rglob("*.tmp"))
    ds = jb.run(STUDY, tmp_path, engine=ENGINE)
    assert all(path.stat().st_mtime_ns == at for path, at in kept.items())
    assert_same(ds, jb.run(STUDY, tmp_path / "fresh", engine=ENGINE))


# From here on with processes of their own.

KILLED = """
horizon = 4000
num_seeds = 300
record = 12

[[policies]]
name = "tsallis_inf"

[[policies]]
name = "uniinf"
initial_scale = [1.0, 2.0, 4.0, 8.0]

[[environments]]
name = "pareto"
means = [0.5, 1.0]
tail_index = [1.2, 1.6, 2.0]

[[environments]]
name = "switching"
law = {name = "bernoulli", means = [0.2, 0.8]}
"""


def jaxbandit(*args):
    return [sys.executable, "-m", "jaxbandit", *map(str, args)]


def prepared(code, command):
    """The command of a process that first runs the code. (`preexec_fn` would fork this one, which holds threads.)"""
    return [sys.executable, "-c", f"{code}; import os, sys; os.execv(sys.argv[1], sys.argv[1:])", *command]


def wait_for(condition, seconds=120.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to be"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["compiling", "playing"])
def test_ctrl_c_stops_within_two_seconds(tmp_path, moment):
    (tmp_path / "study.toml").write_text(KILLED.replace("4000", "400_000_000"))
    command = jaxbandit("run", "study.toml", "--out", "out")
    environment = os.environ | {"JAXBANDIT_CACHE": "off"}
    # A process that is started in the background ignores Ctrl-C, and so would its children.
    heard = prepared("import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)", command)
    process = subprocess.Popen(heard, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    wait_for((tmp_path / "out" / "store.json").exists)
    if moment == "playing":
        wait_for(lambda: list((tmp_path / "out" / "checkpoints").glob("*.ckpt")))
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - began < 2.0
    assert process.returncode == 130
    assert "To continue: jaxbandit run study.toml --out out" in said


@pytest.mark.slow
def test_a_second_process_is_refused_and_a_dead_one_is_not_in_the_way(tmp_path):
    (tmp_path / "study.toml").write_text(KILLED.replace("4000", "400_000_000"))
    first = subprocess.Popen(jaxbandit("run", "study.toml", "--out", "out", "--quiet"), cwd=tmp_path)
    wait_for((tmp_path / "out" / "store.json").exists)
    second = subprocess.run(
        jaxbandit("run", "study.toml", "--out", "out"), cwd=tmp_path, capture_output=True, text=True
    )
    assert second.returncode == 2
    assert f"in use by process {first.pid} on" in second.stderr and "Traceback" not in second.stderr
    first.kill()
    first.wait()
    shutil.rmtree(tmp_path / "out" / "cells")
    (tmp_path / "study.toml").write_text(KILLED.replace("4000", "40"))
    done = subprocess.run(jaxbandit("run", "study.toml", "--out", "out", "--quiet"), cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.slow
def test_a_disk_that_takes_no_more(tmp_path):
    """The kernel itself refuses to write on: no file may be longer than 60 kB."""
    (tmp_path / "study.toml").write_text(KILLED.replace("4000", "40"))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
    command = prepared(limit, jaxbandit("run", "study.toml", "--out", "out"))
    environment = os.environ | {"JAXBANDIT_CACHE": "off"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 2, done.stderr
    assert "cannot write" in done.stderr and "File too large" in done.stderr and "Traceback" not in done.stderr
    assert not list((tmp_path / "out").rglob("*.tmp"))


@pytest.mark.long
@knows_peak
def test_a_study_larger_than_memory_runs_as_a_summary(tmp_path):
    """The seeds of 28 cells would be 1.4 GB; the process may have half of it more than it starts with."""
    means = [[best, other] for best in (0.1, 0.2, 0.3, 0.4) for other in (0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)]
    text = f"""
    horizon = 2000
    num_seeds = 2048
    record = 1000
    keep = "summary"
    policies = [{{name = "uniform"}}]
    environments = [{{name = "bernoulli", means = {means}}}]
    """
    (tmp_path / "study.toml").write_text(textwrap.dedent(text))
    code = PEAK + (
        "import jaxbandit as jb\n"
        "study, engine = jb.Study.load('study.toml'), jb.Engine(block=512)\n"
        "jb.run(study.changed(horizon=20, record=10, num_seeds=64), 'small', engine=engine)\n"
        "before = peak()\n"
        "ds = jb.run(study, 'out', engine=engine)\n"
        "print(ds.regret_mean.values.shape, (peak() - before) / 1e6)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("(1, 28, ")
    assert float(done.stdout.split()[-1]) < 0.7

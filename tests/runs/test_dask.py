"""A real Dask cluster with its workers and scheduler killed: a run ends, or says how to continue; the same bits."""

import contextlib
import pathlib
import random
import socket
import subprocess
import sys
import time

import pytest

import jaxbandit as jb
from tests.support.stores import assert_same

pytest.importorskip("distributed", reason="needs Dask distributed: pip install 'jaxbandit[dask]'")
# Four programs are four tasks.
STUDY = """
horizon = 1_000_000
num_seeds = 70
record = 5
policies = [{name = "exp3"}, {name = "tsallis_inf"}, {name = "uniinf"}, {name = "uniform"}]
environments = [{name = "bernoulli", means = [[0.2, 0.8], [0.4, 0.5], [0.1, 0.3]]}]
"""
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Cluster:
    """A scheduler and three workers, each a process of its own."""

    def __init__(self, place: pathlib.Path):
        self.place, self.workers = place, []
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            self.port = str(probe.getsockname()[1])
        self.start()

    def start(self):
        self.kill()
        options = ["--host", "localhost", "--port", self.port, "--no-dashboard"]
        self.scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", *options], **QUIET)
        options = [f"localhost:{self.port}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", *options]
        self.workers = [subprocess.Popen(command, cwd=self.place, **QUIET) for _ in range(3)]

    def kill(self):
        for process in self.workers and [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


def drive(cluster: Cluster, place: pathlib.Path) -> subprocess.Popen:
    flags = ["--out", str(place / "team"), "--dask", f"localhost:{cluster.port}"]
    command = [sys.executable, "-m", "jaxbandit", "run", str(place / "study.toml"), *flags]
    for _ in range(120):  # until the scheduler listens
        with contextlib.suppress(OSError), socket.create_connection(("localhost", int(cluster.port)), 1):
            break
        time.sleep(0.5)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for_play(place: pathlib.Path, driver: subprocess.Popen, rng: random.Random) -> None:
    """Waits until a worker has written something, and a little longer."""
    while driver.poll() is None and not [*place.glob("team/c*/*.nc"), *place.glob("team/checkpoints/*.ckpt")]:
        time.sleep(0.02)
    time.sleep(rng.uniform(0, 0.5))


def play(place: pathlib.Path, rng: random.Random) -> str:
    cluster, happened = Cluster(place), []
    try:
        driver = drive(cluster, place)
        wait_for_play(place, driver, rng)
        rng.choice(cluster.workers).kill()
        time.sleep(rng.uniform(0, 0.5))
        happened.append(f"worker killed, {len(list(place.glob('team/cells/*.nc')))} cells done")
        kept = {path: path.stat().st_mtime_ns for path in place.glob("team/cells/*.nc")}
        cluster.scheduler.kill()
        began = time.monotonic()
        _, said = driver.communicate(timeout=120)
        happened.append(f"scheduler killed, ended with {driver.returncode} after {time.monotonic() - began:.0f} s")
        assert driver.returncode == 0 or "run the same command to continue" in said, said
        assert "Traceback" not in said.partition("error: ")[2], said
        cluster.start()
        driver = drive(cluster, place)
        _, said = driver.communicate(timeout=900)
        assert driver.returncode == 0, said
        assert all(path.stat().st_mtime_ns == at for path, at in kept.items())
    finally:
        cluster.kill()
    return "; ".join(happened)


@pytest.mark.parametrize(
    "tries", [pytest.param(1, id="1", marks=pytest.mark.slow), pytest.param(20, id="20", marks=pytest.mark.long)]
)
def test_workers_and_scheduler_are_killed(tmp_path, tries):
    (tmp_path / "study.toml").write_text(STUDY)
    whole, rng = jb.run(jb.Study.load(tmp_path / "study.toml"), tmp_path / "alone").load(), random.Random(3)
    stopped = 0
    for number in range(tries):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "study.toml").write_text(STUDY)
        happened = play(place, rng)
        print(happened, flush=True)
        stopped += "ended with 0" not in happened
        assert_same(jb.load(place / "team"), whole)
    assert stopped >= tries // 2, "the runs are too short to be stopped"


@pytest.mark.slow
def test_no_scheduler_is_said(tmp_path):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    (tmp_path / "study.toml").write_text(STUDY)
    command = [sys.executable, "-m", "jaxbandit", "run", "study.toml", "--dask", f"localhost:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "no Dask scheduler answers" in done.stderr

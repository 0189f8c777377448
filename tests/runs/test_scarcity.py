"""Little memory, directories that cannot be written, another user, a clock set back: right results or one message."""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import pytest

import jaxbandit as jb
from tests.support.stores import assert_same

STUDY = """
horizon = 400
num_seeds = 200
record = 6
policies = [{name = "uniinf"}]
environments = [{name = "pareto", means = [0.5, 1.0], tail_index = [1.2, 1.6]}]
"""
MEMORY = "import resource; resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes}))"
# Root may write everywhere; without three of its capabilities (dac_override, dac_read_search, fowner) it may not.
MORTAL = "import ctypes, os; os.geteuid() or [ctypes.CDLL(None).prctl(24, n, 0, 0, 0) for n in (1, 2, 3)]"
NOBODY = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)"
# The clock jumps back by a day every time that somebody looks at it.
CLOCK = (
    "import itertools, runpy, sys, time; clock, days = time.time, itertools.count(); "
    "time.time = lambda: clock() - 86_400 * next(days); sys.argv = sys.argv[2:]; "
    "runpy.run_module('jaxbandit', run_name='__main__', alter_sys=True)"
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    (place / "study.toml").write_text(STUDY)
    return jb.run(jb.Study.load(place / "study.toml"), place / "out").load()


def run(
    place: pathlib.Path, code: str, out: str = "out", python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess:
    """Runs the study in a process that first runs the code."""
    (place / "study.toml").write_text(STUDY)
    then = "" if code is CLOCK else "; import sys; os.execv(sys.argv[1], sys.argv[1:])"
    command = [python, "-m", "jaxbandit", "run", "study.toml", "--out", out]
    if code is CLOCK:
        command = ["-", *command[2:]]
    environment = os.environ | {"JAXBANDIT_CACHE": "off", "PYTHONPATH": str(pathlib.Path.cwd())} | environment
    start = [sys.executable, "-c", code if code is CLOCK else f"import os; {code}{then}", *command]
    return subprocess.run(start, cwd=place, env=environment, capture_output=True, text=True, timeout=600)


def assert_right_or_said(place, done, whole):
    """Right results, or a message, after which a run without limits ends with the right results."""
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode:
        in_c = "OpenBLAS error: Memory allocation" in done.stderr  # it ends the process, and Python has no say in it
        assert in_c or (done.returncode == 2 and "error: " in done.stderr), done.stderr
        kept = {path: path.read_bytes() for path in place.glob("out/cells/*.nc")}
        jb.run(jb.Study.load(place / "study.toml"), place / "out")
        assert all(path.read_bytes() == content for path, content in kept.items())
    assert_same(jb.load(place / "out"), whole)


@pytest.mark.parametrize("size", [2_000_000_000, 1_700_000_000])
def test_little_memory(tmp_path, whole, size):
    done = run(tmp_path, MEMORY.format(bytes=size))
    assert_right_or_said(tmp_path, done, whole)
    if done.returncode:
        signs = ("run out of memory", "Memory allocation still failed", "memory allocation failed")
        assert any(sign in done.stderr for sign in signs), done.stderr


def test_directories_that_cannot_be_written(tmp_path, whole):
    for folder in ("closed", "home"):
        (tmp_path / folder).mkdir(mode=0o555)
    for out in ("closed", "closed/out"):
        done = run(tmp_path, MORTAL, out)
        assert done.returncode == 2 and f"error: {out} cannot be written to" in done.stderr, done.stderr
    done = run(tmp_path, MORTAL, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="", JAXBANDIT_CACHE="on")
    assert done.returncode == 0, done.stderr
    assert_right_or_said(tmp_path, done, whole)
    (tmp_path / "out" / "cells").chmod(0o555)
    done = run(tmp_path, MORTAL)  # nothing is left to write there but the manifest
    assert_right_or_said(tmp_path, done, whole)


def open_to_all(place: str | pathlib.Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (pathlib.Path(place), *pathlib.Path(place).parents))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user(tmp_path, whole):
    packages, python = sysconfig.get_path("purelib"), sys.executable
    if not open_to_all(sysconfig.get_path("stdlib")):  # for example in a private home: the system's of one version
        python = shutil.which(f"python{sys.version_info.major}.{sys.version_info.minor}", path="/usr/bin:/bin") or ""
    if not (python and open_to_all(packages) and open_to_all(pathlib.Path.cwd())):
        pytest.skip("another user cannot read Python or its packages")
    for parent in itertools.takewhile(lambda one: one != pathlib.Path(tempfile.gettempdir()), tmp_path.parents):
        parent.chmod(0o755)
    tmp_path.chmod(0o777)
    paths = os.pathsep.join([str(pathlib.Path.cwd()), packages])
    done = run(tmp_path, NOBODY, python=python, HOME="/nonexistent", PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    assert_right_or_said(tmp_path, done, whole)


def test_a_clock_set_back(tmp_path, whole):
    done = run(tmp_path, CLOCK)
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "out").rglob("*"):
        os.utime(path, (2**32, 2**32))  # of the year 2106
    next((tmp_path / "out" / "cells").glob("*.nc")).unlink()
    assert_right_or_said(tmp_path, run(tmp_path, CLOCK), whole)

"""The scan compiles for TPUs, ahead of time and without one."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
APART = ROOT / ".libtpu"  # where libtpu is installed, JAX looks for TPUs and complains, so it has a folder of its own
SECONDS = 400  # most that a program may take; some 15 s of processor time are usual

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None and not APART.exists(),
        reason="no libtpu; `pip install --no-deps --target .libtpu libtpu` brings it",
    ),
]

# XLA's estimates of a chip's cycles per game and round, by libtpu 0.0.51 (docs/gpu.md).
CYCLES = {"uniinf": 9.8, "htinf": 7.9, "table": 7.3, "switching": 12.0, "replay": 10.3}


@pytest.mark.parametrize("name", CYCLES)
def test_the_scan_compiles_for_four_chips(name):
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
    environment["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # two tests may compile at a time
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT), str(APART)]))
    command = [sys.executable, "-m", "tests.support.tpu", name, "262144"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    assert said["chips"] == 4
    assert "v5" in said["kind"]
    assert said["lanes"] == 4 * 65_536, "a block fills the chips"
    assert said["bytes"] < 16 << 30, "the memory of a chip"
    assert CYCLES[name] / 2 < said["cycles"] / 65_536 < 2 * CYCLES[name], said["cycles"]

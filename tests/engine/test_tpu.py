"""The scan compiles for TPUs, ahead of time and without one."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="no libtpu; pip install libtpu"),
]


@pytest.mark.parametrize("name", ["uniinf", "htinf", "table", "switching", "replay"])
def test_the_scan_compiles_for_four_chips(name):
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
    environment["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # two tests may compile at a time
    command = [sys.executable, "-m", "tests.support.tpu", name, "262144"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    assert said["chips"] == 4
    assert "v5" in said["kind"]
    assert said["lanes"] == 4 * 65_536, "a block fills the chips"
    assert said["bytes"] < 16 << 30, "the memory of a chip"

"""PTX through NVIDIA's assembler: it compiles for cards of three generations, and the cost of a round is as stated.

A SASS instruction has 16 bytes on all these cards, so that the size of a kernel's code gives their number. A kernel
also holds the code before and after the loop over rounds: the numbers are bounds of a round from above.
"""

import importlib.util
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import time

import pytest

from jaxbandit.engine import gpu
from tests.support.blocks import shape_of
from tests.support.both_ways import ENVIRONMENTS, policy_of


def assembler():
    """NVIDIA's assembler: on the path, or in a wheel from PyPI."""
    if found := shutil.which("ptxas"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in pathlib.Path(folder).glob("*/bin/ptxas"):
            return str(path)
    return None


PTXAS = assembler()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PTXAS is None, reason="no ptxas; pip install nvidia-cuda-nvcc-cu12 brings one"),
]


def assembled(ptx, architecture, folder):
    """Registers, spilled bytes and SASS instructions of the kernel ``play``."""
    source, target = folder / "games.ptx", folder / f"games.{architecture}.cubin"
    source.write_text(ptx)
    command = [PTXAS, "-v", f"-arch={architecture}", str(source), "-o", str(target)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    about = said[said.index("'play'") :]
    registers = int(re.search(r"Used (\d+) registers", about)[1])
    stores, loads = map(int, re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", about).groups())
    return registers, stores + loads, section(target.read_bytes(), ".text.play") // 16


def section(elf, name):
    """The size of a section of an ELF file of 64 bits."""
    (start,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + n * size) for n in range(count)]
    texts = headers[names][4]
    for at, _, _, _, _, length in headers:
        if elf[texts + at :].split(b"\0", 1)[0].decode() == name:
            return length
    raise KeyError(name)


def ptx_of(name, K):
    return gpu.Program(shape_of(policy_of(name), ENVIRONMENTS["pareto"](K))).ptx


# Bands of (registers, spilled bytes, instructions) for uniINF.
BANDS = {
    2: ((48, 80), (0, 0), (800, 1300)),
    10: ((100, 168), (0, 0), (1400, 2400)),
    50: ((200, 255), (0, 3000), (6000, 12_000)),
}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("K", BANDS)
def test_the_cost_of_uniinf_is_within_its_bands(tmp_path, K, architecture):
    found = assembled(ptx_of("uniinf", K), architecture, tmp_path)
    for what, value, (low, high) in zip(("registers", "spilled", "instructions"), found, BANDS[K], strict=True):
        assert low <= value <= high, (what, found)


@pytest.mark.parametrize("name", ["htinf", "robust_ucb", "adar_ucb", "thompson", "ape2", "robust_moss"])
def test_other_policies_compile(tmp_path, name):
    registers, spilled, instructions = assembled(ptx_of(name, 10), "sm_80", tmp_path)
    assert registers <= 255
    assert spilled <= 4000
    assert instructions > 100


def test_fifty_arms_take_less_than_ten_seconds(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXBANDIT_CACHE", "off")
    began = time.process_time()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assembled(ptx_of("uniinf", 50), "sm_80", tmp_path)
    assert time.process_time() - began + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10

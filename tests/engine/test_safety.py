"""Machine code writes nowhere but to its arrays, keeps to IEEE whatever the caller's setting, and survives a fork.

Nothing here is random: there are no false alarms.
"""

import ctypes
import os
import pathlib
import platform
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.engine import native
from jaxbandit.engine.native import compile as compiler
from jaxbandit.types import pytree
from tests.support import elsewhere
from tests.support.blocks import keys_of, parameters_of, shape_of
from tests.support.both_ways import round_of_the_scan

ROOT = pathlib.Path(__file__).parents[2]
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mprotect is called as on Linux")
only_x86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the control word is that of x86-64"
)


def run(how, path):
    """Plays in another process; returns its exit code and what it wrote, which is nothing after a fault."""
    command = [sys.executable, "-m", "tests.support.elsewhere", how, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if not path.exists():
        return done.returncode, done.stderr
    with np.load(path) as found:
        return done.returncode, [found[name] for name in sorted(found.files)]


# Memory


@pytest.fixture(scope="module")
def by_scan():
    """What the trespassing games hand out, trace and carry by the scan."""
    shape, parameters, keys = elsewhere.trespassing()
    block = native.compiled(shape).block(parameters, keys)
    block.start()
    carry = jax.tree.unflatten(jax.tree.structure(shape.carry), block.carry())
    tallies, traced = [], []
    for t in range(1, elsewhere.ROUNDS + 1):
        carry, outcome = round_of_the_scan(shape, parameters, carry, keys, np.int32(t))
        traced.append(list(map(np.asarray, outcome)))
        if t in elsewhere.RECORD:
            tally = (carry.pulls, carry.sums)
            tallies.append(list(map(np.asarray, jax.tree.leaves(tally))))
            pulls, sums = jax.tree.map(np.zeros_like, tally)
            carry = carry._replace(pulls=pulls, sums=sums)
    stacked = [np.stack(rows) for part in (tallies, traced) for rows in zip(*part, strict=True)]
    return stacked + list(map(np.asarray, jax.tree.leaves(carry)))


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("where", ["behind", "before"])
def test_nothing_is_touched_outside_of_the_arrays(where, by_scan, tmp_path):
    """Arrays of 5, 12, 100 and 210 entries at any index, all memory against pages whose touch ends the process."""
    code, found = run(f"guarded {where}", tmp_path / "found.npz")
    assert code == 0, found
    assert len(found) == len(by_scan)
    for mine, theirs in zip(found, by_scan, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert sum(np.unique(leaf).size for leaf in found[-5:]) > 100, "the arrays have been written"


# The control word


@pytree
class Halving:
    """Its state is halved in every round, below the smallest normal number soon, and brought up again."""

    def init(self, num_arms):
        return jnp.full(3, 2.0**-120)

    def probabilities(self, state, t, key):
        return jnp.full(2, 0.5)

    def update(self, state, t, x, arm, loss):
        low, high, third = state
        return jnp.stack([0.5 * low, high + 0.5 * low, third / 3])


WORDS = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @swap(ptr %old, ptr %new) {
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  ret void
}
define void @third(ptr %x) {
  %a = load float, ptr %x
  %b = fdiv float %a, 3.0
  store float %b, ptr %x
  ret void
}
"""
TO_ZERO, DEFAULT = 0xFFC0, 0x1F80  # subnormals flushed, in and out, and rounding toward zero; IEEE's defaults
SETTINGS = 0xFFC0  # all but the flags of what has happened


@only_x86
def test_the_control_word_is_ieee_inside_and_restored_outside():
    pointer = ctypes.c_void_p
    code = compiler.Code(compiler.object_code(WORDS, compiler.host_name(), compiler.host_features()))
    swap, third = code.function("swap", pointer, pointer), code.function("third", pointer)
    before, ours, after, default = (ctypes.c_uint32(word) for word in (0, TO_ZERO, 0, DEFAULT))
    address = ctypes.addressof

    shape = shape_of(Halving(), elsewhere.Dice(offset=[0.5, 0.5]))
    parameters = parameters_of(shape, Halving(), elsewhere.Dice(offset=[0.5, 0.5]), 8)
    block = native.compiled(shape).block(parameters, keys_of(8))
    record = np.array([9])
    plain, flushed = ctypes.c_float(1e-38), ctypes.c_float(1e-38)
    third(address(plain))
    swap(address(before), address(ours))
    try:
        third(address(flushed))
        block.start()
        block.advance(0, 9, record)
    finally:
        swap(address(after), address(default))
    assert before.value & SETTINGS == DEFAULT
    assert after.value & SETTINGS == TO_ZERO, "the caller's setting was not put back"
    assert plain.value > 0 and flushed.value == 0, "the setting does what it should"

    first, second, rest = (np.float32(2.0**-120) for _ in range(3))
    for _ in range(9):
        first, second, rest = np.float32(0.5) * first, second + np.float32(0.5) * first, rest / np.float32(3)
    assert 0 < first < np.finfo(np.float32).tiny and 0 < rest < np.finfo(np.float32).tiny
    np.testing.assert_array_equal(block.carry()[0], np.repeat([[first], [second], [rest]], 8, axis=1))


# Other processes


@pytest.mark.parametrize("how", ["forked", pytest.param("spawned", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_another_process_has_the_same_numbers(how, tmp_path):
    if how == "forked" and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    code, found = run(how, tmp_path / "found.npz")
    assert code == 0, found
    for mine, theirs in zip(found, elsewhere.simulated(), strict=True):
        np.testing.assert_array_equal(mine, theirs)

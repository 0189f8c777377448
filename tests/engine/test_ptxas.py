"""PTX through NVIDIA's assembler: it compiles for cards of three generations, and the cost of a round is as stated."""

import resource
import time

import jax
import pytest

from benchmarks import roofline, sass
from jaxbandit.engine import gpu
from tests.support.blocks import shape_of
from tests.support.both_ways import ENVIRONMENTS, policy_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(sass.missing()), reason=sass.missing())]

# Bands of (registers, spilled bytes, instructions of a round) for uniINF.
BANDS = {
    2: ((48, 80), (0, 0), (420, 680)),
    10: ((100, 168), (0, 0), (930, 1500)),
    50: ((200, 255), (0, 3000), (5000, 8000)),
}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("K", BANDS)
def test_the_cost_of_uniinf_is_within_its_bands(K, architecture):
    cost = sass.cost(roofline.ptx(K), architecture)
    found = cost.registers, cost.spilled, len(cost.round)
    for what, value, (low, high) in zip(("registers", "spilled", "instructions"), found, BANDS[K], strict=True):
        assert low <= value <= high, (what, found)
    assert cost.pipes["special"] >= 2, "divisions begin with an approximate reciprocal"
    assert cost.pipes["float"] + cost.pipes["integer"] > 0.8 * len(cost.round)
    assert len(cost.round) < cost.stall < 5 * len(cost.round)


@pytest.mark.parametrize("name", ["htinf", "robust_ucb", "adar_ucb", "thompson", "ape2", "robust_moss"])
def test_other_policies_compile(name):
    ptx = gpu.Assembly(shape_of(policy_of(name), ENVIRONMENTS["pareto"](10))).ptx
    cost = sass.cost(ptx, "sm_80")
    assert cost.registers <= 255
    assert cost.spilled <= 4000
    assert len(cost.round) > 100


# Bands of (registers, spilled bytes, instructions of a round) with 10 arms; the round has these instructions.
OTHERS = {
    ("uniinf", "pareto", "float64", "sm_80"): ((176, 255), (0, 0), (1300, 2100), "DFMA"),
    ("thompson", "pareto", "float64", "sm_90"): ((200, 255), (0, 400), (3100, 4900), "DFMA"),
    ("uniinf", "switching", "float32", "sm_75"): ((100, 168), (0, 0), (1000, 1600), "FFMA"),
    ("uniinf", "replay", "float32", "sm_80"): ((100, 168), (0, 0), (880, 1400), "LDG"),
    ("htinf", "stable", "float32", "sm_90"): ((100, 168), (0, 0), (2400, 3800), "FFMA"),
    ("ucb1", "scheduled", "float32", "sm_75"): ((100, 168), (0, 0), (810, 1300), "LDG"),
}


@pytest.mark.parametrize(("policy", "environment", "dtype", "architecture"), OTHERS)
def test_float64_and_other_environments_compile(policy, environment, dtype, architecture):
    with jax.enable_x64(dtype == "float64"):
        ptx = gpu.Assembly(shape_of(policy_of(policy), ENVIRONMENTS[environment](10))).ptx
    cost = sass.cost(ptx, architecture)
    *bands, instruction = OTHERS[policy, environment, dtype, architecture]
    found = cost.registers, cost.spilled, len(cost.round)
    assert all(low <= value <= high for value, (low, high) in zip(found, bands, strict=True)), found
    assert any(one.name.startswith(instruction) for one in cost.round)


def test_fifty_arms_take_less_than_ten_seconds(monkeypatch):
    monkeypatch.setenv("JAXBANDIT_CACHE", "off")
    began = time.process_time()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    sass.cost(roofline.ptx(50), "sm_80")
    assert time.process_time() - began + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10

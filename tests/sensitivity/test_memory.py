"""The memory of local gradients does not grow with the rounds; what keeps every round does, and the test sees it."""

import subprocess
import sys

import pytest

from tests.support.helpers import PEAK, knows_peak

pytestmark = knows_peak

SHORT, FACTOR = 512, 16
SEEDS = 512
# One number per round of every game of the longer run, in float32: what a program that kept anything would need.
ONE_NUMBER = 4 * SEEDS * SHORT * FACTOR

SCRIPT = """
import jaxbandit as jb
from jaxbandit import sensitivity

environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)

def local(horizon):
    names = ["initial_scale", "threshold_constant"]
    sensitivity.local(jb.UniINFVariant(horizon=horizon), environment, names, horizon=horizon, num_seeds={seeds})

def traced(horizon):
    jb.simulate(jb.UniINF(horizon=horizon), environment, horizon=horizon, num_seeds={seeds}, trace={seeds})

for horizon in ({short}, {short}, {long}):  # the first one compiles
    {play}(horizon)
    print(1024 * peak())
"""


def growth(play: str) -> int:
    """Bytes that the peak memory of a process grows by when the same games go on for 16 times the rounds."""
    script = PEAK + SCRIPT.format(play=play, seeds=SEEDS, short=SHORT, long=SHORT * FACTOR)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    _, before, after = map(int, done.stdout.split())
    return after - before


@pytest.mark.slow
def test_memory_of_local_gradients_is_flat_in_the_rounds():
    assert growth("local") < ONE_NUMBER / 2  # of eight lanes a seed: less than half a number for each seed and round


@pytest.mark.slow
def test_a_program_that_keeps_every_round_would_be_seen():
    assert growth("traced") > ONE_NUMBER

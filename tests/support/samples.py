"""Samples of every law, drawn once and kept."""

import functools

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.environments.laws import Law
from tests.support.laws import LAWS, losses

DRAWS = 2_000_000
ALL = [pytest.param(example, id=f"{name}-{n}") for name in LAWS for n, example in enumerate(LAWS[name])]
CONTINUOUS = [param for param in ALL if param.values[0].continuous]


REGISTERED = [name for name, cls in jb.ENVIRONMENTS.items() if issubclass(cls, Law)]


@functools.cache
def _sample(name, n, arm, size):
    with jax.enable_x64(True):
        return losses(LAWS[name][n].environment, arm, np.arange(1, size + 1))


def sample(example, arm, size=DRAWS):
    """Losses of the first rounds of one game in float64; kept, for several tests look at them."""
    place = next((name, n) for name, all_ in LAWS.items() for n, one in enumerate(all_) if one is example)
    return _sample(*place, arm, DRAWS)[:size] if arm == example.environment.num_arms - 1 else _sample(*place, arm, size)

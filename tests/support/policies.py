"""A policy of every name, losses that are given in advance, and games of one policy round by round."""

import dataclasses

import jaxbandit as jb
from jaxbandit.testing.games import HORIZON as HORIZON
from jaxbandit.testing.games import Given as Given
from jaxbandit.testing.games import play as play
from jaxbandit.testing.games import quick_jit as quick_jit
from jaxbandit.testing.games import trajectory as trajectory
from jaxbandit.types import public_fields

# Arguments for fields without a default; a policy with other needs adds its line here.
REQUIRED = {"horizon": HORIZON, "moment_order": 1.5, "moment_bound": 1.0, "mean_bound": 1.0, "delay": 3}
REQUIRED["policy"] = jb.UniINF(horizon=HORIZON)


def make(name: str, **values):
    cls = jb.POLICIES[name]
    needed = {key for key, spec in public_fields(cls).items() if spec.default is dataclasses.MISSING}
    assert needed <= REQUIRED.keys(), f"add {needed - REQUIRED.keys()} to REQUIRED in tests/support/policies.py"
    return cls(**{key: REQUIRED[key] for key in needed} | values)

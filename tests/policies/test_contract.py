"""What every policy must do, taken from the registry: a new one is tested before its author writes a test.

The checks themselves are those of ``jaxbandit.testing``, which users import for policies of their own.
"""

import inspect

import pytest

import jaxbandit as jb
from jaxbandit.testing import POLICY_CHECKS
from jaxbandit.types import public_fields
from tests.support.policies import make

# Every policy; of each of these the fast suite plays a relative here, and itself in its own tests.
SLOW = {
    "ada_hedge", "ada_tinf", "adar_ucb", "ape2", "clipped_sgd_ucb", "delayed", "doubling", "exp3",
    "exp3_plus_plus", "ftpl", "htinf", "lb_inf_v", "mr_ape", "mr_ucb", "moss", "omd_lb_ht", "opt_htinf",
    "robust_moss", "robust_ucb", "sao_ht", "thompson", "tsallis_inf", "uniinf_first_losses",
}  # fmt: skip
SLOW_CHECKS = {"jit_changes_nothing", "is_pure"}  # they execute one operation after the other


def marked(slow):
    return [pytest.mark.slow] if slow else []


policies = pytest.mark.parametrize("name", [pytest.param(name, marks=marked(name in SLOW)) for name in jb.POLICIES])


@policies
@pytest.mark.parametrize("holds", [pytest.param(name, marks=marked(name in SLOW_CHECKS)) for name in POLICY_CHECKS])
def test_contract(name, holds):
    assert POLICY_CHECKS[holds](make(name))


@policies
@pytest.mark.parametrize("num_arms", [1, pytest.param(10, marks=marked(True)), pytest.param(100, marks=marked(True))])
def test_plays_on_the_simplex(name, num_arms):
    POLICY_CHECKS["plays_on_the_simplex"](make(name), num_arms)


@policies
def test_is_documented(name):
    cls = jb.POLICIES[name]
    doc = inspect.getdoc(cls)
    assert "Example:" in doc
    assert "References:" in doc
    assert "http" in doc
    assert isinstance(cls.label, str)
    assert doc.splitlines()[0].endswith(".")
    for key in public_fields(cls):
        assert f"{key}:" in doc, f"{key} is not described"

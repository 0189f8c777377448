"""Policies learn at the rate their theory gives; uniform play fails the same tests."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.types import field, public_fields, pytree
from tests.support.policies import make

pytestmark = pytest.mark.slow

EASY = 5_000  # rounds of the easy instance


def gains(policy, environment, doublings, num_seeds=512):
    """Mean regret gained over each successive doubling of t."""
    rounds = [2**k for k in doublings]
    ds = jb.simulate(policy, environment, horizon=rounds[-1], num_seeds=num_seeds, record=rounds)
    return np.diff(ds.regret.mean("seed").values)


def assert_logarithmic(policy, environment, doublings):
    """A doubling gains at most 1.3 times what the one before gained (1 is logarithmic, 2 linear)."""
    gained = gains(policy, environment, doublings)
    assert (gained[1:] <= 1.3 * gained[:-1]).all(), gained


ENVIRONMENT = jb.Pareto(means=[0.5] + [1.0] * 9, tail_index=1.6)


def test_uniinf_is_logarithmic_in_a_stochastic_environment():
    """From 2^14 on the logarithmic regime is reached in this environment (gain ratios 1.23, 1.1, 1.02)."""
    assert_logarithmic(jb.UniINF(horizon=2**17), ENVIRONMENT, range(14, 18))


def test_uniform_play_is_not():
    with pytest.raises(AssertionError):
        assert_logarithmic(jb.Uniform(), ENVIRONMENT, range(14, 18))


def assert_beats_uniform_play(policy, rounds=EASY):
    """Regret below half of uniform's on an easy instance: gap 0.5, K = 5."""
    environment = jb.Bernoulli(means=[0.25, 0.75, 0.75, 0.75, 0.75])
    ds = jb.simulate(policy, environment, horizon=rounds, num_seeds=128, record=[rounds])
    assert float(ds.regret.mean()) < 0.5 * 4 / 5 * rounds / 2


# Those whose constants need more rounds, or smaller constants: docs/policies.md says from which horizon on they learn.
LATE = {
    "adar_ucb": (40_000, {}),
    "omd_lb_ht": (20_000, {"constant_scale": 3e-4, "moment_order": 2.0}),
    "robust_ucb": (40_000, {"moment_order": 2.0}),
    "sao_ht": (200_000, {"constant_scale": 0.02, "moment_order": 2.0, "removed_width": "removal"}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in jb.POLICIES if name != "uniform"])
def test_beats_uniform_play(name):
    rounds, values = LATE.get(name, (EASY, {}))
    horizon = {"horizon": rounds} if "horizon" in public_fields(jb.POLICIES[name]) else {}
    assert_beats_uniform_play(make(name, **horizon, **values), rounds)


@pytree
class NeverLearns:
    """uniINF without its update."""

    horizon: float = field(gt=1)

    def init(self, num_arms):
        return jb.UniINF(horizon=self.horizon).init(num_arms)

    def probabilities(self, state, t, key):
        return jb.UniINF(horizon=self.horizon).probabilities(state, t, key)

    def update(self, state, t, x, arm, loss):
        return state


@pytest.mark.parametrize("policy", [NeverLearns(horizon=EASY), jb.Uniform()], ids=["no update", "uniform"])
def test_not_learning_is_seen(policy):
    with pytest.raises(AssertionError):
        assert_beats_uniform_play(policy)

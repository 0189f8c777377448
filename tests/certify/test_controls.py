"""Negative controls of the certificates: broken policies and tampered states are found out, by the right facts."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.certify import certificates
from jaxbandit.certify.certificates import CONTROLS, broken, certify, holds
from jaxbandit.certify.facts import FACTS, Certified, tolerance
from jaxbandit.game import as_arrays
from jaxbandit.types import field, pytree
from tests.support import trajectories
from tests.support.policies import quick_jit
from tests.support.references import last, states_after

# The facts that speak of each mistake.
FOUND_OUT = {
    "threshold doubled": {"estimate", "growth", "stability_above", "stability_below", "growth_at_most", "div", "shift"},
    "no clip": {"growth", "growth_at_most", "growth_if_skipped", "scale_bound", "shift"},
    "1 - x dropped": {"estimate", "growth", "shift"},
    "skipped in the scale too": {"growth", "growth_if_skipped", "skipped_rounds"},
}
# What else it takes games of their own to break.
FOUND_SHARPER = {
    "1 - x dropped": {"step: shift", "step: shift_printed"},
    "skipped in the scale too": {"small_skips", "E: skip_stochastic"},
}
# What none of them can break.
NEVER = {"simplex", "kkt", "cumulative_loss", "scale_sum", "ftrl", "scale_never_falls"}
ENVIRONMENT = jb.Pareto(means=[0.5, 1.0], tail_index=1.3)


@pytest.mark.long
@pytest.mark.parametrize("name", CONTROLS)
def test_broken_policies_fail(name):
    ds = certify({"Pareto": ENVIRONMENT}, horizon=400, num_seeds=128, **CONTROLS[name])
    assert not holds(ds)
    assert FOUND_OUT[name] <= set(broken(ds))
    assert not set(broken(ds)) & NEVER


@pytest.mark.slow
@pytest.mark.parametrize("name", certificates.SHARPER)
def test_broken_policies_fail_the_facts_about_their_mistake(name):
    environment, horizon = certificates.SHARPER[name]()
    found = broken(certify({name: environment}, horizon=horizon, num_seeds=8, **CONTROLS[name]))
    assert FOUND_SHARPER[name] <= set(found)
    assert holds(certify({name: environment}, horizon=horizon, num_seeds=8))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "no clip" else pytest.mark.slow) for name in CONTROLS]
)
def test_broken_policies_fail_in_one_game(name):
    script, policy = (
        trajectories.heavy_tailed(0, 4.0, 1.0),
        Certified(jb.UniINFVariant(horizon=1_000.0, **CONTROLS[name])),
    )
    arm = np.floor(3 * script.uniform).astype(np.int32)
    state = last(states_after(policy, 3, arm, script.value))
    found = {fact for fact, count in zip(FACTS, state.violations, strict=True) if count}
    assert {"growth"} <= found
    assert found <= set.union(*FOUND_OUT.values()) - NEVER | {"growth_if_skipped"}


@quick_jit
def one_update(policy, state, x, loss):
    return policy.update(state, 1, x, 0, loss)


@pytree
class Corrupted(jb.UniINF):
    """uniINF whose state is tampered with after each update."""

    label: ClassVar[str] = "corrupted"

    added: float = field(default=0.0)
    factor: float = field(default=1.0)
    believed: float = field(default=1.0)  # the scale it solves with, over S

    def probabilities(self, state, t, key):
        return jb.UniINF.probabilities(self, state._replace(scale=state.scale * self.believed), t, key)

    def update(self, state, t, x, arm, loss):
        after = jb.UniINF.update(self, state, t, x, arm, loss)
        added = jnp.where(jnp.arange(x.shape[0]) == 1, self.added, 0)
        return after._replace(cumulative_loss=after.cumulative_loss + added, scale=after.scale * self.factor)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({}, None),
        ({"added": 1.0}, "cumulative_loss"),
        ({"factor": 1.1}, "growth"),
        ({"factor": 1 + 1e-10}, "growth"),
        ({"factor": 0.9}, "scale_never_falls"),
        ({"factor": 1e308}, "scale_sum"),
    ],
)
def test_a_corrupted_update_is_found_out(fields, fact):
    policy = as_arrays(Certified(Corrupted(horizon=100.0, **fields)))
    state = one_update(policy, policy.init(2), jnp.array([0.5, 0.5]), jnp.array(0.1))
    found = {name for name, count in zip(FACTS, state.violations, strict=True) if count}
    assert fact in found if fact else not found


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("believed", "facts"), [(0.99, {"kkt", "ftrl"}), (1 - 1e-9, {"kkt", "ftrl"}), (1 + 1e-9, {"kkt"})]
)
def test_a_wrong_minimiser_is_found_out(believed, facts):
    """x solved with S off by one part in 1e9: KKT sees it, and on one side the FTRL inequality, which is tight."""
    script = trajectories.heavy_tailed(0, 1.0, 1.5)
    policy = Certified(Corrupted(horizon=1_000.0, believed=believed))
    state = last(states_after(policy, 3, np.floor(3 * script.uniform).astype(np.int32), script.value))
    assert facts <= {name for name, count in zip(FACTS, state.violations, strict=True) if count}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("excess", "caught"), [(0.5, False), (2.0, True)])
def test_the_tolerance_is_what_is_said(excess, caught):
    """x with its sum off by half and by twice 64 K eps."""
    policy = as_arrays(Certified(Corrupted(horizon=100.0)))
    x = jnp.array([0.5, 0.5 + excess * tolerance(2)])
    state = one_update(policy, policy.init(2), x, jnp.array(0.1))
    assert bool(state.violations[list(FACTS).index("simplex")]) == caught

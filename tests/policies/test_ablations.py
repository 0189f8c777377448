"""uniINF with parts of it taken out: each change is the one its field names, and the defaults are the paper."""

import math

import jax
import numpy as np
import pytest

import jaxbandit as jb
from tests.policies.test_contract import quick_jit
from tests.policies.test_uniinf_reference import heavy_tailed_losses
from tests.reference import uniinf

ROUNDS, ARMS = 300, 4
ABLATIONS = [
    {},
    {"threshold": 0.5},
    {"threshold": math.inf},
    {"scale_loss": "skip"},
    {"scale_loss": "raw"},
    {"damped": False},
    {"threshold": 0.1, "scale_loss": "raw", "damped": False},
]


@pytest.mark.parametrize("fields", ABLATIONS, ids=str)
@pytest.mark.usefixtures("x64")
def test_in_step_with_the_reference(fields):
    """Whole games of 300 rounds, the arms drawn by the reference."""
    rng, losses = np.random.default_rng(0), heavy_tailed_losses(ROUNDS, ARMS, seed=3)
    state, rows, skips = uniinf.start(ARMS), [], 0
    for t in range(1, ROUNDS + 1):
        x = uniinf.probabilities(state)
        arm = int(rng.choice(ARMS, p=x / x.sum()))
        rows.append((t, x, arm, losses[t - 1, arm], state.scale))
        state, info = uniinf.update(state, x, arm, losses[t - 1, arm], ROUNDS, **fields)
        skips += info["skipped"] != losses[t - 1, arm]
    assert (skips == 0) == (fields.get("threshold") == math.inf)

    policy = jb.UniINFVariant(horizon=ROUNDS, **fields)

    def step(state, row):
        t, arm, loss = row
        x = policy.probabilities(state, t, None)
        return policy.update(state, t, x, arm, loss), (x, state.scale)

    t, x, arm, loss, scale = (np.asarray(column) for column in zip(*rows, strict=True))
    start = policy.init(ARMS)
    got_x, got_scale = quick_jit(
        lambda: jax.lax.scan(step, start, (t.astype(np.int32), arm.astype(np.int32), loss))[1]
    )()
    np.testing.assert_allclose(got_x, x, rtol=1e-8)
    np.testing.assert_allclose(got_scale, scale, rtol=1e-8)


def test_what_skipping_and_clipping_are_for():
    """One enormous loss: the paper's S at most grows by its threshold, the raw one is ruined."""
    losses = {name: jb.UniINFVariant(horizon=100, scale_loss=name) for name in ("clip", "skip", "raw")}
    x = np.array([0.5, 0.5], np.float32)
    after = {name: policy.update(policy.init(2), 1, x, 0, np.float32(1e6)).scale for name, policy in losses.items()}
    assert after["skip"] == 4
    assert 4 < after["clip"] < 4.05
    assert after["raw"] > 1e5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": 0.0}, r"UniINFVariant.threshold must be > 0, got 0.0; the paper takes 0.25; inf skips nothing"),
        (
            {"scale_loss": "none"},
            r"UniINFVariant.scale_loss must be one of 'clip', 'skip', 'raw', got 'none'; the paper clips",
        ),
        ({"damped": "yes"}, r"UniINFVariant.damped must be one of True, False, got 'yes'"),
    ],
)
def test_bad_input(fields, message):
    with pytest.raises(ValueError, match=message):
        jb.UniINFVariant(horizon=10, **fields)

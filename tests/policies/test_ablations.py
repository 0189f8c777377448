"""uniINF with parts of it taken out: each change is the one its field names, and the defaults are the paper."""

import math

import numpy as np
import pytest

import jaxbandit as jb
from tests.reference import uniinf
from tests.support.references import Case, follow, heavy_tailed_losses, reference_game

ROUNDS, ARMS = 300, 4
ABLATIONS = [
    {},
    {"threshold_constant": 0.5},
    {"threshold_constant": math.inf},
    {"scale_loss": "skip"},
    {"scale_loss": "raw"},
    {"damped": False},
    {"threshold_constant": 0.1, "scale_loss": "raw", "damped": False},
]


def scale_of(state):
    return state.scale


@pytest.mark.parametrize("fields", ABLATIONS, ids=str)
@pytest.mark.usefixtures("x64")
def test_in_step_with_the_reference(fields):
    """Whole games of 300 rounds, the arms drawn by the reference."""
    case = Case("uniinf_variant", uniinf.UniINF, {"horizon": ROUNDS} | fields)
    losses = heavy_tailed_losses(ROUNDS, ARMS, seed=3)
    game = reference_game(case, losses, read=lambda player: (player.state.scale, player.info.get("skipped")))
    scale, skipped = zip(*game.seen, strict=True)
    assert (np.array_equal(skipped[1:], game.loss)) == (fields.get("threshold_constant") == math.inf)
    got_x, got_scale = follow(case.policy(), ARMS, game.arm, game.loss, watch=scale_of)
    np.testing.assert_allclose(got_x, game.x, rtol=1e-8)
    np.testing.assert_allclose(got_scale, scale[:-1], rtol=1e-8)


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
        (
            {"threshold_constant": 0.0},
            r"UniINFVariant.threshold_constant must be > 0, got 0.0; the paper takes 0.25; inf skips nothing",
        ),
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

"""uniINF with S_1 from the first losses: Algorithm 1 from the round on in which the scale is known."""

import numpy as np
import pytest

import jaxbandit as jb
from tests.reference import uniinf
from tests.support.policies import quick_jit
from tests.support.references import heavy_tailed_losses

ROUNDS, ARMS, FIRST = 200, 4, 7


def played(policy, losses, arms):
    """x of every round and the scale after it, on given arms."""
    state, rows = policy.init(ARMS), []
    step = quick_jit(lambda *now: policy.update(*now))
    law = quick_jit(lambda state, t: policy.probabilities(state, t, None))
    for t, arm in enumerate(arms, start=1):
        x = law(state, np.int32(t))
        state = step(state, np.int32(t), x, np.int32(arm), losses[t - 1, arm])
        rows.append((x, state.play.scale))
    return [np.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.usefixtures("x64")
def test_in_step_with_the_reference():
    losses = heavy_tailed_losses(ROUNDS, ARMS, seed=1)
    losses[[2, 5]] = 0.0  # these say nothing of the scale
    arms = np.random.default_rng(0).integers(0, ARMS, ROUNDS)
    policy = jb.UniINFFirstLosses(horizon=ROUNDS, num_first=FIRST, factor=3.0)
    xs, scales = played(policy, losses, arms)

    suffered = losses[np.arange(ROUNDS), arms]
    begins = int(np.flatnonzero(np.cumsum(suffered != 0) == FIRST)[0]) + 1
    assert begins == FIRST + 2
    np.testing.assert_allclose(xs[:begins], 1 / ARMS, rtol=1e-14)
    first = suffered[:begins][suffered[:begins] != 0]
    state = uniinf.start(ARMS, 3.0 * np.exp(np.mean(np.log(np.abs(first)))))
    for t in range(begins, ROUNDS):
        x = uniinf.probabilities(state)
        np.testing.assert_allclose(xs[t], x, rtol=1e-8)
        state, _ = uniinf.update(state, x, arms[t], suffered[t], ROUNDS)
        np.testing.assert_allclose(scales[t], state.scale, rtol=1e-8)


@pytest.mark.usefixtures("x64")
def test_the_unit_does_not_matter():
    losses, arms = heavy_tailed_losses(ROUNDS, ARMS, seed=2), np.random.default_rng(1).integers(0, ARMS, ROUNDS)
    policy = jb.UniINFFirstLosses(horizon=ROUNDS)
    np.testing.assert_allclose(played(policy, 1e6 * losses, arms)[0], played(policy, losses, arms)[0], rtol=1e-9)


def test_it_says_what_it_is():
    cls = jb.UniINFFirstLosses
    assert all("not the paper's" in text for text in (cls.label, cls.setting, cls.__doc__.splitlines()[0]))
    assert all("no proof" in text for text in (cls.label, cls.setting, cls.__doc__.splitlines()[0]))

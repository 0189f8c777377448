"""Policies against independent transcriptions of their papers, in NumPy and float64.

Play amplifies rounding, so whole games are compared only over few rounds; the rest is compared round by round from
the reference's own state.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import arms, random
from jaxbandit.policies.uniinf import UniINFState
from tests.reference import uniinf
from tests.support.helpers import some
from tests.support.references import Case, Game, Table, heavy_tailed_losses, reference_game


class States(NamedTuple):
    """The dictionary between a player's state and the policy's, for the comparison round by round."""

    read: Callable[[Any], Any]  # the player's state, not changed by later rounds
    policy: Callable[[Any, str], Any]  # the policy's, from the player's and a dtype
    expected: Callable[[Any], dict[str, np.ndarray]]  # what is compared, from the player's
    found: Callable[[Any], dict[str, np.ndarray]]  # the same from the policy's, stacked: in float64


def _shifted(cumulative_loss: np.ndarray) -> np.ndarray:
    return cumulative_loss - np.min(cumulative_loss, axis=-1, keepdims=True)


def _uniinf_state(state: uniinf.State, dtype: str) -> UniINFState:
    L = _shifted(state.cumulative_loss).astype(dtype)
    S = np.asarray(state.scale, dtype)
    return UniINFState(cumulative_loss=L, scale=S, cumulative_lost=np.zeros_like(L), scale_lost=np.zeros_like(S))


def _uniinf_found(state: UniINFState) -> dict[str, np.ndarray]:
    L, S, L_lost, S_lost = (np.asarray(leaf, np.float64) for leaf in state)
    return {"cumulative_loss": _shifted(L + L_lost), "scale": S + S_lost}


def uniinf_case(horizon: int) -> Case:
    return Case("uniinf", uniinf.UniINF, {"horizon": horizon})


CASES = {"uniinf": uniinf_case}  # of the horizon

STATES: dict[str, States] = {
    "uniinf": States(
        read=lambda player: player.state,
        policy=_uniinf_state,
        expected=lambda state: {"cumulative_loss": _shifted(state.cumulative_loss), "scale": np.asarray(state.scale)},
        found=_uniinf_found,
    ),
}


@functools.cache
def game_of(name: str, num_arms: int, rounds: int) -> Game:
    """A game that the reference plays by itself, with its states."""
    losses = heavy_tailed_losses(rounds, num_arms, seed=num_arms)
    return reference_game(CASES[name](rounds), losses, read=STATES[name].read)


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> None:
    """Stacked states agree in every round, relative to the largest entry of an array in that round."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape
        size, error = (np.max(np.abs(part.reshape(len(value), -1)), axis=1) for part in (value, found[name] - value))
        worst = int(np.argmax(error - tolerance * size))
        assert np.all(error <= tolerance * size), (name, f"round {worst + 1}", found[name][worst], value[worst])


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("num_arms", some([10], [2, 3]))
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_round_by_round(name, num_arms, dtype, tolerance):
    rounds = 2_000
    states_of = STATES[name]
    game = game_of(name, num_arms, rounds)
    with jax.enable_x64(dtype == "float64"):
        policy = CASES[name](rounds).policy()

        def play_one(state, t, arm, loss):
            x = policy.probabilities(state, t, None)
            return x, policy.update(state, t, x, arm, loss)

        states = jax.tree.map(lambda *leaves: np.stack(leaves), *[states_of.policy(s, dtype) for s in game.seen[:-1]])
        t = np.arange(1, rounds + 1, dtype=np.int32)
        x, after = jax.jit(jax.vmap(play_one))(states, t, game.arm, game.loss.astype(dtype))
    assert x.dtype == dtype

    np.testing.assert_allclose(np.asarray(x, np.float64), game.x, rtol=tolerance)
    expected = jax.tree.map(lambda *values: np.stack(values), *map(states_of.expected, game.seen[1:]))
    assert_same(states_of.found(after), expected, tolerance)


@pytest.mark.parametrize("num_arms", [2, 10])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
def test_uniinf_increments_round_by_round(num_arms, dtype, tolerance):
    """What a round adds to L and S, which the sums above would show to fewer digits."""
    rounds = 2_000
    game = game_of("uniinf", num_arms, rounds)
    before = game.seen[:-1]
    with jax.enable_x64(dtype == "float64"):
        policy = jb.UniINF(horizon=float(rounds))
        states = [_uniinf_state(uniinf.State(0 * s.cumulative_loss, s.scale), dtype) for s in before]
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
        t = np.arange(1, rounds + 1, dtype=np.int32)
        after = jax.jit(jax.vmap(policy.update))(states, t, game.x.astype(dtype), game.arm, game.loss.astype(dtype))
    found = _uniinf_found(after)
    played = zip(before, game.x, game.arm, game.loss, strict=True)
    info = [uniinf.update(*one, rounds)[1] for one in played]
    estimate = np.stack([one["estimate"] for one in info])
    np.testing.assert_allclose(found["cumulative_loss"], _shifted(estimate), rtol=tolerance)

    S = np.array([state.scale for state in before])
    x_rest = np.array([np.delete(x, arm).sum() for x, arm in zip(game.x, game.arm, strict=True)])
    square = (np.array([one["clipped"] for one in info]) * x_rest) ** 2 / (num_arms * np.log(rounds))
    growth = found["scale"] - np.asarray(states.scale, np.float64)
    np.testing.assert_allclose(growth, square / (S + np.sqrt(S**2 + square)), rtol=tolerance, atol=1e-14 * S.max())
    skipped = sum(one["skipped"] == 0 for one in info)
    assert 20 <= skipped <= 1_500  # both branches are compared
    assert game.loss.min() < -5


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "num_arms", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(10, marks=pytest.mark.slow)]
)
def test_whole_games(name, num_arms):
    rounds, horizon = 200, 1_000
    case = CASES[name](horizon)
    losses = heavy_tailed_losses(rounds, num_arms, seed=7)
    policy, environment = case.policy(), Table(losses=losses)
    key = jb.game_key(seed=3, n=0)

    def arm_uniform(t):
        w0, w1 = random.words(random.round_streams(key, t).arm, 2)  # 48 bits, exact in float64
        return w0.astype(jnp.float64) * 2.0**-32 + (w1 >> jnp.uint32(16)).astype(jnp.float64) * 2.0**-48

    one_round = jb.step(policy, environment)

    def body(state, _):
        after = one_round(state, key)
        return after, (policy.probabilities(state.policy, after.t, None), after.pulls - state.pulls)

    uniforms = np.asarray(jax.jit(jax.vmap(arm_uniform))(np.arange(1, rounds + 1, dtype=np.int32)))
    last, (x, pulled) = jax.jit(lambda start: jax.lax.scan(body, start, length=rounds))(jb.start(policy, environment))

    game = reference_game(case, losses, uniforms)
    np.testing.assert_allclose(x, game.x, rtol=1e-9)
    np.testing.assert_array_equal(pulled, np.arange(num_arms) == game.arm[:, None])
    suffered = game.loss.sum()
    np.testing.assert_allclose(last.loss + last.lost[0], suffered, rtol=1e-12)
    np.testing.assert_allclose(last.regret, suffered - losses.sum(axis=0).min(), rtol=1e-9)


# Four rounds by hand: K = 3, T = 100.
GOLDEN_ARMS = (0, 1, 0, 2)
GOLDEN_LOSSES = (1.0, 6.0, -0.5, 1.2)
GOLDEN_THRESHOLDS = (1.5, 1.560789771, 1.398852289, 1.530513819)  # only the second loss is skipped
GOLDEN_SCALES = (4.004019226, 4.013065899, 4.014225458, 4.019803364)  # after each round
GOLDEN_X = {
    2: (0.2826901163, 0.3586549418, 0.3586549418),
    4: (0.3113979786, 0.3443010107, 0.3443010107),
    5: (0.3382654662, 0.3773877548, 0.284346779),
}


@pytest.mark.usefixtures("x64")
def test_uniinf_golden_numbers():
    policy = jb.UniINF(horizon=100.0)
    state = policy.init(3)
    rounds = zip(GOLDEN_ARMS, GOLDEN_LOSSES, GOLDEN_THRESHOLDS, GOLDEN_SCALES, strict=True)
    update = jax.jit(policy.update)
    for t, (arm, loss, threshold, scale) in enumerate(rounds, start=1):
        x = policy.probabilities(state, t, None)
        np.testing.assert_allclose(x, GOLDEN_X.get(t, x), rtol=1e-9)
        np.testing.assert_allclose(state.scale / (4 * arms.rest(x, arm)), threshold, rtol=1e-9)
        for sign in (1, -1):  # the threshold is where the estimate stops
            below, above = (update(state, t, x, arm, sign * threshold * (1 + step)) for step in (-1e-8, 1e-8))
            assert np.ptp(below.cumulative_loss - state.cumulative_loss) > 1
            np.testing.assert_allclose(above.cumulative_loss, state.cumulative_loss, atol=1e-15)
        state = update(state, t, x, arm, loss)
        np.testing.assert_allclose(state.scale, scale, rtol=1e-9)
    np.testing.assert_allclose(policy.probabilities(state, 5, None), GOLDEN_X[5], rtol=1e-9)


def test_the_uniinf_reference_has_the_golden_numbers():
    state = uniinf.start(3)
    for t, (arm, loss) in enumerate(zip(GOLDEN_ARMS, GOLDEN_LOSSES, strict=True)):
        x = uniinf.probabilities(state)
        np.testing.assert_allclose(x, GOLDEN_X.get(t + 1, x), rtol=1e-9)
        state, info = uniinf.update(state, x, arm, loss, 100)
        np.testing.assert_allclose(info["threshold"], GOLDEN_THRESHOLDS[t], rtol=1e-9)
        np.testing.assert_allclose(info["skipped"], 0.0 if loss == 6.0 else loss)
        np.testing.assert_allclose(state.scale, GOLDEN_SCALES[t], rtol=1e-9)
    np.testing.assert_allclose(uniinf.probabilities(state), GOLDEN_X[5], rtol=1e-9)

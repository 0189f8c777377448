"""What the analysis of uniINF proves about every trajectory, with the sharp constants, and in expectation.

Any sequence of arms and losses is admissible, so the arms are not drawn but chosen, by hypothesis or to do harm. A
fact is a function of a trajectory; the same functions run on broken variants of the policy, which must fail them.
"""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit.arms import one_hot, pick, rest
from jaxbandit.policies.uniinf import UniINFState
from jaxbandit.types import Array, field, pytree
from tests.support.trajectories import (
    CHOICES,
    FIXED,
    FLOOR,
    NUM_ARMS,
    SMALLEST_REST,
    Script,
    Trajectory,
    benchmarks,
    heavy_tailed,
    log_barrier_sum,
    play,
    repeated,
)

TOLERANCE = 1e-10  # relative to the larger side


def assert_at_most(left, right, size=0.0) -> None:
    """``left <= right`` but for rounding, relative to the larger side or to ``size``, the largest term of the sums."""
    left, right = np.broadcast_arrays(left, right)
    slack = TOLERANCE * np.maximum(np.maximum(np.abs(left), np.abs(right)), size) + FLOOR
    broken = ~(left - right <= slack)  # a NaN breaks it too
    assert not np.any(broken), (np.argwhere(broken)[0].tolist(), left[broken][0], right[broken][0])


def assert_equal(left, right, size=0.0) -> None:
    assert_at_most(left, right, size)
    assert_at_most(right, left, size)


def peak(terms: np.ndarray) -> np.ndarray:
    """The largest size so far of a running sum: what its rounding is relative to."""
    return np.maximum.accumulate(np.abs(terms), axis=0)


def kkt(game: Trajectory) -> None:
    """x_i = S / (L_i - Z) with one Z below min L, and x sums to one."""
    assert_equal(game.x.sum(axis=1), 1.0)
    likeliest = np.argmax(game.x, axis=1)[:, None]
    Z = np.take_along_axis(game.L, likeliest, 1) - game.S[:, None] / np.take_along_axis(game.x, likeliest, 1)
    assert np.all(Z < game.L)
    assert_equal(game.S[:, None] / game.x, game.L - Z)


def sums(game: Trajectory) -> None:
    """L and S are the sums of what the rounds add, L up to a constant; its smallest entry is 0."""
    assert np.all(game.L.min(axis=1) == 0)
    total = game.cumulative_estimate
    size = peak(total).max(axis=1, keepdims=True)
    assert_equal(game.L[1:], total - total.min(axis=1, keepdims=True), size)
    assert_equal(game.S[1:], game.S[0] + np.cumsum(game.growth))


def stability(game: Trajectory) -> None:
    """The update moves no probability far; the paper proves [1/2, 2]."""
    ratio = game.z / game.x[:-1]
    assert_at_most(0.7556, ratio)
    assert_at_most(ratio, 1.3986)


def div_of_a_round(game: Trajectory) -> None:
    skipped_loss = game.estimate * game.x_arm
    assert_at_most(game.div, 1.033 * (skipped_loss * game.x_rest) ** 2 / game.S[:-1])


def div_sum(game: Trajectory) -> None:
    assert_at_most(np.cumsum(game.div), 2.11 * np.cumsum(game.growth) * game.num_arms * game.log_horizon)


def shift_sum(game: Trajectory) -> None:
    log_y = np.log(benchmarks(game)[0]).sum()
    shift = log_barrier_sum(game) - game.S * log_y
    assert_at_most(shift, game.S * game.num_arms * game.log_horizon, peak(log_barrier_sum(game)))


def ftrl(game: Trajectory) -> None:
    """The regret of x against any y is at most the sum of Div and Shift.

    Of all y the point z_n is the one that leaves the least room in round n.
    """
    n, K = game.z.shape
    rng = np.random.default_rng(0)
    fixed = [*benchmarks(game), np.full(K, 1 / K), *rng.dirichlet(np.full(K, 0.3), size=6)]
    fixed = [np.maximum(y, 1e-200) for y in fixed]
    suffered = np.cumsum(game.estimate * game.x_arm)
    for y in (*fixed, game.z):
        y = np.broadcast_to(y, (n, K))
        against = y * game.cumulative_estimate
        log_y = np.log(y).sum(axis=1)
        regret = suffered - against.sum(axis=1)
        bound = np.cumsum(game.div) + log_barrier_sum(game)[:-1] - game.S[:-1] * log_y
        terms = (suffered[:, None], against, (game.S[:-1] * log_y)[:, None], log_barrier_sum(game)[:-1, None])
        size = peak(np.concatenate(terms, axis=1)).max(axis=1)
        assert_at_most(regret, bound, size)


def definitions(game: Trajectory) -> None:
    """Lines 5 to 8 of Algorithm 1, recomputed from x, S and the loss."""
    S, x_rest, size = game.S[:-1], game.x_rest, np.abs(game.loss)
    threshold = S / (4 * x_rest)
    kept = game.loss / game.x_arm
    near = np.abs(size - threshold) <= 1e-12 * threshold  # rounding decides
    below = size < threshold
    assert_equal(game.estimate[~near], np.where(below, kept, 0)[~near])
    assert np.all((game.estimate == 0) | (np.abs(game.estimate - kept) <= TOLERANCE * np.abs(kept)))
    square = (np.minimum(size, threshold) * x_rest) ** 2 / (game.num_arms * game.log_horizon)
    assert_equal(game.growth, square / (S + np.sqrt(S**2 + square)))


def growth_of_a_round(game: Trajectory) -> None:
    """S^2 grows by the factor 1 + 1/(16 K log T) in a skipped round, by no more in any, and never falls."""
    most = 1 / (16 * game.num_arms * game.log_horizon)
    ratio = game.growth / game.S[:-1]
    relative = ratio * (2 + ratio)
    assert np.all(game.growth >= 0)
    assert np.all(np.diff(game.S) >= 0)
    assert_at_most(relative, most)
    assert_equal(relative[game.skipped], most)


def skipped_rounds(game: Trajectory) -> None:
    """Few rounds are skipped while S is at most M; M = S_t at a skipped round leaves the least room."""
    rate = 0.5 * math.log1p(1 / (16 * game.num_arms * game.log_horizon))
    count = np.cumsum(game.skipped)[game.skipped]
    assert_at_most(count, 1 + np.log(game.S[:-1][game.skipped] / game.S[0]) / rate)


def scale_bound(game: Trajectory) -> None:
    for a in (1.0, 1.25, 1.5, 1.75, 2.0):
        moment = np.cumsum(np.abs(game.loss) ** a)
        bound = (2 * 4 ** (a - 2) * moment / (game.num_arms * game.log_horizon)) ** (1 / a)
        assert_at_most(game.S[1:], np.maximum(math.sqrt(2) * game.S[0], bound))


FACTS = {
    fact.__name__: fact
    for fact in (
        kkt,
        sums,
        stability,
        div_of_a_round,
        div_sum,
        shift_sum,
        ftrl,
        definitions,
        growth_of_a_round,
        skipped_rounds,
        scale_bound,
    )
}


def check(fact: str, policy, num_arms: int, script: Script) -> None:
    """Raises ``AssertionError`` if the policy's trajectory breaks the fact."""
    FACTS[fact](play(policy, num_arms, script))


LOSSES = st.one_of(
    st.floats(-6.0, 6.0).map(lambda value: (value, False)),
    st.sampled_from([0.0, 1e30, -1e30, 1e-200, -1e-8, 1e3, -1e6, 1e12]).map(lambda value: (value, False)),
    st.sampled_from([1.0, -1.0, 1 - 1e-9, -1 + 1e-9, 0.99, -0.99, 1 + 1e-9, 0.5]).map(lambda value: (value, True)),
    st.floats(-1.5, 1.5).map(lambda value: (value, True)),
)


SCRIPTS = st.one_of(
    st.builds(repeated, st.lists(LOSSES, min_size=1, max_size=12), st.lists(CHOICES, min_size=1, max_size=12)),
    st.builds(heavy_tailed, st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 1.0, 4.0, 100.0]), st.floats(0.5, 2.0)),
)
GAMES = st.sampled_from(NUM_ARMS).flatmap(
    lambda num_arms: st.tuples(
        st.just(num_arms),
        st.one_of(
            st.just(float(num_arms)),
            st.integers(num_arms, 10_000).map(float),
            st.sampled_from([1e6, 1e12]),
        ),
    )
)


# Eleven losses in twelve push arm 0 away by a quarter of its distance: of two arms the other has 1 - x < 1e-9.
PUSHED_AWAY = repeated([(1 - 1e-9, True)] * 11 + [(0.5, True)], [(0, 0.0)] * 11 + [(3, 0.0)])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("fact", FACTS)
@FIXED
@given(game=GAMES, script=SCRIPTS)
@example(game=(2, 100.0), script=PUSHED_AWAY)
@example(game=(10, 1e6), script=PUSHED_AWAY._replace(value=-PUSHED_AWAY.value))
def test_fact(fact, game, script):
    num_arms, horizon = game
    check(fact, jb.UniINF(horizon=horizon), num_arms, script)


@pytest.mark.usefixtures("x64")
def test_the_constants_are_attained():
    """Losses just below the threshold come close to the constants: smaller ones would be false."""
    losses = [(1 - 1e-9, True), (-1 + 1e-9, True), (0.5, True), (-0.9, True)]
    script = repeated(losses, [(0, 0.1), (0, 0.9), (2, 0.0), (3, 0.0), (3, 0.0)])
    game = play(jb.UniINF(horizon=1_000.0), 2, script)
    ratio = game.z / game.x[:-1]
    assert ratio.min() < 0.757
    assert ratio.max() > 1.398
    assert np.max(game.div * game.S[:-1] / (game.estimate * game.x_arm * game.x_rest) ** 2) > 1.03
    assert np.max(np.cumsum(game.div) / np.cumsum(game.growth)) > 1.9 * game.num_arms * game.log_horizon


@pytree
class Variant(jb.UniINF):
    """uniINF written a second time, with the mistakes one could make."""

    label: ClassVar[str] = "variant"

    threshold_factor: float = field(default=1.0)
    clip: bool = field(default=True, static=True)
    weigh: bool = field(default=True, static=True)  # by 1 - x, in the threshold and in the scale

    def update(self, state: UniINFState, t: Array, x: Array, arm: Array, loss: Array) -> UniINFState:
        del t
        S, num_arms = state.scale, x.shape[0]
        weight = jnp.maximum(rest(x, arm), SMALLEST_REST) if self.weigh else 1.0
        threshold = self.threshold_factor * S / (4 * weight)
        estimate = jnp.where(jnp.abs(loss) < threshold, loss / pick(x, arm), 0)
        clipped = jnp.clip(loss, -threshold, threshold) if self.clip else loss
        square = (clipped * weight) ** 2 / (num_arms * jnp.log(self.horizon))
        growth = square / (S + jnp.sqrt(S**2 + square))
        L = state.cumulative_loss + jnp.where(one_hot(arm, num_arms), estimate, 0)
        S_next = S + growth
        return UniINFState(
            cumulative_loss=L - jnp.min(L),
            scale=S_next,
            cumulative_lost=jnp.zeros_like(L),
            scale_lost=(S - S_next) + growth,
        )


def broken_facts(policy) -> set[str]:
    """The facts that fail in some of a few fixed games."""
    games = [heavy_tailed(seed, 4.0, 1.0) for seed in range(3)]
    games.append(repeated([(1 - 1e-9, True), (-1.9, True), (1.9, True)], [(0, 0.1), (1, 0.5), (2, 0.0), (3, 0.0)]))
    broken = set()
    for fact in FACTS:
        for script in games:
            try:
                check(fact, policy, 3, script)
            except AssertionError:
                broken.add(fact)
    return broken


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("mistake", "facts"),
    [
        pytest.param({}, set(), id="none"),
        pytest.param(
            {"threshold_factor": 2.0}, {"stability", "growth_of_a_round", "definitions"}, id="threshold doubled"
        ),
        pytest.param({"clip": False}, {"growth_of_a_round", "scale_bound", "definitions"}, id="no clip"),
        pytest.param({"weigh": False}, {"definitions"}, id="1 - x dropped"),
    ],
)
def test_negative_controls(mistake, facts):
    """Each mistake breaks the facts that speak of it, and no other."""
    assert broken_facts(Variant(horizon=1_000.0, **mistake)) == facts

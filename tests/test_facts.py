"""What the analysis of uniINF proves about every trajectory, with the sharp constants, and in expectation.

Any sequence of arms and losses is admissible, so the arms are not drawn but chosen, by hypothesis or to do harm. A
fact is a function of a trajectory; the same functions run on broken variants of the policy, which must fail them.
"""

import functools
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit.arms import one_hot, pick, rest
from jaxbandit.policies.uniinf import SMALLEST_REST, UniINFState
from jaxbandit.simplex import log_barrier
from jaxbandit.types import Array, field, pytree

TOLERANCE = 1e-10  # relative to the larger side
FLOOR = 1e-290  # squares of tiny losses leave the range of float64
NUM_ARMS = (2, 3, 5, 10)
ROUNDS = 128

FIXED = settings(
    derandomize=True,
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


class Script(NamedTuple):
    """How the arm and the loss of each round are chosen, [rounds] each."""

    choice: np.ndarray  # 0: arm floor(K * uniform), 1: by inversion of x, 2: the least likely, 3: the likeliest
    uniform: np.ndarray
    value: np.ndarray
    relative: np.ndarray  # whether the loss is ``value`` or ``value`` times the threshold


class Trajectory(NamedTuple):
    """A game of n rounds as NumPy arrays."""

    num_arms: int
    log_horizon: float
    horizon: float
    x: np.ndarray  # [n + 1, K]  x_1, ..., x_{n+1}
    L: np.ndarray  # [n + 1, K]  cumulative losses before each round, as the policy holds them
    S: np.ndarray  # [n + 1]
    z: np.ndarray  # [n, K]  the point after the update, under the same S_t
    arm: np.ndarray  # [n]
    loss: np.ndarray  # [n]
    estimate: np.ndarray  # [n]  what the policy adds to L at the arm
    growth: np.ndarray  # [n]  what the policy adds to S

    @property
    def x_arm(self) -> np.ndarray:
        return np.take_along_axis(self.x[:-1], self.arm[:, None], axis=1)[:, 0]

    @property
    def x_rest(self) -> np.ndarray:
        others = np.arange(self.num_arms) != self.arm[:, None]
        return np.maximum(np.sum(self.x[:-1], axis=1, where=others), SMALLEST_REST)

    @property
    def skipped(self) -> np.ndarray:
        """Whether the policy skipped the round."""
        return (self.estimate == 0) & (np.abs(self.loss) > FLOOR)

    @property
    def cumulative_estimate(self) -> np.ndarray:
        """[n, K], not shifted."""
        return np.cumsum(np.where(np.arange(self.num_arms) == self.arm[:, None], self.estimate[:, None], 0), axis=0)

    @property
    def div(self) -> np.ndarray:
        """Div_t to relative precision however small the loss.

        x/z - 1 is computed without cancellation: 1/z - 1/x is the estimate over S at the arm plus a multiplier, and
        the multiplier is what makes z sum to one.
        """
        played = np.arange(self.num_arms) == self.arm[:, None]
        weight = self.x[:-1] * self.z
        share = weight / weight.sum(axis=1, keepdims=True)
        share_arm = np.sum(share, axis=1, where=played)[:, None]
        share_rest = np.sum(share, axis=1, where=~played)[:, None]
        step = (self.estimate / self.S[:-1])[:, None]
        w = self.x[:-1] * step * np.where(played, share_rest, -share_arm)
        return self.S[:-1] * np.sum(_w_minus_log1p(w), axis=1)


def _w_minus_log1p(w: np.ndarray) -> np.ndarray:
    series = w**2 * sum((-w) ** k / (k + 2) for k in range(12))
    return np.where(np.abs(w) < 0.03, series, w - np.log1p(w))


@functools.partial(jax.jit, static_argnames="num_arms")
def _play(policy, num_arms: int, script: Script):
    """The state and x before each round, what was played, and the state after."""

    def one_round(state, now):
        t, choice, uniform, value, relative = now
        x = policy.probabilities(state, t, None)
        by_x = jnp.minimum(jnp.sum(jnp.cumsum(x) <= uniform), num_arms - 1)
        arm = jnp.stack([jnp.floor(uniform * num_arms).astype(int), by_x, jnp.argmin(x), jnp.argmax(x)])[choice]
        arm = arm.astype(jnp.int32)
        threshold = state.scale / (4 * jnp.maximum(rest(x, arm), SMALLEST_REST))
        loss = jnp.where(relative, value * threshold, value)
        after = policy.update(state, t, x, arm, loss)

        # What a round adds depends on x and S alone: seen from L = 0 it is exact.
        zeros = jnp.zeros(num_arms)
        probe = policy.update(UniINFState(zeros, state.scale, zeros, jnp.zeros(())), t, x, arm, loss)
        at_arm = pick(probe.cumulative_loss, arm)
        estimate = at_arm - jnp.where(at_arm == 0, jnp.max(probe.cumulative_loss), 0)  # a negative one lifts the others
        growth = (probe.scale - state.scale) + probe.scale_lost
        z = log_barrier(after.cumulative_loss / state.scale)
        return after, (state, x, arm, loss, after, z, estimate, growth)

    t = jnp.arange(1, script.value.shape[0] + 1, dtype=jnp.int32)
    last, rounds = jax.lax.scan(one_round, policy.init(num_arms), (t, *script))
    return rounds, last, policy.probabilities(last, t[-1] + 1, None)


def play(policy, num_arms: int, script: Script) -> Trajectory:
    (before, x, arm, loss, _, z, estimate, growth), last, x_last = jax.device_get(_play(policy, num_arms, script))
    return Trajectory(
        num_arms=num_arms,
        horizon=float(policy.horizon),
        log_horizon=math.log(policy.horizon),
        x=np.concatenate([x, x_last[None]]),
        L=np.concatenate([before.cumulative_loss, last.cumulative_loss[None]]),
        S=np.append(before.scale, last.scale),
        z=z,
        arm=arm,
        loss=loss,
        estimate=estimate,
        growth=growth,
    )


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


def _log_barrier_sum(game: Trajectory) -> np.ndarray:
    """sum_{t=0..n} (S_{t+1} - S_t) sum_i log x_{t+1,i} for n = 0, 1, ..., with S_0 = 0."""
    return np.cumsum(np.append(game.S[0], game.growth) * np.sum(np.log(game.x), axis=1))


def shift_sum(game: Trajectory) -> None:
    log_y = np.log(benchmarks(game)[0]).sum()
    shift = _log_barrier_sum(game) - game.S * log_y
    assert_at_most(shift, game.S * game.num_arms * game.log_horizon, peak(_log_barrier_sum(game)))


def benchmarks(game: Trajectory) -> np.ndarray:
    """[K, K]: 1/T off the best arm, for each arm as the best."""
    num_others = game.num_arms - 1
    y = np.full((game.num_arms, game.num_arms), 1 / game.horizon)
    np.fill_diagonal(y, 1 - num_others / game.horizon)
    return y


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
        bound = np.cumsum(game.div) + _log_barrier_sum(game)[:-1] - game.S[:-1] * log_y
        terms = (suffered[:, None], against, (game.S[:-1] * log_y)[:, None], _log_barrier_sum(game)[:-1, None])
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
CHOICES = st.tuples(st.integers(0, 3), st.floats(0, 1, exclude_max=True))


def repeated(losses: list[tuple[float, bool]], choices: list[tuple[int, float]]) -> Script:
    """A short pattern of losses and a short pattern of arms for ever: alternation, ties, one arm alone."""
    value, relative = (np.resize(part, ROUNDS) for part in zip(*losses, strict=True))
    choice, uniform = (np.resize(part, ROUNDS) for part in zip(*choices, strict=True))
    return Script(choice.astype(np.int32), uniform.astype(float), value.astype(float), relative.astype(bool))


def heavy_tailed(seed: int, size: float, tail_index: float) -> Script:
    """Pareto losses of either sign, arms drawn from x or anyhow."""
    rng = np.random.default_rng(seed)
    return Script(
        choice=rng.choice(4, size=ROUNDS, p=[0.25, 0.55, 0.15, 0.05]).astype(np.int32),
        uniform=rng.random(ROUNDS),
        value=size * rng.pareto(tail_index, ROUNDS) * rng.choice([1.0, 1.0, -1.0], size=ROUNDS),
        relative=np.zeros(ROUNDS, bool),
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


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("fact", FACTS)
@FIXED
@given(game=GAMES, script=SCRIPTS)
def test_fact(fact, game, script):
    num_arms, horizon = game
    check(fact, jb.UniINF(horizon=horizon), num_arms, script)

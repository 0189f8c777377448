"""Trajectories of uniINF on arms and losses that are chosen, not drawn: scripts, play, and the sums of the analysis."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jaxbandit.arms import pick, rest
from jaxbandit.policies.uniinf import UniINFState
from tests.support.policies import quick_jit

FLOOR = 1e-290  # squares of tiny losses leave the range of float64
SMALLEST_REST = 2.0**-100  # where 1 - x is held when it underflows
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


@functools.partial(quick_jit, static_argnames="num_arms")
def play_script(policy, num_arms: int, script: Script):
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
        z = policy.probabilities(after._replace(scale=state.scale), t, None)
        return after, (state, x, arm, loss, after, z, estimate, growth)

    t = jnp.arange(1, script.value.shape[0] + 1, dtype=jnp.int32)
    last, rounds = jax.lax.scan(one_round, policy.init(num_arms), (t, *script))
    return rounds, last, policy.probabilities(last, t[-1] + 1, None)


def play(policy, num_arms: int, script: Script) -> Trajectory:
    (before, x, arm, loss, _, z, estimate, growth), last, x_last = jax.device_get(play_script(policy, num_arms, script))
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


def rounds_of(policy, num_arms: int):
    """The rounds of a heavy-tailed game: states, x, arms, losses, states after."""
    rounds, _, _ = play_script(policy, num_arms, heavy_tailed(5, 2.0, 1.2))
    return rounds[:5]


def log_barrier_sum(game: Trajectory) -> np.ndarray:
    """sum_{t=0..n} (S_{t+1} - S_t) sum_i log x_{t+1,i} for n = 0, 1, ..., with S_0 = 0."""
    return np.cumsum(np.append(game.S[0], game.growth) * np.sum(np.log(game.x), axis=1))


def benchmarks(game: Trajectory) -> np.ndarray:
    """[K, K]: 1/T off the best arm, for each arm as the best."""
    num_others = game.num_arms - 1
    y = np.full((game.num_arms, game.num_arms), 1 / game.horizon)
    np.fill_diagonal(y, 1 - num_others / game.horizon)
    return y


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

r"""The p-robust mean of Lee, Yang, Lim and Oh (NeurIPS 2020), kept per arm as rewards come in.

.. math::
    \hat Y_n = \frac{s_n}{n} \sum_{k \le n} \psi_p(Y_k / s_n), \qquad s_n = c n^{1/p}, \qquad
    \psi_p(z) = \mathrm{sign}(z) \log(1 + |z| + b_p |z|^p).

The scale moves with n, so the sum would have to be taken afresh at every play. Two forms:

- *exact*: every reward is kept, and an arm's sum is taken again when it is played.
- *bounded*: :math:`s \psi_p(Y_k / s)` is averaged at the scales of :math:`n = 1, 4, 16, 64, \ldots` plays and read
  between by the cubic through four neighbours in :math:`\log n`. It is exact at powers of four, and elsewhere

  .. math:: |\hat Y^{bounded}_n - \hat Y_n| \le \frac{1}{50} \, \frac{c}{n^{1-1/p}} \cdot \frac1n \sum_k |Y_k / c|^p,

  a fiftieth of the estimator's own confidence width at unit moment. The cubic is taken through s psi, not psi:
  small rewards, for which s psi(Y/s) is nearly Y, are then nearly exact, and the error is of order :math:`|Y/s|^p`.

[1] https://arxiv.org/abs/2010.12866
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import one_hot, pick
from jaxbandit.types import Array

# Rounds covered where nobody says more; float32 counts exactly up to here.
MAX_ROUNDS = 2**24


class LevelState(NamedTuple):
    """The bounded form: M = log4(max_rounds) + 2 means per arm.

    It keeps means because a sum of 10^7 equal rewards drifts in float32, and their mean does not.
    """

    pulls: Array  # [K]  int32
    estimate: Array  # [K]  Yhat of each arm, 0 before its first play
    shrink: Array  # [K]  n^{-(1-1/p)} of each arm, which only its own plays change; 1 before its first
    levels: Array  # [K, M]  mean of s psi_p(Y / s) at the scale s of 1, 4, 16, ... plays


class HistoryState(NamedTuple):
    """The exact form."""

    pulls: Array  # [K]  int32
    estimate: Array  # [K]  Yhat of each arm, 0 before its first play
    shrink: Array  # [K]  n^{-(1-1/p)} of each arm, which only its own plays change; 1 before its first
    rewards: Array  # [max_rounds]  in order of play
    arms: Array  # [max_rounds]  int32, the arm of each; -1 where there is none yet


MeanState = LevelState | HistoryState


def no_rewards(num_arms: int, form: str, max_rounds: int) -> MeanState:
    """Returns the state before round 1."""
    pulls, zeros, ones = jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms), jnp.ones(num_arms)
    if form == "exact":
        nobody = jnp.full(max_rounds, -1, jnp.int32)
        return HistoryState(pulls=pulls, estimate=zeros, shrink=ones, rewards=jnp.zeros(max_rounds), arms=nobody)
    num_levels = max(math.ceil(math.log(max_rounds, 4) - 1e-9), 2) + 2
    return LevelState(pulls=pulls, estimate=zeros, shrink=ones, levels=jnp.zeros((num_arms, num_levels)))


def add_reward(state: MeanState, arm: Array, loss: Array, order: Array | float, scale: Array | float) -> MeanState:
    """Returns the state after ``arm`` earned minus ``loss``; only that arm's estimate changes."""
    if isinstance(state, HistoryState):
        return _add_to_history(state, arm, loss, order, scale)
    return _add_to_levels(state, arm, loss, order, scale)


def robust_constant(order: Array | float) -> Array:
    """Returns b_p, the least b for which psi_p lies between -log(1 - z + b|z|^p) and log(1 + z + b|z|^p)."""
    p = jnp.asarray(order)
    r = jnp.maximum((2 - p) / (p - 1), 2.0**-100)  # positive, so that p = 2 gives 1/2 and not 0^0
    return jnp.exp(-p / 2 * jnp.log(2 * r ** (1 - 2 / p) + r ** (2 - 2 / p)))


def _add_to_levels(state: LevelState, arm: Array, loss: Array, p, c) -> LevelState:
    played = one_hot(arm, state.pulls.shape[0])
    pulls = state.pulls + played.astype(jnp.int32)
    n = pick(pulls, arm).astype(state.estimate.dtype)

    level = jnp.arange(state.levels.shape[1], dtype=n.dtype)
    growth = jnp.exp2(2 * level / p)  # s / c at each level
    terms = c * growth * _psi(-loss / c, p)(1 / growth, jnp.exp2(-2 * level))
    row = state.levels[arm]
    row = row + (terms - row) / n
    levels = state.levels.at[arm].set(row)
    log2_n = jnp.log(n) / math.log(2)
    return LevelState(
        pulls=pulls,
        estimate=jnp.where(played, jnp.sum(_cubic(level, log2_n / 2) * row), state.estimate),
        shrink=jnp.where(played, jnp.exp2((1 / p - 1) * log2_n), state.shrink),
        levels=levels,
    )


def _cubic(level: Array, position: Array) -> Array:
    """Returns the weight of each level in the cubic through the four levels around ``position``."""
    last = level.shape[0] - 1
    position = jnp.minimum(position, last - 1)  # beyond max_rounds the scale stays
    first = jnp.clip(jnp.floor(position) - 1, 0, last - 3)
    f, node = position - first, level - first
    nodes = [
        (1 - f) * (2 - f) * (3 - f) / 6,
        f * (2 - f) * (3 - f) / 2,
        f * (f - 1) * (3 - f) / 2,
        f * (f - 1) * (f - 2) / 6,
    ]
    return sum((jnp.where(node == j, weight, 0) for j, weight in enumerate(nodes)), jnp.zeros_like(level))


def _add_to_history(state: HistoryState, arm: Array, loss: Array, p, c) -> HistoryState:
    played = one_hot(arm, state.pulls.shape[0])
    here = jnp.arange(state.rewards.shape[0], dtype=jnp.int32) == jnp.sum(state.pulls, dtype=jnp.int32)
    rewards = jnp.where(here, -loss, state.rewards)
    arms = jnp.where(here, arm, state.arms)
    pulls = state.pulls + played.astype(jnp.int32)

    n = pick(pulls, arm).astype(rewards.dtype)
    growth = jnp.exp(jnp.log(n) / p)  # s_n / c
    terms = _psi(rewards / c, p)(1 / growth, 1 / n)
    estimate = c * growth / n * jnp.sum(jnp.where(arms == arm, terms, 0))
    return HistoryState(
        pulls=pulls,
        estimate=jnp.where(played, estimate, state.estimate),
        shrink=jnp.where(played, growth / n, state.shrink),
        rewards=rewards,
        arms=arms,
    )


def _psi(y: Array, p) -> Callable[[Array, Array | float], Array]:
    """Returns psi_p(y * shrink) as a function of shrink and shrink^p, so that one power of y serves every scale."""
    # Beyond 1e18 (float32) y^p would overflow; there psi is flat enough for y to be cut.
    size = jnp.minimum(jnp.abs(y), jnp.finfo(y.dtype).max ** 0.48)
    power = robust_constant(p) * jnp.exp(p * jnp.log(size))
    return lambda shrink, shrink_power: jnp.sign(y) * jnp.log1p(size * shrink + power * shrink_power)

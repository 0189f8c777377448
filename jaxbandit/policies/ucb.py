"""Index policies for bounded or sub-Gaussian rewards: UCB1, MOSS and Gaussian Thompson sampling.

[1] UCB1: Auer, Cesa-Bianchi, Fischer. Machine Learning 47, 2002, Figure 1
[2] MOSS: Audibert, Bubeck. COLT 2009
[3] Thompson: https://arxiv.org/abs/1209.3353, Algorithm 2
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit import random
from jaxbandit.arms import kahan_add, one_hot
from jaxbandit.types import Array, field, pytree


class RewardState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1; rewards are minus the losses."""

    pulls: Array  # [K]  int32
    reward: Array  # [K]  sum of the rewards of each arm
    reward_lost: Array  # [K]  what rounding took from it


@pytree
class UCB1:
    r"""The arm with the largest mean reward plus a bonus that shrinks with its plays.

    The bonus is :math:`\sqrt{2 \log n / n_i}` after n rounds, :math:`n_i` of them with arm i; each arm is played once
    first. Regret :math:`\sum_i 8 \log T / \Delta_i + O(1)` for rewards in an interval of length 1; no guarantee for
    heavy tails or adversaries. Ties go to the lowest index.

    Attributes:
      exploration: Multiplies the bonus; 1 is the paper's, for rewards in an interval of length 1.

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.UCB1(), jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 100)  # uniform play has 400
      True

    References:
      Auer, Cesa-Bianchi, Fischer. "Finite-time Analysis of the Multiarmed Bandit Problem". Machine
      Learning 47, 2002. https://doi.org/10.1023/A:1013689704352
    """

    label: ClassVar[str] = "UCB1"
    setting: ClassVar[str] = "stochastic, bounded"
    sure: ClassVar[bool] = True

    exploration: float = field(default=1.0, gt=0)

    def init(self, num_arms: int) -> RewardState:
        """Returns the state before round 1: no arm has been played."""
        return no_rewards(num_arms)

    def probabilities(self, state: RewardState, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index."""
        del key
        pulls, mean = mean_reward(state)
        plays = jnp.maximum(jnp.asarray(t).astype(mean.dtype) - 1, 1)
        return largest(state.pulls, mean + self.exploration * jnp.sqrt(2 * jnp.log(plays) / pulls))

    def update(self, state: RewardState, t: Array, x: Array, arm: Array, loss: Array) -> RewardState:
        """Adds the reward."""
        del t, x
        return add_reward(state, arm, loss)


@pytree
class MOSS:
    r"""UCB1 with a bonus that is zero once an arm had its share of the horizon: minimax optimal.

    The bonus is :math:`\sqrt{\max(\log (T / (K n_i)), 0) / n_i}`; each arm is played once first. Regret
    :math:`O(\sqrt{KT})` for rewards in an interval of length 1. Ties go to the lowest index.

    Attributes:
      horizon: :math:`T`.
      exploration: Multiplies the bonus; 1 is the paper's.

    Example:
      >>> import jaxbandit as jb
      >>> policy = jb.MOSS(horizon=1_000)
      >>> ds = jb.simulate(policy, jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 100)  # uniform play has 400
      True

    References:
      Audibert, Bubeck. "Minimax Policies for Adversarial and Stochastic Bandits". COLT 2009.
      https://www.microsoft.com/en-us/research/publication/minimax-policies-adversarial-stochastic-bandits/
    """

    label: ClassVar[str] = "MOSS"
    setting: ClassVar[str] = "stochastic, bounded"
    sure: ClassVar[bool] = True

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    exploration: float = field(default=1.0, gt=0)

    def init(self, num_arms: int) -> RewardState:
        """Returns the state before round 1: no arm has been played."""
        return no_rewards(num_arms)

    def probabilities(self, state: RewardState, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index."""
        del t, key
        pulls, mean = mean_reward(state)
        share = self.horizon / (pulls.shape[0] * pulls)
        return largest(state.pulls, mean + self.exploration * jnp.sqrt(jnp.maximum(jnp.log(share), 0) / pulls))

    def update(self, state: RewardState, t: Array, x: Array, arm: Array, loss: Array) -> RewardState:
        """Adds the reward."""
        del t, x
        return add_reward(state, arm, loss)


@pytree
class GaussianThompson:
    r"""The arm with the largest draw from a Gaussian around its mean reward, narrower with every play.

    After :math:`n_i` plays with rewards r it is :math:`N(\sum r / (n_i + 1), 1 / (n_i + 1))`. Regret
    :math:`O(\sqrt{KT \log K})` for rewards in [0, 1].

    Attributes:
      exploration: Multiplies the standard deviation of the draws; 1 is the paper's.

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.GaussianThompson(), jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 100)  # uniform play has 400
      True

    References:
      Agrawal, Goyal. "Further Optimal Regret Bounds for Thompson Sampling". AISTATS 2013.
      https://arxiv.org/abs/1209.3353
    """

    label: ClassVar[str] = "Thompson (Gaussian)"
    setting: ClassVar[str] = "stochastic, bounded"
    sure: ClassVar[bool] = True

    exploration: float = field(default=1.0, gt=0)

    def init(self, num_arms: int) -> RewardState:
        """Returns the state before round 1: no arm has been played."""
        return no_rewards(num_arms)

    def probabilities(self, state: RewardState, t: Array, key) -> Array:
        """Draws a mean of each arm from ``key``; returns the one-hot vector of the arm with the largest draw."""
        del t
        weight = state.pulls.astype(state.reward.dtype) + 1
        noise = random.normal(key, state.pulls.shape)
        draws = (state.reward + state.reward_lost) / weight + self.exploration * noise / jnp.sqrt(weight)
        return _as_law(jnp.argmax(draws), draws)

    def update(self, state: RewardState, t: Array, x: Array, arm: Array, loss: Array) -> RewardState:
        """Adds the reward."""
        del t, x
        return add_reward(state, arm, loss)


def no_rewards(num_arms: int) -> RewardState:
    """Returns the state before round 1."""
    zeros = jnp.zeros(num_arms)
    return RewardState(pulls=jnp.zeros(num_arms, jnp.int32), reward=zeros, reward_lost=zeros)


def add_reward(state: RewardState, arm: Array, loss: Array) -> RewardState:
    """Returns the state after ``arm`` earned minus ``loss``."""
    played = one_hot(arm, state.pulls.shape[0])
    reward, lost = kahan_add(state.reward, state.reward_lost + jnp.where(played, -loss, 0))
    return RewardState(pulls=state.pulls + played.astype(jnp.int32), reward=reward, reward_lost=lost)


def mean_reward(state: RewardState) -> tuple[Array, Array]:
    """Returns pulls, at least 1, and mean reward of every arm, both [K] in the working dtype."""
    pulls = jnp.maximum(state.pulls, 1).astype(state.reward.dtype)
    return pulls, (state.reward + state.reward_lost) / pulls


def largest(pulls: Array, index: Array) -> Array:
    """Returns the one-hot vector of the arm with the largest index; arms never played come first, lowest first."""
    return _as_law(jnp.argmax(jnp.where(pulls == 0, jnp.inf, index)), index)


def _as_law(arm: Array, like: Array) -> Array:
    return one_hot(arm.astype(jnp.int32), like.shape[0]).astype(like.dtype)

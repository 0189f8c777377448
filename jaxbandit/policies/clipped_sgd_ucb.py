"""Clipped-SGD-UCB: an index for symmetric noise, even without a mean (Dorn et al., 2024).

[1] https://arxiv.org/abs/2402.07062
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit import random
from jaxbandit.arms import kahan_add, one_hot, pick
from jaxbandit.policies.ucb import largest
from jaxbandit.types import Array, field, pytree

OPENING = 3  # pulls of each arm before the index decides; the estimate starts at their median


class ClippedSGDState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1; rewards are minus the losses."""

    pulls: Array  # [K]  int32
    estimate: Array  # [K]  x_i; after one or two pulls the first reward
    estimate_lost: Array  # [K]  what rounding took from it
    second: Array  # [K]  the second reward


@pytree
class ClippedSGDUCB:
    r"""The largest of estimates that move by clipped gradients, plus a bonus; given T and a bound on the means.

    Each arm is pulled three times first, and :math:`x_i` starts at the median of these rewards. Then the arm with the
    largest :math:`x_i + c \sqrt{\log(t - 1) / N_i}` is played, and its reward :math:`y` moves its estimate:

    .. math::
        g = x_{i_t} - y + \theta \xi, \quad \xi \sim N(0, 1), \qquad
        x_{i_t} \leftarrow x_{i_t} - \frac{\mathrm{clip}(g, -R, R)}{A}, \qquad A = \log(4 (T + 1) T^2) .

    For rewards with symmetric noise around means in :math:`[-R, R]`; the noise needs no moment. Regret
    :math:`O(\log T \sqrt{K T \log T})` in a stochastic environment. Ties go to the lowest index.

    Attributes:
      horizon: :math:`T` in :math:`A`.
      mean_bound: :math:`R`, a bound on the absolute means and the level of the clipping.
      exploration: :math:`c`. The authors' scripts tune it between 0.07 and 0.2; their experiment on regret has 0.1.
      smoothing: :math:`\theta`, 0.001 in the authors' code.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.StudentT(means=[0.2, 0.8, 0.8], tail_index=1.5)
      >>> policy = jb.ClippedSGDUCB(horizon=2_000, mean_bound=1.0)
      >>> ds = jb.simulate(policy, environment, horizon=2_000, num_seeds=64, record=[2_000])
      >>> bool(ds.regret.mean() < 800)  # uniform play
      True

    References:
      Dorn, Katrutsa, Latypov, Pudovikov. "Fast UCB-type Algorithms for Stochastic Bandits with Heavy and Super Heavy
      Symmetric Noise". 2024. https://arxiv.org/abs/2402.07062

    Notes:
      Source: https://github.com/tmpuser1233/Clipped-SGD-UCB (commit 538ef19), ``SGD_SMoM`` with n = 1, m = 0 and
      ``init_steps`` = 3. The noise is drawn in ``update``, from a stream of its own.
    """

    label: ClassVar[str] = "Clipped-SGD-UCB"
    setting: ClassVar[str] = "stochastic, symmetric"
    sure: ClassVar[bool] = True

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    mean_bound: float = field(gt=0, hint="pass a bound on the absolute means")
    exploration: float = field(default=0.1, gt=0, hint="the authors take 0.07 to 0.2")
    smoothing: float = field(default=1e-3, ge=0, hint="the authors take 0.001")

    def init(self, num_arms: int) -> ClippedSGDState:
        """Returns the state before round 1: no arm has been played."""
        zeros = jnp.zeros(num_arms)
        return ClippedSGDState(jnp.zeros(num_arms, jnp.int32), zeros, zeros, zeros)

    def probabilities(self, state: ClippedSGDState, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index; arms with fewer than three pulls come first."""
        del key
        dtype = state.estimate.dtype
        plays = jnp.maximum(jnp.asarray(t).astype(dtype) - 1, 1)
        pulls = jnp.maximum(state.pulls, 1).astype(dtype)
        index = state.estimate + self.exploration * jnp.sqrt(jnp.log(plays) / pulls)
        return largest(jnp.where(state.pulls < OPENING, 0, 1), index)

    def update(self, state: ClippedSGDState, t: Array, x: Array, arm: Array, loss: Array, key) -> ClippedSGDState:
        """Moves the estimate by the clipped gradient; before the third reward, keeps the rewards."""
        del t, x
        reward, played = -loss, one_hot(arm, state.pulls.shape[0])
        pulls, estimate, second = (pick(part, arm) for part in (state.pulls, state.estimate, state.second))
        gradient = estimate - reward + self.smoothing * random.normal(key)  # g
        A = jnp.log(4 * (self.horizon + 1)) + 2 * jnp.log(self.horizon)
        step = -jnp.clip(gradient, -self.mean_bound, self.mean_bound) / A
        low, high = jnp.minimum(estimate, second), jnp.maximum(estimate, second)
        median = jnp.maximum(low, jnp.minimum(high, reward))

        moved, lost = kahan_add(estimate, pick(state.estimate_lost, arm) + step)
        opening = jnp.where(pulls == 0, reward, jnp.where(pulls == 1, estimate, median))
        moved, lost = jnp.where(pulls < OPENING, opening, moved), jnp.where(pulls < OPENING, 0, lost)
        return ClippedSGDState(
            pulls=state.pulls + played.astype(jnp.int32),
            estimate=jnp.where(played, moved, state.estimate),
            estimate_lost=jnp.where(played, lost, state.estimate_lost),
            second=jnp.where(played & (pulls == 1), reward, state.second),
        )

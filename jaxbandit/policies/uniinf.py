"""uniINF: best-of-both-worlds, parameter-free, heavy-tailed (Chen et al., ICLR 2025).

[1] https://arxiv.org/abs/2410.03284, Algorithm 1
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import accumulate, kahan_add, one_hot, pick, rest
from jaxbandit.simplex import log_barrier
from jaxbandit.types import Array, field, pytree

# 1 - x where x rounds to 1: keeps the threshold and clip * (1 - x) finite.
SMALLEST_REST = 2.0**-100


class UniINFState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    scale: Array  # []  S_t; its inverse is the learning rate
    cumulative_lost: Array  # [K]  what rounding took from cumulative_loss so far
    scale_lost: Array  # []  and from scale


@pytree
class UniINF:
    r"""FTRL with a log-barrier whose weight adapts to the losses seen.

    In round :math:`t` the policy plays :math:`i_t \sim x_t`, where

    .. math::
        x_t = \arg\min_{x \in \Delta^K} \langle \tilde L_{t-1}, x \rangle - S_t \sum_i \log x_i .
        \tag{2}

    A loss above the threshold of the arm played is skipped in the estimate and clipped in the
    scale:

    .. math::
        C_{t,i} &= \frac{S_t}{4 (1 - x_{t,i})}, \tag{3} \\
        \tilde\ell_{t,i} &= \frac{\ell_{t,i}}{x_{t,i}} 1[|\ell_{t,i}| < C_{t,i}] 1[i = i_t], \\
        S_{t+1}^2 &= S_t^2 + \frac{(\ell^{clip}_{t,i_t})^2 (1 - x_{t,i_t})^2}{K \log T}. \tag{4}

    Knows neither :math:`\alpha` nor :math:`\sigma`. With truncated non-negative losses its regret
    is :math:`\tilde O(\sigma K^{1 - 1/\alpha} T^{1/\alpha})` against an oblivious adversary, and
    logarithmic in :math:`T` when the arms are stochastic with a unique best arm.

    Attributes:
      horizon: :math:`T` in Eq. (4), as the policy is given it. A run may have more rounds.
      initial_scale: :math:`S_1`. The paper takes 4; the analysis uses that value.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> policy = jb.UniINF(horizon=10_000)
      >>> ds = jb.simulate(policy, environment, horizon=10_000, num_seeds=64, record=[100, 1_000, 10_000])
      >>> ds.regret.shape
      (64, 3)

    References:
      Chen, Huang, Dai, Huang. "uniINF: Best-of-Both-Worlds Algorithm for Parameter-Free
      Heavy-Tailed MABs". ICLR 2025. https://arxiv.org/abs/2410.03284

    Notes:
      The two ``lost`` fields of the state are compensated summation: they change no formula, and
      hold the parts that float32 would drop (an increment of S below half an ulp, for one).
    """

    label: ClassVar[str] = "uniINF"
    setting: ClassVar[str] = "stochastic and adversarial, heavy-tailed"

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    initial_scale: float = field(default=4.0, gt=0, hint="the paper takes 4")

    def init(self, num_arms: int) -> UniINFState:
        """Returns the state before round 1, as in Line 1 of Algorithm 1."""
        scale = jnp.asarray(self.initial_scale, jnp.result_type(float))
        zeros = jnp.zeros(num_arms)
        return UniINFState(cumulative_loss=zeros, scale=scale, cumulative_lost=zeros, scale_lost=jnp.zeros_like(scale))

    def probabilities(self, state: UniINFState, t: Array, key) -> Array:
        """Returns x_t of Eq. (2)."""
        del t, key  # a deterministic function of the state
        return log_barrier(state.cumulative_loss, state.scale)

    def update(self, state: UniINFState, t: Array, x: Array, arm: Array, loss: Array) -> UniINFState:
        """Returns the state after Lines 5 to 8 of Algorithm 1."""
        C = self.keeps_below(state, t, x, arm)
        skipped = jnp.where(jnp.abs(loss) < C, loss, 0)  # l^skip
        clipped = jnp.clip(loss, -C, C)  # l^clip
        return advanced(state, self.horizon, x, arm, skipped, clipped * rest_of(x, arm))

    def keeps_below(self, state: UniINFState, t: Array, x: Array, arm: Array) -> Array:
        """Returns C of Eq. (3); a loss of this size or more is skipped."""
        del t
        return 0.25 * state.scale / rest_of(x, arm)

    def measure(self, state, t, x, arm, loss, after) -> dict[str, Array]:
        """Returns Div, Shift, |SkipErr| and calibration of the paper's regret decomposition for one round."""
        S, S_next = state.scale, after.scale
        num_arms = x.shape[0]
        skips = jnp.abs(loss) >= self.keeps_below(state, t, x, arm)

        # z_t: the point Eq. (2) would give after the update, under the old scale.
        z = log_barrier(after.cumulative_loss, S)
        w = x / z - 1
        div = S * jnp.sum(w - jnp.log1p(w))

        # y~ is 1/T off the best arm: the sum of its logarithms is the same whichever arm that is.
        log_benchmark = jnp.log1p(-(num_arms - 1) / self.horizon) - (num_arms - 1) * jnp.log(self.horizon)
        x_next = log_barrier(after.cumulative_loss, S_next)
        shift = (S_next - S) * (jnp.sum(jnp.log(x_next)) - log_benchmark)
        first = S * (jnp.sum(jnp.log(x)) - log_benchmark)  # the term t = 0, where S_0 = 0
        skip_error = jnp.where(skips, jnp.abs(loss), 0)
        return {
            "skipped": skips.astype(x.dtype),
            "div": div,
            "shift": shift + jnp.where(t == 1, first, 0),
            "skip_error": skip_error,
            "skip_error_by_arm": jnp.where(one_hot(arm, num_arms), skip_error, 0),  # the bound leaves out the best
            # The price of y~ instead of the best arm itself, as the paper bounds it.
            "calibration": jnp.where(skips, 0, jnp.abs(loss)) * (num_arms - 1) / self.horizon,
        }


def rest_of(x: Array, arm: Array) -> Array:
    """Returns 1 - x[arm] as the sum of the other entries.

    If x[arm] rounds to 1 in float32, then the difference is 0, the threshold infinite, and no loss would be skipped.
    """
    return jnp.maximum(rest(x, arm), SMALLEST_REST)


def advanced(
    state: UniINFState, horizon: Array | float, x: Array, arm: Array, skipped: Array, scaled: Array
) -> UniINFState:
    """Returns the state after a round: Eq. (4) with ``scaled`` = l^clip (1 - x), and the estimate of Line 6."""
    L, S = state.cumulative_loss, state.scale
    num_arms = x.shape[0]
    loss_estimate = skipped / pick(x, arm)  # l~ at `arm`, zero elsewhere

    # S_{t+1} - S_t from Eq. (4), without the cancellation of a difference of roots.
    growth = scaled**2 * (1 / (num_arms * jnp.log(horizon)))
    growth = growth / (S + jnp.sqrt(S * S + growth))

    # Eq. (2) is invariant to adding a constant to L, so L is kept with its minimum at 0.
    terms = jnp.where(one_hot(arm, num_arms), loss_estimate, 0)
    L, L_lost = accumulate(L, state.cumulative_lost, terms)
    S, S_lost = kahan_add(S, state.scale_lost + growth)
    return UniINFState(cumulative_loss=L, scale=S, cumulative_lost=L_lost, scale_lost=S_lost)

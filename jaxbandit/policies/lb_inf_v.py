"""LB-INF-V: best of both worlds for losses in [0, 1], adaptive to variance (Ito, Tsuchiya, Honda, COLT 2022).

[1] https://arxiv.org/abs/2206.06810
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandit.arms import accumulate, kahan_add, least, one_hot, pick, rest
from jaxbandit.types import Array, field, pytree

MOST_STEPS = 100  # of the solver; a few are enough unless losses are far outside [0, 1]
# A step of this relative size is the last: the error after it is about the square.
LAST_STEP = {32: 3e-4, 64: 1e-7}


class LBINFVState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it
    pulls: Array  # [K]  int32, N_i
    loss: Array  # [K]  sum of the losses of each arm, as they came
    loss_lost: Array  # [K]  what rounding took from it
    variation: Array  # [K]  sum of alpha_i
    variation_lost: Array  # [K]  what rounding took from it
    x: Array  # [K]  the last probabilities, from which the solver starts


@pytree
class LBINFV:
    r"""Optimistic FTRL with a log-barrier whose weight adapts to each arm, for losses in [0, 1]; given the horizon.

    With :math:`\gamma = \log T` and
    :math:`\varphi(x) = x - 1 - \log x + \gamma (x + (1 - x) \log(1 - x))`, the policy plays :math:`i_t \sim x_t`, where

    .. math::
        x_t &= \arg\min_{x \in \Delta^K} \langle \hat L_{t-1} + m_t, x \rangle + \sum_i \beta_{t,i} \varphi(x_i), \qquad
        m_{t,i} = \frac{1/2 + \sum_{s < t} \ell_{s,i} 1[i_s = i]}{1 + N_{t,i}}, \\
        \hat\ell_{t,i} &= m_{t,i} + \frac{\ell_{t,i} - m_{t,i}}{x_{t,i}} 1[i = i_t], \qquad
        \beta_{t+1,i}^2 = \beta_{t,i}^2 + \frac{\alpha_{t,i}}{\gamma}, \quad \beta_{1,i} = 1 + \varepsilon, \\
        \alpha_{t,i} &= (\ell_{t,i} - m_{t,i})^2 \min\Bigl\{1, \frac{2 (1-x_{t,i})}{\gamma x_{t,i}^2}\Bigr\} 1[i = i_t]

    Regret :math:`O(\sum_i (\sigma_i^2 / \Delta_i + 1) \log T)` in a stochastic environment with a unique best arm, with
    :math:`\sigma_i^2` the variance of arm i, and :math:`O(\sqrt{K T \log T})` against an adversary.

    Attributes:
      horizon: :math:`T` in :math:`\gamma`.
      epsilon: :math:`\varepsilon` of :math:`\beta_1`, at most 1/2 in the paper.

    Example:
      >>> import jaxbandit as jb
      >>> policy = jb.LBINFV(horizon=1_000)
      >>> ds = jb.simulate(policy, jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 200)  # uniform play has 400
      True

    References:
      Ito, Tsuchiya, Honda. "Adversarially Robust Multi-Armed Bandit Algorithm with Variance-Dependent Regret Bounds".
      COLT 2022. https://arxiv.org/abs/2206.06810

    Notes:
      Source: the definition agrees with the code of its extension to semi-bandits (Tsuchiya, Ito, Honda, AISTATS 2023,
      class ``SemiLogBarrierINFV``) at one arm per round.
    """

    label: ClassVar[str] = "LB-INF-V"
    setting: ClassVar[str] = "stochastic and adversarial, bounded"

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    epsilon: float = field(default=0.5, gt=0, hint="the paper takes at most 1/2")

    def init(self, num_arms: int) -> LBINFVState:
        """Returns the state before round 1: all estimates are 0."""
        zeros = jnp.zeros(num_arms)
        pulls, x = jnp.zeros(num_arms, jnp.int32), jnp.full(num_arms, 1 / num_arms)
        return LBINFVState(zeros, zeros, pulls, zeros, zeros, zeros, zeros, x)

    def probabilities(self, state: LBINFVState, t: Array, key) -> Array:
        """Returns the FTRL point; Newton's method starts from the last one."""
        del t, key
        if state.x.shape[0] == 1:
            return jnp.ones_like(state.x)
        gamma = jnp.log(jnp.asarray(self.horizon, state.x.dtype))
        L = state.cumulative_loss + _predictions(state)
        beta = jnp.sqrt((1 + self.epsilon) ** 2 + state.variation / gamma)
        return _ftrl(L - least(L), beta, gamma, state.x)

    def update(self, state: LBINFVState, t: Array, x: Array, arm: Array, loss: Array) -> LBINFVState:
        """Adds the estimate of every arm, and to the played one its loss and its variation."""
        del t
        gamma = jnp.log(jnp.asarray(self.horizon, x.dtype))
        played, x_arm, m = one_hot(arm, x.shape[0]), pick(x, arm), _predictions(state)
        error = loss - pick(m, arm)
        damping = 2 * rest(x, arm) / (gamma * x_arm * x_arm)
        alpha = error * error * jnp.where(damping < 1, damping, 1)
        alpha = jnp.where(alpha > _large(alpha), _large(alpha), alpha)  # the square of an enormous loss overflows
        if x.shape[0] == 1:  # the damping is 0, and 0 times an overflow would be a NaN
            alpha = jnp.zeros_like(loss)
        estimate = m + jnp.where(played, error / x_arm, 0)
        cumulative_loss, cumulative_lost = accumulate(state.cumulative_loss, state.cumulative_lost, estimate)
        total, loss_lost = kahan_add(state.loss, state.loss_lost + jnp.where(played, loss, 0))
        variation, variation_lost = kahan_add(state.variation, state.variation_lost + jnp.where(played, alpha, 0))
        pulls = state.pulls + played.astype(jnp.int32)
        return LBINFVState(cumulative_loss, cumulative_lost, pulls, total, loss_lost, variation, variation_lost, x=x)


def _large(like: Array) -> float:
    return float(jnp.finfo(like.dtype).max ** 0.75)


def _predictions(state: LBINFVState) -> Array:
    """Returns m_i, [K]."""
    return (0.5 + state.loss) / (1 + state.pulls.astype(state.loss.dtype))


def _ftrl(L: Array, beta: Array, gamma: Array, start: Array) -> Array:
    r"""Returns the x on the simplex that minimises <L, x> + sum_i beta_i phi(x_i), by Newton's method from ``start``.

    At the minimum :math:`L_i + \beta_i \varphi'(x_i)` is the same for all arms, with
    :math:`\varphi'(x) = 1 - 1/x - \gamma \log(1 - x)`. A step is cut where it would take three quarters of an x or of a
    1 - x away, so that both stay positive; from the last round's x, most steps are full.
    """

    def step(loop: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, _, count = loop
        others = _sums_of_others(x)  # 1 - x without cancellation
        inverse, ratio = 1 / x, 1 / others
        slope = L + beta * (1 - inverse + gamma * jnp.log(ratio))
        width = 1 / (beta * (inverse * inverse + gamma * ratio))  # 1 / (beta phi'')
        # Slopes are measured from that of the arm that moves most easily: far from [0, 1] they are too large to cancel.
        slope = slope - pick(slope, jnp.argmax(width).astype(jnp.int32))
        level = (1 - jnp.sum(x) + jnp.sum(slope * width)) / jnp.sum(width)
        change = (level - slope) * width
        relative = jnp.max(jnp.where(change < 0, -change * inverse, change * ratio))
        share = jnp.where(relative > 0.75, 0.75 / relative, 1)
        # The last test compares the change with the smaller of x and 1 - x.
        return x + share * change, jnp.max(jnp.abs(change) * jnp.maximum(inverse, ratio)), count + 1

    def unsettled(loop: tuple[Array, Array, Array]) -> Array:
        _, size, count = loop
        return (size > LAST_STEP[jnp.finfo(L.dtype).bits]) & (count < MOST_STEPS)

    first = (start, jnp.asarray(jnp.inf, L.dtype), jnp.int32(0))
    return lax.while_loop(unsettled, step, first)[0]


def _sums_of_others(x: Array) -> Array:
    """Returns the sum of all other entries for each entry, [K], without a subtraction."""
    zero = jnp.zeros(1, x.dtype)
    before = jnp.concatenate([zero, jnp.cumsum(x)[:-1]])
    after = jnp.concatenate([jnp.cumsum(x[::-1])[:-1][::-1], zero])
    return before + after

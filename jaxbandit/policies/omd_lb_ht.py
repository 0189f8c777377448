"""OMD-LB-HT: log-barrier mirror descent on trimmed losses (Cheng, Zhou, Ji, NeurIPS 2024).

[1] https://openreview.net/forum?id=4Yj7L9Kt7t, Algorithm 1
"""

import math
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import kahan_add, one_hot, pick
from jaxbandit.types import Array, field, pytree


class OMDLBHTState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    inverse: Array  # [K]  1 / w_t
    inverse_lost: Array  # [K]  what rounding took from it: a step may be below half an ulp
    growth: Array  # [K]  eta_t / eta_1
    level: Array  # [K]  rho_t; where 1 / w passes it, the learning rate grows


@pytree
class OMDLBHT:
    r"""Mirror descent with a log-barrier on losses trimmed at M, learning rates that grow for rare arms.

    .. math::
        \hat\ell_{t,i} &= \frac{\ell_{t,i}}{w_{t,i}} 1[|\ell_{t,i}| \le M] 1[i = i_t], \qquad
        M = u (T/K)^{1/(1+v)}, \\
        w_{t+1} &= \arg\min_{x \in \Omega'} \langle x, \hat\ell_t \rangle
        + \sum_i \frac{1}{\eta_{t,i}} \left(\frac{x_i}{w_{t,i}} - \log \frac{x_i}{w_{t,i}} - 1\right), \\
        \text{if } 1/w_{t+1,i} &> \rho_{t,i}: \quad \rho_{t+1,i} = 2 / w_{t+1,i}, \quad
        \eta_{t+1,i} = e^{1/\log T} \eta_{t,i},

    from :math:`w_1 = 1/K`, :math:`\rho_1 = 2K`, :math:`\eta_1 = 1 / (40 M \log T \log(8KT/\zeta))`, on the simplex with
    :math:`x_i \ge \lambda / K`, :math:`\lambda = T^{-v/(1+v)} K^{-1/(1+v)}`. Here
    :math:`v = \alpha - 1`, :math:`u = \sigma`.
    Regret :math:`O(u K^{v/(1+v)} T^{1/(1+v)} (\log T)^2 \log(T/\zeta))` with probability :math:`1 - \zeta` against an
    adversary, with no assumption on signs.

    Attributes:
      horizon: :math:`T`; taken as at least 2.
      moment_order: :math:`\alpha` of :math:`E|\ell|^\alpha \le \sigma^\alpha`, in (1, 2].
      moment_bound: :math:`\sigma`.
      failure_probability: :math:`\zeta`; None (default) for 1/T, which bounds the expected regret.
      constant_scale: Multiplies the 40 of the learning rate. 1 is the paper, whose weights barely move in 10^6
        rounds (the rate is 10^-4 / M and less); about 10^-3 shows the mechanism, without its guarantee.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> alpha = environment.moment_order
      >>> paper = jb.OMDLBHT(horizon=1_000, moment_order=alpha, moment_bound=environment.moment(alpha))
      >>> ds = jb.simulate(paper, environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() > 320)  # uniform play has 333
      True

    References:
      Cheng, Zhou, Ji. "Taming Heavy-Tailed Losses in Adversarial Bandits and the Best-of-Both-Worlds Setting".
      NeurIPS 2024. https://openreview.net/forum?id=4Yj7L9Kt7t
    """

    label: ClassVar[str] = "OMD-LB-HT"
    setting: ClassVar[str] = "adversarial, heavy-tailed"

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    moment_order: float = field(gt=1, le=2, hint="alpha of the moment that is bounded, e.g. environment.moment_order")
    moment_bound: float = field(gt=0, hint="sigma with E|l|^alpha <= sigma^alpha, e.g. environment.moment(alpha)")
    failure_probability: float | None = field(default=None, gt=0, lt=1, hint="None stands for 1 / horizon")
    constant_scale: float = field(default=1.0, gt=0, hint="1 is the paper")

    def init(self, num_arms: int) -> OMDLBHTState:
        """Returns the state before round 1: uniform, as in Line 1 of Algorithm 1."""
        return uniform_start(num_arms)

    def probabilities(self, state: OMDLBHTState, t: Array, key) -> Array:
        """Returns w_t."""
        del t, key
        return 1 / state.inverse

    def update(self, state: OMDLBHTState, t: Array, x: Array, arm: Array, loss: Array) -> OMDLBHTState:
        """Returns the state after one mirror step."""
        del t
        return descend(state, x, arm, loss, self, self.horizon, self.constant_scale, playing=True)


def uniform_start(num_arms: int) -> OMDLBHTState:
    """Returns the state before round 1."""
    zeros = jnp.zeros(num_arms)
    return OMDLBHTState(
        inverse=zeros + num_arms, inverse_lost=zeros, growth=jnp.ones(num_arms), level=zeros + 2 * num_arms
    )


def log_inverse_failure(policy: Any) -> Array:
    """Returns log(1/zeta)."""
    zeta = policy.failure_probability
    return jnp.log(jnp.maximum(policy.horizon, 2)) if zeta is None else -jnp.log(zeta)


def descend(
    state: OMDLBHTState, x: Array, arm: Array, loss: Array, policy: Any, horizon, constant_scale, playing
) -> OMDLBHTState:
    """Returns the state after one round of Algorithm 1 with this horizon.

    Args:
      state: Before the round.
      x: The law the arm was drawn from, [K].
      arm: The arm played.
      loss: Its loss.
      policy: The policy whose ``moment_order``, ``moment_bound`` and ``failure_probability`` are used.
      horizon: T of Algorithm 1; as a fallback it has fewer rounds than the game.
      constant_scale: 1 for the paper's learning rate.
      playing: Whether Algorithm 1 plays yet. If not, the state is returned unchanged.
    """
    K, T = x.shape[0], jnp.maximum(horizon, 2)
    a, log_T = policy.moment_order, jnp.log(T)  # a = 1 + v
    M = policy.moment_bound * jnp.exp(jnp.log(T / K) / a)
    failure = jnp.log(8 * K * T) + log_inverse_failure(policy)
    rates = state.growth / (40 * constant_scale * M * log_T * failure)  # eta_t
    most = K * jnp.exp(((a - 1) * log_T + jnp.log(jnp.asarray(K, x.dtype))) / a)  # K / lambda bounds 1 / w

    played = one_hot(arm, K)
    loss_estimate = jnp.where(playing & (jnp.abs(loss) <= M), loss, 0) / pick(x, arm)  # lhat at `arm`, zero elsewhere
    force = jnp.where(played, loss_estimate, 0)
    nu = jnp.where(playing, _multiplier(state.inverse, rates, force, most), 0)
    inverse, lost = kahan_add(state.inverse, state.inverse_lost + rates * (force - nu))
    lost = jnp.where((inverse > 1) & (inverse < most), lost, 0)
    inverse = jnp.clip(inverse, 1, most)

    grows = inverse > state.level
    return OMDLBHTState(
        inverse=inverse,
        inverse_lost=lost,
        growth=jnp.where(grows, jnp.exp(1 / log_T) * state.growth, state.growth),
        level=jnp.where(grows, 2 * inverse, state.level),
    )


def _multiplier(inverse: Array, rates: Array, force: Array, most: Array) -> Array:
    """Returns the nu for which x_i = 1 / min(1/w_i + eta_i (lhat_i - nu), K/lambda) sums to 1.

    1 / sum(x) is the harmonic mean of concave functions of nu, hence concave, and it decreases: Newton from the
    right of the root never passes it. At the start either one x_i is 1 or no x_i is below w_i; both are at the right.
    """
    d = inverse + rates * force
    nu = jnp.minimum(jnp.maximum(jnp.max(force), 0), jnp.min((d - 1) / rates))
    for _ in range(_num_steps(d.shape[0], d.dtype)):
        y = jnp.maximum(d - rates * nu, 1)  # below 1 only by rounding
        r = 1 / jnp.minimum(y, most)
        total = jnp.sum(r)
        slope = jnp.sum(jnp.where(y < most, rates * r * r, 0))
        # All arms at the floor only before the first descent of nu, and only by rounding.
        nu = nu - total * (total - 1) / jnp.where(slope > 0, slope, jnp.inf)
    return nu


def _num_steps(num_arms: int, dtype) -> int:
    """Returns the number of Newton steps.

    It rises by one for each factor of 4 in K (5 in float32), because the slowest case has one arm ahead of the others
    by about K. Two steps are for the arms that meet the floor.
    """
    first, base, factor = (6, 3.75, 4.0) if jnp.finfo(dtype).bits == 64 else (5, 5.2, 5.2)
    return first + max(0, math.ceil(math.log(num_arms / base) / math.log(factor)))

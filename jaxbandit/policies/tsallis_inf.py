"""Tsallis-INF, the best-of-both-worlds algorithm for bounded losses (Zimmert, Seldin, 2019, 2021).

[1] https://arxiv.org/abs/1807.07623, Algorithm 1 with alpha = 1/2
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import accumulate, one_hot, pick
from jaxbandit.simplex import inf
from jaxbandit.types import Array, field, pytree


class TsallisINFState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it


@pytree
class TsallisINF:
    r"""FTRL with the square-root entropy, for losses in [0, 1].

    .. math::
        w_t = \arg\min_{w \in \Delta^K} \langle w, \hat L_{t-1} \rangle - \frac{4}{\eta_t} \sum_i \sqrt{w_i},

    so that :math:`w_{t,i} = 4 (\eta_t (\hat L_{t-1,i} - z))^{-2}`. With importance weighting ("iw"):
    :math:`\eta_t = 2/\sqrt t` and :math:`\hat\ell_{t,i} = 1[i = i_t] \ell / w_{t,i}`. With reduced variance ("rv"):
    :math:`\eta_t = 4/\sqrt t`, :math:`B_{t,i} = \frac12 1[w_{t,i} \ge \eta_t^2]` and
    :math:`\hat\ell_{t,i} = 1[i = i_t] (\ell - B_{t,i}) / w_{t,i} + B_{t,i}` for every arm.

    Regret :math:`4 \sqrt{KT} + 1` (iw) against an adversary, :math:`O(\sum_i \log T / \Delta_i)` in a
    stochastic environment. Anytime; no guarantee for heavy tails.

    Attributes:
      estimator: "iw" or "rv".

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.TsallisINF(), jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 200)  # uniform play has 400
      True

    References:
      Zimmert, Seldin. "Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits".
      JMLR 22(28), 2021. https://arxiv.org/abs/1807.07623
    """

    label: ClassVar[str] = "Tsallis-INF"
    setting: ClassVar[str] = "stochastic and adversarial, bounded"

    estimator: str = field(default="iw", choices=("iw", "rv"))

    def init(self, num_arms: int) -> TsallisINFState:
        """Returns the state before round 1: all estimates are 0."""
        return TsallisINFState(cumulative_loss=jnp.zeros(num_arms), cumulative_lost=jnp.zeros(num_arms))

    def probabilities(self, state: TsallisINFState, t: Array, key) -> Array:
        """Returns w_t, as (eta/2 (L - min L) + y)^-2."""
        del key
        return inf(state.cumulative_loss * (self._learning_rate(t) / 2), 2)

    def update(self, state: TsallisINFState, t: Array, x: Array, arm: Array, loss: Array) -> TsallisINFState:
        """Adds the loss estimate of every arm."""
        played = one_hot(arm, x.shape[0])
        if self.estimator == "iw":
            loss_estimate = jnp.where(played, loss / pick(x, arm), 0)
        else:
            baseline = jnp.where(x >= self._learning_rate(t) ** 2, 0.5, 0.0)  # B
            loss_estimate = jnp.where(played, (loss - baseline) / x, 0) + baseline
        cumulative_loss, cumulative_lost = accumulate(state.cumulative_loss, state.cumulative_lost, loss_estimate)
        return TsallisINFState(cumulative_loss=cumulative_loss, cumulative_lost=cumulative_lost)

    def _learning_rate(self, t: Array) -> Array:
        t = jnp.asarray(t).astype(jnp.result_type(float))
        return (2 if self.estimator == "iw" else 4) / jnp.sqrt(t)

"""AdaHedge for bandits: scale-free, for losses of unknown range (Hadiji, Stoltz, JMLR 2023).

[1] https://arxiv.org/abs/2006.03378
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import accumulate, kahan_add, one_hot, pick
from jaxbandit.types import Array, field, pytree

# Below this size of eta (yhat - C) the mixability gap is summed as a series: its two terms would cancel.
SERIES = {32: 2.0**-4, 64: 2.0**-9}


class AdaHedgeState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  -Y, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it
    gap: Array  # []  D, the cumulative mixability gap; the learning rate is log(K) / D
    gap_lost: Array  # []  what rounding took from it
    centre: Array  # []  -C, the smallest loss of the first K rounds
    first: Array  # []  int32, losses of the first K rounds seen so far


@pytree
class AdaHedge:
    r"""Exponential weights whose learning rate follows the losses, so that their unit and origin do not matter.

    Every arm is played once, and :math:`C` is the largest of these K rewards (rewards are minus the losses). Then

    .. math::
        q_t &\propto \exp(\eta_t Y_{t-1}), \qquad p_t = (1 - \gamma_t) q_t + \gamma_t / K, \qquad
        \gamma_t = \min\Bigl\{\frac12, \sqrt{\frac{c K \log K}{t - K}}\Bigr\}, \\
        \hat y_{t,i} &= C + \frac{y_t - C}{p_{t,i}} 1[i = i_t], \qquad Y_t = Y_{t-1} + \hat y_t - C, \\
        D_t &= D_{t-1} - \langle q_t, \hat y_t \rangle + \frac1{\eta_t} \log \sum_i q_{t,i} e^{\eta_t \hat y_{t,i}},
        \qquad \eta_{t+1} = \frac{\log K}{D_t} .

    While :math:`D = 0` the rate is infinite: :math:`q` is uniform, and the last term is :math:`\max_i \hat y_{t,i}`.
    Losses times a factor, or plus a constant, give the same probabilities. Anytime. Regret
    :math:`O((M - m) \sqrt{K T \log K})` against an adversary with losses in an unknown interval :math:`[m, M]`; no
    guarantee for heavy tails.

    Attributes:
      exploration: :math:`c` of :math:`\gamma_t`, 10 in the authors' code. The paper has
        :math:`\min\{1/2, \sqrt{5 (1 - a) K \log K} / t^a\}`, which is 2.5 at a = 1/2.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.2, 0.8])
      >>> ds = jb.simulate(jb.AdaHedge(), environment, horizon=4_000, num_seeds=64, record=[4_000])
      >>> bool(ds.regret.mean() < 800)  # uniform play has 1200
      True

    References:
      Hadiji, Stoltz. "Adaptation to the Range in K-Armed Bandits". JMLR 24(13), 2023.
      https://arxiv.org/abs/2006.03378

    Notes:
      Source: class ``AdaHedgeExp3ExtraExp`` of https://github.com/H2DI/bandits_lab (commit 05ef044). Choices: n = t - K
      rounds count in the exploration (the code counts all rounds played), and C is the largest of all K first rewards
      (the code stops at K - 1). D is computed on :math:`\hat y - C`, so that a common shift survives rounding.
    """

    label: ClassVar[str] = "AdaHedge"
    setting: ClassVar[str] = "adversarial, bounded"

    exploration: float = field(default=10.0, gt=0, hint="the authors' code takes 10, the paper 2.5")

    def init(self, num_arms: int) -> AdaHedgeState:
        """Returns the state before round 1."""
        zero, zeros = jnp.zeros(()), jnp.zeros(num_arms)
        return AdaHedgeState(zeros, zeros, gap=zero, gap_lost=zero, centre=zero, first=jnp.int32(0))

    def probabilities(self, state: AdaHedgeState, t: Array, key) -> Array:
        """Returns p_t; in rounds 1 to K the one-hot vector of arm t."""
        del key
        dtype, num_arms = state.gap.dtype, state.cumulative_loss.shape[0]
        t = jnp.asarray(t).astype(jnp.int32)
        rounds = jnp.maximum(t - num_arms, 1).astype(dtype)  # n
        gamma = jnp.sqrt(self.exploration * num_arms * _log(num_arms, dtype) / rounds)
        gamma = jnp.where(gamma < 0.5, gamma, 0.5)
        mixed = (1 - gamma) * self._weights(state) + gamma / num_arms
        return jnp.where(t <= num_arms, one_hot(t - 1, num_arms).astype(dtype), mixed)

    def update(self, state: AdaHedgeState, t: Array, x: Array, arm: Array, loss: Array) -> AdaHedgeState:
        """Finds C in rounds 1 to K; adds the estimate and its mixability gap after them."""
        num_arms = x.shape[0]
        opening = t <= num_arms
        smaller = (state.first == 0) | (loss < state.centre)
        centre = jnp.where(opening & (smaller | jnp.isnan(loss)), loss, state.centre)

        estimate = jnp.where(opening, 0, (loss - state.centre) / pick(x, arm))  # C - yhat at the arm, 0 elsewhere
        terms = jnp.where(one_hot(arm, num_arms), estimate, 0)
        cumulative_loss, cumulative_lost = accumulate(state.cumulative_loss, state.cumulative_lost, terms)
        gap, gap_lost = kahan_add(state.gap, state.gap_lost + self._mixability_gap(state, arm, estimate))
        return AdaHedgeState(
            cumulative_loss,
            cumulative_lost,
            gap=gap,
            gap_lost=gap_lost,
            centre=centre,
            first=state.first + opening.astype(jnp.int32),
        )

    def _weights(self, state: AdaHedgeState) -> Array:
        """Returns q_t."""
        weights = jnp.exp(-_rate(state) * state.cumulative_loss)
        return weights / jnp.sum(weights)

    def _mixability_gap(self, state: AdaHedgeState, arm: Array, estimate: Array) -> Array:
        """Returns the increment of D.

        With q at the arm and z = eta (yhat - C) it is (log(1 + q (e^z - 1)) - q z) / eta.
        """
        if state.cumulative_loss.shape[0] == 1:
            return jnp.zeros_like(estimate)
        q = pick(self._weights(state), arm)
        rate = _rate(state)
        z = -rate * estimate
        # The larger exponent is taken out of the logarithm, which therefore never overflows.
        up = jnp.where(z > 0, z, 0)
        inner = jnp.where(z > 0, 1 - q, q) * (jnp.exp(-jnp.abs(z)) - 1)
        exact = up - q * z + jnp.log1p(inner)
        spread, skew = q * (1 - q), 1 - 2 * q  # its cumulants in z: s, s k, s (1 - 6 s), s k (1 - 12 s)
        series = (
            spread * z * z * (0.5 + z * (skew / 6 + z * ((1 - 6 * spread) / 24 + z * skew * (1 - 12 * spread) / 120)))
        )
        finite = jnp.where(jnp.abs(z) < SERIES[jnp.finfo(z.dtype).bits], series, exact) / jnp.where(rate > 0, rate, 1)
        at_infinite_rate = jnp.where(estimate < 0, -estimate, 0) + q * estimate
        found = jnp.where(state.gap > 0, finite, at_infinite_rate)
        return jnp.where(found < 0, 0, found)  # a NaN stays


def _rate(state: AdaHedgeState) -> Array:
    """Returns eta. An infinite rate becomes 0, which makes the weights uniform as it should."""
    known = state.gap > 0
    return jnp.where(known, _log(state.cumulative_loss.shape[0], state.gap.dtype) / jnp.where(known, state.gap, 1), 0)


def _log(num_arms: int, dtype) -> Array:
    return jnp.log(jnp.asarray(num_arms, dtype))

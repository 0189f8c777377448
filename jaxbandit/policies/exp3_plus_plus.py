"""Exp3++: Exp3 with exploration that follows the gaps (Seldin, Slivkins, ICML 2014; Seldin, Lugosi, COLT 2017).

[1] https://arxiv.org/abs/1702.06103, Algorithm 1
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import accumulate, kahan_add, least, one_hot, pick
from jaxbandit.types import Array, field, pytree


class Exp3PlusPlusState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it
    pulls: Array  # [K]  int32
    loss: Array  # [K]  sum of the losses of each arm, as they came
    loss_lost: Array  # [K]  what rounding took from it


@pytree
class Exp3PlusPlus:
    r"""Exponential weights mixed with exploration of each arm at the rate that its estimated gap deserves.

    Every arm is played once. With the mean losses :math:`\bar L_i` and :math:`r_i = \sqrt{\alpha \log(t K^{1/\alpha}) /
    (2 N_i)}`, an arm's gap is estimated from below, and explored accordingly:

    .. math::
        \hat\Delta_i &= \max\{0, \mathrm{LCB}_i - \min_j \mathrm{UCB}_j\}, \qquad
        \mathrm{UCB}_i = \min\{1, \bar L_i + r_i\}, \quad \mathrm{LCB}_i = \max\{0, \bar L_i - r_i\}, \\
        \varepsilon_i &= \min\Bigl\{\frac1{2K}, \eta_t, \frac{\beta \log t}{t \hat\Delta_i^2}\Bigr\}, \qquad
        \eta_t = \frac12 \sqrt{\frac{\log K}{t K}}, \\
        x_{t,i} &= \Bigl(1 - \sum_j \varepsilon_j\Bigr) \rho_i + \varepsilon_i, \qquad
        \rho_i \propto \exp(-\eta_t \tilde L_i), \qquad \tilde\ell_{t,i} = \frac{\ell_{t,i}}{x_{t,i}} 1[i = i_t] .

    For losses in [0, 1]. Anytime. Regret :math:`O(\sqrt{K T \log K})` against an adversary and
    :math:`O(\sum_i \log^2 T / \Delta_i)` in a stochastic environment.

    Attributes:
      alpha: :math:`\alpha` of the confidence intervals, 3 in the paper.
      beta: :math:`\beta` of the exploration, 256 in the paper.

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.Exp3PlusPlus(), jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 300)  # uniform play has 400
      True

    References:
      Seldin, Lugosi. "An Improved Parametrization and Analysis of the EXP3++ Algorithm for Stochastic and Adversarial
      Bandits". COLT 2017. https://arxiv.org/abs/1702.06103

    Notes:
      Source of the constants: the implementation in SMPyBandits. The first K losses enter the weighted sums with
      probability 1.
    """

    label: ClassVar[str] = "Exp3++"
    setting: ClassVar[str] = "stochastic and adversarial, bounded"

    alpha: float = field(default=3.0, gt=0, hint="the paper takes 3")
    beta: float = field(default=256.0, gt=0, hint="the paper takes 256")

    def init(self, num_arms: int) -> Exp3PlusPlusState:
        """Returns the state before round 1."""
        zeros = jnp.zeros(num_arms)
        return Exp3PlusPlusState(zeros, zeros, jnp.zeros(num_arms, jnp.int32), zeros, zeros)

    def probabilities(self, state: Exp3PlusPlusState, t: Array, key) -> Array:
        """Returns x_t; in rounds 1 to K the one-hot vector of arm t."""
        del key
        dtype, num_arms = state.loss.dtype, state.pulls.shape[0]
        n, log_arms = jnp.asarray(t).astype(dtype), jnp.log(jnp.asarray(num_arms, dtype))
        rate = 0.5 * jnp.sqrt(log_arms / (n * num_arms))  # eta_t
        weights = jnp.exp(-rate * state.cumulative_loss)
        rho = weights / jnp.sum(weights)
        epsilon = self._exploration(state, n, log_arms, rate)
        mixed = (1 - jnp.sum(epsilon)) * rho + epsilon
        return jnp.where(t <= num_arms, one_hot(jnp.asarray(t, jnp.int32) - 1, num_arms).astype(dtype), mixed)

    def update(self, state: Exp3PlusPlusState, t: Array, x: Array, arm: Array, loss: Array) -> Exp3PlusPlusState:
        """Adds the loss twice: as it came, and divided by its probability."""
        del t
        played = one_hot(arm, x.shape[0])
        # If x underflows, then the arm cannot be drawn; the floor keeps other uses of update finite.
        weighted = jnp.where(played, loss / jnp.maximum(pick(x, arm), jnp.finfo(x.dtype).tiny), 0)
        total, lost = kahan_add(state.loss, state.loss_lost + jnp.where(played, loss, 0))
        cumulative_loss, cumulative_lost = accumulate(state.cumulative_loss, state.cumulative_lost, weighted)
        return Exp3PlusPlusState(
            cumulative_loss, cumulative_lost, pulls=state.pulls + played.astype(jnp.int32), loss=total, loss_lost=lost
        )

    def _exploration(self, state: Exp3PlusPlusState, n: Array, log_arms: Array, rate: Array) -> Array:
        """Returns epsilon_i, [K]."""
        pulls = jnp.maximum(state.pulls, 1).astype(n.dtype)
        mean = state.loss / pulls
        radius = jnp.sqrt((self.alpha * jnp.log(n) + log_arms) / (2 * pulls))
        ucb, lcb = jnp.minimum(1, mean + radius), jnp.maximum(0, mean - radius)
        gap = jnp.maximum(0, lcb - least(ucb))
        cap = jnp.minimum(rate, 0.5 / pulls.shape[0])
        needed = self.beta * jnp.log(n) / n  # epsilon_i = needed / gap^2 if that is below the cap
        return jnp.where(cap * gap * gap > needed, needed / jnp.where(gap > 0, gap * gap, 1), cap)

"""Exp3 for losses (Auer et al. 2002; in the form of Bubeck, Cesa-Bianchi 2012).

[1] https://arxiv.org/abs/1204.5721, Figure 3.1 and Theorem 3.1
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import accumulate, one_hot, pick
from jaxbandit.types import Array, pytree


class Exp3State(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it


@pytree
class Exp3:
    r"""Exponential weights on importance-weighted losses, for losses in [0, 1].

    .. math::
        x_{t,i} \propto \exp(-\eta_t \hat L_{t-1,i}), \qquad \eta_t = \sqrt{\frac{\log K}{t K}}, \qquad
        \hat\ell_{t,i} = \frac{\ell_{t,i}}{x_{t,i}} 1[i = i_t].

    Anytime; regret at most :math:`2 \sqrt{T K \log K}` against an adversary with losses in [0, 1].

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.Exp3(), jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 200)  # uniform play has 400
      True

    References:
      Bubeck, Cesa-Bianchi. "Regret Analysis of Stochastic and Nonstochastic Multi-armed Bandit
      Problems". 2012. https://arxiv.org/abs/1204.5721
    """

    label: ClassVar[str] = "Exp3"
    setting: ClassVar[str] = "adversarial, bounded"

    def init(self, num_arms: int) -> Exp3State:
        """Returns the state before round 1: all estimates are 0."""
        return Exp3State(cumulative_loss=jnp.zeros(num_arms), cumulative_lost=jnp.zeros(num_arms))

    def probabilities(self, state: Exp3State, t: Array, key) -> Array:
        """Returns the normalised weights; the shift of L keeps the largest exponent at 0."""
        del key
        num_arms = state.cumulative_loss.shape[0]
        t = jnp.asarray(t).astype(state.cumulative_loss.dtype)
        eta = jnp.sqrt(jnp.log(jnp.asarray(num_arms, t.dtype)) / (t * num_arms))
        weights = jnp.exp(-eta * state.cumulative_loss)
        return weights / jnp.sum(weights)

    def update(self, state: Exp3State, t: Array, x: Array, arm: Array, loss: Array) -> Exp3State:
        """Adds the importance-weighted loss."""
        del t
        # Where x underflows the arm cannot be drawn; the floor keeps other uses of update finite.
        loss_estimate = loss / jnp.maximum(pick(x, arm), jnp.finfo(x.dtype).tiny)
        terms = jnp.where(one_hot(arm, x.shape[0]), loss_estimate, 0)
        cumulative_loss, cumulative_lost = accumulate(state.cumulative_loss, state.cumulative_lost, terms)
        return Exp3State(cumulative_loss=cumulative_loss, cumulative_lost=cumulative_lost)

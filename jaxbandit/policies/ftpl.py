"""FTPL with Fréchet perturbations, played by its exact law (Honda, Ito, Tsuchiya, ALT 2023; Lee et al., COLT 2024).

[1] https://arxiv.org/abs/2403.05134
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.arms import accumulate, one_hot, pick
from jaxbandit.simplex import reciprocals
from jaxbandit.types import Array, field, pytree

SPREAD = 4.0  # of the nodes: z = SPREAD (u / (1 - u))^2 with Gauss-Legendre nodes u in (0, 1)


class FTPLState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it


@pytree
class FTPL:
    r"""Follow the perturbed leader with Fréchet perturbations, for losses in [0, 1]; exact weights by quadrature.

    .. math::
        i_t = \arg\min_i \hat L_{t-1,i} - \frac{r_i}{\eta_t}, \qquad P(r_i \le z) = e^{-z^{-2}}, \qquad
        \eta_t = \frac{m}{\sqrt t} .

    With :math:`\lambda_i = \eta_t (\hat L_{t-1,i} - \min_j \hat L_{t-1,j})` the arm has the law

    .. math::
        x_{t,i} = \int_0^\infty \frac{2}{(z + \lambda_i)^3} \exp\Bigl(-\sum_j (z + \lambda_j)^{-2}\Bigr) dz, \qquad
        \hat\ell_{t,i} = \frac{\ell_{t,i}}{x_{t,i}} 1[i = i_t] .

    The paper draws the perturbations and estimates :math:`1 / x` by geometric resampling. Here :math:`x` is computed,
    and the arm is drawn from it: the law of the arm is the paper's, the estimate of the loss has less variance.
    Anytime. The paper proves :math:`O(\sqrt{KT})` against an adversary and :math:`O(\sum_i \log T / \Delta_i)` in a
    stochastic environment with a unique best arm, for its own estimate.

    Attributes:
      rate: :math:`m` of :math:`\eta_t`. The theorems hold for any constant; 1 is the choice made here.
      nodes: Nodes of the quadrature. With 32 the relative error of a weight is at most 5e-4 for all
        :math:`\lambda \le 10^4`, with 48 it is 3e-6, with 96 it is 1e-11.

    Example:
      >>> import jaxbandit as jb
      >>> ds = jb.simulate(jb.FTPL(), jb.Bernoulli(means=[0.2, 0.8, 0.8]), horizon=1_000, num_seeds=64)
      >>> bool(ds.regret.isel(round=-1).mean() < 200)  # uniform play has 400
      True

    References:
      Lee, Honda, Ito, Oh. "Follow-the-Perturbed-Leader with Fréchet-type Tail Distributions: Optimality in Adversarial
      Bandits and Best-of-Both-Worlds". COLT 2024. https://arxiv.org/abs/2403.05134

    Notes:
      Deviation: exact weights in place of geometric resampling, as above.
    """

    label: ClassVar[str] = "FTPL (exact weights)"
    setting: ClassVar[str] = "stochastic and adversarial, bounded"

    rate: float = field(default=1.0, gt=0, hint="1 is the choice made here")
    nodes: int = field(default=32, static=True, hint="32 suffices in float32")

    def __post_init__(self):
        if isinstance(self.nodes, bool) or not isinstance(self.nodes, int) or not 8 <= self.nodes <= 256:
            raise ValueError(f"FTPL.nodes must be a whole number from 8 to 256, got {self.nodes!r}; 32 suffices")

    def init(self, num_arms: int) -> FTPLState:
        """Returns the state before round 1: all estimates are 0."""
        return FTPLState(cumulative_loss=jnp.zeros(num_arms), cumulative_lost=jnp.zeros(num_arms))

    def probabilities(self, state: FTPLState, t: Array, key) -> Array:
        """Returns the law of the perturbed leader."""
        del key
        t = jnp.asarray(t).astype(state.cumulative_loss.dtype)
        return frechet_leader(self.rate / jnp.sqrt(t) * state.cumulative_loss, self.nodes)

    def update(self, state: FTPLState, t: Array, x: Array, arm: Array, loss: Array) -> FTPLState:
        """Adds the importance-weighted loss."""
        del t
        # If x underflows, then the arm cannot be drawn; the floor keeps other uses of update finite.
        loss_estimate = loss / jnp.maximum(pick(x, arm), jnp.finfo(x.dtype).tiny)
        terms = jnp.where(one_hot(arm, x.shape[0]), loss_estimate, 0)
        return FTPLState(*accumulate(state.cumulative_loss, state.cumulative_lost, terms))


def frechet_leader(scaled: Array, nodes: int) -> Array:
    r"""Returns P(i minimises lambda_i - r_i) of independent Fréchet variables of shape 2, [K]; needs min(lambda) = 0.

    In :math:`s = 1/z` the integrand is :math:`2 s (1 + \lambda_i s)^{-3} \exp(-\sum_j s^2 (1 + \lambda_j s)^{-2})`,
    which neither overflows nor divides by 0.
    """
    u, weights = np.polynomial.legendre.leggauss(nodes)
    u, weights = (u + 1) / 2, weights / 2
    z = SPREAD * (u / (1 - u)) ** 2
    weights = weights * 2 * SPREAD * u / (1 - u) ** 3  # dz
    rows = np.stack([1 / z, weights * 2 / z**3], axis=1)

    far = float(jnp.finfo(scaled.dtype).max ** 0.25)
    near = jnp.where(scaled < far, scaled, far)  # products of two must not overflow

    def add(total: Array, row: Array) -> tuple[Array, None]:
        share = reciprocals(1 + near * row[0])
        squares = share * share
        return total + row[1] * jnp.exp(-(row[0] * row[0]) * jnp.sum(squares)) * squares * share, None

    total, _ = lax.scan(add, jnp.zeros_like(scaled), jnp.asarray(rows, scaled.dtype))
    return total / jnp.sum(total)

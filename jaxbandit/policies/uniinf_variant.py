"""uniINF with parts of Algorithm 1 changed, to see the effect of each; not the paper's, and without its proof.

[1] https://arxiv.org/abs/2410.03284, Algorithm 1
"""

from typing import ClassVar

import jax.numpy as jnp

from jaxbandit.policies.uniinf import UniINF, UniINFState, advanced, rest_of
from jaxbandit.types import Array, field, pytree


@pytree
class UniINFVariant(UniINF):
    r"""uniINF with other constants and losses in Eqs. (3) and (4), for ablations; its defaults are the paper's.

    .. math::
        C_{t,i} &= \frac{c \, S_t}{1 - x_{t,i}}, \tag{3} \\
        S_{t+1}^2 &= S_t^2 + \frac{\ell^2 (1 - x_{t,i_t})^2}{K \log T}, \tag{4}

    where :math:`c` is ``threshold_constant``, :math:`\ell` is chosen by ``scale_loss``, and ``damped=False`` drops both
    factors :math:`1 - x`. The guarantees of the paper hold for the defaults alone.

    Attributes:
      horizon: :math:`T` in Eq. (4).
      initial_scale: :math:`S_1`.
      threshold_constant: :math:`c` of Eq. (3), 1/4 in the paper; ``inf`` skips nothing.
      scale_loss: The loss that feeds Eq. (4): "clip" is the paper's, "skip" leaves a skipped loss out, and "raw" takes
        every loss as it came.
      damped: Whether the factors 1 - x are in Eqs. (3) and (4), as in the paper.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> policy = jb.UniINFVariant(horizon=1_000, scale_loss="raw")
      >>> jb.simulate(policy, environment, horizon=1_000, num_seeds=16, record=[1_000]).regret.shape
      (16, 1)

    References:
      Chen, Huang, Dai, Huang. "uniINF: Best-of-Both-Worlds Algorithm for Parameter-Free
      Heavy-Tailed MABs". ICLR 2025. https://arxiv.org/abs/2410.03284

    Notes:
      Deviation: every value but the defaults leaves the paper's algorithm. In a study file the keys
      ``threshold_constant``, ``scale_loss`` and ``damped`` of an entry named "uniinf" choose this class.
    """

    label: ClassVar[str] = "uniINF variant"

    threshold_constant: float = field(
        default=0.25, was="threshold", gt=0, infinite=True, hint="the paper takes 0.25; inf skips nothing"
    )
    scale_loss: str = field(default="clip", choices=("clip", "skip", "raw"), hint="the paper clips")
    damped: bool = field(default=True, choices=(True, False), hint="the paper's has 1 - x in it")

    def update(self, state: UniINFState, t: Array, x: Array, arm: Array, loss: Array) -> UniINFState:
        """Returns the state after Lines 5 to 8 of Algorithm 1, changed as the fields say."""
        C = self.keeps_below(state, t, x, arm)
        skipped = jnp.where(jnp.abs(loss) < C, loss, 0)
        scale_loss = {"clip": jnp.clip(loss, -C, C), "skip": skipped, "raw": loss}[self.scale_loss]
        return advanced(state, self.horizon, x, arm, skipped, scale_loss * self._factor(x, arm))

    def keeps_below(self, state: UniINFState, t: Array, x: Array, arm: Array) -> Array:
        """Returns C of Eq. (3) with the constant c; a loss of this size or more is skipped."""
        del t
        return self.threshold_constant * state.scale / self._factor(x, arm)

    def _factor(self, x: Array, arm: Array) -> Array:
        return rest_of(x, arm) if self.damped else jnp.ones((), x.dtype)

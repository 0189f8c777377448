"""uniINF whose initial scale comes from the first losses; not the paper's, and without a proof.

[1] https://arxiv.org/abs/2410.03284, Algorithm 1
"""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.arms import kahan_add
from jaxbandit.policies.uniinf import UniINF, UniINFState
from jaxbandit.types import Array, field, pytree


class FirstLossesState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    play: UniINFState  # of Algorithm 1, from the round on in which it starts
    seen: Array  # []  int32, losses other than 0 so far, at most ``num_first``
    logarithms: Array  # []  sum of the logarithms of their sizes
    logarithms_lost: Array  # []  what rounding took from it


@pytree
class UniINFFirstLosses:
    r"""uniINF with S_1 taken from the first losses, so that their unit does not matter: not the paper's, no proof.

    Arms are played uniformly until :math:`n` losses other than 0 have been seen. Then Algorithm 1 starts afresh with

    .. math::
        S_1 = c \, \exp\Bigl(\frac1n \sum_{s=1}^n \log |\ell_s|\Bigr),

    :math:`c` times the geometric mean of their sizes, which one enormous loss does not move far. The paper takes
    :math:`S_1 = 4`, whatever the unit.

    Attributes:
      horizon: :math:`T` in Eq. (4).
      num_first: :math:`n`.
      factor: :math:`c`; 4 gives the paper's scale if losses are about 1.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[500.0, 1000.0, 1000.0], tail_index=1.6)
      >>> policies = [jb.UniINF(horizon=3_000), jb.UniINFFirstLosses(horizon=3_000)]
      >>> ds = jb.simulate(policies, environment, horizon=3_000, num_seeds=64, record=[3_000])
      >>> own, first = ds.regret.mean("seed").values.ravel()
      >>> bool(first < own)
      True

    References:
      Chen, Huang, Dai, Huang. "uniINF: Best-of-Both-Worlds Algorithm for Parameter-Free
      Heavy-Tailed MABs". ICLR 2025. https://arxiv.org/abs/2410.03284

    Notes:
      Deviation: no theorem covers this rule. It is here to measure the worth of the losses' unit to uniINF.
    """

    label: ClassVar[str] = "uniINF, S₁ from first losses (not the paper's, no proof)"
    short_label: ClassVar[str] = "uniINF, own S₁ (no proof)"  # on figures
    setting: ClassVar[str] = "not the paper's, no proof"

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    num_first: float = field(default=10.0, ge=1, whole=True, hint="10 is the choice made here")
    factor: float = field(default=4.0, gt=0, hint="the paper's S_1 is 4")

    def init(self, num_arms: int) -> FirstLossesState:
        """Returns the state before round 1; its scale 1 is a placeholder."""
        zero = jnp.zeros(())
        return FirstLossesState(self._algorithm().init(num_arms), jnp.int32(0), zero, zero)

    def probabilities(self, state: FirstLossesState, t: Array, key) -> Array:
        """Returns x_t of Eq. (2); uniform while the first losses are gathered, because all estimates are 0."""
        return self._algorithm().probabilities(state.play, t, key)

    def update(self, state: FirstLossesState, t: Array, x: Array, arm: Array, loss: Array) -> FirstLossesState:
        """Gathers the first losses; then follows Lines 5 to 8 of Algorithm 1."""
        wanted = jnp.asarray(self.num_first, loss.dtype)
        gathering = state.seen.astype(loss.dtype) < wanted
        counts = gathering & (loss != 0)
        seen = state.seen + counts.astype(jnp.int32)
        term = jnp.where(counts, jnp.log(jnp.where(loss != 0, jnp.abs(loss), 1)), 0)
        logarithms, lost = kahan_add(state.logarithms, state.logarithms_lost + term)

        algorithm = self._algorithm()
        scale = self.factor * jnp.exp(logarithms / wanted)
        begun = jnp.where(gathering & (seen.astype(loss.dtype) >= wanted), scale, state.play.scale)
        waiting = state.play._replace(scale=begun)
        played = algorithm.update(state.play, t, x, arm, loss)
        play = jax.tree.map(lambda a, b: jnp.where(gathering, a, b), waiting, played)
        return FirstLossesState(play, seen, logarithms, lost)

    def _algorithm(self) -> UniINF:
        return jax.tree.unflatten(_STRUCTURE, [self.horizon, 1.0])  # past the checks: fields may be tracers


_STRUCTURE = jax.tree.structure(UniINF(horizon=2))

"""Robust MOSS: minimax optimal under heavy tails (Wei, Srivastava, 2020).

[1] https://arxiv.org/abs/2007.10493
"""

import math
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandit.arms import kahan_add, one_hot, pick
from jaxbandit.policies.ucb import largest
from jaxbandit.types import Array, field, pytree


class RobustMOSSState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1; rewards are minus the losses."""

    pulls: Array  # [K]  int32
    # [K]  g, which only the arm's own plays change; 0 before the first
    index: Array  # pyright: ignore[reportIncompatibleMethodOverride]
    reward: Array  # [K]  sum of the rewards of each arm, saturated at the arm's present level
    reward_lost: Array  # [K]  what rounding took from it
    number: Array  # [K]  int32, of that level
    clip_at: Array  # [K]  and its B
    next: Array  # [K]  int32, the play with which the level after begins
    above: Array  # [K]  rewards above that B, each with its sign
    between: Array  # [J, 2, K]  rewards between the B of each level and the one before, each with its sign; their sum
    levels: Array  # [J]  B of every level; a constant of the game, 160 powers that no round repeats


@pytree
class RobustMOSS:
    r"""MOSS with a saturated mean; given alpha, sigma and the horizon.

    Each arm is played once, then the arm with the largest index, :math:`m` its plays and
    :math:`\epsilon = \alpha - 1`:

    .. math::
        \phi(m) &= \frac{\max\{\log \frac{T}{K m}, 1\}}{m}, \qquad h(m) = a^{\lfloor \log_a m \rfloor + 1}, \qquad
        B_m = \sigma \phi(h(m))^{-1/\alpha}, \\
        \hat\mu_m &= \frac 1 m \sum_{i \le m} \mathrm{sign}(X_i) \min\{|X_i|, B_m\}, \qquad
        g = \hat\mu_m + (1 + \eta) \sigma \phi(m)^{\epsilon/\alpha}.

    All :math:`m` rewards are saturated at the present level. Regret
    :math:`O(\sigma K^{1-1/\alpha} T^{1/\alpha})` in every stochastic environment. Ties go to the lowest index.

    Attributes:
      horizon: :math:`T`.
      moment_order: :math:`\alpha` of :math:`E|\ell|^\alpha \le \sigma^\alpha`, in (1, 2].
      moment_bound: :math:`\sigma`.
      exploration: :math:`\eta`; with :math:`a` it must satisfy :math:`\eta \psi(2\eta/a) \ge 2a`, where
        :math:`\psi(x) = (1 + 1/x) \log(1 + x) - 1`, for the bound to hold.
      level_ratio: :math:`a`.
      log_floor: The least value of the logarithm in :math:`\phi`; plain MOSS has 0.
      max_rounds: Plays of one arm up to which levels are kept; the last level serves beyond.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.2, 1.0, 1.0], tail_index=2.5)
      >>> policy = jb.RobustMOSS(horizon=2_000, moment_order=2.0, moment_bound=environment.moment(2.0))
      >>> ds = jb.simulate(policy, environment, horizon=2_000, num_seeds=64, record=[2_000])
      >>> bool(ds.regret.mean() < 1_066)  # uniform play
      True

    References:
      Wei, Srivastava. "Minimax Policy for Heavy-Tailed Bandits". IEEE Control Systems Letters, 2021.
      https://arxiv.org/abs/2007.10493

    Notes:
      Choice: the constants are those for which the regret bound can be proved. The saturated mean has a bias of at most
      :math:`\sigma \phi(m)^{\epsilon/\alpha}`, the 1 in :math:`1 + \eta`, and Bennett's inequality on
      :math:`a^s \le m < a^{s+1}`, where the level is constant, needs :math:`\eta \psi(2\eta/a) \ge 2a`. The proof does
      not fix the floor 1 of the logarithm, which makes :math:`\phi` decrease. The running sums are exact: the sum at a
      level is the sum at the level before plus the parts of the rewards between the two.
    """

    label: ClassVar[str] = "Robust MOSS"
    setting: ClassVar[str] = "stochastic, heavy-tailed"
    sure: ClassVar[bool] = True

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    moment_order: float = field(gt=1, le=2, hint="alpha of the moment that is bounded, e.g. environment.moment_order")
    moment_bound: float = field(gt=0, hint="sigma with E|l|^alpha <= sigma^alpha, e.g. environment.moment(alpha)")
    exploration: float = field(default=2.2, gt=0, hint="2.2 goes with level_ratio 1.1")
    level_ratio: float = field(default=1.1, static=True)
    log_floor: float = field(default=1.0, gt=0, hint="1 is the choice made here, plain MOSS has 0")
    max_rounds: int = field(default=2**24, static=True)

    def __post_init__(self):
        if not self.level_ratio > 1:
            raise ValueError(
                f"RobustMOSS.level_ratio must be > 1, got {self.level_ratio}; 1.1 goes with exploration 2.2"
            )
        if not self.max_rounds >= 2:
            raise ValueError(f"RobustMOSS.max_rounds must be >= 2, got {self.max_rounds}; pass the rounds you run")

    def init(self, num_arms: int) -> RobustMOSSState:
        """Returns the state before round 1: no arm has been played."""
        first, peels = self._levels()
        zeros = jnp.zeros(num_arms)
        phi = self._phi(jnp.asarray(peels, zeros.dtype), num_arms)
        levels = self.moment_bound * jnp.exp(-jnp.log(phi) / self.moment_order)  # B
        return RobustMOSSState(
            pulls=jnp.zeros(num_arms, jnp.int32),
            index=zeros,
            reward=zeros,
            reward_lost=zeros,
            number=jnp.zeros(num_arms, jnp.int32),
            clip_at=jnp.full(num_arms, levels[0]),
            next=jnp.full(num_arms, [*first, 0][1], jnp.int32),
            above=zeros,
            between=jnp.zeros((peels.size, 2, num_arms)),
            levels=levels,
        )

    def probabilities(self, state: RobustMOSSState, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index."""
        del t, key
        return largest(state.pulls, state.index)

    def update(self, state: RobustMOSSState, t: Array, x: Array, arm: Array, loss: Array) -> RobustMOSSState:
        """Adds the reward at the arm's level; above it, to those of the level that will let it through."""
        del t, x
        num_arms = state.pulls.shape[0]
        m = pick(state.pulls, arm) + 1
        number, clip_at, above = (pick(each, arm) for each in (state.number, state.clip_at, state.above))

        B = state.levels
        place = jnp.sum(jnp.abs(loss) > B, dtype=jnp.int32)  # of none if above all
        between = state.between.at[place, :, arm].add(-jnp.stack([jnp.sign(loss), loss]))
        above = above - jnp.where(jnp.abs(loss) > clip_at, jnp.sign(loss), 0)

        # The reward at the level of the play before. With an arm whose m-th play begins a level, all that is above the
        # level before rises: to itself if it is below the new one, else to that.
        first, _ = self._levels()
        enters = pick(state.next, arm) == m
        begins = jnp.asarray([*first, 0], jnp.int32)
        entered_at, (count, total) = B[number + 1], between[number + 1, :, arm]
        rises = total - clip_at * count + (entered_at - clip_at) * (above - count)
        term = jnp.clip(-loss, -clip_at, clip_at) + jnp.where(enters, rises, 0)
        reward, lost = kahan_add(pick(state.reward, arm), pick(state.reward_lost, arm) + term)
        plays = m.astype(loss.dtype)

        played = one_hot(arm, num_arms)
        entering = played & enters
        return RobustMOSSState(
            pulls=jnp.where(played, m, state.pulls),
            index=jnp.where(played, (reward + lost) / plays + self._bonus(plays, num_arms), state.index),
            reward=jnp.where(played, reward, state.reward),
            reward_lost=jnp.where(played, lost, state.reward_lost),
            number=jnp.where(entering, number + 1, state.number),
            clip_at=jnp.where(entering, entered_at, state.clip_at),
            next=jnp.where(entering, begins[number + 2], state.next),
            above=jnp.where(played, above - jnp.where(enters, count, 0), state.above),
            between=between,
            levels=B,
        )

    def _bonus(self, m: Array, num_arms: int) -> Array:
        power = 1 - 1 / self.moment_order  # eps / (1 + eps)
        return (1 + self.exploration) * self.moment_bound * jnp.exp(power * jnp.log(self._phi(m, num_arms)))

    def _phi(self, m: Array, num_arms: int) -> Array:
        return jnp.maximum(jnp.log(self.horizon / (num_arms * m)), self.log_floor) / m

    def _levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first m of every level, and h there; a level without a whole m is left out."""
        last: dict[int, float] = {}
        level = 0
        while (first := math.ceil(self.level_ratio**level)) <= self.max_rounds:
            last[first] = self.level_ratio ** (level + 1)
            level += 1
        return np.array(list(last)), np.array(list(last.values()))

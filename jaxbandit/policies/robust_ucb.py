"""RobustUCB with three robust means (Bubeck, Cesa-Bianchi, Lugosi, 2013).

[1] https://arxiv.org/abs/1209.1727, Figure 1
"""

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.arms import kahan_add, one_hot, pick
from jaxbandit.policies import robust
from jaxbandit.policies.ucb import largest
from jaxbandit.types import Array, field, pytree


class HistoryState(NamedTuple):
    """Every reward, for the exact form."""

    pulls: Array  # [K]  int32
    rewards: Array  # [K, max_rounds]  in order of arrival
    latest: Array  # []  the last of them: in the table nobody would look for a NaN


class TruncatedState(NamedTuple):
    """Sums of the rewards by how long they are kept."""

    pulls: Array  # [K]  int32
    reward: Array  # [K]  sum of the rewards kept on the level of confidence of the next round
    reward_lost: Array  # [K]  what rounding took from it
    expiring: Array  # [M, K]  sums of the rewards kept on so many levels and no more


class BlocksState(NamedTuple):
    """Sums of consecutive blocks of 2^g rewards."""

    pulls: Array  # [K]  int32
    blocks: Array  # [C, K]
    lower: Array  # [K]  the two middle ones of the full blocks
    upper: Array  # [K]


class HistogramState(NamedTuple):
    """Counts and sums of the rewards by sign and size."""

    pulls: Array  # [K]  int32
    counts: Array  # [bins, K]
    sums: Array  # [bins, K]
    estimate: Array  # [K]  Catoni's mean for the next round


# Catoni's histogram: bins of ratio sqrt 2 from sigma / 64 up to 2^20 sigma, two of each size.
HALF_OCTAVES = 52
LOWEST = 2.0**-6


@pytree
class RobustUCB:
    r"""UCB with a robust mean; given alpha and sigma.

    The arm with the largest index is played; arms not yet played come first and ties go to the lowest index. With
    :math:`n` its plays, :math:`L = 2 \log t`, :math:`p = \alpha = 1 + \epsilon`, :math:`u = \sigma^\alpha` and
    :math:`v` the bound of the central moment:

    .. math::
        \text{truncated: } & \frac 1 n \sum_{j \le n} X_j 1[|X_j| \le (u j / L)^{1/p}]
        + 4 u^{1/p} (L/n)^{\epsilon/p}, \\
        \text{median of means: } & \mathrm{median} + (12 v)^{1/p} ((2 + 16 L)/n)^{\epsilon/p}, \quad
        k = \lfloor \min\{1 + 8 L, n/2\} \rfloor \text{ blocks}, \\
        \text{Catoni: } & \theta + 2 \sqrt{v L / n} \text{ if } n \ge 4 L, \text{ else } \infty; \quad
        \sum_j \psi(a (X_j - \theta)) = 0, \quad a^2 = \frac{2 L}{n (v + 2 v L / (n - 2 L))}.

    Regret :math:`O(\sum_i (\sigma^\alpha / \Delta_i)^{1/(\alpha - 1)} \log T)` in a stochastic environment.

    The exact form keeps every reward, ``max_rounds`` per arm. The bounded form has a state of polylogarithmic size:

    - truncated: :math:`L` is rounded up to a grid of ratio ``grid_ratio``. It is the paper's index at a confidence
      :math:`\delta' \le t^{-2}`, the width larger by at most ``grid_ratio`` to the power :math:`\epsilon/p`, 1.05.
    - median of means: blocks of :math:`2^g` rewards, between :math:`k` and :math:`2 k` full ones, :math:`k` that of
      ``max_rounds``. The width is between the paper's at :math:`t` and the paper's at ``max_rounds`` (times
      :math:`(1 - 1/k)^{-\epsilon/p}`): pass the rounds you run.
    - Catoni: the grid, and a histogram of bins of ratio :math:`\sqrt 2`, each at its mean. The estimating function
      moves by at most :math:`a^2 / 8` times the sum of squares within bins, at most
      :math:`0.043 \sum_j X_j^2 + n \sigma^2 / 4096`: less than 1 % of the width where sums are as the moment says.

    Beyond ``max_rounds`` the confidence of the grid stays; the exact form refuses to play more.

    Attributes:
      moment_order: :math:`\alpha` of :math:`E|\ell|^\alpha \le \sigma^\alpha`, in (1, 2]; 2 for Catoni.
      moment_bound: :math:`\sigma`.
      estimator: "truncated", "median_of_means" or "catoni".
      form: "bounded" memory (default), or "exact".
      moment: The moment that sigma bounds. From a "raw" moment follows :math:`v = 2^{2-\alpha} \sigma^\alpha`; a
        "central" one is :math:`v = \sigma^\alpha` itself, for the last two estimators.
      few_samples: Median of means with fewer samples than its confidence asks, :math:`n < 2 + 16 L`: "defined" as
        in the paper (default), or "explore", an infinite index, as some implementations have it.
      grid_ratio: Of the grid of confidences.
      max_rounds: Sizes the state; pass the rounds you run. The exact form needs it: 2^24 rewards per arm are too many.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.2, 1.0, 1.0], tail_index=2.5)
      >>> policy = jb.RobustUCB(moment_order=2.0, moment_bound=environment.moment(2.0))
      >>> ds = jb.simulate(policy, environment, horizon=2_000, num_seeds=64, record=[2_000])
      >>> bool(ds.regret.mean() < 1_066)  # uniform play
      True

    References:
      Bubeck, Cesa-Bianchi, Lugosi. "Bandits with Heavy Tail". IEEE Transactions on Information Theory 59, 2013.
      https://arxiv.org/abs/1209.1727

    Notes:
      The round in the confidence is the present one, 1-based. The printed constants of the regret are too small for
      the confidence used; the rate holds.
    """

    label: ClassVar[str] = "RobustUCB"
    setting: ClassVar[str] = "stochastic, heavy-tailed"
    sure: ClassVar[bool] = True

    moment_order: float = field(gt=1, le=2, hint="alpha of the moment that is bounded, e.g. environment.moment_order")
    moment_bound: float = field(gt=0, hint="sigma with E|l|^alpha <= sigma^alpha, e.g. environment.moment(alpha)")
    estimator: str = field(default="truncated", choices=("truncated", "median_of_means", "catoni"))
    form: str = field(default="bounded", choices=("bounded", "exact"))
    moment: str = field(default="raw", choices=("raw", "central"))
    few_samples: str = field(default="defined", choices=("defined", "explore"))
    grid_ratio: float = field(default=1.1, static=True)
    max_rounds: int = field(default=2**24, static=True)

    def __post_init__(self):
        if self.estimator == "catoni" and np.any(np.asarray(self.moment_order) != 2):
            raise ValueError(
                f"RobustUCB.moment_order must be 2 for the estimator 'catoni', got {self.moment_order}; "
                "below 2 take estimator='truncated' or 'median_of_means'"
            )
        if self.estimator == "truncated" and self.moment == "central":
            raise ValueError("RobustUCB.moment must be 'raw' for the estimator 'truncated'; it bounds E|l|^alpha")
        if not self.grid_ratio > 1:
            raise ValueError(f"RobustUCB.grid_ratio must be > 1, got {self.grid_ratio}; the default is 1.1")
        limit = 2**20 if self.form == "exact" else 2**30
        if not 2 <= self.max_rounds <= limit:
            raise ValueError(
                f"RobustUCB.max_rounds must be between 2 and {limit} in the {self.form} form, got {self.max_rounds}; "
                "pass the number of rounds you run"
            )

    def init(self, num_arms: int) -> Any:
        """Returns the state before round 1: no arm has been played."""
        pulls, zeros = jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms)
        if self.form == "exact":
            return HistoryState(pulls=pulls, rewards=jnp.zeros((num_arms, self.max_rounds)), latest=jnp.zeros(()))
        if self.estimator == "truncated":
            expiring = jnp.zeros((self._grid()[0].size, num_arms))
            return TruncatedState(pulls=pulls, reward=zeros, reward_lost=zeros, expiring=expiring)
        if self.estimator == "median_of_means":
            return BlocksState(pulls=pulls, blocks=jnp.zeros((self._num_blocks(), num_arms)), lower=zeros, upper=zeros)
        bins = jnp.zeros((2 * HALF_OCTAVES + 1, num_arms))
        return HistogramState(pulls=pulls, counts=bins, sums=bins, estimate=zeros)

    def probabilities(self, state: Any, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index."""
        del key
        index = self.indices(state, t)  # an infinite one still comes after the arms not yet played
        return largest(state.pulls, jnp.minimum(index, jnp.finfo(index.dtype).max))

    def indices(self, state: Any, t: Array) -> Array:
        """Returns the index of every arm at round t, [K]; that of an arm not yet played has no meaning."""
        dtype = jnp.result_type(float)
        power = 1 - 1 / self.moment_order  # eps / (1 + eps)
        n = jnp.maximum(state.pulls, 1).astype(dtype)
        L = self._log_term(t)
        estimate = self._estimate(state, n, L)
        if self.estimator == "truncated":
            return estimate + 4 * self.moment_bound * jnp.exp(power * jnp.log(L / n))
        v = self._central_moment()
        if self.estimator == "catoni":
            return jnp.where(n >= 4 * L, estimate + 2 * jnp.sqrt(v * L / n), jnp.inf)
        share = (2 + 16 * L) / n
        if self.form == "bounded":
            share = jnp.maximum(share, 1 / self._block_size(state.pulls).astype(dtype))
        width = jnp.exp(jnp.log(12 * v) / self.moment_order + power * jnp.log(share))
        explores = (self.few_samples == "explore") & (n < 2 + 16 * L)
        return jnp.where(explores, jnp.inf, estimate + width)

    def update(self, state: Any, t: Array, x: Array, arm: Array, loss: Array) -> Any:
        """Adds the reward."""
        del x
        played = one_hot(arm, state.pulls.shape[0])
        pulls = state.pulls + played.astype(jnp.int32)
        if self.form == "exact":
            place = jnp.arange(self.max_rounds, dtype=jnp.int32)[None, :] == state.pulls[:, None]
            rewards = jnp.where(place & played[:, None], -loss, state.rewards)
            return HistoryState(pulls=pulls, rewards=rewards, latest=-loss)
        n = pick(pulls, arm)
        if self.estimator == "truncated":
            return self._add_truncated(state, pulls, played, arm, n, t, -loss)
        if self.estimator == "median_of_means":
            return self._add_to_blocks(state, pulls, played, arm, n, -loss)
        return self._add_to_histogram(state, pulls, played, arm, n, t, -loss)

    def _estimate(self, state: Any, n: Array, L: Array) -> Array:
        if self.form == "exact":
            if self.estimator == "truncated":
                moment = jnp.exp(self.moment_order * jnp.log(self.moment_bound))
                return robust.truncated_mean(state.rewards, n, L, self.moment_order, moment)
            if self.estimator == "median_of_means":
                return robust.median_of_means(state.rewards, n, L, self._num_blocks() // 2)
            weights = (jnp.arange(self.max_rounds, dtype=jnp.int32)[None, :] < state.pulls[:, None]).astype(n.dtype)
            rate = robust.catoni_rate(n, L, self._central_moment())
            return jax.vmap(robust.catoni, (0, 0, 0, None))(state.rewards, weights, rate, self.moment_bound)
        if self.estimator == "truncated":
            return (state.reward + state.reward_lost) / n
        if self.estimator == "median_of_means":
            return (state.lower + state.upper) / (2 * self._block_size(state.pulls)).astype(n.dtype)
        return state.estimate

    def _add_truncated(self, state: TruncatedState, pulls, played, arm, n, t, reward) -> TruncatedState:
        # X_n is kept while L <= u n / |X_n|^p; a NaN is kept, so that the game is marked as failed.
        expiry = jnp.log(n.astype(reward.dtype)) + self.moment_order * (
            jnp.log(self.moment_bound) - jnp.log(jnp.abs(reward))
        )
        kept = ~(jnp.asarray(np.log(self._grid()[0]), reward.dtype) > expiry)  # [M], True up to a level
        ends = jnp.sum(kept, dtype=jnp.int32)  # beyond the table if kept for ever, nothing if never
        expiring = state.expiring.at[ends, arm].add(jnp.where(ends > 0, reward, 0))

        # A level is left for the next one, never for a later one: each covers some round.
        level, following = self._level(t), self._level(t + 1)
        now = jnp.any(kept & (jnp.arange(kept.shape[0], dtype=jnp.int32) == level))
        expired = lax.cond(
            following > level,
            lambda: lax.dynamic_index_in_dim(expiring, level + 1, keepdims=False),
            lambda: jnp.zeros_like(state.reward),
        )
        total, lost = kahan_add(state.reward, state.reward_lost + (jnp.where(played & now, reward, 0) - expired))
        return TruncatedState(pulls=pulls, reward=total, reward_lost=lost, expiring=expiring)

    def _add_to_blocks(self, state: BlocksState, pulls, played, arm, n, reward) -> BlocksState:
        count = self._num_blocks()
        size, before = self._block_size(n), self._block_size(n - 1)
        doubles = size > before  # neighbours are merged
        place = (n - 1) // before
        grown = state.blocks.at[place, arm].add(reward)
        new, old = grown[place, arm], (pick(state.lower, arm), pick(state.upper, arm))

        def merge() -> tuple[Array, Array, Array]:
            merged = jnp.sum(grown[:, arm].reshape(-1, 2), axis=1)
            row = jnp.concatenate([merged, jnp.zeros(count // 2)])
            return jnp.where(played[None, :], row[:, None], grown), *robust.middle_two(merged, n // size)

        # Nothing changes until a block is full. Every second time the middle ones tell the new median; else the
        # others are looked through. Few rounds see all of them full.
        full, even = n % before == 0, place % 2 == 0
        middle = [jnp.where(full & even, robust.middle_with(*old, place, new), half) for half in old]
        middle = lax.cond(
            full & ~even, lambda: robust.middle_two_with(grown[:, arm], place, old[0], new), lambda: tuple(middle)
        )
        blocks, *middle = lax.cond(doubles, merge, lambda: (grown, *middle))
        middle = [jnp.where(jnp.isnan(reward), reward, half) for half in middle]  # a NaN marks the game
        lower, upper = (
            jnp.where(played, new, half) for new, half in zip(middle, (state.lower, state.upper), strict=True)
        )
        return BlocksState(pulls=pulls, blocks=blocks, lower=lower, upper=upper)

    def _add_to_histogram(self, state: HistogramState, pulls, played, arm, n, t, reward) -> HistogramState:
        size = jnp.log(jnp.maximum(jnp.abs(reward) / (LOWEST * self.moment_bound), 1e-30)) / math.log(2)
        place = jnp.clip(jnp.ceil(2 * size), 0, HALF_OCTAVES).astype(jnp.int32)
        place = HALF_OCTAVES + jnp.where(reward < 0, -place, place)
        reward = jnp.clip(reward, -1e30, 1e30)
        counts = state.counts.at[place, arm].add(1)
        sums = state.sums.at[place, arm].add(reward)

        # The estimate changes with the arm's rewards, and for all arms when the confidence moves.
        L = self._log_term(t + 1)

        def solve(count: Array, total: Array, pulls: Array, near: Array | None = None) -> Array:
            rate = robust.catoni_rate(pulls.astype(total.dtype), L, self._central_moment())
            played_enough = pulls.astype(total.dtype) >= 4 * L  # else its index is infinite
            return robust.catoni(total / jnp.maximum(count, 1), count, rate, self.moment_bound, near, played_enough)

        estimate = solve(counts[:, arm], sums[:, arm], n, pick(state.estimate, arm))
        estimate = jnp.where(played, estimate, state.estimate)
        moves = self._level(t + 1) > self._level(t)
        estimate = lax.cond(moves, lambda: jax.vmap(solve, (1, 1, 0))(counts, sums, pulls), lambda: estimate)
        return HistogramState(pulls=pulls, counts=counts, sums=sums, estimate=estimate)

    def _log_term(self, t: Array) -> Array:
        """Returns L = log(1 / delta), on the grid in the bounded form of two of the estimators."""
        dtype = jnp.result_type(float)
        if self.form == "exact" or self.estimator == "median_of_means":
            return 2 * jnp.log(jnp.maximum(t, 2).astype(dtype))  # t = 1 meets no arm that has been played
        values, _ = self._grid()
        return jnp.asarray(values, dtype)[self._level(t)]

    def _level(self, t: Array) -> Array:
        _, last = self._grid()
        return jnp.sum(jnp.asarray(last[:-1]) < t, dtype=jnp.int32)

    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        return robust.confidence_grid(self.max_rounds, self.grid_ratio)

    def _num_blocks(self) -> int:
        return 2 * math.floor(1 + 16 * math.log(self.max_rounds))

    def _block_size(self, pulls: Array) -> Array:
        """Returns 2^g, which doubles whenever all the blocks are full."""
        return jnp.left_shift(1, 32 - lax.clz((pulls // self._num_blocks()).astype(jnp.int32)))

    def _central_moment(self) -> Array:
        factor = 1 if self.moment == "central" else jnp.exp2(2 - self.moment_order)
        return factor * jnp.exp(self.moment_order * jnp.log(self.moment_bound))

"""AdaR-UCB: heavy tails of unknown order and scale (Genalti, Marsigli, Gatti, Metelli, COLT 2024).

[1] https://arxiv.org/abs/2310.02975, Algorithm 1
"""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.arms import one_hot
from jaxbandit.types import Array, field, pytree

C = (1 + 2**0.5) ** 2  # of Eq. (13)


class AdaRState(NamedTuple):
    """The state before pair tau of rounds, with sums at every threshold on a grid."""

    pulls: Array  # [K]  int32, pairs
    nonzero: Array  # [K]  int32, of X'
    last: Array  # []  int32, the arm of this pair
    spoilt: Array  # []  0, or NaN once a loss was: in the tables nobody would look for it
    fill: Array  # [E, K]  F at the edges: sum of min((X'/e)^2, 1)
    sums: Array  # [E, 2, K]  of the X with |X| <= e, and of their squares


class AdaRHistory(NamedTuple):
    """Every reward, for the exact form."""

    pulls: Array  # [K]  int32, pairs
    nonzero: Array  # [K]  int32, of X'
    last: Array  # []  int32, the arm of this pair
    spoilt: Array  # []  0, or NaN once a loss was: in the tables nobody would look for it
    first: Array  # [K, pairs]  X
    second: Array  # [K, pairs]  X'


@pytree
class AdaRUCB:
    r"""UCB with a mean trimmed at a threshold learnt from the data; given neither alpha nor sigma.

    The arm of pair :math:`\tau` is pulled twice, in rounds :math:`2\tau - 1` and :math:`2\tau`: the first reward joins
    :math:`X`, the second :math:`X'`. With :math:`n` pairs of an arm, :math:`m` of its :math:`X'` not zero,
    :math:`L = 3 \log \tau` and :math:`c = (1 + \sqrt 2)^2`, its index is infinite if :math:`m \le c L`, else

    .. math::
        F(M) &= \sum_j \min\{(X'_j / M)^2, 1\} = c L, \tag{13} \\
        \hat\mu &= \frac 1 n \sum_j X_j 1[|X_j| \le M], \qquad
        V = \frac{1}{n-1} \sum_j (X_j 1[|X_j| \le M] - \hat\mu)^2, \\
        B &= \hat\mu + \sqrt{2 V L / n} + 10 M L / n.

    Regret :math:`O(\sum_i (\sigma^\alpha / \Delta_i)^{1/(\alpha - 1)} \log T)` where the best arm's losses are
    truncated non-negative. Ties go to the lowest index.

    The bounded form keeps the three sums at thresholds :math:`2^{b/r}` from :math:`2^{-20}` to :math:`2^{40}`, r =
    ``resolution``, and takes the first with :math:`F \le c L`. It is at least :math:`M` and at most :math:`2^{1/r} M`
    (for :math:`M` within the grid), and the sums there are exact; at r = 1 this is the paper's own Algorithm 2. It
    depends on :math:`X'` only, so the confidence bound holds as it is, its last term larger by at most that factor.

    Attributes:
      horizon: :math:`T`; there are :math:`\lfloor T/2 \rfloor` pairs.
      ties: Among infinite indices: the "least_pulled" arm (default), or the "lowest" index.
      after_pairs: The arm that is played when the pairs are over: the last one ("repeat", default), or the "first".
      resolution: Thresholds per octave of the bounded form.
      form: "bounded" memory (default), or "exact".
      max_rounds: Of the exact form, which keeps every reward and refuses to play more: pass the rounds you run.

    Example:
      >>> import jax, jaxbandit as jb
      >>> policy, environment = jb.AdaRUCB(horizon=1_000), jb.Bernoulli(means=[0.1, 0.9])
      >>> step = jax.jit(jb.step(policy, environment))
      >>> state, key = jb.start(policy, environment), jb.game_key(seed=0, n=0)
      >>> for _ in range(1_000):
      ...     state = step(state, key)
      >>> bool(state.regret < 300)  # uniform play has 400
      True

    References:
      Genalti, Marsigli, Gatti, Metelli. "(epsilon, u)-Adaptive Regret Minimization in Heavy-Tailed Bandits".
      COLT 2024. https://arxiv.org/abs/2310.02975

    Notes:
      Deviation: the printed guard is negative, and lines 7 and 8 print X for both samples; neither can be run. The
      guard here is the condition under which Eq. (13) has one root.
    """

    label: ClassVar[str] = "AdaR-UCB"
    setting: ClassVar[str] = "stochastic, heavy-tailed"
    sure: ClassVar[bool] = True

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    ties: str = field(default="least_pulled", choices=("least_pulled", "lowest"))
    after_pairs: str = field(default="repeat", choices=("repeat", "first"))
    resolution: int = field(default=2, choices=(1, 2, 4, 8))
    form: str = field(default="bounded", choices=("bounded", "exact"))
    max_rounds: int = field(default=2**12, static=True)

    def __post_init__(self):
        if not 2 <= self.max_rounds <= 2**20:
            raise ValueError(
                f"AdaRUCB.max_rounds must be between 2 and {2**20}, got {self.max_rounds}; "
                "pass the number of rounds you run"
            )

    def init(self, num_arms: int) -> Any:
        """Returns the state before round 1: no arm has been played."""
        zeros, last = jnp.zeros(num_arms, jnp.int32), jnp.int32(0)
        if self.form == "exact":
            rewards = jnp.zeros((num_arms, -(-self.max_rounds // 2)))
            return AdaRHistory(
                pulls=zeros, nonzero=zeros, last=last, spoilt=jnp.zeros(()), first=rewards, second=rewards
            )
        table = jnp.zeros((self._edges().size, num_arms))
        return AdaRState(
            pulls=zeros,
            nonzero=zeros,
            last=last,
            spoilt=jnp.zeros(()),
            fill=table,
            sums=jnp.stack([table, table], axis=1),
        )

    def probabilities(self, state: Any, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index; an even round repeats the odd one's."""
        del key
        num_arms = state.pulls.shape[0]
        odd, over = t % 2 == 1, self._over(t)
        best = lax.cond(odd, lambda: self._best(state, (t + 1) // 2), lambda: state.last)
        again = jnp.where(over, 0, state.last) if self.after_pairs == "first" else state.last
        return one_hot(jnp.where(odd & ~over, best, again), num_arms).astype(jnp.result_type(float))

    def _best(self, state: Any, tau: Array) -> Array:
        index = self.indices(state, tau)
        tied = jnp.isinf(index)
        # Among infinite indices the order is that of minus the pulls, all of them above the finite ones.
        pulls = state.pulls if self.ties == "least_pulled" else jnp.zeros_like(state.pulls)
        fewest = jnp.min(jnp.where(tied, pulls, 2**30))
        return jnp.where(jnp.any(tied), jnp.argmax(tied & (pulls == fewest)), jnp.argmax(index)).astype(jnp.int32)

    def indices(self, state: Any, tau: Array) -> Array:
        """Returns B at pair tau, [K]; infinite while an arm has too few samples."""
        dtype = jnp.result_type(float)
        L = 3 * jnp.log(tau.astype(dtype))  # delta = tau^-3
        n = state.pulls.astype(dtype)
        explores = (state.pulls == 0) | (state.nonzero.astype(dtype) <= C * L)
        trimmed = self._trimmed_exactly if self.form == "exact" else self._trimmed_on_the_grid
        M, total, squares = trimmed(state, C * L)
        mean = total / jnp.maximum(n, 1)
        variance = jnp.maximum(squares - n * mean * mean, 0) / jnp.maximum(n - 1, 1)
        index = mean + jnp.sqrt(2 * variance * L / jnp.maximum(n, 1)) + 10 * M * L / jnp.maximum(n, 1)
        return jnp.where(explores, jnp.inf, index)

    def update(self, state: Any, t: Array, x: Array, arm: Array, loss: Array) -> Any:
        """Adds the first reward of a pair of rounds to X and the second to X'."""
        del x
        over, odd = self._over(t), t % 2 == 1
        to_first, to_second = (one_hot(arm, state.pulls.shape[0]) & ~over & now for now in (odd, ~odd))
        pulls = state.pulls + to_second.astype(jnp.int32)  # a pair counts when it is whole
        nonzero = state.nonzero + (to_second & (loss != 0)).astype(jnp.int32)
        last = jnp.where(odd & ~over, arm, state.last).astype(jnp.int32)
        spoilt = jnp.where(jnp.isnan(loss), loss, state.spoilt)
        if self.form == "exact":
            here = jnp.arange(state.first.shape[1], dtype=jnp.int32)[None, :] == state.pulls[:, None]
            return AdaRHistory(
                pulls=pulls,
                nonzero=nonzero,
                last=last,
                spoilt=spoilt,
                first=jnp.where(here & to_first[:, None], -loss, state.first),
                second=jnp.where(here & to_second[:, None], -loss, state.second),
            )
        edges = jnp.asarray(self._edges(), loss.dtype)
        share = jnp.minimum(jnp.abs(loss) / edges, 1)
        kept = jnp.where(jnp.abs(loss) > edges, 0, -loss)  # [E]; a NaN is kept, and marks the game
        where = jnp.where(over, state.pulls.shape[0], arm)  # beyond the last arm nothing is added
        fill, sums = lax.cond(
            odd,
            lambda: (state.fill, state.sums.at[:, :, where].add(jnp.stack([kept, kept * kept], axis=1))),
            lambda: (state.fill.at[:, where].add(share * share), state.sums),
        )
        return AdaRState(pulls=pulls, nonzero=nonzero, last=last, spoilt=spoilt, fill=fill, sums=sums)

    def _trimmed_on_the_grid(self, state: AdaRState, target: Array) -> tuple[Array, Array, Array]:
        """Returns M, sum and sum of squares at the first edge with F <= target, or at the last edge; each [K]."""
        edges = jnp.asarray(self._edges(), state.fill.dtype)
        above = jnp.sum(state.fill > target, axis=0, dtype=jnp.int32)  # F falls from edge to edge
        place = jnp.minimum(above, edges.size - 1)
        total, squares = jnp.take_along_axis(state.sums, place[None, None, :], axis=0)[0]
        return edges[place], total, squares

    def _trimmed_exactly(self, state: AdaRHistory, target: Array) -> tuple[Array, Array, Array]:
        """Returns M, sum and sum of squares at the root of Eq. (13); each [K]."""
        n = state.pulls.astype(state.first.dtype)[:, None]
        j = jnp.arange(1, state.second.shape[1] + 1).astype(n.dtype)[None, :]
        squares = jnp.sort(jnp.where(j <= n, state.second**2, jnp.inf), axis=1)
        prefix = jnp.cumsum(jnp.where(j <= n, squares, 0), axis=1)
        # F at the j-th smallest sample; M lies above the last one at which it reaches the target.
        reaches = (j <= n) & (squares > 0) & (prefix / squares + (n - j) >= target)
        below = jnp.max(jnp.where(reaches, j, 0), axis=1)
        sum_below = jnp.sum(jnp.where(j == below[:, None], prefix, 0), axis=1)
        left = target - (n[:, 0] - below)
        M = jnp.sqrt(sum_below / jnp.where(left > 0, left, 1))
        kept = jnp.where((j <= n) & (jnp.abs(state.first) <= M[:, None]), state.first, 0)
        return M, jnp.sum(kept, axis=1), jnp.sum(kept * kept, axis=1)

    def _edges(self) -> np.ndarray:
        return 2.0 ** (np.arange(60 * self.resolution + 1) / self.resolution - 20)

    def _over(self, t: Array) -> Array:
        pairs = jnp.floor(self.horizon / 2)
        return t.astype(pairs.dtype) > 2 * pairs

"""APE^2 (Lee et al., NeurIPS 2020) and its minimax-optimal kin MR-UCB and MR-APE (Lee, Lim, TNNLS 2024).

[1] APE^2: https://arxiv.org/abs/2010.12866
[2] MR-UCB, MR-APE: https://doi.org/10.1109/TNNLS.2022.3203035
"""

import math
from typing import ClassVar

import jax.numpy as jnp

from jaxbandit import random
from jaxbandit.policies.influence import MAX_ROUNDS, MeanState, add_reward, no_rewards
from jaxbandit.policies.ucb import largest
from jaxbandit.types import Array, as_whole, field, pytree

ORDER_HINT = "alpha of the moment that is bounded, e.g. environment.moment_order"
SCALE_HINT = "a number in the units of the losses, e.g. 1"
ROUNDS_HINT = "the number of rounds you run"


@pytree
class APE2:
    r"""The arm with the largest p-robust mean reward after a perturbation that shrinks with its plays.

    .. math::
        i_t = \arg\max_i \hat Y_i + \frac{c}{n_i^{1-1/p}} G_{t,i}, \qquad
        \hat Y_i = \frac{s}{n_i} \sum_k \psi_p(Y_{i,k} / s), \quad s = c n_i^{1/p},

    where :math:`\psi_p(z) = \mathrm{sign}(z) \log(1 + |z| + b_p |z|^p)` and the :math:`G` are fresh every round.
    Each arm is played once first; ties go to the lowest index. Anytime; knows alpha, and needs no bound on the
    moment: gap-independent regret :math:`O(K^{1-1/p} T^{1/p} \log K)`, with
    :math:`\exp(b_p E|Y|^p / c^p)` in the gap-dependent one.

    Attributes:
      moment_order: :math:`p`, the alpha of :math:`E|\ell|^\alpha < \infty`, in (1, 2].
      scale: :math:`c`, in the units of the losses.
      perturbation: Law of G: "weibull" and "gamma" (both the standard exponential at the paper's best
        parameters), "gumbel", "pareto", "frechet" (index and scale log K if log K >= p^2/(p-1), else
        p^2/(p-1) and 1).
      estimator_scale: c of the estimate alone; None (default) for the same as ``scale``, as in the authors' code.
      form: "bounded" (default) keeps log4(max_rounds) + 2 means per arm and is off the estimate by at most
        :math:`0.02 (c / n^{1-1/p}) \, \overline{|Y/c|^p}`, exact at n = 1, 4, 16, ...; "exact" keeps every
        reward and takes O(max_rounds) time a round.
      max_rounds: Rounds that are covered. Set it to the horizon with the exact form, whose state is that long and
        which refuses to play more. The bounded form only stops to widen its scale there.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> policy = jb.APE2(moment_order=environment.moment_order)
      >>> ds = jb.simulate(policy, environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() < 333)  # uniform play
      True

    References:
      Lee, Yang, Lim, Oh. "Optimal Algorithms for Stochastic Multi-Armed Bandits with Heavy Tailed Rewards".
      NeurIPS 2020. https://arxiv.org/abs/2010.12866
    """

    label: ClassVar[str] = "APE²"
    setting: ClassVar[str] = "stochastic, heavy-tailed"
    sure: ClassVar[bool] = True

    moment_order: float = field(gt=1, le=2, hint=ORDER_HINT)
    scale: float = field(default=1.0, gt=0, hint=SCALE_HINT)
    perturbation: str = field(default="weibull", choices=("weibull", "gamma", "gumbel", "pareto", "frechet"))
    estimator_scale: float | None = field(default=None, gt=0, hint=SCALE_HINT)
    form: str = field(default="bounded", choices=("bounded", "exact"))
    max_rounds: int = field(default=MAX_ROUNDS, static=True, hint=ROUNDS_HINT)

    def __post_init__(self):
        _check_rounds(self)

    def init(self, num_arms: int) -> MeanState:
        """Returns the state before round 1: no arm has been played."""
        return no_rewards(num_arms, self.form, self.max_rounds)

    def probabilities(self, state: MeanState, t: Array, key) -> Array:
        """Perturbs the estimates by draws from ``key``; returns the one-hot vector of the arm with the largest one."""
        del t
        width = self.scale * state.shrink  # beta
        return largest(state.pulls, state.estimate + width * self._perturbations(key, state.pulls.shape[0]))

    def update(self, state: MeanState, t: Array, x: Array, arm: Array, loss: Array) -> MeanState:
        """Adds the reward."""
        del t, x
        scale = self.scale if self.estimator_scale is None else self.estimator_scale
        return add_reward(state, arm, loss, self.moment_order, scale)

    def _perturbations(self, key, num_arms: int) -> Array:
        u = random.deep_uniform(key, (num_arms,))  # 1 - U: deep where G is large
        if self.perturbation in ("weibull", "gamma"):
            return -jnp.log(u)
        minus_log = -jnp.log1p(-jnp.minimum(u, 1 - jnp.finfo(u.dtype).epsneg))  # -ln U, finite
        if self.perturbation == "gumbel":
            return -jnp.log(minus_log)
        least, log_arms = self.moment_order**2 / (self.moment_order - 1), math.log(num_arms)
        many = log_arms >= least
        index, width = jnp.where(many, log_arms, least), jnp.where(many, log_arms, 1.0)
        return width * jnp.exp(-jnp.log(u if self.perturbation == "pareto" else minus_log) / index)


@pytree
class MRUCB:
    r"""The p-robust mean reward plus a bonus that is zero once an arm had its share of the horizon.

    .. math::
        i_t = \arg\max_i \hat Y_i + \frac{c}{n_i^{1-1/p}} \log \max\{T / (K n_i), 1\}.

    Each arm is played once first; ties go to the lowest index. Knows alpha and T, no bound on the moment.
    Minimax optimal: gap-independent regret :math:`O(K^{1-1/p} T^{1/p})`.

    Attributes:
      horizon: :math:`T`.
      moment_order: :math:`p`, the alpha of :math:`E|\ell|^\alpha < \infty`, in (1, 2].
      scale: :math:`c` of the bonus, in the units of the losses.
      estimator_scale: c of the estimate: 0.1 in the authors' code, 1 in an earlier version of it.
      form: As in ``APE2``: "bounded" (default) within :math:`0.02 (c / n^{1-1/p}) \, \overline{|Y/c|^p}` of the
        estimate with its own c, or "exact".
      max_rounds: As in ``APE2``.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> policy = jb.MRUCB(horizon=1_000, moment_order=environment.moment_order)
      >>> ds = jb.simulate(policy, environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() < 333)  # uniform play
      True

    References:
      Lee, Lim. "Minimax Optimal Bandits for Heavy Tail Rewards". IEEE TNNLS 35(4), 2024.
      https://doi.org/10.1109/TNNLS.2022.3203035

    Notes:
      Constants are those of the authors' code; the article's own were not read.
    """

    label: ClassVar[str] = "MR-UCB"
    setting: ClassVar[str] = "stochastic, heavy-tailed"
    sure: ClassVar[bool] = True

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    moment_order: float = field(gt=1, le=2, hint=ORDER_HINT)
    scale: float = field(default=1.0, gt=0, hint=SCALE_HINT)
    estimator_scale: float = field(default=0.1, gt=0, hint=SCALE_HINT)
    form: str = field(default="bounded", choices=("bounded", "exact"))
    max_rounds: int = field(default=MAX_ROUNDS, static=True, hint=ROUNDS_HINT)

    def __post_init__(self):
        _check_rounds(self)

    def init(self, num_arms: int) -> MeanState:
        """Returns the state before round 1: no arm has been played."""
        return no_rewards(num_arms, self.form, self.max_rounds)

    def probabilities(self, state: MeanState, t: Array, key) -> Array:
        """Returns the one-hot vector of the arm with the largest index."""
        del t, key
        return largest(state.pulls, state.estimate + _bonus(self, state))

    def update(self, state: MeanState, t: Array, x: Array, arm: Array, loss: Array) -> MeanState:
        """Adds the reward."""
        del t, x
        return add_reward(state, arm, loss, self.moment_order, self.estimator_scale)


@pytree
class MRAPE:
    r"""MR-UCB with its bonus times a bounded perturbation, fresh for every arm and round.

    .. math::
        i_t = \arg\max_i \hat Y_i + 2 G_{t,i} \frac{c}{n_i^{1-1/p}} \log \max\{T / (K n_i), 1\}, \qquad
        G_{t,i} \sim \mathrm{Unif}[0, 1].

    Each arm is played once first; ties go to the lowest index. Knows alpha and T, no bound on the moment.
    Minimax optimal: gap-independent regret :math:`O(K^{1-1/p} T^{1/p})`.

    Attributes:
      horizon: :math:`T`.
      moment_order: :math:`p`, the alpha of :math:`E|\ell|^\alpha < \infty`, in (1, 2].
      scale: :math:`c`, in the units of the losses.
      factor: The 2 of the index: P(2 G >= 1) = 1/2, so half the draws are as hopeful as MR-UCB.
      perturbation: Law of G: "uniform" on [0, 1] (default), "bernoulli" of 1/2, "symmetric" (uniform on
        [-1, 1]), "rademacher".
      estimator_scale: c of the estimate alone; None (default) for the same as ``scale``.
      form: As in ``APE2``.
      max_rounds: As in ``APE2``.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> policy = jb.MRAPE(horizon=1_000, moment_order=environment.moment_order)
      >>> ds = jb.simulate(policy, environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() < 333)  # uniform play
      True

    References:
      Lee, Lim. "Minimax Optimal Bandits for Heavy Tail Rewards". IEEE TNNLS 35(4), 2024.
      https://doi.org/10.1109/TNNLS.2022.3203035

    Notes:
      Factor, law and estimator constant changed over the history of the authors' code, and the article's own
      were not read: the last version is the default, the others are the fields.
    """

    label: ClassVar[str] = "MR-APE"
    setting: ClassVar[str] = "stochastic, heavy-tailed"
    sure: ClassVar[bool] = True

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    moment_order: float = field(gt=1, le=2, hint=ORDER_HINT)
    scale: float = field(default=1.0, gt=0, hint=SCALE_HINT)
    factor: float = field(default=2.0, gt=0, hint="the authors' code has 2")
    perturbation: str = field(default="uniform", choices=("uniform", "bernoulli", "symmetric", "rademacher"))
    estimator_scale: float | None = field(default=None, gt=0, hint=SCALE_HINT)
    form: str = field(default="bounded", choices=("bounded", "exact"))
    max_rounds: int = field(default=MAX_ROUNDS, static=True, hint=ROUNDS_HINT)

    def __post_init__(self):
        _check_rounds(self)

    def init(self, num_arms: int) -> MeanState:
        """Returns the state before round 1: no arm has been played."""
        return no_rewards(num_arms, self.form, self.max_rounds)

    def probabilities(self, state: MeanState, t: Array, key) -> Array:
        """Perturbs the indices by draws from ``key``; returns the one-hot vector of the arm with the largest one."""
        del t
        G = random.uniform(key, state.pulls.shape)
        if self.perturbation in ("bernoulli", "rademacher"):
            G = jnp.where(G < 0.5, 0.0, 1.0)
        if self.perturbation in ("symmetric", "rademacher"):
            G = 2 * G - 1
        return largest(state.pulls, state.estimate + self.factor * G * _bonus(self, state))

    def update(self, state: MeanState, t: Array, x: Array, arm: Array, loss: Array) -> MeanState:
        """Adds the reward."""
        del t, x
        scale = self.scale if self.estimator_scale is None else self.estimator_scale
        return add_reward(state, arm, loss, self.moment_order, scale)


def _bonus(policy: MRUCB | MRAPE, state: MeanState) -> Array:
    num_arms = state.pulls.shape[0]
    pulls = jnp.maximum(state.pulls, 1).astype(state.estimate.dtype)
    excess = jnp.log(jnp.maximum(policy.horizon / (num_arms * pulls), 1))
    return policy.scale * excess * state.shrink


def _check_rounds(policy: APE2 | MRUCB | MRAPE) -> None:
    rounds = as_whole(policy.max_rounds)
    if rounds is None or rounds < 1:
        name = type(policy).__name__
        raise ValueError(f"{name}.max_rounds must be a whole number >= 1, got {policy.max_rounds!r}; {ROUNDS_HINT}")
    object.__setattr__(policy, "max_rounds", rounds)

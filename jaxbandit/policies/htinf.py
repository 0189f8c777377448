"""HTINF and its parameter-free kin OptHTINF and AdaTINF (Huang, Dai, Huang, ICML 2022).

[1] https://arxiv.org/abs/2201.11921, Algorithms 1 to 3
"""

import math
from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import accumulate, kahan_add, one_hot, pick
from jaxbandit.simplex import inf
from jaxbandit.types import Array, field, pytree

# The skipping threshold at alpha = 2: it keeps the inverse Hessian of the regulariser within a factor of 2.
THRESHOLD_AT_2 = 1 - 2 ** (-1 / 3)


class HTINFState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it


@pytree
class HTINF:
    r"""FTRL with a Tsallis entropy of order 1/alpha that skips large losses; given alpha and sigma.

    .. math::
        x_t &= \arg\min_{x \in \Delta^K} \eta_t \langle \hat L_{t-1}, x \rangle - \alpha \sum_i x_i^{1/\alpha},
        \qquad \eta_t = \frac{1}{\sigma t^{1/\alpha}}, \\
        r_t &= \Theta_\alpha \eta_t^{-1} x_{t,i_t}^{1/\alpha}, \qquad
        \hat\ell_{t,i} = \frac{\ell_{t,i}}{x_{t,i}} 1[|\ell_{t,i}| \le r_t] 1[i = i_t],

    with :math:`\Theta_\alpha = \min\{1 - 2^{-(\alpha-1)/(2\alpha-1)}, (2 - 2/\alpha)^{1/(2-\alpha)}\}`. Anytime.
    Regret :math:`O(\sigma K^{1-1/\alpha} T^{1/\alpha})` against an adversary and
    :math:`O(\sum_i (\sigma^\alpha/\Delta_i)^{1/(\alpha-1)} \log T)` in a stochastic environment with a unique best
    arm, both with truncated non-negative losses.

    Attributes:
      moment_order: :math:`\alpha` of :math:`E|\ell|^\alpha \le \sigma^\alpha`, in (1, 2].
      moment_bound: :math:`\sigma`.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
      >>> alpha = environment.moment_order
      >>> policy = jb.HTINF(moment_order=alpha, moment_bound=environment.moment(alpha))
      >>> ds = jb.simulate(policy, environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() < 333)  # uniform play
      True

    References:
      Huang, Dai, Huang. "Adaptive Best-of-Both-Worlds Algorithm for Heavy-Tailed Multi-Armed
      Bandits". ICML 2022. https://arxiv.org/abs/2201.11921

    Notes:
      Source: class ``HeavyInf`` of https://github.com/tmpuser1233/Clipped-SGD-UCB (commit 538ef19). With the first term
      of :math:`\Theta_\alpha` a kept loss at most doubles the inverse Hessian, and with the second the constant of the
      stability term is at most 2. Choices: every arm is drawn from :math:`x_t`, and its loss is compared with
      :math:`r_t` (the code begins with K - 1 fixed arms, and counts one round more in :math:`\eta`).
    """

    label: ClassVar[str] = "HTINF"
    setting: ClassVar[str] = "stochastic and adversarial, heavy-tailed"

    moment_order: float = field(gt=1, le=2, hint="alpha of the moment that is bounded, e.g. environment.moment_order")
    moment_bound: float = field(gt=0, hint="sigma with E|l|^alpha <= sigma^alpha, e.g. environment.moment(alpha)")

    def init(self, num_arms: int) -> HTINFState:
        """Returns the state before round 1: all estimates are 0."""
        return HTINFState(cumulative_loss=jnp.zeros(num_arms), cumulative_lost=jnp.zeros(num_arms))

    def probabilities(self, state: HTINFState, t: Array, key) -> Array:
        """Returns the FTRL point; alpha / (alpha - 1) is the solver's q."""
        del key
        q = self.moment_order / (self.moment_order - 1)
        x = inf(state.cumulative_loss * self._learning_rate(t), q)
        return x / jnp.sum(x)  # for alpha near 1, q is so large that rounding alone moves the sum

    def update(self, state: HTINFState, t: Array, x: Array, arm: Array, loss: Array) -> HTINFState:
        """Keeps the loss if it is within the threshold."""
        return _add_kept(state, x, arm, loss, jnp.abs(loss) <= self.keeps_below(state, t, x, arm))

    def keeps_below(self, state: HTINFState, t: Array, x: Array, arm: Array) -> Array:
        """Returns r_t; a larger loss is skipped."""
        del state
        a = self.moment_order
        return _threshold_factor(a) * jnp.exp(jnp.log(pick(x, arm)) / a) / self._learning_rate(t)

    def measure(self, state, t, x, arm, loss, after) -> dict[str, Array]:
        """Returns whether the loss was skipped, as 0 or 1."""
        return {"skipped": (jnp.abs(loss) > self.keeps_below(state, t, x, arm)).astype(x.dtype)}

    def _learning_rate(self, t: Array) -> Array:
        t = jnp.asarray(t).astype(jnp.result_type(float))
        return jnp.exp(-jnp.log(t) / self.moment_order) / self.moment_bound


@pytree
class OptHTINF:
    r"""HTINF given alpha = 2 and sigma = 1, whatever the environment: the optimistic guess.

    :math:`\eta_t = t^{-1/2}` and :math:`r_t = (1 - 2^{-1/3}) \sqrt{t x_{t,i_t}}`. Parameter-free, at the price
    of a worse rate: :math:`O(\sigma^\alpha K^{(\alpha-1)/2} T^{(3-\alpha)/2})` against an adversary.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.2, 0.8, 0.8])
      >>> ds = jb.simulate(jb.OptHTINF(), environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() < 400)  # uniform play
      True

    References:
      Huang, Dai, Huang. "Adaptive Best-of-Both-Worlds Algorithm for Heavy-Tailed Multi-Armed
      Bandits". ICML 2022. https://arxiv.org/abs/2201.11921

    Notes:
      Choice: HTINF at alpha = 2 and sigma = 1, which is AdaTINF at J = 0 in the code that AdaTINF names. The bound
      above, from Table 1 of https://arxiv.org/abs/2410.03284, fits it.
    """

    label: ClassVar[str] = "OptHTINF"
    setting: ClassVar[str] = "stochastic and adversarial, heavy-tailed"

    def init(self, num_arms: int) -> HTINFState:
        """Returns the state before round 1: all estimates are 0."""
        return HTINFState(cumulative_loss=jnp.zeros(num_arms), cumulative_lost=jnp.zeros(num_arms))

    def probabilities(self, state: HTINFState, t: Array, key) -> Array:
        """Returns the FTRL point with square roots."""
        del key
        return inf(state.cumulative_loss / _sqrt(t), 2)

    def update(self, state: HTINFState, t: Array, x: Array, arm: Array, loss: Array) -> HTINFState:
        """Keeps the loss if it is within the threshold."""
        threshold = THRESHOLD_AT_2 * _sqrt(t) * jnp.sqrt(pick(x, arm))
        return _add_kept(state, x, arm, loss, jnp.abs(loss) <= threshold)


class AdaTINFState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    cumulative_loss: Array  # [K]  sum of the loss estimates, shifted so that its minimum is 0
    cumulative_lost: Array  # [K]  what rounding took from it
    level: Array  # []  J; the learning rate is 2^-J / sqrt(t)
    cost: Array  # []  S, the cost booked on this level
    cost_lost: Array  # []  what rounding took from it


@pytree
class AdaTINF:
    r"""OptHTINF that doubles an estimate of the scale whenever its cost outgrows it.

    .. math::
        \eta_t &= \frac{1}{2^J \sqrt t}, \qquad r_t = (1 - 2^{-1/3}) \eta_t^{-1} \sqrt{x_{t,i_t}}, \\
        c_t &= 2 \eta_t x_{t,i_t}^{-1/2} \ell^2 \text{ if } |\ell| \le r_t, \quad |\ell| \text{ otherwise}, \qquad
        S \leftarrow S + c_t, \\
        \text{if } S &> 2^J \sqrt{K(T+1)}: \quad
        J \leftarrow \max\{J + 1, \lceil \log_2 (c_t / \sqrt{K(T+1)}) \rceil + 1\}, \quad S \leftarrow c_t.

    Parameter-free; regret :math:`O(\sigma K^{1-1/\alpha} T^{1/\alpha} + \sqrt{KT})` against an adversary.

    Attributes:
      horizon: :math:`T`.
      skipped_cost: Cost of a skipped loss: "absolute" value (default), or "signed" as an implementation has it.
      after_doubling: The first S on a new level: the "cost" that overflowed (default), or "zero".
      restart: Whether a new level forgets the estimates.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.2, 0.8, 0.8])
      >>> ds = jb.simulate(jb.AdaTINF(horizon=1_000), environment, horizon=1_000, num_seeds=64, record=[1_000])
      >>> bool(ds.regret.mean() < 400)  # uniform play
      True

    References:
      Huang, Dai, Huang. "Adaptive Best-of-Both-Worlds Algorithm for Heavy-Tailed Multi-Armed
      Bandits". ICML 2022. https://arxiv.org/abs/2201.11921

    Notes:
      Source: class ``AdaptiveInf`` of https://github.com/tmpuser1233/Clipped-SGD-UCB (commit 538ef19). Choices: a
      skipped loss costs its absolute value (the code adds the signed one), and the logarithm is of
      :math:`c_t / \sqrt{K(T+1)}` (the code divides by :math:`K(T+1)`, against its own rule for S). The last three
      fields have the other readings of the rule.
    """

    label: ClassVar[str] = "AdaTINF"
    setting: ClassVar[str] = "adversarial, heavy-tailed"

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    skipped_cost: str = field(default="absolute", choices=("absolute", "signed"))
    after_doubling: str = field(default="cost", choices=("cost", "zero"))
    restart: bool = field(default=False, choices=(False, True))

    def init(self, num_arms: int) -> AdaTINFState:
        """Returns the state before round 1: J = 0, S = 0."""
        zero, zeros = jnp.zeros(()), jnp.zeros(num_arms)
        return AdaTINFState(cumulative_loss=zeros, cumulative_lost=zeros, level=zero, cost=zero, cost_lost=zero)

    def probabilities(self, state: AdaTINFState, t: Array, key) -> Array:
        """Returns the FTRL point with square roots."""
        del key
        return inf(state.cumulative_loss * self._learning_rate(state, t), 2)

    def update(self, state: AdaTINFState, t: Array, x: Array, arm: Array, loss: Array) -> AdaTINFState:
        """Keeps or skips the loss, books its cost, and doubles if the level's budget is spent."""
        rate, x_arm = self._learning_rate(state, t), pick(x, arm)
        kept = jnp.abs(loss) <= THRESHOLD_AT_2 * jnp.sqrt(x_arm) / rate
        skipped_cost = jnp.abs(loss) if self.skipped_cost == "absolute" else loss
        cost = jnp.where(kept, 2 * rate * loss * loss / jnp.sqrt(x_arm), skipped_cost)  # c_t

        total, lost = kahan_add(state.cost, state.cost_lost + cost)  # S
        unit = jnp.sqrt(x.shape[0] * (self.horizon + 1))
        doubles = total > jnp.exp2(state.level) * unit
        level = jnp.maximum(state.level + 1, jnp.ceil(jnp.log(jnp.maximum(cost / unit, 2.0**-100)) / math.log(2)) + 1)

        estimates = _add_kept(HTINFState(state.cumulative_loss, state.cumulative_lost), x, arm, loss, kept)
        if self.restart:
            estimates = HTINFState(*(jnp.where(doubles, 0, part) for part in estimates))
        return AdaTINFState(
            cumulative_loss=estimates.cumulative_loss,
            cumulative_lost=estimates.cumulative_lost,
            level=jnp.where(doubles, level, state.level),
            cost=jnp.where(doubles, cost if self.after_doubling == "cost" else 0, total),
            cost_lost=jnp.where(doubles, 0, lost),
        )

    def _learning_rate(self, state: AdaTINFState, t: Array) -> Array:
        return jnp.exp2(-state.level) / _sqrt(t)


def _threshold_factor(alpha: Array | float) -> Array:
    """Returns Theta_alpha. At alpha = 2 its second term is the limit exp(-1/2), because the formula divides 0 by 0."""
    first = 1 - jnp.exp2(-(alpha - 1) / (2 * alpha - 1))
    at_2 = alpha > 2 - 1e-6
    second = jnp.exp(jnp.log(2 - 2 / alpha) / jnp.where(at_2, 1.0, 2 - alpha))
    return jnp.minimum(first, jnp.where(at_2, math.exp(-0.5), second))


def _add_kept(state: HTINFState, x: Array, arm: Array, loss: Array, kept: Array) -> HTINFState:
    """Adds the importance-weighted estimate of a kept loss."""
    loss_estimate = jnp.where(kept, loss, 0) / pick(x, arm)
    terms = jnp.where(one_hot(arm, x.shape[0]), loss_estimate, 0)
    cumulative_loss, cumulative_lost = accumulate(state.cumulative_loss, state.cumulative_lost, terms)
    return HTINFState(cumulative_loss=cumulative_loss, cumulative_lost=cumulative_lost)


def _sqrt(t: Array) -> Array:
    return jnp.sqrt(jnp.asarray(t).astype(jnp.result_type(float)))

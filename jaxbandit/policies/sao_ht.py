"""SAO-HT: eliminates arms while losses look stochastic, else falls back for good (Cheng, Zhou, Ji, NeurIPS 2024).

[1] https://openreview.net/forum?id=4Yj7L9Kt7t, Algorithm 2
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import kahan_add, one_hot, pick
from jaxbandit.policies.omd_lb_ht import OMDLBHTState, descend, log_inverse_failure, uniform_start
from jaxbandit.types import Array, field, pytree

C1 = 6  # the paper's c_1


class SAOHTState(NamedTuple):
    """The state that round t inherits from rounds 1, ..., t-1."""

    pulls: Array  # [K]  int32, N
    cumulative_loss: Array  # [K]  Lhat, importance-weighted and trimmed at M_t
    cumulative_lost: Array  # [K]  what rounding took from it
    mean_estimate: Array  # [K]  muhat, trimmed at B
    removed: Array  # [K]  int32, tau of an arm out of the active set, 0 of an active one
    mass: Array  # [K]  q tau of an arm out of the active set: its probability is mass / t
    switched: Array  # []  int32, the round t_sw after which the fallback plays, 0 before
    fallback: OMDLBHTState


@pytree
class SAOHT:
    r"""Arm elimination with tests for an adversary, and OMD-LB-HT for good once a test fires.

    Plays each arm once, then the active arms uniformly; an arm removed at :math:`\tau_i` with probability :math:`q_i`
    keeps :math:`q_i \tau_i / t`. With :math:`v = \alpha - 1`, :math:`u = \sigma`,

    .. math::
        \hat L_{t,i} &= \sum_s \frac{\ell_s}{w_{s,i}} 1[|\ell_s| \le M_s] 1[i = i_s], \qquad
        M_t = u (t/K)^{1/(1+v)} \log(\log(T)/\zeta)^{-1/(3v+1)}, \\
        \hat\mu_{t,i} &= \frac{1}{N_i} \sum_s \ell_s 1[|\ell_s| \le B_s] 1[i = i_s], \qquad
        B_t = u (N_i / \log(2T/\zeta))^{1/(1+v)}, \\
        W_t &= 12 u K^{v/(1+v)} t^{1/(1+v)} \log(\beta/\zeta)^{3v/(3v+1)}, \qquad \beta = 12 T^2 K \log T,

    an active arm is removed where its :math:`\hat L` exceeds the least active one by :math:`6 W_t` (5), and the
    fallback takes over if for some arm

    .. math::
        |\hat L_{t,i}/t - \hat\mu_{t,i}| &> 9 u (\log(\beta/\zeta) / N_i)^{v/(1+v)} + W_t / \{t \text{ or } \tau_i\},
        \tag{6} \\
        (\hat L_{t,i} - \min \hat L_t) / t &> 10 W_t / (\tau_i - 1), \tag{7} \\
        (\hat L_{t,i} - \min \hat L_t) / t &\le 2 W_t / \tau_i, \tag{8}

    (7) and (8) for removed arms. No assumption on signs. Regret, up to logarithms,
    :math:`u K^{v/(1+v)} T^{1/(1+v)}` against an adversary and :math:`K (u^{1+1/v}/\Delta)^{1/v}` in a stochastic
    environment.

    With the paper's constants play is uniform until :math:`6 W_t < \Delta t`: at sigma = 1 no arm can be removed
    in less than 4 million rounds (alpha = 2, K = 2, gap 1), 104 million (alpha = 2, K = 10, gap 1/2), 1.6 billion
    (alpha = 1.5, K = 2, gap 1). ``constant_scale`` shows the mechanism at shorter horizons.

    Attributes:
      horizon: :math:`T`; taken as at least 2.
      moment_order: :math:`\alpha` of :math:`E|\ell|^\alpha \le \sigma^\alpha`, in (1, 2].
      moment_bound: :math:`\sigma`.
      failure_probability: :math:`\zeta`; None (default) for 1/T, which bounds the expected regret.
      constant_scale: Multiplies W and the 9 of (6). 1 is the paper; about 0.03 removes arms within thousands of
        rounds, without the guarantee.
      fallback_scale: ``constant_scale`` of the fallback's learning rate.
      initial_rounds: Whether the first K losses enter L-hat "weighted" by K (default; makes it unbiased, as the
        proofs need), or are "skipped" there: the paper leaves it open.
      removed_width: The W in (6) to (8) for a removed arm: of the current "round" t (default, as printed), which makes
        (8) fire at 9 tau (alpha = 2) in any environment, or of its "removal" tau, as in the paper's predecessor SAO.
      fallback_horizon: Horizon of the fallback: the "remaining" rounds (default, as the analysis charges) or "full".

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.1, 0.9])
      >>> policy = jb.SAOHT(horizon=10_000, moment_order=2.0, moment_bound=1.0, constant_scale=0.03)
      >>> ds = jb.simulate(policy, environment, horizon=10_000, num_seeds=64, record=[10_000])
      >>> bool(ds.regret.mean() < 3_000)  # uniform play has 4000
      True

    References:
      Cheng, Zhou, Ji. "Taming Heavy-Tailed Losses in Adversarial Bandits and the Best-of-Both-Worlds Setting".
      NeurIPS 2024. https://openreview.net/forum?id=4Yj7L9Kt7t
    """

    label: ClassVar[str] = "SAO-HT"
    setting: ClassVar[str] = "stochastic and adversarial, heavy-tailed"

    horizon: float = field(gt=1, hint="pass the number of rounds you run")
    moment_order: float = field(gt=1, le=2, hint="alpha of the moment that is bounded, e.g. environment.moment_order")
    moment_bound: float = field(gt=0, hint="sigma with E|l|^alpha <= sigma^alpha, e.g. environment.moment(alpha)")
    failure_probability: float | None = field(default=None, gt=0, lt=1, hint="None stands for 1 / horizon")
    constant_scale: float = field(default=1.0, gt=0, hint="1 is the paper")
    fallback_scale: float = field(default=1.0, gt=0, hint="1 is the paper")
    initial_rounds: str = field(default="weighted", choices=("weighted", "skipped"))
    removed_width: str = field(default="round", choices=("round", "removal"))
    fallback_horizon: str = field(default="remaining", choices=("remaining", "full"))

    def init(self, num_arms: int) -> SAOHTState:
        """Returns the state before round 1: all arms are active."""
        zeros, none = jnp.zeros(num_arms), jnp.zeros(num_arms, jnp.int32)
        return SAOHTState(
            pulls=none,
            cumulative_loss=zeros,
            cumulative_lost=zeros,
            mean_estimate=zeros,
            removed=none,
            mass=zeros,
            switched=jnp.int32(0),
            fallback=uniform_start(num_arms),
        )

    def probabilities(self, state: SAOHTState, t: Array, key) -> Array:
        """Returns each arm once; then the probabilities of the line below (8), or those of the fallback."""
        del key
        num_arms = state.mass.shape[0]
        active = state.removed == 0
        kept = state.mass / jnp.asarray(t).astype(state.mass.dtype)
        share = (1 - jnp.sum(kept)) / jnp.maximum(jnp.sum(active.astype(kept.dtype)), 1)
        x = jnp.where(active, share, kept)
        x = jnp.where(state.switched > 0, 1 / state.fallback.inverse, x)
        return jnp.where(t <= num_arms, one_hot(t - 1, num_arms).astype(x.dtype), x)

    def update(self, state: SAOHTState, t: Array, x: Array, arm: Array, loss: Array) -> SAOHTState:
        """Adds the loss, removes arms (5), and tests (6) to (8); or takes one step of the fallback."""
        round_t, num_arms = jnp.asarray(t).astype(x.dtype), x.shape[0]
        playing = state.switched > 0
        horizon = self.horizon
        if self.fallback_horizon == "remaining":
            horizon = horizon - state.switched.astype(x.dtype)
        fallback = descend(state.fallback, x, arm, loss, self, horizon, self.fallback_scale, playing)

        # After the switch the rest of the state runs on, unread: to hold it would cost a select for each entry.
        state = self._add(state, round_t, x, arm, loss)
        L, active, width = state.cumulative_loss, state.removed == 0, self._width(round_t, num_arms)
        leaves = (t > num_arms) & active & (L - _least(L, active) > C1 * width)  # (5)
        state = state._replace(
            removed=jnp.where(leaves, t, state.removed), mass=jnp.where(leaves, x * round_t, state.mass)
        )
        fires = (t > num_arms) & ~playing & self._suspicious(state, round_t, width)
        return state._replace(switched=jnp.where(fires, t, state.switched).astype(jnp.int32), fallback=fallback)

    def measure(self, state, t, x, arm, loss, after) -> dict[str, Array]:
        """Returns the rounds played by the fallback, and the arms removed."""
        del t, arm, loss
        removed = jnp.sum(((after.removed > 0) & (state.removed == 0)).astype(x.dtype))
        return {"fallback_rounds": (state.switched > 0).astype(x.dtype), "removals": removed}

    def _add(self, state: SAOHTState, t: Array, x: Array, arm: Array, loss: Array) -> SAOHTState:
        num_arms, a = x.shape[0], self.moment_order  # a = 1 + v
        played = one_hot(arm, num_arms)
        pulls = state.pulls + played.astype(jnp.int32)
        n = pick(pulls, arm).astype(x.dtype)
        T, to_failure = jnp.maximum(self.horizon, 2), log_inverse_failure(self)

        # Positive for every zeta < log T; the guard is for shorter horizons.
        divisor = jnp.maximum(jnp.log(jnp.log(T)) + to_failure, 2.0**-20)
        trim_weighted = self.moment_bound * jnp.exp(jnp.log(t / num_arms) / a - jnp.log(divisor) / (3 * a - 2))  # M_t
        trim_mean = self.moment_bound * jnp.exp(jnp.log(n / (jnp.log(2 * T) + to_failure)) / a)  # B_t

        first = t <= num_arms
        weight = jnp.where(first, 1 / num_arms, pick(x, arm))
        entering = jnp.abs(loss) <= trim_weighted
        if self.initial_rounds == "skipped":
            entering = entering & ~first
        term = jnp.where(entering, loss, 0) / weight
        L, L_lost = kahan_add(state.cumulative_loss, state.cumulative_lost + jnp.where(played, term, 0))
        mean = pick(state.mean_estimate, arm)
        mean = mean + (jnp.where(jnp.abs(loss) <= trim_mean, loss, 0) - mean) / n
        return state._replace(
            pulls=pulls,
            cumulative_loss=L,
            cumulative_lost=L_lost,
            mean_estimate=jnp.where(played, mean, state.mean_estimate),
        )

    def _suspicious(self, state: SAOHTState, t: Array, width: Array) -> Array:
        """Returns whether one of the tests (6), (7) and (8) fires."""
        L, active = state.cumulative_loss, state.removed == 0
        log_beta, pulls = self._log_beta(L.shape[0]), jnp.maximum(state.pulls, 1).astype(L.dtype)
        mean_width = 9 * self.constant_scale * self.moment_bound
        mean_width = mean_width * jnp.exp((1 - 1 / self.moment_order) * jnp.log(log_beta / pulls))
        least = _least(L, active)
        tau = jnp.where(active, t, state.removed.astype(L.dtype))
        if self.removed_width == "removal":
            width = width * jnp.exp(jnp.log(tau / t) / self.moment_order)
        gap = (L - least) / t
        deviates = jnp.abs(L / t - state.mean_estimate) > mean_width + width / tau  # (6)
        # (7) and (8), with tau on the left.
        returns = (gap * (tau - 1) > (C1 + 4) * width) | (gap * tau <= (C1 - 4) * width)
        return jnp.any(deviates | (~active & returns))

    def _width(self, t: Array, num_arms: int) -> Array:
        a = self.moment_order
        spread = 12 * self.moment_bound * num_arms ** (1 - 1 / a) * jnp.exp(jnp.log(t) / a)
        exponent = (3 * a - 3) / (3 * a - 2)  # 3v / (3v + 1)
        return self.constant_scale * spread * jnp.exp(exponent * jnp.log(self._log_beta(num_arms)))

    def _log_beta(self, num_arms: int) -> Array:
        """Returns log(beta / zeta), as a sum, because beta itself may overflow."""
        log_T = jnp.log(jnp.maximum(self.horizon, 2))
        return jnp.log(12 * num_arms * log_T) + 2 * log_T + log_inverse_failure(self)


def _least(values: Array, among: Array) -> Array:
    return jnp.min(jnp.where(among, values, jnp.inf))

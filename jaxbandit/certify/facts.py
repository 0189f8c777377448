r"""Facts that the analysis of uniINF proves about every trajectory, checked while the game is played.

``Certified`` wraps a policy and plays as it does. Beside the policy's state it carries sums over the
rounds so far and, for each fact, the number of violations, the tightest ratio and its round. It is a
policy like any other, so the engine batches it. It reads the increments of L and S off the wrapped
policy's own update and compares them with Algorithm 1, recomputed from x, S and the loss, so that a
mistake in the policy is found, not repeated. docs/certificates.md states the facts and derives the tolerance.
"""

import math
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from jaxbandit.arms import one_hot, pick, rest
from jaxbandit.certify.statements import FACTS as FACTS
from jaxbandit.certify.statements import ORDERS, SIZES
from jaxbandit.certify.statements import SUMS as SUMS
from jaxbandit.game import compensated_add
from jaxbandit.policies.uniinf import SMALLEST_REST, UniINFState
from jaxbandit.types import Array, field, pytree

FLOOR = 1e-290  # squares of smaller losses leave the range of float64
LARGEST_LOSS = 1e100  # a loss is skipped long before; its square still fits
LARGEST_RATIO = 1e300  # replaces NaN and infinity, so that the state stays finite


class CertifiedState(NamedTuple):
    """The wrapped policy's state, sums over rounds, and the outcome of the checks."""

    policy: UniINFState
    last_growth: Array  # []  S_t - S_(t-1), with S_0 = 0
    estimates: Array  # [K]  sum of the estimates, not shifted
    estimates_lost: Array  # [K]
    sums: Array  # [len(SUMS)]
    sums_lost: Array  # [len(SUMS)]
    violations: Array  # [len(FACTS)]  rounds in which the fact failed, int32
    worst: Array  # [len(FACTS)]  the largest ratio or relative error so far
    at: Array  # [len(FACTS)]  the first round that had it, int32


@pytree
class Certified:
    """A policy of uniINF's form whose facts are checked in every round.

    Attributes:
      policy: The policy that plays: a ``UniINF``, or one with its state.
      best_arm: The arm whose skipped losses are left out of ``skip_error``.

    Example:
      >>> import jax, jaxbandit as jb
      >>> from jaxbandit.certify.facts import Certified
      >>> policy, environment = Certified(jb.UniINF(horizon=500)), jb.Bernoulli(means=[0.2, 0.5, 0.5])
      >>> with jax.enable_x64(True):
      ...     step, key = jax.jit(jb.step(policy, environment)), jb.game_key(seed=0, n=0)
      ...     state = jb.start(policy, environment)
      ...     for _ in range(500):
      ...         state = step(state, key)
      >>> int(state.policy.violations.sum())
      0

    References:
      Chen, Huang, Dai, Huang. "uniINF: Best-of-Both-Worlds Algorithm for Parameter-Free
      Heavy-Tailed MABs". ICLR 2025. https://arxiv.org/abs/2410.03284
    """

    label: ClassVar[str] = "certified"

    policy: Any = field(nested=True)
    best_arm: float = field(default=0.0, ge=0, whole=True, hint="arms are counted from 0")

    def init(self, num_arms: int) -> CertifiedState:
        """Returns the state before the first round, without violations."""
        if jnp.result_type(float) != jnp.float64:
            raise ValueError('Certified plays in float64, got float32; pass simulate(..., dtype="float64")')
        inner = self.policy.init(num_arms)
        zeros, sums, facts = jnp.zeros(num_arms), jnp.zeros(len(SUMS)), jnp.zeros(len(FACTS))
        none = jnp.zeros(len(FACTS), jnp.int32)
        return CertifiedState(inner, inner.scale, zeros, zeros, sums, sums, none, facts, none)

    def probabilities(self, state: CertifiedState, t: Array, key) -> Array:
        """Returns the wrapped policy's probabilities."""
        return self.policy.probabilities(state.policy, t, key)

    def update(self, state: CertifiedState, t: Array, x: Array, arm: Array, loss: Array) -> CertifiedState:
        """Updates the wrapped policy, then checks the facts of the round."""
        game = _Round(self.policy, state, t, x, arm, loss)
        sums, sums_lost = compensated_add(state.sums, state.sums_lost, game.terms(self.best_arm))
        estimates, estimates_lost = compensated_add(state.estimates, state.estimates_lost, game.estimate_by_arm)
        checked = game.facts(dict(zip(SUMS, sums + sums_lost, strict=True)), estimates + estimates_lost)

        violated, ratio = (jnp.stack(part) for part in zip(*(checked[name] for name in FACTS), strict=True))
        ratio = jnp.where(ratio < LARGEST_RATIO, ratio, LARGEST_RATIO)
        worse = ratio > state.worst
        return CertifiedState(
            policy=game.after,
            last_growth=game.growth,
            estimates=estimates,
            estimates_lost=estimates_lost,
            sums=sums,
            sums_lost=sums_lost,
            violations=state.violations + violated.astype(jnp.int32),
            worst=jnp.where(worse, ratio, state.worst),
            at=jnp.where(worse, jnp.asarray(t, jnp.int32), state.at),
        )


def tolerance(num_arms: int, dtype=jnp.float64) -> float:
    """Returns the relative rounding error allowed in a fact, 64 K eps; docs/certificates.md derives it."""
    return 64 * num_arms * float(jnp.finfo(dtype).eps)


class _Round:
    """One round seen from outside: the policy's update beside that of Algorithm 1."""

    def __init__(self, policy: Any, state: CertifiedState, t: Array, x: Array, arm: Array, loss: Array):
        before = state.policy
        self.K, self.S, self.x, self.loss = x.shape[0], before.scale, x, loss
        self.L, self.S_1, self.horizon = before.cumulative_loss, policy.initial_scale, policy.horizon
        self.log_T = jnp.log(policy.horizon)
        self.played = one_hot(arm, self.K)
        self.arm, self.last_growth = arm, state.last_growth
        self.x_arm, self.x_rest = pick(x, arm), jnp.maximum(rest(x, arm), SMALLEST_REST)
        self.after = policy.update(before, t, x, arm, loss)
        self.z = policy.probabilities(self.after._replace(scale=self.S), t, None)

        # The increments of a round depend on x and S alone, so they are exact from L = 0.
        zeros = jnp.zeros_like(x)
        probe = policy.update(UniINFState(zeros, self.S, zeros, jnp.zeros_like(self.S)), t, x, arm, loss)
        at_arm = pick(probe.cumulative_loss, arm)
        lifted = jnp.max(probe.cumulative_loss)  # the others, by a negative estimate
        self.estimate = jnp.where(at_arm == 0, -lifted, at_arm)
        self.estimate_by_arm = jnp.where(self.played, self.estimate, 0)
        self.growth = (probe.scale - self.S) + probe.scale_lost
        self.skipped = (self.estimate == 0) & (jnp.abs(loss) > FLOOR)

        # x/z - 1 without cancellation: 1/z - 1/x is the estimate over S at the arm plus a multiplier,
        # and the multiplier makes z sum to one.
        weight = x * self.z
        share = weight / jnp.sum(weight)
        w = x * (self.estimate / self.S) * jnp.where(self.played, rest(share, arm), -pick(share, arm))
        self.div = self.S * jnp.sum(_w_minus_log1p(w))

    def terms(self, best_arm: Array | float) -> Array:
        """Returns the terms that the round adds to ``SUMS``."""
        suffered = self.estimate * self.x_arm
        log_barrier = self.last_growth * jnp.sum(jnp.log(self.x))
        size = jnp.minimum(jnp.abs(self.loss), LARGEST_LOSS)
        root = jnp.sqrt(size)
        quarter = jnp.sqrt(root)
        powers = (size, size * quarter, size * root, size * root * quarter, size * size)
        off_best = self.skipped & (jnp.asarray(self.arm).astype(self.x.dtype) != best_arm)
        return jnp.stack([
            suffered,
            jnp.abs(suffered),
            jnp.abs(self.estimate),
            self.div,
            log_barrier,
            jnp.abs(log_barrier),
            self.growth,
            self.skipped.astype(self.x.dtype),
            jnp.where(off_best, size, 0),
            *((self.skipped & (size < m * self.S_1)).astype(self.x.dtype) for m in SIZES),
            *powers,
        ])  # fmt: skip

    def facts(self, sums: dict[str, Array], estimates: Array) -> dict[str, tuple[Array, Array]]:
        """Returns for each fact whether this round violates it, and its ratio or relative error."""
        S, K, log_T, z, x = self.S, self.K, self.log_T, self.z, self.x
        growths, S_next = sums["growth"], self.S_1 + sums["growth"]
        most = 1 / (16 * K * log_T)
        relative = self.growth / S * (2 + self.growth / S)
        weighted = (self.estimate * self.x_arm * self.x_rest) ** 2 / S

        # The benchmark that leaves the least room is z_n: it minimises what y adds to the bound, so it suffices.
        log_z = S * jnp.sum(jnp.log(z))
        regret = sums["suffered"] - jnp.sum(z * estimates)
        bound = sums["div"] + sums["log_barrier"] - log_z
        ftrl_size = jnp.sum(z * jnp.abs(estimates)) + jnp.abs(log_z)
        ftrl_size = ftrl_size + sums["suffered_size"] + sums["log_barrier_size"] + sums["div"]
        # The paper's own benchmark is 1/T off the best arm; its logarithms add up to the same whichever that is.
        log_y = jnp.log1p(-(K - 1) / self.horizon) - (K - 1) * log_T
        shift = sums["log_barrier"] - S * log_y

        skips_at_most = 1 + jnp.log1p((growths - self.growth) / self.S_1) / (0.5 * jnp.log1p(most))
        return {
            "simplex": self._equal(jnp.sum(x), jnp.ones_like(S)),
            "kkt": self._equal(S / x, self.L + jnp.min(S / x)),  # the likeliest arm has L = 0
            "cumulative_loss": self._equal(
                self.after.cumulative_loss, estimates - jnp.min(estimates), sums["estimate_size"]
            ),
            "scale_sum": self._equal(self.after.scale, S_next),
            "estimate": self._estimate(),
            "growth": self._equal(self.growth, self._growth()),
            "stability_above": self._at_most(jnp.max(z / x), 1.3986),
            "stability_below": self._at_most(jnp.max(x / z), 1 / 0.7556),
            "stability_above_printed": self._at_most(jnp.max(z / x), 2.0),
            "stability_below_printed": self._at_most(jnp.max(x / z), 2.0),
            "div": self._at_most(self.div, 1.033 * weighted),
            "div_printed": self._at_most(self.div, 2048 * weighted),
            "div_sum": self._at_most(sums["div"], 2.11 * growths * K * log_T),
            "div_sum_printed": self._at_most(sums["div"], 4096 * S_next * K * log_T),
            "shift": self._at_most(-self.growth * log_y, self._clipped() ** 2 / (2 * S)),
            "shift_sum": self._at_most(shift, S * K * log_T, sums["log_barrier_size"]),
            "ftrl": self._at_most(regret, bound, ftrl_size),
            "growth_at_most": self._at_most(relative, most),
            "growth_if_skipped": self._equal(jnp.where(self.skipped, relative, most), most),
            "scale_never_falls": self._at_most(S, self.after.scale),
            "skipped_rounds": self._at_most(jnp.where(self.skipped, sums["skipped"], 0), skips_at_most),
            "small_skips": self._small_skips(sums, most),
            "scale_bound": self._at_most(S_next, self._scale_bound(sums)),
        }

    def _estimate(self) -> tuple[Array, Array]:
        """Computes lines 5 to 7 of Algorithm 1; within rounding of the threshold either side of it is allowed."""
        threshold, size = self.S / (4 * self.x_rest), jnp.abs(self.loss)
        kept = self.loss / self.x_arm
        near = jnp.abs(size - threshold) <= tolerance(self.K, self.x.dtype) * threshold
        expected = jnp.where(size < threshold, kept, 0)
        return self._equal(self.estimate, jnp.where(near & (self.estimate == 0), 0, jnp.where(near, kept, expected)))

    def _clipped(self) -> Array:
        """Returns |clip| (1 - x)."""
        return jnp.minimum(jnp.abs(self.loss), self.S / (4 * self.x_rest)) * self.x_rest

    def _growth(self) -> Array:
        """Computes Eq. (4), line 8 of Algorithm 1."""
        square = self._clipped() ** 2 / (self.K * self.log_T)
        return square / (self.S + jnp.sqrt(self.S**2 + square))

    def _small_skips(self, sums: dict[str, Array], most: Array) -> tuple[Array, Array]:
        """Checks the number of skipped losses below M for every M; a skip below M needs S < 4 M (1 - x)."""
        counts = jnp.stack([sums[f"small_skips_{m:g}"] for m in SIZES])
        allowed = 1 + jnp.log(4 * jnp.asarray(SIZES, counts.dtype)) / (0.5 * jnp.log1p(most))
        violated, ratio = self._at_most(counts, allowed)
        return jnp.any(violated), jnp.max(ratio)

    def _scale_bound(self, sums: dict[str, Array]) -> Array:
        """Returns the smallest bound over a."""
        terms = [(a, 2 * 4 ** (a - 2) * sums[f"moment_{a:g}"] / (self.K * self.log_T)) for a in ORDERS]
        roots = [term if a == 1 else jnp.exp(jnp.log(term) / a) for a, term in terms]
        return jnp.maximum(math.sqrt(2) * self.S_1, jnp.min(jnp.stack(roots)))

    def _at_most(self, left: Array, right: Any, size: Any = 0.0) -> tuple[Array, Array]:
        """Checks ``left <= right`` and returns left/right; the ratio is 1 if they differ by rounding alone."""
        right = jnp.asarray(right, left.dtype)
        larger = jnp.maximum(jnp.abs(left), jnp.abs(right))
        slack = tolerance(self.K, left.dtype) * jnp.maximum(larger, size) + FLOOR
        # If a bound is below 0, the ratio is their distance in units of the larger.
        ratio = jnp.where(right > FLOOR, left, left - right + larger) / jnp.where(right > FLOOR, right, larger + FLOOR)
        ratio = jnp.where(jnp.abs(left - right) <= slack, 1, ratio)
        return ~(left - right <= slack), jnp.where(larger <= FLOOR, 0, ratio)  # 0 <= 0 carries no information

    def _equal(self, left: Array, right: Any, size: Any = 0.0) -> tuple[Array, Array]:
        """Checks ``left == right`` entry by entry and returns the relative error."""
        larger = jnp.maximum(jnp.maximum(jnp.abs(left), jnp.abs(right)), size)
        error = jnp.max(jnp.abs(left - right) / jnp.maximum(larger, FLOOR))
        return ~(error <= tolerance(self.K, left.dtype)), error


def _w_minus_log1p(w: Array) -> Array:
    """Returns w - log(1 + w), by its series if the difference would cancel."""
    series = jnp.zeros_like(w)
    for k in reversed(range(12)):
        series = 1 / (k + 2) - w * series
    return jnp.where(jnp.abs(w) < 2.0**-4, w * w * series, w - jnp.log1p(w))

"""Slips in the printed analysis of uniINF, each with a number that shows it; most come from games played here.

None of them changes the algorithm, and the orders of the theorems stand with other constants. ``expectations`` has the
bounds with the constants that the proofs give.
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from jaxbandit.certify.expectations import DIV_SUM, Games, unique_gap
from jaxbandit.environments import Gaussian, Pareto
from jaxbandit.game import Environment
from jaxbandit.policies import UniINF
from jaxbandit.simplex import log_barrier
from jaxbandit.simulation import simulate

SEEDS = 4
CLIP = r"\lvert \text{clip} \rvert"


class Slip(NamedTuple):
    """A slip: its place, the printed statement, the right one, and a number that shows the difference, in Markdown."""

    where: str
    printed: str
    holds: str
    number: str


@dataclasses.dataclass(frozen=True)
class Played:
    """Games of uniINF in float64, with every round: x, S and the loss before it, by seed and round."""

    games: Games
    x: np.ndarray  # [seed, t, K]
    arm: np.ndarray  # [seed, t]
    loss: np.ndarray  # [seed, t]
    S: np.ndarray  # [seed, t + 1]  from S_1 to S_(T+1)

    @property
    def rest(self) -> np.ndarray:
        """1 - x of the arm that was played."""
        return np.where(np.arange(self.games.K) == self.arm[..., None], 0, self.x).sum(axis=-1)

    @property
    def threshold(self) -> np.ndarray:
        """C of the arm that was played."""
        return self.S[:, :-1] / (4 * self.rest)

    @property
    def skipped(self) -> np.ndarray:
        """Whether the loss was skipped."""
        return np.abs(self.loss) >= self.threshold


def played(environment: Environment, horizon: int) -> Played:
    """Plays uniINF and keeps every round."""
    measures = ("scale", "div", "shift", "skip_error_by_arm")
    policy, rounds = UniINF(horizon=float(horizon)), list(range(1, horizon + 1))
    ds = simulate(
        policy,
        environment,
        horizon=horizon,
        num_seeds=SEEDS,
        record=rounds,
        dtype="float64",
        measures=measures,
        trace=SEEDS,
    )
    last, best = ds.isel(round=-1), int(np.argmin(np.asarray(environment.means(1))))  # pyright: ignore[reportArgumentType]
    alpha = float(environment.moment_order)  # pyright: ignore[reportAttributeAccessIssue]
    games = Games(
        K=environment.num_arms,
        T=horizon,
        S_1=float(policy.initial_scale),
        alpha=alpha,
        sigma=float(environment.moment(alpha)),  # pyright: ignore[reportAttributeAccessIssue]
        gap=unique_gap(environment),
        scale=last.scale.values,
        div=last["div"].values,
        shift=ds["shift"].isel(round=-2).values,
        skip_error=np.delete(last.skip_error_by_arm.values, best, axis=-1).sum(axis=-1),
        off_best=horizon - last.pulls.values[:, best],
        regret=last.regret.values,
    )
    first = np.full((SEEDS, 1), games.S_1)
    return Played(
        games, ds.trace_x.values, ds.trace_arm.values, ds.trace_loss.values, np.hstack([first, ds.scale.values])
    )


def errata() -> list[Slip]:
    """Plays three short studies and returns the slips with their numbers."""
    usual = played(Pareto([0.5, 1.0], 1.3), 10_000)  # pyright: ignore[reportArgumentType]
    far = played(Gaussian([0.0] + [100.0] * 9, 1e-3), 60_000)  # pyright: ignore[reportArgumentType]
    small = played(Gaussian([0.005, 0.01], 1e-3), 1_000)  # pyright: ignore[reportArgumentType]
    return [*_scale_slips(usual, small), *_div_slips(usual), *_shift_slips(small), *_skip_slips(far), *_other_slips()]


def _scale_slips(usual: Played, small: Played) -> list[Slip]:
    game, S = usual.games, usual.S
    last = float(S[0, -1])
    printed = 2 * small.games.sigma * (small.games.T / small.games.k_log_t) ** (1 / small.games.alpha)
    growth = game.k_log_t * ((S[:, 1:] / S[:, :-1]) ** 2 - 1)
    clipped = np.minimum(np.abs(usual.loss), usual.threshold)
    return [
        Slip(
            "Upper Bound for $S_{T+1}$, proof",
            r"$S_{T+1} = \sqrt{4 + \sum \ldots}$",
            r"$\sqrt{16 + \sum \ldots}$, since $S_1 = 4$",
            f"one game ends with $S = {last:.3f}$; the printed form gives {math.sqrt(last**2 - 12):.3f}",
        ),
        Slip(
            "Upper Bound for $S_{T+1}$",
            r"$E[S_{T+1}] \le 2 \sigma (T/(K \log T))^{1/\alpha}$",
            r"$\sqrt{2} \, S_1 + 2^{2-3/\alpha} \sigma (T/(K \log T))^{1/\alpha}$",
            f"losses near 0.01: $S = {small.games.scale.mean():.3f}$, printed bound {printed:.3f}",
        ),
        Slip(
            "the same, proof",
            rf"${CLIP} \le C \le S$",
            rf"$C \le S$ needs $x \le 3/4$; always ${CLIP} (1-x) \le S/4$",
            f"$C/S$ reaches {float((usual.threshold / S[:, :-1]).max()):.1f}, and ${CLIP}/S$ reaches "
            f"{float((clipped / S[:, :-1]).max()):.2f}; ${CLIP} (1-x)/S$ is at most "
            f"{float((clipped * usual.rest / S[:, :-1]).max()):.4f}",
        ),
        Slip(
            "Bregman divergence before expectation, proof",
            r"$S_{t+1}^2 \le S_t^2 \, (1 + 1/(4 K \log T))$",
            r"$1/(16 K \log T)$, with equality in skipped rounds",
            r"the largest $K \log T \, (S_{t+1}^2/S_t^2 - 1)$ is "
            f"{float(growth.max()):.5f} = 1/{1 / float(growth.max()):.3f}",
        ),
    ]


def _div_slips(usual: Played) -> list[Slip]:
    game = usual.games
    with jax.enable_x64(True):
        w = np.asarray(_w(usual))
    root = optimize.root_scalar(lambda w: w - math.log1p(w) - w * w, bracket=(-0.9, -0.1)).root
    ratio = float((game.div / ((game.scale - game.S_1) * game.k_log_t)).max())
    return [
        Slip(
            "Bregman divergence before expectation, proof",
            r"$1/2 \le z/x \le 2$ gives $-1/2 \le w \le 1/2$",
            r"it gives $-1/2 \le w \le 1$; harmless, since $w - \log(1+w) \le w^2$ holds from "
            f"$w = -{abs(root):.3f}$ on",
            f"$w$ lies between −{abs(float(w.min())):.3f} and {float(w.max()):.3f} in {w.size:,} entries",
        ),
        Slip(
            "the same, statement",
            r"$\sum \text{Div} \le 4096 \, S K \log T$",
            rf"the proof gives $2048 (1+\sqrt{{2}}) = {2048 * (1 + math.sqrt(2)):.0f}$; "
            rf"sharp is $\sum \text{{Div}} \le {DIV_SUM} (S_{{n+1}} - S_1) K \log T$",
            rf"largest $\sum \text{{Div}} / ((S_{{T+1}} - S_1) K \log T)$: {ratio:.3f}",
        ),
    ]


def _w(usual: Played) -> jax.Array:
    """Returns w = x/z − 1 in every round: z solves the same problem after the estimate."""
    kept = np.where(usual.skipped, 0, usual.loss)

    def one(x, S, arm, kept):
        L = S / x - jnp.min(S / x)
        L = L.at[arm].add(kept / x[arm])
        return x / log_barrier(L - jnp.min(L), S) - 1

    flat = [usual.x.reshape(-1, usual.games.K), usual.S[:, :-1].ravel(), usual.arm.ravel().astype(np.int32)]
    return jax.jit(jax.vmap(one))(*map(jnp.asarray, flat), jnp.asarray(kept.ravel()))


def _shift_slips(small: Played) -> list[Slip]:
    game = small.games
    assert game.gap is not None
    power = (game.sigma**game.alpha / game.gap) ** (1 / (game.alpha - 1))
    printed = 2 * power * game.k_log_t + game.regret.mean() / 4
    return [
        Slip(
            "Stochastic bounds for Ψ-shifting terms",
            r"$E[\sum \text{Shift}] \le 2 K (\sigma^\alpha/\Delta)^{1/(\alpha-1)} \log T + R/4$",
            r"$K \log T \, \max(S_1, q M)$ with $M = 4 (\sigma^\alpha/\Delta)^{1/(\alpha-1)}$ and $q \approx 1$; "
            r"the printed bound lacks $S_1$ and the factor $4^{1/(\alpha-1)}$ of $M_2$",
            rf"losses near 0.01: $\sum \text{{Shift}} = {game.shift.mean():.1f}$, printed bound {printed:.2f}; "
            rf"$4^{{1/(\alpha-1)}}$ at $\alpha = 1.2$ is {4 ** (1 / 0.2):,.0f}",
        )
    ]


def _skip_slips(far: Played) -> list[Slip]:
    game, M = far.games, 101.0  # every loss but the best arm's is near 100
    assert game.gap is not None
    below = far.skipped & (np.abs(far.loss) < M)
    largest = float(np.where(below, far.S[:, :-1], 0).max()) / M
    counts = below.sum(axis=-1)
    printed_count = math.ceil(math.log(M) / math.log(math.sqrt(1 + 1 / (4 * game.k_log_t))))
    allowed = game.small_skips(M) / M
    constant = 2 / (math.log1p(1 / (16 * game.k_log_t)) * game.k_log_t)
    a, ratio = game.alpha, game.sigma**game.alpha / game.gap
    power = ratio ** (1 / (a - 1)) * 4 ** (1 / (a - 1)) / (a - 1)
    printed = power * game.k_log_t * (2 * math.log(4) + math.log(ratio)) + game.regret.mean() / 4
    right = game.small_skips(game.threshold(1.0)) + game.regret.mean() / 4
    measured = float(game.skip_error.mean())
    return [
        Slip(
            "Constant clipping threshold argument",
            r"a skipped loss below $M$ implies $S_t \le M$",
            "$S_t < 4 M (1-x)$; the count is still right for $S_1 = 4$, since $S$ starts from $S_1$ and not from 1",
            f"losses of 100, $M = 101$: skipped at $S$ up to ${largest:.2f} M$",
        ),
        Slip(
            "the same",
            r"at most $\lceil \log M / \log \sqrt{1 + 1/(4 K \log T)} \rceil$ such rounds",
            r"$1 + \log(4M/S_1) / \log \sqrt{1 + 1/(16 K \log T)}$",
            f"{int(counts.max()):,} rounds in a game; printed at most {printed_count:,}, right at most {allowed:,.0f}",
        ),
        Slip(
            "Stochastic and adversarial bounds for skipping losses",
            r"$2 M \log M / \log(1 + 1/(16 K \log T))$ becomes $2 M \log M \, K \log T$, by "
            r"$2x \ge \log(1 + 1/x)$",
            "$1/\\log(1 + 1/x)$ is about $x + 1/2$, so the constant 2 is 32",
            f"$K = {game.K}$ and {game.T:,} rounds: {constant:.2f}. With losses of 0 and 100, "
            rf"$\sum \lvert \text{{SkipErr}} \rvert$ off the best arm is {measured:,.0f} on average: "
            f"{measured / printed:.2f} times the printed stochastic bound, {measured / right:.2f} times the right one",
        ),
    ]


def _other_slips() -> list[Slip]:
    T, K, alpha = 1e6, 10, 1.5
    y = np.full(K, 1 / T)
    y[0] = 1 - (K - 1) / T
    best, others = np.eye(K)[0], np.array([0.0] + [1.0] * (K - 1))
    step, calibration = (float(T * (y - best) @ losses) for losses in (others, others - best))
    gap = (K / T) ** ((alpha - 1) / alpha)
    power = (1 / gap) ** (alpha / (alpha - 1))
    return [
        Slip(
            "Main theorem, formal version; skipping losses, formal version",
            r"$\sigma K^{1-1/\alpha} T^\alpha$",
            r"$T^{1/\alpha}$",
            rf"$\alpha = {alpha}$, $T = 10^6$: $T^\alpha = 10^{{{math.log10(T**alpha):.0f}}}$, more than $T$ times any "
            rf"gap below 1,000; $T^{{1/\alpha}}$ is {T ** (1 / alpha):,.0f}",
        ),
        Slip(
            "Benchmark calibration error",
            r"$E \sum \langle \tilde y - y, \text{skip} \rangle \le (K - 1)/T "
            r"\sum E\lvert \text{skip of the played arm} \rvert \le \sigma K$",
            r"$2 \sigma (K - 1)$, and $\sigma K$ for losses that are not negative; the left side does not depend on "
            "the played arm, so the first step fails",
            rf"best arm 0, the others 1, the best one played throughout, $K = {K}$: {step:.0f} > 0. Best arm −1, which "
            rf"breaks Assumption 1: ${calibration:.0f} > \sigma K = {K}$",
        ),
        Slip(
            "Table 1, Robust MOSS",
            r"$\log(T/K \, (\sigma/\Delta)^{\alpha/(\alpha-1)})$",
            r"$\log(T/K \, (\Delta/\sigma)^{\alpha/(\alpha-1)})$, the form of a MOSS bound",
            r"at the smallest gap that $T$ rounds can detect, $\Delta = \sigma (K/T)^{1-1/\alpha}$: "
            f"printed {math.log(T / K * power):.1f}, right {abs(math.log(T / K / power)):.1f}",
        ),
    ]

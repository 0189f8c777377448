"""uniINF (Chen et al., ICLR 2025) from Algorithm 1 of the paper: literal, in float64, one round at a time."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

SMALLEST_REST = 2.0**-100  # 1 - x is held here, so that C stays finite


class State(NamedTuple):
    """What one round hands to the next.

    Attributes:
        cumulative_loss: [K] sum of the estimates so far, not shifted.
        scale: S_t, the inverse of the learning rate.
    """

    cumulative_loss: np.ndarray
    scale: float


def start(num_arms: int, initial_scale: float = 4.0) -> State:
    """Returns the state before the first round."""
    return State(np.zeros(num_arms), float(initial_scale))  # Line 1


def probabilities(state: State) -> np.ndarray:
    """Solves the FTRL problem of one round through its KKT multiplier.

    Stationarity gives x_i = S / (L_i - Z), and Z is the one number below min L at which x sums to one. With
    v = (min L - Z) / S that is x_i = 1 / (g_i + v), g_i = (L_i - min L) / S, and v lies in [1, K].

    Args:
        state: The state before the round.

    Returns:
        [K] probabilities of the arms.
    """
    gaps = (state.cumulative_loss - np.min(state.cumulative_loss)) / state.scale

    def excess(v: float) -> float:
        return math.fsum([*(1.0 / (gaps + v)), -1.0])

    v = brentq(excess, 1.0, gaps.size + 1.0, xtol=1e-300, rtol=1e-15, maxiter=1000)  # rounding can leave excess(K) > 0
    for _ in range(2):  # Newton; 1/v > 1 is rounding only
        v = max(v + excess(v) / math.fsum((gaps + v) ** -2.0), 1.0)
    return 1.0 / (gaps + v)  # Line 3, Eq. (Psi-def)


def update(
    state: State,
    x: np.ndarray,
    arm: int,
    loss: float,
    horizon: int,
    threshold_constant: float = 0.25,
    scale_loss: str = "clip",
    damped: bool = True,
) -> tuple[State, dict[str, Any]]:
    """Takes the observed loss of the played arm into the state.

    Args:
        state: The state before the round.
        x: [K] probabilities the arm was drawn from.
        arm: The arm played.
        loss: Its observed loss.
        horizon: T, at least 2.
        threshold_constant: The 1/4 of Line 6.
        scale_loss: What Line 8 is fed: the loss that is "clip"ped, "skip"ped, or "raw".
        damped: Whether 1 - x stands in Lines 6 and 8.

    Returns:
        The state after the round, and a dict of "threshold" (C), "skipped", "clipped" and "estimate" [K].
    """
    loss = float(loss)
    rest = max(math.fsum(np.delete(x, arm)), SMALLEST_REST)  # 1 - x[arm] without cancellation
    rest = rest if damped else 1.0
    threshold = threshold_constant * state.scale / rest  # Line 6, Eq. (C-def)
    skipped = loss if abs(loss) < threshold else 0.0  # Line 6, Skip
    clipped = threshold if loss >= threshold else -threshold if loss <= -threshold else loss  # Line 6, Clip
    estimate = np.zeros(x.size)
    estimate[arm] = skipped / x[arm]  # Line 7
    fed = {"clip": clipped, "skip": skipped, "raw": loss}[scale_loss]
    square = state.scale**2 + (fed * rest) ** 2 / (x.size * math.log(horizon))  # Line 8, Eq. (St-def)
    info = {"threshold": threshold, "skipped": skipped, "clipped": clipped, "estimate": estimate}
    return State(state.cumulative_loss + estimate, math.sqrt(square)), info


class UniINF:
    """uniINF as a player.

    Attributes:
        state: What the next round starts from.
        info: What the last update found, as ``update`` returns it.
    """

    def __init__(self, num_arms: int, horizon: int, **changes: Any):
        self.horizon = horizon
        self.changes = changes  # threshold_constant, scale_loss, damped
        self.state = start(num_arms)
        self.info: dict[str, Any] = {}

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        return probabilities(self.state)

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        self.state, self.info = update(self.state, x, arm, loss, self.horizon, **self.changes)


def bregman(x: np.ndarray, z: np.ndarray, scale: float) -> float:
    """Returns Div, the Bregman divergence of S times the log-barrier from z to x."""
    w = x / z - 1.0
    return float(scale * np.sum(w - np.log1p(w)))


def benchmark(num_arms: int, best_arm: int, horizon: int) -> np.ndarray:
    """Returns the benchmark y~: 1/T off the best arm, 1 - (K - 1)/T at it."""
    y = np.full(num_arms, 1.0 / horizon)
    y[best_arm] = 1.0 - (num_arms - 1) / horizon
    return y


def draw(x: np.ndarray, uniform: float) -> int:
    """Draws an arm by inversion.

    Args:
        x: [K] probabilities.
        uniform: A number in (0, 1).

    Returns:
        The arm.
    """
    return int(np.argmax(uniform * np.sum(x) < np.cumsum(x)))


def play(
    losses: np.ndarray, uniforms: np.ndarray, num_arms: int, horizon: int, initial_scale: float = 4.0
) -> dict[str, np.ndarray]:
    """Plays as many rounds as there are rows in a table of losses.

    Args:
        losses: [T, K] losses of every arm.
        uniforms: [T] numbers in (0, 1), one draw each.
        num_arms: K.
        horizon: The T that the algorithm is given.
        initial_scale: S_1.

    Returns:
        A dict of "x" [T, K], "arms" [T], "scales" [T + 1] and "cumulative_loss" [T + 1, K].
    """
    states, xs, arms = [start(num_arms, initial_scale)], [], []
    for row, uniform in zip(losses, uniforms, strict=True):  # Line 2
        x = probabilities(states[-1])
        arm = draw(x, uniform)  # Line 4
        state, _ = update(states[-1], x, arm, row[arm], horizon)
        states.append(state)
        xs.append(x)
        arms.append(arm)
    return {
        "x": np.reshape(xs, (len(arms), num_arms)).astype(float),
        "arms": np.array(arms, dtype=int),
        "scales": np.array([s.scale for s in states]),
        "cumulative_loss": np.array([s.cumulative_loss for s in states]),
    }

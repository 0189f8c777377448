"""SAO-HT and its fallback OMD-LB-HT (Cheng, Zhou, Ji, NeurIPS 2024): literal, in float64, one round at a time."""

import math

import numpy as np


def mirror_step(weights: np.ndarray, rates: np.ndarray, estimate: np.ndarray, floor: float) -> np.ndarray:
    """Takes one step of mirror descent with the log-barrier on the simplex with a floor.

    Stationarity gives x_i = max(floor, 1 / (1 / w_i + eta_i (lhat_i - nu))), which increases in nu; nu is bisected
    down to neighbouring numbers.

    Args:
        weights: [K] w_t, each at least the floor.
        rates: [K] eta_t.
        estimate: [K] lhat_t.
        floor: The least probability.

    Returns:
        [K] w_{t+1}.
    """

    def point(nu: float) -> np.ndarray | None:
        inverse = 1.0 / weights + rates * (estimate - nu)
        return None if np.min(inverse) <= 0.0 else np.maximum(1.0 / inverse, floor)  # kernel K4

    def above(nu: float) -> bool:
        x = point(nu)
        return x is None or math.fsum([*x, -1.0]) > 0.0

    low, high, step = float(np.min(estimate)), float(np.max(estimate)), 1.0
    while above(low):  # rounding only
        low, step = low - step, 2.0 * step
    while not above(high):
        high, step = high + step, 2.0 * step
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if above(middle) else (middle, high)
    x = point(low)
    assert x is not None
    return x


class OMDLBHT:
    """OMD-LB-HT: log-barrier mirror descent on trimmed losses.

    Attributes:
        weights: [K] w_t.
        rates: [K] eta_t.
        levels: [K] rho_t.
    """

    def __init__(
        self, num_arms: int, horizon: int, moment_order: float, moment_bound: float, failure_probability: float
    ):
        v, u, zeta = float(moment_order) - 1.0, float(moment_bound), float(failure_probability)
        self.num_arms = num_arms
        self.horizon = horizon
        self.weights = np.full(num_arms, 1.0 / num_arms)  # w_1
        self.levels = np.full(num_arms, 2.0 * num_arms)  # rho_1
        if horizon < 2:  # ln T = 0: uniform in the only round, and nothing after it to prepare
            return
        self.trim = u * (horizon / num_arms) ** (1.0 / (1.0 + v))  # M
        rate = 1.0 / (40.0 * self.trim * math.log(horizon) * math.log(8.0 * num_arms * horizon / zeta))  # eta
        self.growth = math.exp(1.0 / math.log(horizon))  # kappa
        mixing = horizon ** (-v / (1.0 + v)) * num_arms ** (-1.0 / (1.0 + v))  # lambda
        self.floor = mixing / num_arms  # Omega'
        self.rates = np.full(num_arms, rate)  # eta_1

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        return self.weights.copy()

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        if self.horizon < 2:
            return
        estimate = np.zeros(self.num_arms)
        if abs(loss) <= self.trim:
            estimate[arm] = float(loss) / float(x[arm])  # lhat
        self.weights = mirror_step(self.weights, self.rates, estimate, self.floor)  # w_{t+1}
        for i in range(self.num_arms):
            if 1.0 / self.weights[i] > self.levels[i]:
                self.levels[i] = 2.0 / self.weights[i]  # rho_{t+1,i}
                self.rates[i] *= self.growth  # eta_{t+1,i}


class SAOHT:
    """SAO-HT: eliminates arms while the losses look stochastic, else switches to OMD-LB-HT for good.

    Attributes:
        cumulative_loss: [K] Lhat.
        trimmed_sum: [K] S.
        counts: [K] N.
        weights: [K] w_t, before the switch.
        active: [K] whether the arm is in A_t.
        removal: [K] tau.
        kept: [K] q, where the arm is not active.
        switched: t_sw, or None.
        fallback: OMD-LB-HT, after the switch.
    """

    def __init__(
        self,
        num_arms: int,
        horizon: int,
        moment_order: float,
        moment_bound: float,
        failure_probability: float,
        constant_scale: float = 1.0,
    ):
        self.num_arms = num_arms
        self.horizon = horizon
        self.moment_order = moment_order
        self.v = float(moment_order) - 1.0
        self.u = float(moment_bound)
        self.zeta = float(failure_probability)
        self.constant_scale = float(constant_scale)
        self.c1 = 6.0
        beta = 12.0 * horizon**2 * num_arms * math.log(horizon)
        self.log_beta = math.log(beta / self.zeta)  # ln(beta/zeta)
        self.cumulative_loss = np.zeros(num_arms)
        self.trimmed_sum = np.zeros(num_arms)
        self.counts = np.zeros(num_arms, dtype=int)
        self.weights = np.full(num_arms, 1.0 / num_arms)  # w_{K+1}
        self.active = np.ones(num_arms, dtype=bool)  # A_K
        self.removal = np.full(num_arms, horizon)  # tau
        self.kept = np.zeros(num_arms)
        self.switched: int | None = None
        self.fallback: OMDLBHT | None = None

    def trim_weighted(self, t: int) -> float:
        """Returns M_t."""
        divisor = math.log(math.log(self.horizon) / self.zeta) ** (1.0 / (3.0 * self.v + 1.0))
        return self.u * (t / self.num_arms) ** (1.0 / (1.0 + self.v)) / divisor

    def trim_mean(self, n: int) -> float:
        """Returns B_{t,i} after n plays of the arm, the current one included."""
        return self.u * (n / math.log(2.0 * self.horizon / self.zeta)) ** (1.0 / (1.0 + self.v))

    def width(self, t: int) -> float:
        """Returns Width(t)."""
        spread = 12.0 * self.u * self.num_arms ** (self.v / (1.0 + self.v)) * t ** (1.0 / (1.0 + self.v))
        return self.constant_scale * spread * self.log_beta ** (3.0 * self.v / (3.0 * self.v + 1.0))

    def deviation_bound(self, t: int, i: int) -> float:
        """Returns the right-hand side of test (6) for arm i."""
        mean_part = 9.0 * self.u * (self.log_beta / self.counts[i]) ** (self.v / (1.0 + self.v))
        return self.constant_scale * mean_part + self.width(t) / (t if self.active[i] else self.removal[i])

    def suspicious(self, t: int) -> bool:
        """Tells whether one of the tests (6), (7) and (8) fires at round t."""
        lowest = np.min(self.cumulative_loss[self.active])
        for i in range(self.num_arms):
            mean = self.trimmed_sum[i] / self.counts[i]  # muhat
            if abs(self.cumulative_loss[i] / t - mean) > self.deviation_bound(t, i):  # (6)
                return True
            if not self.active[i]:
                gap = (self.cumulative_loss[i] - lowest) / t
                if gap > (self.c1 + 4.0) * self.width(t) / (self.removal[i] - 1):  # (7)
                    return True
                if gap <= (self.c1 - 4.0) * self.width(t) / self.removal[i]:  # (8)
                    return True
        return False

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] law of the arm at round t (1-based)."""
        if t <= self.num_arms:
            return np.eye(self.num_arms)[t - 1]  # rounds 1..K: each arm once
        if self.fallback is not None and self.switched is not None:
            return self.fallback.probabilities(t - self.switched)
        return self.weights.copy()

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm drawn from x at round t."""
        if self.fallback is not None and self.switched is not None:
            self.fallback.update(t - self.switched, x, arm, loss)
            return
        weight = 1.0 / self.num_arms if t <= self.num_arms else float(x[arm])  # w = 1/K in the initial rounds
        if abs(loss) <= self.trim_weighted(t):
            self.cumulative_loss[arm] += float(loss) / weight  # Lhat_t
        self.counts[arm] += 1
        if abs(loss) <= self.trim_mean(self.counts[arm]):
            self.trimmed_sum[arm] += float(loss)  # S
        if t <= self.num_arms:
            return
        lowest = np.min(self.cumulative_loss[self.active])  # over A_{t-1}
        for i in range(self.num_arms):
            if self.active[i] and self.cumulative_loss[i] - lowest > self.c1 * self.width(t):  # (5)
                self.active[i] = False
                self.removal[i] = t  # tau_i
                self.kept[i] = self.weights[i]  # q_i
        if self.suspicious(t):
            self.switched = t  # t_sw
            self.fallback = OMDLBHT(self.num_arms, self.horizon - t, self.moment_order, self.u, self.zeta)
            return
        for i in range(self.num_arms):
            if not self.active[i]:
                self.weights[i] = self.kept[i] * self.removal[i] / (t + 1)
        rest = 1.0 - math.fsum(self.weights[~self.active])
        self.weights[self.active] = rest / np.sum(self.active)

"""APE^2 (Lee et al., NeurIPS 2020), MR-UCB and MR-APE (Lee, Lim, 2022): literal, in float64, with full histories."""

import math

import numpy as np


def robust_constant(p: float) -> float:
    """Returns b_p."""
    if p == 2.0:
        return 0.5
    r = (2.0 - p) / (p - 1.0)
    return (2.0 * r ** (1.0 - 2.0 / p) + r ** (2.0 - 2.0 / p)) ** (-p / 2.0)


def psi(x: float, p: float) -> float:
    """Returns sign(x) ln(1 + |x| + b_p |x|^p), the influence function psi_p."""
    return math.copysign(math.log1p(abs(x) + robust_constant(p) * abs(x) ** p), x)


def robust_mean(rewards: list[float], p: float, c: float) -> float:
    """Returns the p-robust estimate with constant c."""
    n = len(rewards)
    total = math.fsum(psi(y / (c * n ** (1.0 / p)), p) for y in rewards)
    return c / n ** (1.0 - 1.0 / p) * total  # Yhat_n


def perturb(uniforms: np.ndarray, perturbation: str, num_arms: int, p: float) -> np.ndarray:
    """Turns uniforms in (0, 1) into the perturbations G, at the parameters of the authors.

    Args:
        uniforms: [K] numbers in (0, 1).
        perturbation: "weibull", "gamma", "gumbel", "pareto" or "frechet".
        num_arms: K.
        p: The order of the moment.

    Returns:
        [K] perturbations.
    """
    u = np.asarray(uniforms, dtype=np.float64)
    if perturbation in ("weibull", "gamma"):  # k = lam = 1, a = lam = 1: both exponential
        return -np.log1p(-u)
    if perturbation == "gumbel":  # zeta = 0, lam = 1
        return -np.log(-np.log(u))
    least = p**2 / (p - 1.0)
    log_arms = math.log(num_arms)
    a, lam = (log_arms, log_arms) if log_arms >= least else (least, 1.0)
    if perturbation == "pareto":
        return lam * (1.0 - u) ** (-1.0 / a)
    if perturbation == "frechet":
        return lam * (-np.log(u)) ** (-1.0 / a)
    raise KeyError(perturbation)


class APE2:
    """APE^2: follows the largest perturbed p-robust estimate.

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(self, num_arms: int, moment_order: float, scale: float, perturbation: str = "weibull"):
        self.num_arms = num_arms
        self.p = float(moment_order)
        self.c = float(scale)
        self.perturbation = perturbation
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def indices(self, noise: np.ndarray) -> np.ndarray:
        """Returns the [K] indices given [K] uniforms; +inf for an arm never played."""
        g = perturb(noise, self.perturbation, self.num_arms, self.p)
        index = np.full(self.num_arms, math.inf)  # rounds 1..K
        for a, y in enumerate(self.rewards):
            if y:
                beta = self.c / len(y) ** (1.0 - 1.0 / self.p)  # beta_a
                index[a] = robust_mean(y, self.p, self.c) + beta * g[a]
        return index

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based), given [K] uniforms."""
        return np.eye(self.num_arms)[np.argmax(self.indices(noise))]  # ties to the lowest index

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))


class MRUCB:
    """MR-UCB: the p-robust estimate plus a MOSS-like bonus.

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(self, num_arms: int, horizon: int, moment_order: float, scale: float, estimator_scale: float = 0.1):
        self.num_arms = num_arms
        self.horizon = horizon
        self.p = float(moment_order)
        self.c = float(scale)
        self.estimator_scale = float(estimator_scale)
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def bonus(self, n: int) -> float:
        """Returns the bonus of an arm after n plays."""
        return self.c * math.log(max(self.horizon / (self.num_arms * n), 1.0)) / n ** (1.0 - 1.0 / self.p)

    def indices(self) -> np.ndarray:
        """Returns the [K] indices; +inf for an arm never played."""
        index = np.full(self.num_arms, math.inf)
        for a, y in enumerate(self.rewards):
            if y:
                index[a] = robust_mean(y, self.p, self.estimator_scale) + self.bonus(len(y))
        return index

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based)."""
        return np.eye(self.num_arms)[np.argmax(self.indices())]  # ties to the lowest index

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))


class MRAPE:
    """MR-APE: MR-UCB with its bonus times a bounded perturbation.

    Attributes:
        rewards: One list of rewards (minus the losses) per arm, in order of arrival.
    """

    def __init__(self, num_arms: int, horizon: int, moment_order: float, scale: float, factor: float = 2.0):
        self.num_arms = num_arms
        self.horizon = horizon
        self.p = float(moment_order)
        self.c = float(scale)
        self.factor = float(factor)
        self.rewards: list[list[float]] = [[] for _ in range(num_arms)]

    def bonus(self, n: int) -> float:
        """Returns the bonus of an arm after n plays, before the perturbation."""
        return self.c * math.log(max(self.horizon / (self.num_arms * n), 1.0)) / n ** (1.0 - 1.0 / self.p)

    def indices(self, noise: np.ndarray) -> np.ndarray:
        """Returns the [K] indices given [K] uniforms G; +inf for an arm never played."""
        index = np.full(self.num_arms, math.inf)
        for a, y in enumerate(self.rewards):
            if y:
                index[a] = robust_mean(y, self.p, self.c) + self.factor * float(noise[a]) * self.bonus(len(y))
        return index

    def probabilities(self, t: int, noise: np.ndarray | None = None) -> np.ndarray:
        """Returns the [K] one-hot law of the arm at round t (1-based), given [K] uniforms."""
        return np.eye(self.num_arms)[np.argmax(self.indices(noise))]  # ties to the lowest index

    def update(self, t: int, x: np.ndarray, arm: int, loss: float) -> None:
        """Takes the loss of the arm played at round t."""
        self.rewards[arm].append(-float(loss))

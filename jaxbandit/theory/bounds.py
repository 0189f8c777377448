r"""Lower bounds of the theory, as orders that no policy can beat by more than a constant and logarithms.

An order is a bound for the class of all environments with these gaps, alpha and sigma, and some of them are easier. Its
constants are not known. They are set to 1 here, so a curve drawn from these functions has the right *slope*, but its
height has no meaning. Figures therefore draw slope guides, short segments at the end of a curve, with the words of
``LABELS``. ``jb.theory.instance_bound`` has the constant for one environment, as T grows.

References:
  Bubeck, Cesa-Bianchi, Lugosi. "Bandits with heavy tail". IEEE Transactions on Information Theory, 2013.
  https://arxiv.org/abs/1209.1727. As quoted in Table 1 of https://arxiv.org/abs/2410.03284.
"""

import numpy as np

LABELS = {
    "minimax": "lower bound, order only, for the class: σ K^(1−1/α) T^(1/α)",
    "instance": "lower bound, order only, for the class with these gaps: Σ (σ^α/Δ)^(1/(α−1)) log T",
}


def minimax(horizon: np.ndarray | float, num_arms: int, moment_order: float, moment_bound: float) -> np.ndarray:
    r"""Returns the order :math:`\sigma K^{1 - 1/\alpha} T^{1/\alpha}` of the worst instance, adversarial or stochastic.

    Args:
      horizon: T, one or several.
      num_arms: K.
      moment_order: :math:`\alpha` in (1, 2].
      moment_bound: :math:`\sigma` with :math:`E|\ell|^\alpha \le \sigma^\alpha`.

    Example:
      >>> float(minimax(10_000, num_arms=4, moment_order=2.0, moment_bound=1.0))
      200.0
    """
    _check(horizon, num_arms, moment_order, moment_bound)
    T = np.asarray(horizon, np.float64)
    return moment_bound * num_arms ** (1 - 1 / moment_order) * T ** (1 / moment_order)


def instance(
    horizon: np.ndarray | float, gaps: np.ndarray | list[float], moment_order: float, moment_bound: float
) -> np.ndarray:
    r"""Returns the order :math:`\sum_i (\sigma^\alpha / \Delta_i)^{1/(\alpha - 1)} \log T` of one stochastic instance.

    Args:
      horizon: T, one or several.
      gaps: :math:`\Delta_i`, the mean losses less the smallest; entries of 0 are the best arms and add nothing.
      moment_order: :math:`\alpha` in (1, 2].
      moment_bound: :math:`\sigma` with :math:`E|\ell|^\alpha \le \sigma^\alpha`.

    Example:
      >>> float(instance(np.e, gaps=[0.0, 0.5, 0.25], moment_order=2.0, moment_bound=1.0))
      6.0
    """
    gaps = np.asarray(gaps, np.float64)
    _check(horizon, gaps.size, moment_order, moment_bound)
    if gaps.ndim != 1 or (gaps < 0).any() or not (gaps == 0).any():
        raise ValueError(f"gaps must be a list with 0 at the best arm and none below, got {gaps.tolist()}")
    rates = (moment_bound**moment_order / gaps[gaps > 0]) ** (1 / (moment_order - 1))
    return rates.sum() * np.log(np.asarray(horizon, np.float64))


def _check(horizon: np.ndarray | float, num_arms: int, moment_order: float, moment_bound: float) -> None:
    if np.any(np.asarray(horizon) < 1):
        raise ValueError(f"horizon must be >= 1, got {np.min(horizon)}; give a number of rounds")
    if num_arms < 2:
        raise ValueError(f"a lower bound needs at least 2 arms, got {num_arms}; one arm has no regret")
    if not 1 < moment_order <= 2:
        raise ValueError(f"moment_order must lie in (1, 2], got {moment_order}; at 1 nothing can be learnt")
    if not moment_bound > 0:
        raise ValueError(f"moment_bound must be > 0, got {moment_bound}; environment.moment(alpha) returns it")

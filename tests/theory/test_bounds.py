"""Lower bounds as orders: their exponents, and where the two meet."""

import numpy as np
import pytest

from jaxbandit.theory import bounds


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0])
def test_minimax_exponents(alpha):
    T = np.array([1e3, 1e6])
    low, high = bounds.minimax(T, 10, alpha, 3.0)
    assert np.log(high / low) / np.log(1e3) == pytest.approx(1 / alpha)
    assert bounds.minimax(1e3, 160, alpha, 3.0) / low == pytest.approx(16 ** (1 - 1 / alpha))
    assert bounds.minimax(1e3, 10, alpha, 6.0) == pytest.approx(2 * low)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0])
def test_instance_order(alpha):
    value = bounds.instance(1e4, [0.0, 0.5], alpha, 3.0)
    assert bounds.instance(1e8, [0.0, 0.5], alpha, 3.0) == pytest.approx(2 * value)
    assert bounds.instance(1e4, [0.5, 0.0, 0.5], alpha, 3.0) == pytest.approx(2 * value)
    assert bounds.instance(1e4, [0.0, 1.0], alpha, 3.0) == pytest.approx(value * 2 ** (-1 / (alpha - 1)))
    # The unit of the losses is the unit of the regret.
    assert bounds.instance(1e4, [0.0, 5.0], alpha, 30.0) == pytest.approx(10 * value)


@pytest.mark.parametrize("alpha", [1.2, 2.0])
def test_the_two_meet_at_the_hardest_gap(alpha):
    """With the gap sigma (K/T)^(1 - 1/alpha) the instance bound is the minimax one, but for (K - 1)/K and log T."""
    T, K, sigma = 1e6, 10, 2.0
    gap = sigma * (K / T) ** (1 - 1 / alpha)
    instance = bounds.instance(T, [0.0] + [gap] * (K - 1), alpha, sigma)
    assert instance / np.log(T) * K / (K - 1) == pytest.approx(float(bounds.minimax(T, K, alpha, sigma)))


def test_labels_say_that_only_the_order_is_meant():
    assert all("order only" in label for label in bounds.LABELS.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.minimax(0.5, 2, 1.5, 1.0), "horizon must be >= 1, got 0.5"),
        (lambda: bounds.minimax(10, 1, 1.5, 1.0), "at least 2 arms, got 1"),
        (lambda: bounds.minimax(10, 2, 1.0, 1.0), r"moment_order must lie in \(1, 2\], got 1.0"),
        (lambda: bounds.minimax(10, 2, 1.5, 0.0), "moment_bound must be > 0, got 0.0"),
        (lambda: bounds.instance(10, [0.1, 0.2], 1.5, 1.0), r"0 at the best arm and none below, got \[0.1, 0.2\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

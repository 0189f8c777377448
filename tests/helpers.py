"""What several tests share: statistical assertions with a stated false-alarm rate, and how to play quickly."""

import jax
import numpy as np

import jaxbandit as jb


def assert_mean(samples, expected: float, z: float = 5.0) -> None:
    """The mean of independent samples is ``expected``; z = 5 is a false alarm in 1.7 million."""
    samples = np.asarray(samples, np.float64)
    stderr = samples.std(ddof=1) / np.sqrt(samples.size)
    assert abs(samples.mean() - expected) <= z * stderr, (samples.mean(), expected, stderr)


def assert_count(count: int, trials: int, probability: float, z: float = 5.0) -> None:
    """A binomial count is as expected; the Poisson bound covers small means."""
    mean = trials * probability
    assert abs(count - mean) <= z * np.sqrt(mean * (1 - probability)) + z * z / 3, (count, mean)


def filled(num_seeds: int) -> jb.Engine:
    """An engine whose first block is these games and no more: by default up to 2,048 lanes would play along."""
    return jb.Engine(block=-(-num_seeds // jax.local_device_count()))

"""Parameters by suite, assertions with a false-alarm rate, refusals, streams of given words, and peak memory."""

import pathlib

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxbandit import random

RARE = 1e-6  # a p-value below it is an alarm

# For a script in a process of its own: its peak memory in kB. getrusage would remember the peak of who started it.
PEAK = r"""
import pathlib, re
def peak():
    return int(re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""
knows_peak = pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="no /proc to ask for the peak")


def some(fast, slow):
    """Values of a parameter: those of the fast suite, and those that only the slow one tries."""
    return [*fast, *(pytest.param(value, marks=pytest.mark.slow) for value in slow)]


def assert_mean(samples, expected: float, z: float = 5.0) -> None:
    """The mean of independent samples is ``expected``; z = 5 is a false alarm in 1.7 million."""
    samples = np.asarray(samples, np.float64)
    stderr = samples.std(ddof=1) / np.sqrt(samples.size)
    assert abs(samples.mean() - expected) <= z * stderr, (samples.mean(), expected, stderr)


def assert_count(count: int, trials: int, probability: float, z: float = 5.0) -> None:
    """A binomial count is as expected; the Poisson bound covers small means."""
    mean = trials * probability
    assert abs(count - mean) <= z * np.sqrt(mean * (1 - probability)) + z * z / 3, (count, mean)


def assert_binomial(count, trials, probability):
    """A count of independent events; each side a false alarm in 2.9e-7 (z = 5): of 20 expected, 1 is too few."""
    law = scipy.stats.binom(trials, probability)
    assert min(law.cdf(count), law.sf(count - 1)) > 2.9e-7, (count, trials * probability)


def assert_refused(make, parts) -> None:
    """Raises a ``ValueError`` whose message has all the parts: field, value, bound, remedy."""
    with pytest.raises(ValueError) as refused:
        make()
    missing = [part for part in parts if part not in str(refused.value)]
    assert not missing, f"{missing} not in: {refused.value}"


def stream_from(words, spare=None):
    """A stream that gives the words of an array in order."""

    def draw(first, count):
        assert first == 0
        assert 2 * count <= words.shape[0]
        return words[:count], words[count : 2 * count]

    return random.Stream(draw, spare=None if spare is None else lambda: jnp.asarray(spare, jnp.uint32))


def stream_of_pairs(high, low, spare=None):
    """A stream of these pairs of words, number 0, 1, ...: tests draw them once, for ciphers are long to compile."""

    def draw(first, count):
        assert first + count <= high.shape[0]
        return high[first : first + count], low[first : first + count]

    return random.Stream(draw, spare=None if spare is None else lambda: spare)


def stream_of(*words, spare=None):
    return stream_from(jnp.array(words, jnp.uint32), spare)

"""Means that drift: random walks that any round can be asked of, and waves."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import jaxbandit as jb
from jaxbandit.environments.schedules.drifting import reflected, walk
from tests.support.laws import MEANS
from tests.support.policies import quick_jit
from tests.support.schedules import LAW, table_of

_walk = jax.jit(jax.vmap(lambda seed, place: walk(seed, place, 2), (None, 0)))


def walked(seed, places):
    with jax.enable_x64(True):
        return np.asarray(_walk(jnp.uint32(seed), jnp.asarray(places, jnp.int32)))


def test_a_walk_has_independent_normal_steps():
    path = walked(0, np.arange(20_001))
    np.testing.assert_array_equal(path[0], 0)
    steps = np.diff(path, axis=0)
    for arm in range(2):
        assert scipy.stats.kstest(steps[:, arm], scipy.stats.norm.cdf).pvalue > 1e-6
    for lag in (1, 2, 3, 4, 8, 1024):
        assert abs(np.mean(steps[lag:] * steps[:-lag])) < 5 / math.sqrt(2 * (20_000 - lag))
    assert abs(np.mean(steps[:, 0] * steps[:, 1])) < 5 / math.sqrt(20_000)
    assert abs(np.mean(steps)) < 5 / math.sqrt(40_000)


def test_a_walk_is_the_same_wherever_it_is_asked_and_normal_far_out():
    places = np.array([0, 1, 2, 3, 1000, 2**20, 2**31 - 1])
    together = walked(7, places)
    alone = np.concatenate([walked(7, [place]) for place in places])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    for first, last in ((5, 900), (2**20 - 1, 2**20 + 3), (2**30, 2**31 - 1)):
        moves = np.concatenate([np.diff(walked(seed, [first, last]), axis=0).ravel() for seed in range(300)])
        assert scipy.stats.kstest(moves / math.sqrt(last - first), scipy.stats.norm.cdf).pvalue > 1e-6


def test_a_walk_draws_one_normal_a_level():
    """O(log T) work at any round: the largest array has a row per level."""
    jaxpr = jax.make_jaxpr(lambda place: walk(jnp.uint32(0), place, 2))(jnp.int32(5)).jaxpr
    assert max(np.prod(var.aval.shape, dtype=int) for eqn in jaxpr.eqns for var in eqn.outvars) <= 2 * 2 * 32


def test_walks_are_reflected_at_the_amplitude():
    x = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0, -0.5, -1.5, -3.0, 101.25])
    expected = [0.0, 0.5, 1.0, 0.5, 0.0, -1.0, -0.5, 0.0, -0.5, -0.5, 1.0, 0.75]
    np.testing.assert_allclose(quick_jit(reflected)(jnp.asarray(x, jnp.float32), jnp.float32(1)), expected, atol=1e-4)
    environment = jb.Drifting(LAW, "random_walk", amplitude=0.2, step=0.05)
    moved = table_of(environment, 5000) - MEANS
    assert np.abs(moved).max() <= 0.2 + 1e-9
    assert (np.abs(moved).max(axis=0) > 0.15).all()


def test_waves_beyond_the_precision_of_float32():
    environment = jb.Drifting(LAW, "sinusoidal", amplitude=0.2, period=1000)
    for t in (2**24 + 1, 2**30 + 77, 2**31 - 1):
        expected = np.asarray(MEANS) + 0.2 * np.sin(2 * np.pi * ((t - 1) % 1000 / 1000 + np.arange(3) / 3))
        np.testing.assert_allclose(environment.means(jnp.int32(t)), expected, rtol=1e-5)

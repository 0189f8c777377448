"""Phases of switching environments: their lengths, exact at any round, and what is reversed in them."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.environments.schedules.switching import geometric
from tests.support.laws import MEANS, losses
from tests.support.policies import quick_jit
from tests.support.schedules import LAW, table_of


def exact_ends(growth, until):
    """Last rounds of the phases, in exact arithmetic."""
    length, ends = 1, [1]
    while ends[-1] < until:
        length = math.ceil(Fraction(growth) * length)
        ends.append(ends[-1] + length)
    return ends


@quick_jit
def _phases(environment, rounds):
    return jax.vmap(environment.phase)(rounds)


def phases(environment, rounds):
    return np.asarray(_phases(environment, jnp.asarray(np.resize(rounds, 4096), jnp.int32)))[: len(rounds)]


def test_phases_grow_by_the_factor_rounded_up():
    environment = jb.Switching(LAW)
    high, low = np.asarray(environment.ends, np.int64)
    ends = (high << 16) + low
    assert ends[0] == 1
    assert np.diff(ends)[:6].tolist() == [2, 4, 7, 12, 20, 32]
    assert geometric(1.1)[:12].tolist() == [*range(1, 12), 13]  # 1.1 * 10 is a little above 11 in floating point
    until = exact_ends(Fraction(8, 5), 2**31)
    assert ends[: len(until)].tolist() == [min(end, 2**31 - 1) for end in until]
    np.testing.assert_array_equal(phases(environment, [1, 2, 3, 4, 7, 8, 14, 15]), [0, 1, 1, 2, 2, 3, 3, 4])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("growth", [Fraction(8, 5), Fraction(101, 100), Fraction(10)], ids=float)
def test_phase_is_exact_at_every_boundary(growth, dtype):
    last = 2**31 - 2
    ends = np.array([end for end in exact_ends(growth, last) if end <= last])
    rounds = np.unique(np.concatenate([ends - 1, ends, ends + 1, [last]]))
    rounds = rounds[rounds >= 1]
    with jax.enable_x64(dtype == "float64"):
        environment = jb.Switching(LAW, growth=float(growth))
        np.testing.assert_array_equal(phases(environment, rounds), np.searchsorted(ends, rounds))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_given_lengths(dtype):
    with jax.enable_x64(dtype == "float64"):
        environment = jb.Switching(LAW, lengths=[3, 1, 9_999_993, 2, 1])
        rounds = [1, 3, 4, 5, 9_999_996, 9_999_997, 9_999_998, 9_999_999, 10_000_000, 10_000_001, 16_000_000]
        expected = [0, 0, 1, 2, 2, 2, 3, 3, 4, 4, 4]
        np.testing.assert_array_equal(phases(environment, rounds), expected)
        assert phases(jb.Switching(LAW, lengths=[3]), [1, 3, 4, 1000]).tolist() == [0, 0, 0, 0]


def test_means_and_losses_are_reversed_in_every_other_phase():
    environment, rounds = jb.Switching(LAW, lengths=[3, 2, 4, 1, 1]), np.arange(1, 14)
    is_reversed = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0], bool)
    expected = np.where(is_reversed[:, None], MEANS[::-1], MEANS)
    np.testing.assert_array_equal(table_of(environment, len(rounds)), expected)
    for arm in range(3):
        place = np.where(is_reversed, 2 - arm, arm)
        np.testing.assert_allclose(losses(environment, arm, rounds), losses(LAW, place, rounds), rtol=1e-6)


def test_switching_declares_the_moments_of_its_law():
    environment = jb.Switching(LAW)
    assert environment.moment_order == LAW.moment_order
    assert environment.moment(1.3) == LAW.moment(1.3)

"""Spoilt rounds: as many as the budget says, drawn evenly, the best and the worst arm exchanged."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from tests.support.policies import quick_jit
from tests.support.schedules import LAW, T, table_of


@quick_jit
def _spoilt(environment, rounds):
    return jax.vmap(environment.is_spoilt)(rounds)


def spoilt(environment, rounds):
    return np.flatnonzero(_spoilt(environment, jnp.arange(1, rounds + 1))) + 1


@pytest.mark.parametrize(("budget", "horizon"), [(0, 10), (1, 1), (10, 10), (7, 1000), (1000, 4096), (3000, 4097)])
def test_exactly_so_many_rounds_are_spoilt(budget, horizon):
    rounds = spoilt(jb.Corrupted(LAW, budget=budget, horizon=horizon), 5000)
    assert rounds.size == budget
    assert (rounds <= horizon).all()


def test_spoilt_rounds_are_drawn_evenly_and_by_seed():
    rounds = [spoilt(jb.Corrupted(LAW, budget=500, horizon=5000, seed=seed), 5000) for seed in range(40)]
    counts = np.bincount(np.concatenate(rounds) * 10 // 5001, minlength=10)
    assert scipy.stats.chisquare(counts).pvalue > 1e-6
    common = [np.intersect1d(one, other).size for one, other in itertools.pairwise(rounds)]
    law = scipy.stats.hypergeom(5000, 500, 500)
    assert abs(np.mean(common) - law.mean()) <= 5 * law.std() / math.sqrt(len(common)) * math.sqrt(2)
    gaps = np.concatenate([np.diff(one) for one in rounds])
    assert abs(np.mean(gaps == 1) - 0.1) < 5 * math.sqrt(0.09 / gaps.size)
    large = jb.Corrupted(LAW, budget=5, horizon=5000, seed=2**32 - 1)
    assert not np.array_equal(
        spoilt(large, 5000), spoilt(jb.Corrupted(LAW, budget=5, horizon=5000, seed=2**32 - 2), 5000)
    )


def test_a_spoilt_round_exchanges_the_best_and_the_worst():
    law = jb.Pareto(means=[0.5, 0.9, 0.1], tail_index=1.6)
    environment = jb.Corrupted(law, budget=5, horizon=T)
    means = table_of(environment)
    here = np.isin(np.arange(1, T + 1), spoilt(environment, 5000))
    np.testing.assert_allclose(means[here], [[0.5, 0.1, 0.9]] * 5)
    np.testing.assert_allclose(means[~here], [[0.5, 0.9, 0.1]] * (T - 5))

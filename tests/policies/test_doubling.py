"""The doubling trick: the policy inside, given each phase's length, started anew in each phase."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from tests.support.helpers import assert_refused

ENVIRONMENT = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)


def losses(rounds: int) -> np.ndarray:
    return np.random.default_rng(0).pareto(1.6, (rounds, 3)).astype(np.float32)


def played(policy, rounds: int, table: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Returns the probabilities of each round, if the arms and the losses are given."""
    step = jax.jit(
        lambda state, t, arm, loss: policy.update(
            state,
            t,
            policy.probabilities(state, t, None),
            arm,
            loss,
            *([None] if isinstance(policy, jb.Doubling) else []),
        )
    )
    state, found = policy.init(3), []
    for t in range(1, rounds + 1):
        found.append(policy.probabilities(state, jnp.int32(t), None))
        state = step(state, jnp.int32(t), arms[t - 1], table[t - 1, arms[t - 1]])
    return np.array(found)


def test_each_phase_is_the_policy_inside_given_the_length_of_the_phase():
    first, rounds = 4, 4 + 8 + 16 + 5
    table, arms = losses(rounds), np.random.default_rng(1).integers(3, size=rounds)
    found = played(jb.Doubling(jb.UniINF(horizon=999), first=first), rounds, table, arms)
    begin, length = 0, first
    while begin < rounds:
        end = min(begin + length, rounds)
        phase = played(jb.UniINF(horizon=length), end - begin, table[begin:], arms[begin:])
        np.testing.assert_allclose(found[begin:end], phase, rtol=2e-6)
        assert begin == 0 or not np.allclose(found[begin - 1], found[begin])  # it has learned, and forgets
        begin, length = end, 2 * length


def test_the_first_phase_is_the_policy_itself():
    options = {"horizon": 64, "num_seeds": 8, "record": [16, 64]}
    plain = jb.simulate(jb.UniINF(horizon=64), ENVIRONMENT, **options)
    doubled = jb.simulate(jb.Doubling(jb.UniINF(horizon=7), first=64), ENVIRONMENT, **options)
    np.testing.assert_array_equal(doubled.pulls, plain.pulls)
    np.testing.assert_array_equal(doubled.regret, plain.regret)


@pytest.mark.slow
def test_a_policy_whose_update_draws_gets_its_key():
    inside = jb.ClippedSGDUCB(horizon=64, mean_bound=1.0)
    options = {"horizon": 64, "num_seeds": 8}
    plain = jb.simulate(inside, ENVIRONMENT, **options)
    doubled = jb.simulate(jb.Doubling(inside, first=64), ENVIRONMENT, **options)
    np.testing.assert_array_equal(doubled.pulls, plain.pulls)


BAD = [
    (lambda: jb.Doubling(jb.UniINF), ["Doubling.policy", "UniINF", "pass jb.UniINF(horizon=...)"]),
    (lambda: jb.Doubling(jb.UCB1()), ["Doubling.policy", "must take a horizon", "play UCB1 by itself"]),
    (lambda: jb.Doubling(jb.UniINF(horizon=9), first=1), ["Doubling.first", "1", ">= 2", "count the rounds"]),
    (lambda: jb.Doubling(jb.UniINF(horizon=9), first=2.5), ["Doubling.first", "2.5", "whole"]),
]


@pytest.mark.parametrize(("make", "parts"), BAD)
def test_bad_values_are_refused(make, parts):
    assert_refused(make, parts)


def test_a_study_file_names_the_policy_inside(tmp_path):
    path = tmp_path / "doubling.toml"
    path.write_text(
        """
horizon = 60
num_seeds = 2
policies = [{name = "doubling", first = [8, 16], policy = {name = "uniinf"}}]
environments = [{name = "bernoulli", means = [0.2, 0.8]}]
"""
    )
    ds = jb.run(jb.Study.load(path), tmp_path / "out")
    assert ds.sizes["policy"] == 2
    assert [point.first for point in jb.Study.load(path).resolved.policies[0].grid().points] == [8, 16]

"""Delayed feedback: what a policy sees, and when."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.arms import one_hot
from jaxbandit.types import Array, pytree
from tests.support.helpers import assert_refused

ENVIRONMENT = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)


class Notes(NamedTuple):
    """The rounds seen so far, in order."""

    rounds: Array  # [20]  int32
    count: Array  # []  int32


@pytree
class Notebook:
    """Plays arm t mod 3, and writes down the round of each loss that it sees; a loss of another round fails it."""

    def init(self, num_arms):
        del num_arms
        return Notes(jnp.zeros(20, jnp.int32), jnp.int32(0))

    def probabilities(self, state, t, key):
        del state, key
        return one_hot(jnp.asarray(t, jnp.int32) % 3, 3).astype(jnp.result_type(float))

    def update(self, state, t, x, arm, loss):
        consistent = (arm == t % 3) & (loss == 10 * t.astype(loss.dtype)) & (jnp.argmax(x) == arm)
        return Notes(state.rounds.at[state.count].set(jnp.where(consistent, t, -1)), state.count + 1)


def seen(policy, rounds):
    """What the notebook holds after each round, with losses of 10 t."""
    state, found = policy.init(3), []

    @jax.jit
    def step(state, t, key):
        x = policy.probabilities(state, t, None)
        return policy.update(state, t, x, t % 3, 10 * t.astype(x.dtype), key)

    for t in range(1, rounds + 1):
        state = step(state, jnp.int32(t), jax.random.key(t))
        found.append(state.policy.rounds[: int(state.policy.count)].tolist())
    return found


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_fixed_delays_hand_out_one_round_at_a_time(delay):
    expected = [list(range(1, max(t - delay, 0) + 1)) for t in range(1, 13)]
    assert seen(jb.Delayed(Notebook(), delay=delay), 12) == expected


def test_uniform_delays_hand_out_every_round_once_and_in_time():
    delay, rounds = 4, 16
    found = seen(jb.Delayed(Notebook(), delay=delay, law="uniform"), rounds)
    arrival = {}
    for t, now in enumerate(found, start=1):
        new = now[len(found[t - 2]) if t > 1 else 0 :]
        assert new == sorted(new)  # the oldest first
        arrival |= dict.fromkeys(new, t)
    assert len(found[-1]) == len(set(found[-1]))
    assert set(range(1, rounds - delay + 1)) <= set(found[-1])
    late = [arrival[s] - s for s in range(1, rounds - delay + 1)]
    assert all(0 <= one <= delay for one in late)
    assert len(set(late)) > 2


def test_uniform_delays_are_those_that_are_drawn():
    delay, rounds = 4, 16
    late = {t: int(random.below(jax.random.key(t), delay + 1)) for t in range(1, rounds + 1)}
    found = seen(jb.Delayed(Notebook(), delay=delay, law="uniform"), rounds)
    for t, now in enumerate(found, start=1):
        expected = sorted((s + late[s], s) for s in late if s + late[s] <= t)
        assert now == [s for _, s in expected]


def test_a_round_with_uniform_delays_costs_no_work_that_grows_with_the_delay():
    """Nothing as long as the ring is computed: its places are read and written one at a time."""
    policy, delay = jb.UCB1(), 996
    state = jax.eval_shape(lambda: jb.Delayed(policy, delay=delay, law="uniform").init(3))
    args = (state, jnp.int32(1), jnp.ones(3), jnp.int32(0), jnp.float32(0), jax.random.key(0))
    jaxpr = jax.make_jaxpr(jb.Delayed(policy, delay=delay, law="uniform").update)(*args)
    long = {
        eqn.primitive.name for eqn in _equations(jaxpr.jaxpr) if any(delay + 1 in v.aval.shape for v in eqn.outvars)
    }
    assert long <= {"scatter", "pjit", "jit"}, long


def _equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            inner = getattr(value, "jaxpr", None)
            if inner is not None:
                yield from _equations(inner)


@pytest.mark.parametrize("delay", [np.int64(4), np.int32(4), np.uint8(4)])
def test_integers_of_numpy_are_whole_numbers(delay):
    assert jb.Delayed(jb.UCB1(), delay=delay).delay == 4
    assert repr(jb.Delayed(jb.UCB1(), delay=delay)) == repr(jb.Delayed(jb.UCB1(), delay=4))


@pytest.mark.parametrize("way", ["native", pytest.param("scan", marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", ["fixed", "uniform"])
def test_a_delay_of_zero_is_the_policy_itself_to_the_bit(way, law):
    policy, options = jb.UniINF(horizon=200), {"horizon": 200, "num_seeds": 8, "engine": jb.Engine(way=way)}
    plain = jb.simulate(policy, ENVIRONMENT, **options)
    late = jb.simulate(jb.Delayed(policy, delay=0, law=law), ENVIRONMENT, **options)
    np.testing.assert_array_equal(late.regret, plain.regret)
    np.testing.assert_array_equal(late.loss, plain.loss)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [jb.UCB1(), jb.ClippedSGDUCB(horizon=200, mean_bound=1.0)])
def test_other_kinds_of_policies_too(policy):
    options = {"horizon": 200, "num_seeds": 8}
    plain, late = (jb.simulate(one, ENVIRONMENT, **options) for one in (policy, jb.Delayed(policy, delay=0)))
    np.testing.assert_array_equal(late.pulls, plain.pulls)
    assert jb.simulate(jb.Delayed(policy, delay=20), ENVIRONMENT, **options).attrs["device"].startswith("native")


def test_a_delay_costs_regret():
    environment = jb.Bernoulli(means=[0.2, 0.8])
    policies = [jb.TsallisINF(), jb.Delayed(jb.TsallisINF(), delay=100)]
    ds = jb.simulate(policies, environment, horizon=500, num_seeds=64, record=[500])
    plain, late = ds.regret.mean("seed").values.ravel()
    assert plain + 20 < late  # the first 100 rounds are uniform play: 30


BAD = [
    (lambda: jb.Delayed(jb.UniINF, delay=1), ["Delayed.policy", "UniINF", "pass jb.UniINF(horizon=...)"]),
    (lambda: jb.Delayed(jb.UCB1(), delay=-1), ["Delayed.delay", "-1", ">= 0", "count the rounds"]),
    (lambda: jb.Delayed(jb.UCB1(), delay=1.5), ["Delayed.delay", "1.5", "whole"]),
    (lambda: jb.Delayed(jb.UCB1(), delay=1, law="late"), ["Delayed.law", "'late'", "'fixed'"]),
    (
        lambda: jb.Delayed(jb.ClippedSGDUCB(horizon=9, mean_bound=1.0), delay=1, law="uniform"),
        ["Delayed.law", "'uniform'", "'fixed'", "ClippedSGDUCB"],
    ),
    (
        lambda: jb.simulate(jb.Delayed(jb.UCB1(), delay=50), ENVIRONMENT, horizon=50, num_seeds=1),
        ["Delayed.delay", "below the horizon 50", "got 50", "shorten the delay"],
    ),
]


@pytest.mark.parametrize(("make", "parts"), BAD)
def test_bad_delays_are_refused(make, parts):
    assert_refused(make, parts)


STUDY = """
title = "late"
horizon = 60
num_seeds = 2

[[policies]]
name = "delayed"
delay = [0, 5]
policy = {name = "uniinf", initial_scale = 2.0}

[[environments]]
name = "bernoulli"
means = [0.2, 0.8]
"""


def test_a_study_file_names_the_policy_inside(tmp_path):
    path = tmp_path / "late.toml"
    path.write_text(STUDY)
    ds = jb.run(jb.Study.load(path), tmp_path / "out")
    assert ds.sizes["policy"] == 2
    inner = jb.Study.load(path).resolved.policies[0].grid().points[1]
    assert (inner.delay, inner.policy.horizon, inner.policy.initial_scale) == (5, 60, 2.0)
    assert jb.load(tmp_path / "out").regret.shape == ds.regret.shape
    again = jb.Study.model_validate({"horizon": 60, "num_seeds": 2, "policies": [inner], "environments": [ENVIRONMENT]})
    assert 'name = "uniinf"' in again.toml()


def test_values_of_the_environment_are_refused_inside(tmp_path):
    path = tmp_path / "late.toml"
    path.write_text(STUDY.replace('"uniinf", initial_scale = 2.0', '"ape2", moment_order = "environment"'))
    assert_refused(
        lambda: jb.run(jb.Study.load(path), tmp_path / "out"), ["ape2", "inside another entry", "give numbers"]
    )

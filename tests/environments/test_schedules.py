"""Schedules: means that change before play begins, exact regret against them, and any law inside.

Every statistical assertion has a fixed seed and z = 5, a false alarm in 1.7 million.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit.environments.laws import Law
from jaxbandit.environments.schedules import Schedule
from jaxbandit.studies import study
from jaxbandit.types import field, pytree
from tests.support.helpers import assert_refused
from tests.support.laws import LAWS, MEANS, losses
from tests.support.policies import quick_jit
from tests.support.schedules import LAW, T, table_of

TABLE = np.random.default_rng(0).uniform(0.1, 1.0, (T, 3))


@pytree
class Always:
    """Plays one arm, or all in turn."""

    arm: float = field()

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        num_arms = state.shape[0]
        arm = jnp.where(jnp.asarray(self.arm) < 0, t % num_arms, jnp.asarray(self.arm).astype(jnp.int32))
        return (jnp.arange(num_arms, dtype=jnp.int32) == arm).astype(state.dtype)

    def update(self, state, t, x, arm, loss):
        return state


IN_TURN = -1


def waves(means, amplitude, period):
    t, arm = np.arange(T)[:, None], np.arange(len(means))[None]
    return np.asarray(means) + amplitude * np.sin(2 * np.pi * (t / period + arm / len(means)))


def pair_means(gap):
    return np.tile([gap, 2 * gap, 2 * gap], (T, 1))


def swapped_from(round_):
    return np.where(np.arange(1, T + 1)[:, None] >= round_, MEANS[::-1], MEANS)  # MEANS is in order


def shifted(shift):
    """Up in every other of the phases of 1, 2, 4, 7, 12, ... rounds."""
    lengths = [1]
    while sum(lengths) < T:
        lengths.append(int(np.ceil(1.6 * lengths[-1])))
    phases = np.repeat(np.arange(len(lengths)), lengths)[:T, None]
    return np.asarray(MEANS) + shift * (phases % 2)


# Every schedule, and its means of T rounds in closed form where there is one.
SCHEDULES = {
    "switching": [(jb.Switching(LAW, lengths=[100, 1000]), swapped_from(101))],
    "shifting": [(jb.Shifting(LAW, shift=0.5), shifted(0.5))],
    "swap": [
        (jb.Swap(LAW), swapped_from(101)),
        (jb.Swap(jb.StudentT(means=MEANS, tail_index=1.5), at=0.25, horizon=2 * T), swapped_from(101)),
    ],
    "drifting": [
        (jb.Drifting(LAW, "sinusoidal", amplitude=0.2, period=37), waves(MEANS, 0.2, 37)),
        (jb.Drifting(LAW, "random_walk", amplitude=0.2, step=0.01, seed=3), None),
    ],
    "corrupted": [(jb.Corrupted(LAW, budget=30, seed=1), None)],
    "minimax_hard": [
        (jb.MinimaxHard(num_arms=3, moment_order=1.5), pair_means(0.5 * (3 / T) ** (1 / 3))),
        (jb.MinimaxHard(num_arms=3, moment_order=1.5, gap_factor=3.0), pair_means(1.5 * (3 / T) ** (1 / 3))),
    ],
    "scheduled": [(jb.Scheduled(LAW, means=TABLE), TABLE)],
}  # fmt: skip
SLOW = {
    "corrupted-0",
    "drifting-0",
    "minimax_hard-0",
    "minimax_hard-1",
    "shifting-0",
    "scheduled-0",
    "swap-1",
}  # the fast suite plays relatives
ALL = [
    pytest.param(
        environment.at_horizon(T), means, id=f"{name}-{n}", marks=[pytest.mark.slow] if f"{name}-{n}" in SLOW else []
    )
    for name in SCHEDULES
    for n, (environment, means) in enumerate(SCHEDULES[name])
]
STATIONARY = [
    pytest.param(LAWS[name][0].environment, None, id=name, marks=[] if name == "hard_pair" else pytest.mark.slow)
    for name, cls in jb.ENVIRONMENTS.items()
    if issubclass(cls, Law)
]


@pytest.mark.parametrize("name", [name for name, cls in jb.ENVIRONMENTS.items() if not issubclass(cls, Law)])
def test_every_schedule_has_an_example(name):
    if name not in SCHEDULES and not issubclass(jb.ENVIRONMENTS[name], Schedule):
        pytest.skip("no schedule: it has tests of its own")
    assert SCHEDULES.get(name), f"{name} is registered but not tested: add an instance to SCHEDULES here"
    assert all(type(environment) is jb.ENVIRONMENTS[name] for environment, _ in SCHEDULES[name])


@pytest.mark.parametrize(("environment", "means"), ALL)
def test_means_are_the_schedule(environment, means):
    got = table_of(environment)
    assert got.shape == (T, 3)
    if means is not None:
        np.testing.assert_allclose(got, means, rtol=1e-12)
    np.testing.assert_allclose(quick_jit(environment.means)(jnp.int32(150)), got[149], rtol=1e-5)  # float32, by hand


@pytest.mark.parametrize(("environment", "means"), ALL + STATIONARY)
def test_regret_of_one_arm_is_known_and_random_numbers_are_common(environment, means):
    """The best fixed arm has none, every other what separates it; two policies that play one arm suffer one loss."""
    policies = jb.grid(Always, arm=[0, 1, 2, IN_TURN])
    ds = jb.simulate(policies, environment, horizon=T, num_seeds=2, record=[T // 4, T], trace=2).squeeze()
    sums = np.cumsum(table_of(environment) if means is None else means, axis=0)
    expected = sums - sums.min(axis=1, keepdims=True)
    for arm in range(3):
        regret = np.tile(expected[[T // 4 - 1, T - 1], arm], (2, 1))
        np.testing.assert_allclose(ds.regret.isel(policy_arm=arm), regret, rtol=1e-5, atol=2e-5)
    best = int(np.argmin(sums[-1]))
    np.testing.assert_allclose(ds.regret.isel(policy_arm=best, round=-1), 0, atol=2e-5)

    turns = ds.isel(policy_arm=3)
    for arm in range(3):
        both = turns.trace_arm.values == arm
        assert both.sum() > T / 2
        np.testing.assert_array_equal(turns.trace_loss.values[both], ds.trace_loss.isel(policy_arm=arm).values[both])


@pytest.mark.parametrize(("environment", "means"), ALL)
def test_losses_are_the_laws_at_the_means_of_the_round(environment, means):
    """A Pareto loss over its mean, whatever the round, has one law: that of the ratio with mean 1."""
    del means
    environment = (
        environment if not isinstance(getattr(environment, "law", None), jb.StudentT) else jb.Swap(LAW, horizon=T)
    )
    if not hasattr(environment, "law"):
        pytest.skip("holds no law")
    rounds = np.repeat(np.arange(1, T + 1), 500)
    drawn = losses(environment, 1, rounds, games=np.tile(np.arange(500), T))
    ratio = drawn / np.repeat(table_of(environment)[:, 1], 500)
    reference = scipy.stats.pareto(1.6, scale=0.6 / 1.6)
    assert scipy.stats.kstest(ratio, reference.cdf).pvalue > 1e-6


@pytest.mark.parametrize(("environment", "means"), ALL)
def test_moments_hold_for_every_mean_of_the_schedule(environment, means):
    del means
    law = getattr(environment, "law", None)
    alpha = environment.moment_order
    assert math.isfinite(environment.moment(alpha))
    if hasattr(law, "with_means"):
        largest = max(law.with_means(row).moment(alpha) for row in table_of(environment))
        assert largest <= environment.moment(alpha) * (1 + 1e-9)
        assert environment.moment_limit == law.moment_limit
        with pytest.raises(ValueError, match="no moment of order"):
            environment.moment(law.moment_limit)
    assert environment.truncated_nonnegative


def test_the_largest_moment_may_be_that_of_the_lowest_means():
    law = jb.Gaussian(means=[-1.0, 0.5], scale=0.1)
    environment = jb.Drifting(law, "sinusoidal", amplitude=0.5, period=10)
    assert environment.moment(2.0) ** 2 == pytest.approx(1.5**2 + 0.1**2)


def test_assumptions_fail_where_means_turn_negative():
    law = jb.Gaussian(means=[0.1, 0.5])
    assert law.truncated_nonnegative
    assert not jb.Drifting(law, "sinusoidal", amplitude=0.2, period=10).truncated_nonnegative
    assert not jb.Scheduled(law, means=[[0.1, 0.2], [0.3, -0.1]]).truncated_nonnegative
    assert not jb.Swap(law).unique_best
    assert jb.MinimaxHard(3, 1.5).unique_best


def test_a_swap_happens_after_the_share_of_the_horizon_that_is_meant():
    """29 % of 100 rounds are 29 rounds, though 0.29 * 100 is a little less in floating-point numbers."""
    environment = jb.Swap(LAW, at=0.29, horizon=100)
    assert 0.29 * 100 < 29
    np.testing.assert_array_equal(environment.means(jnp.int32(29)), environment.law.means(jnp.int32(29)))
    assert environment.means(jnp.int32(30))[0] == environment.law.means(jnp.int32(30))[-1]


CALM_BEST = {
    "jackpot": jb.Jackpot(means=[0.5, 1.0], probability=0.01, gain=[0.0, 100.0]),
    "reflected": jb.Reflected(jb.Bernoulli(means=[0.9, 0.1]), shift=[1.0, 0.4]),
    "huber": jb.Huber(
        jb.Gaussian(means=[0.5, 1.0], scale=0.1), jb.Gaussian(means=[0.5, -20.0], scale=0.1), epsilon=0.1
    ),
    "replay": jb.Replay([[0.0, -5.0], [1.0, 4.0], [0.0, 4.0]], order="resampled"),
}


@pytest.mark.parametrize("name", CALM_BEST)
def test_an_arm_with_gains_may_take_the_place_of_the_best(name):
    """The law's best arm has no gains, the other one has: arms that change places bring them to every place."""
    law = CALM_BEST[name]
    assert law.truncated_nonnegative
    assert not law.every_arm_truncated_nonnegative
    for environment in (jb.Switching(law), jb.Swap(law, horizon=T), jb.Corrupted(law, budget=3, horizon=T)):
        assert not environment.truncated_nonnegative
        assert not jb.Switching(environment).truncated_nonnegative
    assert jb.Switching(LAW).truncated_nonnegative


def test_the_best_arm_of_moving_means_may_be_any():
    law = CALM_BEST["jackpot"]
    assert not jb.Drifting(law, "sinusoidal", amplitude=0.4, period=10).truncated_nonnegative
    assert not jb.Scheduled(law, means=[[0.5, 1.0], [1.0, 0.5]]).truncated_nonnegative
    assert jb.Shifting(law, shift=2.0).truncated_nonnegative  # one arm is the best throughout
    assert not jb.Shifting(law.with_means(np.array([1.0, 0.5])), shift=2.0).truncated_nonnegative


def test_a_game_played_past_the_end_of_a_schedule_by_hand_is_marked_as_failed():
    policy, environment = jb.Exp3(), jb.Scheduled(LAW, TABLE[:3])
    step, key, state = quick_jit(jb.step(policy, environment)), jb.game_key(0, 0), jb.start(policy, environment)
    for _ in range(5):
        state = step(state, key)
    assert int(state.failed) == 4
    assert np.isnan(float(state.regret))


def test_a_schedule_is_given_the_horizon_of_the_run():
    for environment in (jb.Swap(LAW), jb.Corrupted(LAW, budget=3), jb.MinimaxHard(3, 1.5)):
        with pytest.raises(ValueError, match=rf"{type(environment).__name__}.horizon is not known; pass horizon="):
            environment.means(jnp.int32(1))
        known = environment.at_horizon(50)
        assert known.horizon == 50
        assert known.at_horizon(70) is known
        assert jb.Switching(environment).at_horizon(50).law.horizon == 50
    ds, known = (
        jb.simulate(Always(0), environment, horizon=50, num_seeds=2, trace=2)  # traced as above: one program
        for environment in (jb.Swap(LAW), jb.Swap(LAW, horizon=50))
    )
    np.testing.assert_array_equal(ds.regret, known.regret)


def test_the_horizon_of_the_run_does_not_depend_on_the_recorded_rounds():
    """Arms change places after round 25 of 50, also if the last recorded round is 30."""
    ds, known = (
        jb.simulate(Always(0), environment, horizon=50, num_seeds=2, trace=2, record=[30])
        for environment in (jb.Swap(LAW), jb.Swap(LAW, horizon=50))
    )
    assert ds.attrs["horizon"] == 50
    np.testing.assert_array_equal(ds.trace_loss, known.trace_loss)


def test_schedules_in_a_study_file():
    inside = {"name": "pareto", "tail_index": 1.5, "means": MEANS}
    entries = [
        {"name": "swap", "law": inside, "at": [0.25, 0.5]},
        {"name": "drifting", "law": inside, "kind": "random_walk", "amplitude": 0.1, "step": 0.01, "seed": [0, 1]},
        {"name": "corrupted", "law": inside, "budget": [0, 5]},
        {"name": "minimax_hard", "num_arms": [2, 3], "moment_order": 1.5},
        {"name": "scheduled", "law": inside, "means": [MEANS] * 20},
        {"name": "switching", "law": {**inside, "tail_index": [1.2, 1.5]}},
    ]
    content = {"title": "t", "horizon": 20, "num_seeds": 2, "policies": [{"name": "uniform"}], "environments": entries}
    grids = study.parse(content).resolved.environment_grids
    assert [len(grid.points) for grid in grids] == [2, 2, 2, 2, 1, 2]
    ds = jb.simulate([Always(1)], grids[1:2], horizon=20, num_seeds=3, trace=3)
    assert ds.environment_seed.values.tolist() == [0, 1]
    assert ds.regret.dims == ("policy", "environment", "seed", "round")
    assert (ds.regret[0, 0, :, -1] != ds.regret[0, 1, :, -1]).all()
    np.testing.assert_allclose(ds.regret.std("seed"), 0, atol=1e-6)  # one walk for all games


@pytest.mark.parametrize("horizon", [2, 1000, 10**6])
def test_the_minimax_gap_shrinks_with_the_horizon(horizon):
    environment = jb.MinimaxHard(num_arms=2, moment_order=1.5, horizon=horizon)
    gap = 0.5 * (2 / horizon) ** (1 / 3)
    np.testing.assert_allclose(environment.means(1), [gap, 2 * gap], rtol=1e-5)
    assert environment.moment(1.5) == pytest.approx(1)
    assert jb.MinimaxHard(num_arms=5, moment_order=1.5, horizon=2).pair.gap == 0.5


# Bad input


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: jb.Switching(), ["Switching.law", "None", "pass jb.Pareto("]),
        (lambda: jb.Switching("pareto"), ["Switching.law", "'pareto'", "pass jb.Pareto("]),
        (lambda: jb.Switching(jb.Pareto), ["Switching.law", "Pareto", "pass jb.Pareto("]),
        (lambda: jb.Switching(LAW, lengths=[]), ["Switching.lengths", "[]", "a list of phase lengths"]),
        (lambda: jb.Switching(LAW, lengths=[1.5, 2]), ["Switching.lengths", "1.5", "whole", "count rounds"]),
        (lambda: jb.Switching(LAW, lengths=[5, math.inf]), ["Switching.lengths", "inf", "finite", "count rounds"]),
        (lambda: jb.Switching(LAW, growth=1.0), ["Switching.growth", "1.0", ">= 1.01", "lengths=[...]"]),
        (lambda: jb.Switching(LAW, lengths=[5, 0]), ["Switching.lengths", "0.0", ">= 1", "at least 1"]),
        (lambda: jb.Swap(jb.Pareto), ["Swap.law", "Pareto", "pass jb.Pareto("]),
        (lambda: jb.Swap(LAW, at=1.5), ["Swap.at", "1.5", "<= 1", "share of the horizon"]),
        (lambda: jb.Swap(LAW, horizon=0), ["Swap.horizon", "0", ">= 1", "that of the run"]),
        (lambda: jb.Shifting(LAW, shift=0), ["Shifting.shift", "0", "> 0"]),
        (lambda: jb.Shifting(jb.Switching(LAW), shift=1.0), ["Shifting.law", "means of its own"]),
        (lambda: jb.Shifting(jb.Bernoulli(means=[0.2, 0.8]), shift=0.5), ["Shifting.shift", "outside the range"]),
        (lambda: jb.Drifting(LAW, "linear", amplitude=0.1), ["Drifting.kind", "'linear'", "'random_walk'"]),
        (lambda: jb.Drifting(LAW, "sinusoidal", amplitude=0.1), ["Drifting", "needs period", "period=..."]),
        (lambda: jb.Drifting(LAW, "random_walk", amplitude=0.1), ["Drifting", "needs step", "step=..."]),
        (lambda: jb.Drifting(LAW, "sinusoidal", amplitude=0.4, period=9), ["Drifting.amplitude", "> 0"]),
        (lambda: jb.Drifting(jb.Switching(LAW), "sinusoidal", 0.1, 9), ["Drifting.law", "means of its own"]),
        (lambda: jb.Drifting(LAW, "sinusoidal", 0.1, 9, seed=-1), ["Drifting.seed", "-1", ">= 0"]),
        (lambda: jb.Corrupted(LAW, budget=11, horizon=10), ["Corrupted.budget", "11", "horizon 10"]),
        (lambda: jb.Corrupted(LAW, budget=11).at_horizon(10), ["Corrupted.budget", "11", "at most the horizon 10"]),
        (lambda: jb.Corrupted(LAW, budget=-1), ["Corrupted.budget", "-1", ">= 0", "count the rounds"]),
        (lambda: jb.Corrupted(LAW, budget=1.5), ["Corrupted.budget", "1.5", "whole"]),
        (lambda: jb.MinimaxHard(0, 1.5), ["MinimaxHard.num_arms", "0", ">= 1"]),
        (lambda: jb.MinimaxHard(3, 2.5), ["MinimaxHard.moment_order", "2.5", "<= 2"]),
        (lambda: jb.Scheduled(LAW, means=TABLE[:, :2]), ["Scheduled.means", "2 columns (200 rows)", "3 arms"]),
        (lambda: jb.Scheduled(LAW, means=[0.5, 0.5, 0.5]), ["Scheduled.means", "a row per round", "(3,)"]),
        (lambda: jb.Scheduled(LAW, means=-TABLE), ["Scheduled.means", "Pareto.means", "> 0"]),
        (lambda: jb.Scheduled(LAW, means=[[1, 1, np.nan]]), ["Scheduled.means", "NaN", "row 0, column 2"]),
        (lambda: jb.Scheduled(jb.HardPair(3, 0.1, 1.5), TABLE), ["Scheduled.law", "means of its own", "HardPair("]),
        (lambda: jb.Scheduled(LAW, TABLE).at_horizon(201), ["Scheduled.means", "200 rows", "201 rounds"]),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_input_is_refused_with_a_remedy(make, parts):
    assert_refused(make, parts)


def test_simulate_refuses_a_horizon_beyond_the_table():
    with pytest.raises(ValueError, match="200 rows, but the run has 300 rounds; play at most 200"):
        jb.simulate(jb.Uniform(), jb.Scheduled(LAW, TABLE), horizon=300, num_seeds=2)
    with pytest.raises(ValueError, match="at most the horizon 20, got 30"):
        jb.simulate(jb.Uniform(), jb.Corrupted(LAW, budget=30), horizon=20, num_seeds=2)

"""Parameters by name: what can be moved, what moving does, and what is said where it cannot be."""

import re

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.parameters import as_box, check_range, full_name, having, movable, move, place, value_of, with_value
from jaxbandit.runs.coupled import final_regret, play_pairs

SMALL = jb.Engine(block=64)
PARETO = jb.Pareto(means=[0.5, 1.0, 1.5], tail_index=1.6)
UNIINF = jb.UniINF(horizon=100)
VARIANT = jb.UniINFVariant(horizon=100)
OBJECTS = [
    UNIINF,
    jb.HTINF(moment_order=1.5, moment_bound=2.0),
    PARETO,
    jb.Frechet(means=[0.5, 1.0], tail_index=1.6),  # derives a field from the index
    jb.HardPair(num_arms=3, gap=0.25, moment_order=1.5),
    jb.Swap(PARETO, at=0.25),
    jb.Corrupted(PARETO, budget=5, horizon=50),
    jb.Drifting(jb.Gaussian(means=[0.0, 1.0]), "sinusoidal", amplitude=0.25, period=10),
]


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: type(obj).__name__)
def test_every_parameter_moves_and_nothing_else_does(obj):
    names = movable(obj, whole=True)
    assert names
    for name, value in names.items():
        target = value * 2 if name in ("horizon", "budget", "period", "initial_scale", "moment_bound") else value * 1.01
        moved = with_value(obj, name, target)
        assert value_of(moved, name) == pytest.approx(target, rel=1e-12)
        assert {n: v for n, v in movable(moved, whole=True).items() if n != name} == {
            n: v for n, v in names.items() if n != name
        }
        assert jax.tree.structure(moved) == jax.tree.structure(obj)


def test_large_whole_numbers_move_too():
    """TOML has whole numbers of any size, and NumPy has none beyond 64 bits."""
    assert movable(jb.Pareto(means=[0.5, 1.0], tail_index=2**64))["tail_index"] == 2.0**64
    with pytest.raises(ValueError, match=r"Pareto.tail_index must be at most 1.8e308 in size, got 1000.*smaller"):
        jb.Pareto(means=[0.5, 1.0], tail_index=10**400)


def test_derived_fields_follow():
    environment = jb.Frechet(means=[0.5, 1.0], tail_index=1.6)
    assert with_value(environment, "tail_index", 1.3).log_unit == jb.Frechet(means=[0.5, 1.0], tail_index=1.3).log_unit


def test_the_gap_stretches_all_distances_from_the_best():
    moved = with_value(jb.Gaussian(means=[1.0, -1.0, -0.5]), "gap", 1.0)
    np.testing.assert_allclose(moved.arm_means, [3.0, -1.0, 0.0])


@pytest.mark.parametrize(
    ("obj", "name", "message"),
    [
        (VARIANT, "damped", "UniINFVariant.damped cannot be moved: it is static.*: horizon, initial_scale, thr"),
        (
            jb.UniINFVariant(horizon=9, threshold_constant=np.inf),
            "threshold_constant",
            "it is inf, which has no logarithm",
        ),
        (UNIINF, "initial_scal", "no parameter 'initial_scal' that can be moved; did you mean 'initial_scale'"),
        (jb.Corrupted(PARETO, budget=5), "budget", "whole numbers only; these can be moved: law.gap, law.tail_index"),
        (PARETO, "means", "one number per arm; move 'gap'"),
        (jb.Gaussian(means=[1.0, 1.0]), "gap", "all arms have the same mean"),
        (
            jb.Pareto(means=[0.5, 1.0], tail_index=[1.2, 1.8]),
            "tail_index",
            "more than one number; give one number",
        ),
        (jb.SAOHT(horizon=9, moment_order=1.5, moment_bound=1.0), "failure_probability", "not set; give it a value"),
        (jb.TsallisINF(), "estimator", "static.*TsallisINF has none that can be moved"),
    ],
)
def test_what_cannot_be_moved_says_why_and_what_can(obj, name, message):
    with pytest.raises(ValueError, match=message):
        full_name(obj, name)


def test_names_of_both_sides_are_told_apart():
    policy, environment = jb.APE2(moment_order=1.5, scale=2.0), jb.StudentT(means=[0.0, 1.0], tail_index=1.5, scale=3.0)
    with pytest.raises(ValueError, match=r"write one of: policy.scale, environment.scale"):
        place(policy, environment, "scale")
    moved = move(policy, environment, {"policy.scale": 5.0, "environment.scale": 7.0})
    assert (moved[0].scale, moved[1].scale) == (5.0, 7.0)
    # A horizon in whole rounds is the environment's, and no number to differentiate in: the policy's is meant.
    assert place(UNIINF, jb.Swap(PARETO, horizon=100), "horizon") == ("policy", "horizon")
    assert place(UNIINF, jb.Swap(PARETO, horizon=100), "horizon", whole=True) == ("policy", "horizon")
    assert place(UNIINF, jb.Corrupted(PARETO, budget=5), "budget", whole=True) == ("environment", "budget")
    assert place(UNIINF, jb.Swap(PARETO), "tail_index") == ("environment", "law.tail_index")


def test_a_name_must_be_somewhere():
    pairs = [(VARIANT, PARETO), (jb.TsallisINF(), PARETO)]
    assert having(pairs, ["gap", "threshold_constant"]) == [(0, 0), (0, 1), (1, 0)]
    with pytest.raises(ValueError, match="did you mean 'threshold_constant'"):
        having(pairs, ["treshold"])
    with pytest.raises(ValueError, match="named twice"):
        having(pairs, ["gap", "gap"])


@pytest.mark.parametrize(
    ("box", "scale", "message"),
    [
        ({}, "log", "the box is empty"),
        ({"gap": [0.0, 1.0]}, "log", "starts at 0, which has no logarithm"),
        ({"gap": [1.0, 0.5]}, "log", "must be [low, high] with low < high"),
        ({"gap": [1.0]}, "log", "must be [low, high]"),
        ({"gap": [1.0, 2.0]}, "cubic", "must be 'log' or 'linear'"),
        ({"gap": [1.0, 2.0]}, {"gab": "log"}, "did you mean 'gap'"),
    ],
)
def test_bad_boxes_are_refused(box, scale, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_box(box, scale)


def test_a_range_may_not_reach_invalid_values():
    with pytest.raises(ValueError, match=r"range of tail_index, \[0.9, 2\], reaches invalid values: Pareto.tail_index"):
        check_range(UNIINF, PARETO, "tail_index", as_box({"tail_index": [0.9, 2.0]})["tail_index"])


def test_pairs_play_what_simulate_plays():
    grid = jb.grid(jb.UniINF, horizon=40, initial_scale=[2.0, 4.0])
    environments = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.3, 1.8])
    ds = jb.simulate(grid, environments, horizon=40, num_seeds=70, record=[10, 40], engine=SMALL)
    games = play_pairs(grid.points, environments.points, record=[10, 40], num_seeds=[70, 50], engine=SMALL)
    np.testing.assert_array_equal(games.regret[0], ds.regret.values[0, 0])
    np.testing.assert_array_equal(games.regret[1, :50], ds.regret.values[1, 1, :50])
    assert np.isnan(games.regret[1, 50:]).all()
    assert not games.failed.any()
    later = final_regret(grid.points[:1], environments.points, horizon=40, num_seeds=20, first_seed=50, engine=SMALL)
    np.testing.assert_array_equal(later, ds.regret.values[0, :, 50:, -1])


def test_points_that_share_no_program_are_played_in_turn():
    environments = [jb.Drifting(jb.Gaussian(means=[0.0, 1.0]), "sinusoidal", amplitude=0.2, period=p) for p in (5, 8)]
    both = final_regret([jb.Uniform()], environments, horizon=20, num_seeds=3, engine=SMALL)
    for row, environment in zip(both, environments, strict=True):
        ds = jb.simulate(jb.Uniform(), environment, horizon=20, num_seeds=3, record=[20], engine=SMALL)
        np.testing.assert_array_equal(row, ds.regret.values[:, -1])


def test_pairs_must_match_in_number():
    with pytest.raises(ValueError, match="environments has 2 entries for 3 points"):
        final_regret([UNIINF] * 3, [PARETO] * 2, horizon=10, num_seeds=2)

"""Machine code against the scan, which is the definition: every policy and environment of the registries.

From one and the same carry the two ways agree in one round up to rounding, but for the few games that are within
rounding of a branch, a threshold or a draw; these are counted and bounded. Keys are fixed, so that a test which passes
does so on every machine; only the test of whole runs is statistical, with a false alarm in a million runs of it.
"""

import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit.engine import native, ways
from jaxbandit.engine.native import rules
from tests.support.both_ways import (
    ENVIRONMENTS,
    HOSTILE,
    LANES,
    LOOSER,
    POLICIES,
    Both,
    check_arms,
    check_rounds,
    check_start,
    dealt,
    each,
    environment_of,
    law,
    policy_of,
)
from tests.support.helpers import RARE, some
from tests.support.policies import make


def test_every_environment_has_an_instance():
    assert {name.split(",")[0] for name in ENVIRONMENTS} == set(jb.ENVIRONMENTS)
    for name in jb.ENVIRONMENTS:
        assert type(ENVIRONMENTS[name](3)) is jb.ENVIRONMENTS[name]


# The fast suite plays those whose rounds have most to lower: branches, tables, draws, quadrature, a ring of rounds.
FAST = ["uniinf", "sao_ht", "adar_ucb", "ape2", "thompson", "ftpl", "delayed", "ucb1"]
SIZES = [*some([3], [10, 100]), pytest.param(40, marks=pytest.mark.long)]


@pytest.mark.parametrize("num_arms", SIZES)
@pytest.mark.parametrize("name", some(FAST, [name for name in POLICIES if name not in FAST]))
def test_a_policy_plays_as_the_scan_does(name, num_arms):
    both = Both(policy_of(name), dealt(num_arms), HOSTILE, trace=num_arms == 10)
    check_start(both)
    check_rounds(both, LOOSER.get(name, 1))
    both.parameters[-1] = np.zeros(LANES, np.float32)
    check_arms(both)


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [3, *(pytest.param(K, marks=pytest.mark.long) for K in (10, 40, 100))])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_plays_as_the_scan_does_in_float64(name, num_arms, x64):
    both = Both(policy_of(name), dealt(num_arms), HOSTILE)
    check_start(both)
    check_rounds(both, LOOSER.get(name, 1))
    both.parameters[-1] = np.zeros(LANES)
    check_arms(both)


@pytest.mark.parametrize("name", each(ENVIRONMENTS))
def test_an_environment_deals_as_the_scan_does(name):
    both = Both(make("ucb1"), environment_of(name, 3))
    check_rounds(both)
    check_arms(both)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_deals_as_the_scan_does_in_float64(name, x64):
    both = Both(make("ucb1"), environment_of(name, 3))
    check_rounds(both)
    check_arms(both)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniinf", "robust_ucb", "ftpl"])
def test_a_policy_plays_1000_arms_as_the_scan_does(name):
    both = Both(policy_of(name), dealt(1000), HOSTILE)
    check_start(both)
    check_rounds(both)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["switching", "student_t"])
def test_an_environment_deals_1000_arms_as_the_scan_does(name):
    both = Both(make("ucb1"), environment_of(name, 1000))
    check_rounds(both)
    check_arms(both)


@pytest.fixture
def no_known_code(monkeypatch):
    """Nothing that was compiled before or during a test serves in or after it."""
    monkeypatch.setenv("JAXBANDIT_CACHE", "off")
    native.games._known.clear()
    yield
    native.games._known.clear()


@pytest.mark.parametrize("primitive", ["sub", "div"])
def test_a_wrong_rule_is_caught(primitive, monkeypatch, no_known_code):
    wrong = {"sub": lambda f, equation, a, b: f.add(a, b), "div": lambda f, equation, a, b: f.mul(a, b)}
    monkeypatch.setitem(rules.RULES, primitive, wrong[primitive])
    both = Both(make("ucb1"), dealt(3), HOSTILE)
    with pytest.raises(AssertionError, match="games differ"):
        check_rounds(both)


LONGER = ("uniinf", "htinf", "ucb1", "robust_moss")


@pytest.mark.slow
@pytest.mark.parametrize("name", jb.POLICIES)
def test_whole_runs_have_one_law(name):
    """Mean regret on different seeds; a false alarm in one of a million runs of the test of all policies."""
    horizon, num_seeds = (1000, 600) if name in LONGER else (300, 500)
    options = {"horizon": horizon, "num_seeds": num_seeds, "record": [horizon]}
    finals = [
        jb.simulate(make(name), law(3), seed=seed, engine=jb.Engine(way=way), **options).regret.values[:, 0]
        for seed, way in enumerate(ways.WAYS)
    ]
    stderr = np.sqrt(sum(final.var(ddof=1) / final.size for final in finals))
    assert stderr < 0.1 * finals[0].mean(), "too few games to tell anything"
    z = scipy.stats.norm.isf(RARE / len(jb.POLICIES) / 2)  # Bonferroni's correction
    assert abs(finals[0].mean() - finals[1].mean()) <= z * stderr, (finals[0].mean(), finals[1].mean(), stderr)

"""Tables of single findings: their digits are those of the figures beside them."""

import types

import numpy as np
import pytest
import scipy.optimize
import xarray as xr

import jaxbandit as jb
from jaxbandit.plots.worst_gap import exponent_text, worst_gaps
from jaxbandit.published import findings
from jaxbandit.published.results import Results
from jaxbandit.studies.study import parse


@pytest.mark.parametrize(("bend", "shown"), [(0.0, "0.70"), (0.06, "0.7")])
def test_exponents_of_worst_gaps_have_the_digits_that_the_bend_of_the_curve_allows(bend, shown):
    rounds = 2.0 ** np.arange(4, 17)
    power = 0.7 * np.log(rounds) + bend * np.log(rounds / 2.0**14) ** 2 / np.log(4)  # slopes differ between the halves
    level = np.array([1.0, 2.0, 1.5]).reshape(1, 3, 1, 1) * np.linspace(0.99, 1.01, 16).reshape(1, 1, 16, 1)
    environments = {
        f"e{n}": jb.HardPair(num_arms=2, moment_order=1.5, gap=gap) for n, gap in enumerate((0.1, 0.2, 0.3))
    }
    ds = xr.Dataset(
        {"regret": (("policy", "environment", "seed", "round"), level * np.exp(power))},
        coords={"policy": ["uniinf"], "environment": list(environments), "round": rounds},
        attrs={"num_seeds": 16},
    )
    results = types.SimpleNamespace(
        ds=ds, environments=environments, policies=lambda: {"uniinf": "uniINF"}, remark=lambda _: ""
    )
    assert f"| {shown} |" in findings.worst_gaps(results)
    found = worst_gaps(ds, environments=environments).isel(family=0, policy=0)
    assert exponent_text(found, short=True) == f" $T^{{{shown}}}$"


def test_the_predicted_worst_gap_is_where_skipping_costs_what_uniform_play_loses():
    rounds, num_arms = 2.0 ** np.arange(10, 21), 10
    gap = scipy.optimize.brentq(lambda gap: skipping_cost(gap, rounds[-1]) - 0.9 * gap * rounds[-1], 0.05, 0.3)
    environments = {f"e{n}": jb.HardPair(num_arms=num_arms, moment_order=1.5, gap=g) for n, g in enumerate((0.05, 0.1))}
    games = 0.9 * rounds * np.array([0.05, 0.1]).reshape(1, 2, 1, 1) * np.ones((1, 1, 4, 1))  # uniform play
    ds = xr.Dataset(
        {"regret": (("policy", "environment", "seed", "round"), games)},
        coords={"policy": ["uniinf"], "environment": list(environments), "round": rounds},
    )
    line = findings.predicted_worst_gaps(types.SimpleNamespace(ds=ds, environments=environments)).splitlines()[-1]
    arms, alpha, predicted, at, measured, ratio, exponent = (part.strip() for part in line.strip("|").split("|"))
    assert (arms, alpha, measured) == ("10", "1.5", "94,372")  # 0.9 x 0.1 x 2^20
    assert float(at) == pytest.approx(gap, abs=0.001)
    assert float(predicted.replace(",", "")) == pytest.approx(0.9 * gap * rounds[-1], rel=2e-3)
    assert float(ratio) == pytest.approx(0.1 / gap, abs=0.01)
    assert 2 / 3 < float(exponent) < 0.8  # of the order, and one logarithm more


def skipping_cost(gap, horizon):
    """Returns 16 K log T l ln(l / C_1) for K = 10 and alpha = 1.5, with C_1 = S_1 / (4 (1 - 1/K)) and S_1 = 4."""
    size = 1 / (2 * gap) ** 2
    return 160 * np.log(horizon) * size * np.log(size * 0.9)


def results_of(policies, finals):
    """Returns results of a study with made-up regrets, a row for each policy and a column for each environment."""
    environments = [
        {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.5},
        {"name": "bernoulli", "means": [0.2, 0.8]},
    ]
    study = parse({"horizon": 10, "num_seeds": 2, "policies": policies, "environments": environments[: len(finals[0])]})
    values = np.asarray(finals, float)[:, :, None, None] * np.array([0.5, 1.5]).reshape(1, 1, 2, 1)
    labels = [f"p{n}" for n in range(len(finals))]
    ds = xr.Dataset(
        {"regret": (("policy", "environment", "seed", "round"), values)}, coords={"policy": labels, "round": [10]}
    )
    return Results(study, ds)


def test_the_chosen_factor_has_the_smallest_geometric_mean_over_the_best_regret_of_each_environment():
    policies = [
        {"name": "uniinf", "initial_scale": [0.4, 4.0, 40.0]},
        {"name": "tsallis_inf"},
        {"name": "htinf", "moment_order": 1.4, "moment_bound": [1.0, 10.0]},
    ]
    # The smallest regrets are 10 and 200. For uniINF the arithmetic mean of the ratios would choose the factor 1, and
    # the sum of the regrets the factor 10.
    finals = [[10, 1800], [40, 600], [50, 500], [160, 200], [90, 200], [10, 20000]]
    lines = findings.tuned_factors(results_of(policies, finals)).splitlines()
    assert lines[0] == "| score; factor | constant | 0.1 | 1 | 10 | chosen factor: value |"
    assert lines[2:] == [
        "| uniINF | `initial_scale` | 3.00 | 3.46 | 3.54 | 0.1 (edge): 0.4 |",
        "| Tsallis-INF | none |  | 4.00 |  | – |",
        "| HTINF | `moment_bound` |  | 3.00 | 10.00 | 1 (edge): 1 |",
    ]


def test_an_inner_factor_is_no_edge_and_an_exact_tie_goes_to_the_first():
    found = findings.tuned_factors(results_of([{"name": "ucb1", "exploration": [0.1, 1.0, 10.0]}], [[3], [2], [2]]))
    assert found.endswith("| UCB1 | `exploration` | 1.50 | 1.00 | 1.00 | 1: 1 |")


def test_scores_need_positive_regrets_and_one_constant():
    with pytest.raises(ValueError, match="must be above 0"):
        findings.scores(np.array([[1.0, -2.0], [3.0, 4.0]]))
    with pytest.raises(ValueError, match="needs one swept constant"):
        policy = {"name": "ape2", "moment_order": [1.2, 1.4], "scale": [1.0, 2.0]}
        findings.tuned_factors(results_of([policy], [[1], [2], [3], [4]]))


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        ({"name": "uniinf", "label": "uniINF, tuned", "initial_scale": 12.0}, "T, unit"),
        ({"name": "ada_hedge", "label": "AdaHedge, tuned", "exploration": 1.0}, "nothing"),
        (
            {"name": "htinf", "label": "mine", "moment_order": "environment", "moment_bound": "environment"},
            "alpha, sigma",
        ),
        ({"name": "htinf", "label": "OptHTINF, tuned", "moment_order": 2.0, "moment_bound": 0.3}, "unit"),
        ({"name": "ape2", "label": "mine", "moment_order": "environment"}, "alpha, unit"),
        ({"name": "delayed", "label": "mine", "policy": {"name": "uniinf"}, "delay": 3}, "T, unit"),
        ({"name": "doubling", "label": "mine", "policy": {"name": "uniinf"}}, "unit"),
    ],
)
def test_a_relabelled_policy_is_given_what_its_class_is_given(policy, given):
    assert results_of([{"name": "uniform"}, policy], [[1], [2]]).given("p1") == given


def test_a_policy_of_the_users_own_is_given_what_nobody_knows():
    class Mine:
        pass

    results = results_of([{"name": "uniform"}], [[1]])
    object.__setattr__(results.study.resolved.policy_grids[0][0], "points", [Mine()])
    assert results.given("p0") == ""

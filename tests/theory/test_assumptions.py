"""Every policy's assumptions are checked in every environment, and results say which pairs are outside them."""

import dataclasses
import json

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.dataset.labels import pretty, readable
from jaxbandit.dataset.pairs import checked_pair
from jaxbandit.report import findings
from jaxbandit.theory import assumptions, guarantees
from jaxbandit.types import public_fields
from tests.support.policies import make

PARETO = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
UNIT = jb.Bernoulli(means=[0.2, 0.8])
TIED = jb.Bernoulli(means=[0.2, 0.2, 0.8])
NEGATIVE = jb.StudentT(means=[-0.5, 0.5], tail_index=1.6)
SYMMETRIC = jb.StudentT(means=[0.5, 1.0], tail_index=1.6)
CHANGING = jb.Switching(UNIT, lengths=[10, 20])
SWITCHING = jb.Switching(PARETO, lengths=[10, 20])


pair = checked_pair


def test_every_policy_has_a_row_that_names_what_it_must_be_given():
    assert set(guarantees.GUARANTEES) == set(jb.POLICIES)
    letters = {"horizon": "T", "moment_order": "α", "moment_bound": "σ", "mean_bound": "R"}
    for name, row in guarantees.GUARANTEES.items():
        fields = public_fields(jb.POLICIES[name])
        needed = {
            letters[field] for field, spec in fields.items() if spec.default is dataclasses.MISSING and field in letters
        }
        assert set(row.given) - {"unit"} == needed, name
        assert set(row.assumes) <= set(guarantees.ASSUMPTIONS), name
        assert row.proved or row.note, name


OUTSIDE = [
    ("ucb1", PARETO, "interval of length 1"),
    ("moss", PARETO, "interval of length 1"),
    ("thompson", SYMMETRIC, "not bounded"),
    ("exp3", PARETO, "[0, 1]"),
    ("tsallis_inf", jb.HardPair(2, gap=0.1, moment_order=1.5), "lie in [0, 25]"),
    ("ada_hedge", PARETO, "not bounded"),
    ("uniinf", NEGATIVE, "truncated non-negative"),
    ("opt_htinf", NEGATIVE, "truncated non-negative"),
    ("robust_ucb", SWITCHING, "change"),
    ("ucb1", CHANGING, "change"),
    ("clipped_sgd_ucb", PARETO, "symmetric"),
    ("clipped_sgd_ucb", jb.StudentT(means=[0.5, 3.0], tail_index=1.5), "mean_bound 1"),
    ("uniinf", jb.Jackpot(means=[-0.5, 0.0], probability=[0.01, 0.5], gain=[100.0, 0.5]), "truncated non-negative"),
    ("tsallis_inf", jb.Jackpot(means=[-0.5, 0.0], probability=[0.01, 0.5], gain=[100.0, 0.5]), "[-99.5, 0.5]"),
    ("uniinf", jb.Reflected(PARETO, shift=2.0), "truncated non-negative"),
    ("ape2", jb.Pareto(means=[0.5, 1.0], tail_index=1.2), "moment_order 1.5"),
    ("uniinf", jb.Huber(PARETO, jb.Gaussian(means=[5.0]), epsilon=0.1), "clean means"),
    ("ucb1", jb.Huber(PARETO, jb.Gaussian(means=[5.0]), epsilon=0.0), "interval of length 1"),
    (
        "ucb1",
        jb.Drifting(jb.Jackpot([0.5, 0.5], probability=0.5, gain=0.9), "sinusoidal", amplitude=0.3, period=9),
        "[-0.25, 1.25]",
    ),
    ("clipped_sgd_ucb", jb.Replay([[0.0, 0.0], [0.0, 0.5], [0.3, 1.0]], order="resampled"), "symmetric"),
    ("clipped_sgd_ucb", jb.Replay([[0.0, 4.0], [0.5, 2.0]], order="resampled"), "mean_bound 1, and a mean has size 3"),
    ("clipped_sgd_ucb", jb.Reflected(SYMMETRIC, shift=4.0), "mean_bound 1, and a mean has size 3.5"),
    ("clipped_sgd_ucb", jb.Jackpot([0.5, 1.0], probability=[0.5, 0.4], gain=0.5), "symmetric"),
]


@pytest.mark.parametrize(("name", "environment", "why"), OUTSIDE, ids=lambda value: str(value)[:20])
def test_a_pair_outside_its_assumptions_is_found(name, environment, why):
    found = assumptions.violations(pair(make(name), environment))
    assert any(one.outside and why in one.sentence for one in found), found
    assert assumptions.is_outside(pair(make(name), environment))


INSIDE = [
    *((name, UNIT) for name in ("ucb1", "moss", "thompson", "exp3", "ftpl", "lb_inf_v", "uniinf", "ada_hedge")),
    *((name, CHANGING) for name in ("exp3", "exp3_plus_plus", "tsallis_inf", "uniinf", "ada_hedge")),
    *((name, PARETO) for name in ("uniinf", "opt_htinf", "ada_tinf", "adar_ucb", "ape2", "uniform", "uniinf_variant")),
    ("clipped_sgd_ucb", SYMMETRIC),
    ("clipped_sgd_ucb", jb.Jackpot([0.5, 1.0], probability=0.5, gain=0.5)),
    ("clipped_sgd_ucb", jb.Bernoulli([0.5, 1.0])),
    ("clipped_sgd_ucb", jb.Replay([[0.2, -0.3], [0.4, 0.1], [0.6, 0.5]], order="resampled", rewards=True)),
    ("clipped_sgd_ucb", jb.Huber(SYMMETRIC, jb.Bernoulli(means=[0.5]), epsilon=0.0)),
    ("clipped_sgd_ucb", jb.Reflected(SYMMETRIC, shift=1.5)),
    ("exp3", jb.Reflected(UNIT, shift=1.0)),
    ("uniinf", SWITCHING),
    ("uniinf", jb.Huber(PARETO, jb.Bernoulli(means=[0.5]), epsilon=0.0)),
]


@pytest.mark.parametrize(("name", "environment"), INSIDE, ids=lambda value: str(value)[:20])
def test_a_pair_inside_its_assumptions_is_left_alone(name, environment):
    assert assumptions.violations(pair(make(name), environment)) == []


def test_a_policy_around_another_one_is_checked_for_the_policy_inside():
    (found,) = assumptions.violations(pair(jb.Delayed(jb.UCB1(), delay=5), PARETO))
    assert found.outside
    assert found.sentence.startswith("Delayed(UCB1) in Pareto(")
    given = jb.HTINF(moment_order=1.5, moment_bound=0.1)
    (found,) = assumptions.violations(pair(jb.Delayed(given, delay=5), PARETO))
    assert found.sentence.startswith("Delayed(HTINF) is given moment_bound 0.1")
    assert assumptions.violations(pair(jb.Delayed(jb.UniINF(horizon=10), delay=5), PARETO)) == []


def test_a_policy_around_another_one_is_shown_with_the_name_of_the_policy_inside():
    delayed = [jb.Delayed(jb.UCB1(), delay=5), jb.Delayed(jb.UCB1(), delay=2), jb.Delayed(jb.Exp3(), delay=2)]
    with pytest.warns(UserWarning, match=r"^Delayed\(UCB1\) in Pareto"):
        ds = jb.simulate(delayed, [PARETO, UNIT], horizon=10, num_seeds=2)
    labels = [str(label) for label in ds.policy.values]
    assert labels[0] == "delayed[policy=ucb1,delay=5]"
    assert pretty(labels[0]) == "UCB1, delayed[delay=5]"
    assert [readable(label)[0] for label in labels] == ["UCB1, delayed", "UCB1, delayed", "Exp3, delayed"]
    outside = {policy for policy, _ in json.loads(ds.attrs["outside"])}
    assert outside == set(labels)
    with pytest.warns(UserWarning, match="outside"):
        alone = jb.simulate([jb.Delayed(jb.UCB1(), delay=5)], [PARETO], horizon=10, num_seeds=2)
        mine = jb.simulate({"mine": jb.Delayed(jb.UCB1(), delay=5)}, [PARETO], horizon=10, num_seeds=2)
    assert (alone.policy.item(), pretty(alone.policy.item())) == ("delayed[policy=ucb1]", "UCB1, delayed")
    assert mine.policy.item() == "mine"  # a name of the user's own stays


def test_two_policies_inside_that_differ_in_a_field_have_different_labels():
    inside = [jb.UniINF(horizon=10, initial_scale=scale) for scale in (1.0, 4.0)]
    ds = jb.simulate([jb.Delayed(policy, delay=1) for policy in inside], [UNIT], horizon=10, num_seeds=1)
    names = [pretty(label) for label in ds.policy.values]
    assert names[0] == "uniINF, delayed[policy=UniINF(horizon=10, initial_scale=1)]"
    assert len(set(names)) == 2


def test_ties_leave_the_bound_against_an_adversary():
    (found,) = assumptions.violations(pair(jb.UniINF(horizon=10), TIED))
    assert not found.outside
    assert "several arms are best" in found.sentence
    assert "the one against an adversary does" in found.sentence
    (said,) = assumptions.sentences_of([found.sentence])
    assert said == found.sentence  # and not that no guarantee covers the environment


def test_results_name_the_pairs():
    policies, environments = [jb.UCB1(), jb.UniINF(horizon=10)], [PARETO, UNIT]
    with pytest.warns(UserWarning, match=r"^UCB1 in Pareto\(.*outside its assumptions: .*does not cover this"):
        ds = jb.simulate(policies, environments, horizon=10, num_seeds=2)
    labels = [str(label) for label in ds.environment.values]
    assert json.loads(ds.attrs["outside"]) == [["ucb1", labels[0]]]
    assert ds.attrs["warnings"].startswith("UCB1 in Pareto(")
    assert assumptions.remark(ds.attrs, "ucb1", labels) == "outside its assumptions in 1 of 2"
    assert assumptions.remark(ds.attrs, "ucb1", labels[:1]) == "outside its assumptions"
    assert assumptions.remark(ds.attrs, "uniinf", labels) == ""


def test_results_of_one_class_a_side_name_the_pairs_too():
    policies = jb.grid(jb.UCB1, exploration=[0.5, 1.0])
    with pytest.warns(UserWarning, match="outside its assumptions"):
        ds = jb.simulate(policies, jb.Bernoulli(means=[0.2, 0.8]), horizon=10, num_seeds=2)
    assert json.loads(ds.attrs["outside"]) == [["ucb1[exploration=0.5]", "bernoulli"]]
    rows = jb.table(ds).splitlines()[2:4]
    assert ["outside its assumptions" in row for row in rows] == [True, False]
    for made in (plots.labelled(ds), findings.two_sided(ds)):
        (label, where) = str(made.policy.values[0]), str(made.environment.values[0])
        assert assumptions.remark(made.attrs, label, [where]) == "outside its assumptions"


def test_ranges_hold_the_losses_that_are_drawn():
    for environment in (
        UNIT,
        jb.HardPair(2, gap=0.1, moment_order=1.5),
        jb.Replay(losses=np.array([[0.1, 3.0], [-2.0, 1.0]]), order="resampled"),
    ):
        low, high = environment.loss_range
        ds = jb.simulate(jb.Uniform(), environment, horizon=50, num_seeds=8, trace=8)
        assert low <= float(ds.trace_loss.min())
        assert float(ds.trace_loss.max()) <= high * (1 + 1e-6)


def test_the_perturbation_decides_what_is_promised_of_ape2():
    assert guarantees.of("ape2").stochastic.exponent(2.0, 10) == 0
    heavy = guarantees.of("ape2[perturbation=pareto]").stochastic
    assert heavy.exponent(2.0, 10) == pytest.approx(0.5)  # log 10 < 4: the index is 4
    assert heavy.exponent(2.0, 1000) == pytest.approx(2 / np.log(1000))
    assert guarantees.of("mine") is None


def test_an_adversarial_bound_is_also_a_stochastic_one():
    for name in ("uniinf", "htinf", "opt_htinf", "ada_tinf"):
        assert guarantees.GUARANTEES[name].worst_case is guarantees.GUARANTEES[name].adversarial
    assert guarantees.GUARANTEES["uniinf"].adversarial.bound.startswith("Õ(")
    assert guarantees.GUARANTEES["htinf"].adversarial.bound.startswith("O(")

"""Guarantees as orders, for policies of the registry."""

import pytest

import jaxbandit as jb
from jaxbandit.dataset.labels import labels
from jaxbandit.theory import guarantees as theory


def test_orders_of_the_theory():
    uniinf, optimistic = theory.GUARANTEES["uniinf"], theory.GUARANTEES["opt_htinf"]
    assert uniinf.stochastic.exponent(1.5, 10) == 0
    assert uniinf.adversarial.exponent(1.5, 10) == pytest.approx(2 / 3)
    assert optimistic.adversarial.exponent(1.5, 10) == pytest.approx(0.75)
    assert set(theory.GUARANTEES) <= set(jb.POLICIES)


@pytest.mark.parametrize(
    ("label", "given"),
    [
        ("uniinf", ("T", "unit")),
        ("uniinf[initial_scale=4]#2", ("T", "unit")),
        ("UniINF", ("T", "unit")),
        ("ape2[perturbation=pareto]", ("α", "unit")),
        ("ada_hedge", ()),
        ("mine[policy=uniinf]", None),
        ("delayed", None),
        ("delayed[policy=uniinf]", ("T", "unit")),
        ("delayed[policy=htinf,delay=5]", ("α", "σ")),
        ("delayed[delay=5,policy=htinf]", ("α", "σ")),
        ("delayed[policy=UniINF(horizon=60, initial_scale=4),delay=5]#2", ("T", "unit")),
        ("delayed[policy=mine,delay=5]", None),
        ("delayed[policy=doubling,delay=5]", None),
        ("delayed[policy=Doubling(policy=UniINF(horizon=60), first=64),delay=5]", ("unit",)),
        ("doubling[policy=uniinf]", ("unit",)),
        ("doubling[policy=SAOHT(horizon=60, moment_order=1.5),first=8]", ("α", "σ")),
        ("", None),
    ],
)
def test_given_parameters_of_a_label(label, given):
    assert theory.given(label) == given


def test_classes_are_given_what_their_registry_names_are_given():
    for name, cls in jb.POLICIES.items():
        assert theory.given(cls.__name__) == theory.given(name), name


def test_labels_of_studies_say_what_wrapped_policies_are_given():
    policies = [jb.Doubling(jb.UniINF(horizon=60)), *(jb.Delayed(jb.UniINF(horizon=60), delay=n) for n in (4, 5))]
    study = jb.Study(horizon=60, num_seeds=2, policies=policies, environments=[jb.Bernoulli(means=[0.2, 0.8])])
    found = [theory.given(label) for label in labels(study.resolved.labelled_policies())]
    assert found == [("unit",), ("T", "unit"), ("T", "unit")]

"""Guarantees as orders, for policies of the registry."""

import pytest

import jaxbandit as jb
from jaxbandit.theory import guarantees as theory


def test_orders_of_the_theory():
    uniinf, optimistic = theory.GUARANTEES["uniinf"], theory.GUARANTEES["opt_htinf"]
    assert uniinf.stochastic.exponent(1.5, 10) == 0
    assert uniinf.adversarial.exponent(1.5, 10) == pytest.approx(2 / 3)
    assert optimistic.adversarial.exponent(1.5, 10) == pytest.approx(0.75)
    assert set(theory.GUARANTEES) <= set(jb.POLICIES)

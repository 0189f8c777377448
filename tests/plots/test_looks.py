"""Colours and lines: one look for a policy, a ramp for a sweep, no two alike, and every line stands out."""

import itertools

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.dataset import labels
from jaxbandit.plots import common, looks, style

PAGES = {False: "#FFFFFF", True: looks.DARK_PAGE}


def test_a_policy_has_one_colour():
    alone, among = style.looks(["uniinf", "htinf"]), style.looks(["htinf", "mine", "uniinf", "uniinf[x=1]"])
    assert alone[0] == among[2]
    assert alone[1] == among[0]
    assert among[3]["linestyle"] == among[2]["linestyle"]
    assert among[3] != among[2]
    assert among[1]["color"] not in (among[0]["color"], among[2]["color"])
    assert set(style.POLICY_LOOKS) == set(jb.POLICIES)
    assert len(set(style.POLICY_LOOKS.values())) == len(jb.POLICIES)


@pytest.mark.parametrize("dark", [False, True])
def test_no_two_curves_are_alike_and_all_stand_out(dark):
    """Every shipped policy, alone and swept over a dozen values, and a few of the user's own."""
    labels = [*jb.POLICIES, *(f"mine {n}" for n in range(2))]
    labels += [f"{policy}[x={n}]" for policy, n in itertools.product(jb.POLICIES, range(12))]
    found = style.looks(labels, dark)
    assert len({tuple(look.values()) for look in found}) == len(labels)
    assert min(looks.contrast(look["color"], PAGES[dark]) for look in found) >= 3
    assert min(looks.contrast(style.look(n, dark)["color"], PAGES[dark]) for n in range(40)) >= 3


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("labels", ["uniinf[scale={}]", "scale={}, tail=2", "htinf[scale={},label=true]"])
def test_the_points_of_a_sweep_are_an_ordered_ramp(labels, dark):
    values = [16, 1, 4, 0.25, 64, 1e3, 1e-3, 2]
    order = np.arange(len(values)) if "label" in labels else np.argsort(values)
    found = style.looks([labels.format(value) for value in values], dark)
    strength = [looks.contrast(found[n]["color"], PAGES[dark]) for n in order]
    assert strength == sorted(strength, reverse=True) and len(set(strength)) == len(values)
    assert min(strength) >= 3


def test_a_ramp_has_the_hue_of_its_policy_in_every_study_and_is_clear_of_black():
    swept = [f"uniinf[initial_scale={n}]" for n in (1, 4)]
    alone, among = style.looks(swept), style.looks([*swept, "uniform"])
    assert alone == among[:2]
    apart = np.linalg.norm(looks._lab(among[0]["color"]) - looks._lab(among[2]["color"]))
    assert apart > 0.3  # uniform play is black


def test_basic_colours_differ_for_colour_blind_readers():
    """Distances in OKLab after the simulations of Machado, Oliveira and Fernandes (2009) at full strength."""
    blind = {
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "none": np.eye(3),
    }
    for matrix in blind.values():
        seen = [np.clip(np.asarray(matrix) @ looks._linear(colour), 0, 1) for colour in style.COLOURS]
        lab = [looks._TO_LAB @ np.cbrt(looks._TO_CONES @ linear) for linear in seen]
        assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(lab, 2)) > 0.06


def test_a_long_name_is_short_on_figures_and_whole_in_tables():
    label = "uniinf_first_losses[horizon=100]"
    assert common.pretty(label) == "uniINF, own S₁ (no proof), T = 100"
    assert labels.pretty(label) == "uniINF, S₁ from first losses (not the paper's, no proof)[horizon=100]"
    assert max(len(common.pretty(name)) for name in jb.POLICIES) <= 25


def test_policies_that_are_often_drawn_together_differ_in_colour():
    together = ["uniinf", "htinf", "opt_htinf", "ada_tinf", "robust_ucb", "robust_moss", "ape2", "ucb1"]
    assert len({look["color"] for look in style.looks(together)}) == len(together)
    assert len({look["color"] for look in style.looks(["robust_ucb", "robust_moss", "ada_hedge", "uniinf"])}) == 4

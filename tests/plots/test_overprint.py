"""No text of a figure reaches into another or out of the figure, whatever it is made for."""

import itertools

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.plots import heat, style
from tests.support.plot_cases import overprinted, synthetic

VENUES = ("neurips", "slides")
POLICIES = ["uniinf[initial_scale=0.25,horizon_factor=0.0625]", "robust_moss", "opt_htinf", "ucb1"]
LAW = jb.Pareto(means=[0.5, *[1.0] * 9], tail_index=1.5556)
GAPS = (0.1, 0.2, 0.4)


def growth(venue):
    places = ["pareto", "frechet", "switching"]
    ds = synthetic({"policy": POLICIES, "environment": places}, exponent=0.7, measures=False)
    return plots.growth_curves(ds, environments=dict.fromkeys(places, LAW), venue=venue)


def atlas(venue):
    points = list(itertools.product([1.1, 1.2, 1.3, 1.5, 1.7, 1.9, 2.1111], [0.05, 0.1, 0.2, 0.4, 0.6, 0.8]))
    labels = [f"pareto[tail_index={tail},gap={gap}]" for tail, gap in points]
    ds = synthetic({"policy": POLICIES[1:], "environment": labels}, measures=False)
    level = np.random.default_rng(1).random((3, len(points), 1, 1))
    tails, gaps = np.transpose(points)
    ds = ds.assign(regret=ds.regret / ds.regret.mean("seed") * (1 + level))
    ds = ds.assign_coords(tail_index=("environment", tails), gap=("environment", gaps))
    return plots.atlas(ds, x="tail_index", y="gap", venue=venue)


def heat_map(venue):
    axes = {"initial_scale": [0.25, 1.0, 4.0, 16.0, 64.0, 256.0], "threshold_constant": [0.0625, 0.25, 1.0, 4.0]}
    return plots.heat_map(synthetic(axes | {"tail_index": [1.2, 1.6]}, measures=False), venue=venue)


def ablation(venue):
    ds = synthetic({"policy": POLICIES, "environment": ["pareto", "frechet"]}, measures=False)
    return plots.ablation(ds.assign(scale=ds.regret, skipped=ds.regret / 10), venue=venue)


def exceedance(venue):
    ds = synthetic({"policy": POLICIES[1:], "environment": ["pareto", "frechet", "weibull"]}, measures=False)
    return plots.exceedance(ds.assign(regret=ds.regret - 5000), venue=venue)


def headline(venue):
    places = [f"hard_pair[gap={gap:g}]" for gap in GAPS]
    known = {
        place: jb.HardPair(num_arms=10, gap=gap, moment_order=1.5) for place, gap in zip(places, GAPS, strict=True)
    }
    side = {"pareto": LAW, "shifting": jb.Shifting(law=LAW, shift=1.0)}
    ds = synthetic({"policy": POLICIES[1:], "environment": [*side, *places]}, measures=False)
    left, middle = (ds.sel(environment=[place]) for place in side)
    right = ds.sel(environment=places)
    return plots.headline(left, middle, right, environments=known | side, venue=venue)


@pytest.mark.slow
@pytest.mark.parametrize("venue", VENUES)
@pytest.mark.parametrize(
    "draw", [growth, atlas, heat_map, ablation, exceedance, headline], ids=lambda draw: draw.__name__
)
def test_no_text_reaches_into_another(draw, venue):
    """Also the panels keep their room: warnings are errors here."""
    figure = draw(venue)
    assert overprinted(figure) == []
    for panel in figure.axes:
        assert panel.get_position().height * figure.get_figheight() > 0.8 or not panel.get_visible()


def test_texts_that_overprint_are_seen():
    figure = heat_map("")
    first, second = figure.axes[0].texts[:2]
    assert overprinted(figure) == []
    second.set_position(first.get_position())
    assert overprinted(figure) == [(first.get_text(), second.get_text())]


def test_numbers_of_a_map_are_left_out_if_they_do_not_fit():
    few, many = (
        synthetic({"initial_scale": [float(n) for n in range(count)], "tail_index": [1.2, 1.4, 1.6]}, measures=False)
        for count in (5, 12)
    )
    wide, narrow = (plots.heat_map(ds, venue="icml").axes[0] for ds in (few, many))
    assert (len(wide.texts), len(narrow.texts)) == (15, 0)


def test_every_letter_of_a_label_is_in_the_faces_of_a_venue():
    for place in style.VENUES.values():
        families = place.rc.get("font.family", "DejaVu Sans")
        maps = [
            FT2Font(font_manager.findfont(family)).get_charmap()
            for family in ([families] if isinstance(families, str) else families)
        ]
        assert not [letter for letter in "S₁²†σαΔ×−" if not any(ord(letter) in one for one in maps)]


def test_a_study_over_the_tail_has_its_heat_map():
    """The declared moment follows the tail and is no axis of its own."""
    sweep = jb.grid(jb.UniINF, horizon=20, initial_scale=[1.0, 4.0])
    laws = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6])
    ds = jb.simulate([sweep], [laws], horizon=20, num_seeds=2)
    declared = {"moment_order": [1.18, 1.54], "moment_bound": [5.4, 3.2]}  # as `run` stores them
    ds = ds.assign_coords({field: ("environment", values) for field, values in declared.items()})
    ((name, grid),) = heat.sweeps(ds)
    assert name == "-uniinf-pareto"
    assert {dim: grid.sizes[dim] for dim in ("initial_scale", "tail_index")} == {"initial_scale": 2, "tail_index": 2}
    assert not {"moment_order", "moment_bound"} & set(grid.dims)
    assert grid.moment_order.dims == ("tail_index",)
    assert not grid.regret.isnull().any()

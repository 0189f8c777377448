"""The worst gap over T, and the headline of three panels."""

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit import plots
from tests.support.comparison_cases import ENVIRONMENTS, LAW, ROUNDS, games

GAPS = np.geomspace(0.01, 0.5, 13).round(4)
PAIRS = {f"hard_pair[gap={gap:g}]": jb.HardPair(num_arms=4, gap=gap, moment_order=1.5) for gap in GAPS}
SHIFTING = {"shifting": jb.Shifting(LAW, shift=0.2)}


def pairs(spread: float = 0.02) -> xr.Dataset:
    """Games that lose their gap in each round until they have found the best arm, after gap^-3 rounds."""
    factor = {"uniinf": 2.0, "htinf": 1.0}
    return games(
        lambda p, e: factor[p] * np.minimum(PAIRS[e].gap * ROUNDS, PAIRS[e].gap ** -2.0), factor, PAIRS, spread
    )


def test_the_worst_gap_is_the_largest_mean_and_has_the_exponent_of_the_envelope():
    ds = pairs()
    found = plots.worst_gaps(ds.isel(environment=np.random.default_rng(0).permutation(len(PAIRS))), environments=PAIRS)
    assert found.family.values.tolist() == ["hard pair, K = 4, α = 1.5"]
    found = found.isel(family=0)
    means = ds.regret.mean("seed")
    np.testing.assert_allclose(found.regret_mean, means.max("environment").transpose("policy", "round"))
    worst = GAPS[means.argmax("environment").transpose("policy", "round").values]
    np.testing.assert_allclose(found.gap, worst)
    assert (found.edge.values == ((worst == GAPS[0]) | (worst == GAPS[-1]))).all() and not found.edge.all()
    assert (found.regret_low < found.regret_high).all() and (found.regret_low <= found.regret_mean).all()
    np.testing.assert_allclose(found.slope, 2 / 3, atol=0.05)  # the grid of gaps is coarse
    assert (found.low < found.slope).all() and float(found.moment_order) == 1.5


def test_one_dataset_for_each_horizon_counts_at_its_end():
    ds = pairs()
    parts = [ds.sel(round=slice(None, T)) for T in ROUNDS[[-1, 12, 18]]]
    found = plots.worst_gaps(parts, environments=PAIRS).isel(family=0)
    assert found["round"].values.tolist() == ROUNDS[[12, 18, -1]].tolist()
    whole = plots.worst_gaps(ds, environments=PAIRS).isel(family=0)
    np.testing.assert_allclose(found.regret_mean, whole.regret_mean.sel(round=found["round"]))
    with pytest.raises(ValueError, match=r"no environments differ in their gap; sweep it, e\.g\. hard_pair"):
        plots.worst_gaps(ds.isel(environment=[0]), environments=PAIRS)


def test_the_figure_has_curves_exponents_and_a_guide(shown):
    plots.worst_gap(pairs(), environments=PAIRS)
    (panel,) = shown["panels"]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert [text.split(" ")[0] for text in shown["cells"]] == ["slope", "uniINF", "HTINF"]
    assert all("$T^{0.6" in text or "$T^{0.7" in text for text in shown["cells"][1:])
    (guide,) = [line for line in shown["lines"] if line.get_label() == "_guide"]
    rounds, values = guide.get_data()
    np.testing.assert_allclose(np.diff(np.log(values)) / np.diff(np.log(rounds)), 1 / 1.5)
    assert rounds[0] >= ROUNDS[-1] / 8
    assert "bootstrap of the maximum, 95 %, 64 seeds" in shown["note"][-1].replace("\n", " ")


@pytest.mark.slow
def test_the_headline_has_three_panels_of_one_colour_a_policy(shown, tmp_path):
    known = ENVIRONMENTS | SHIFTING | PAIRS
    left = games(lambda p, e: np.log1p(ROUNDS) * (1 + (p == "htinf")), ["htinf", "uniinf"], ["pareto"])
    middle = games(lambda p, e: ROUNDS**0.6, ["uniinf", "ucb1"], ["shifting"])
    figure = plots.headline(left, middle, pairs(), environments=known)
    assert figure is None or figure.get_figwidth() <= 10
    assert [title.replace("\n", " ") for title in shown["titles"]] == [
        "stochastic: Pareto, K = 2, α = 1.5, gap 0.5",
        "adversarial: shifting of Pareto, K = 2, α = 1.5, gap 0.5",
        "worst gap: hard pair, K = 4, α = 1.5",
    ]
    colours = {}
    for panel in shown["panels"]:
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        for line in panel.get_lines():
            if not line.get_label().startswith("_"):
                colours.setdefault(line.get_label().split(" ")[0], set()).add(line.get_color())
    assert set(colours) == {"HTINF", "uniINF", "UCB1"} and all(len(found) == 1 for found in colours.values())
    both = xr.concat([left, left.assign_coords(environment=["switching"])], "environment")
    with pytest.raises(ValueError, match="a panel shows one environment, got pareto, switching"):
        plots.headline(both, middle, pairs(), environments=known)
    ds = xr.concat([left, middle.assign_coords(policy=["uniinf", "htinf"]), pairs()], "environment", join="inner")
    named = {"name": "headline", "left": "pareto", "middle": "shifting", "right": "hard_pair"}
    made = plots.draw(ds, tmp_path, formats=["png"], environments=known, figures=[named, "worst_gap"], strict=True)
    assert [path.name for path in made] == ["headline.png", "worst_gap.png"]
    with pytest.raises(ValueError, match="figure 'headline' needs left, the name of an environment of the study"):
        plots.draw(ds, tmp_path, figures=["headline"])

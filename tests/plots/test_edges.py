"""Figures where data run out: one seed, one arm, policies that stop; bands and notes say what is there."""

import functools

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.analysis import comparison, growth
from jaxbandit.plots import style
from tests.support.plot_cases import LABELS, ROUNDS, synthetic

ENVIRONMENTS = {
    "pareto": jb.Pareto(means=[0.5, 1.0], tail_index=1.6),
    "switching": jb.Switching(jb.Bernoulli(means=[0.2, 0.8])),
}
BANDED = {
    "regret": {},
    "both_worlds": {"environments": ENVIRONMENTS},
    "ablation": {"measures": ("div", "shift")},
    "sweep": {"x": "tail"},
}


def test_a_policy_that_stops_is_fitted_over_the_rounds_it_played(shown):
    ds = synthetic(LABELS, exponent=0.7)
    whole = ds.regret.sel(policy="uniform").isel(environment=0)
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds["round"] <= 600))
    plots.growth_curves(ds, "x.png")
    last = int(ROUNDS[ROUNDS <= 600][-1])
    assert shown["legend"][1] == f"uniform: T^0.70, to round {last}"
    line = next(line for line in shown["lines"] if line.get_label().startswith("uniform"))
    np.testing.assert_allclose(line.get_ydata(), whole.mean("seed").sel(round=slice(None, last)))


@pytest.mark.slow
@pytest.mark.parametrize("environments", [1, 3])
def test_notes_fit_on_their_figure(environments, monkeypatch):
    outside = []

    def look_at(figure, path, also=()):
        figure.canvas.draw()
        texts = [figure._supxlabel, *(legend.get_title() for legend in figure.legends)]
        for text in filter(None, texts):
            extent = text.get_window_extent()
            outside.append(extent.x0 < 0 or extent.x1 > figure.bbox.width)
        return path

    monkeypatch.setattr(style, "save", look_at)
    ds = synthetic({"policy": ["uniinf"], "environment": ["pareto", "b", "c"][:environments]})
    environment = {"pareto": jb.Pareto(means=[0.5, 1.0], tail_index=1.6)}
    plots.growth_curves(ds, "x.png", environments=environment)
    plots.regret_curves(ds, "x.png", method="bootstrap", simultaneous=True)
    assert outside == [False, False]


@pytest.mark.parametrize("name", BANDED)
def test_bands_are_those_asked_for_on_every_figure(name, shown):
    """Also of a policy that stops before the others."""
    ds = synthetic(LABELS).assign_coords(tail=("environment", [1.2, 1.6]))
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds["round"] <= 600))
    figure = {"regret": plots.regret_curves}.get(name) or getattr(plots, name)
    if name == "sweep":
        ds = ds.assign_coords(environment=["pareto[tail=1.2]", "pareto[tail=1.6]"])
    figure(ds, "x.png", method="bootstrap", simultaneous=True, **BANDED[name])
    [note] = [note for note in shown["note"] if note]
    said = "each point by itself" if name == "sweep" else "simultaneous over rounds"
    assert "bands: bootstrap (studentised, 500 resamples), 95 %" in note.replace("\n", " ")
    assert said in note.replace("\n", " ")
    filled = [c for panel in shown["panels"] for c in panel.collections if len(c.get_paths())]
    assert len(filled) >= 2 and all(np.isfinite(c.get_paths()[0].vertices).all() for c in filled)


def test_a_summary_has_no_other_bands_than_normal_ones():
    with pytest.raises(ValueError, match=r"'normal, simultaneous' bands need every seed, .* run with keep"):
        plots.regret_curves(jb.summary(synthetic(LABELS)), "x.png", simultaneous=True)


ONE_SEED = ["regret", "growth", "exceedance", "both_worlds", "balance", "decomposition"]
ONE_SEED += [{"name": "ablation"}, {"name": "sweep", "x": "tail"}, {"name": "atlas", "x": "tail", "y": "unit"}]


@pytest.mark.parametrize("figure", ONE_SEED, ids=lambda figure: figure if isinstance(figure, str) else figure["name"])
def test_one_seed_has_figures_without_bands(figure, shown, tmp_path):
    """Warnings are errors here."""
    ds = synthetic({"policy": ["uniinf", "uniform"], "environment": ["pareto", "frechet"]}).isel(seed=[0])
    ds = ds.assign(scale=ds.regret, skipped=ds.regret).assign_attrs(num_seeds=1)
    ds = ds.assign_coords(tail=("environment", [1.2, 1.6]), unit=("environment", [1.0, 2.0]))
    environments = {name: jb.Pareto(means=[0.5, 1.0], tail_index=1.6) for name in ("pareto", "frechet")}
    plots.draw(ds, tmp_path, formats=["png"], environments=environments, figures=[figure])
    notes = " ".join(shown["note"])
    assert "1 seeds" not in notes
    if figure in ("regret", "both_worlds") or "ablation" in str(figure) or "sweep" in str(figure):
        assert "no bands, 1 seed" in notes


def test_no_regret_at_all_has_a_linear_axis(shown):
    """One arm. Warnings are errors here."""
    ds = synthetic(LABELS) * 0
    environment = {label: jb.Bernoulli(means=[0.5]) for label in LABELS["environment"]}
    for draw in (
        plots.regret_curves,
        plots.growth_curves,
        functools.partial(plots.both_worlds, environments=environment),
    ):
        draw(ds, "x.png")
        scales = [panel.get_yscale() for panel in shown["panels"] if panel.get_visible()]
        assert set(scales) == {"linear"}
        assert all((line.get_ydata() == 0).all() for line in shown["lines"])


@pytest.mark.usefixtures("shown")
def test_a_figure_that_cannot_be_drawn_is_named_and_the_others_are_drawn(tmp_path):
    ds, figures = synthetic(LABELS, measures=False), ["balance", "regret"]
    with pytest.raises(ValueError, match="no div, shift, skip_error"):
        plots.draw(ds, tmp_path, formats=["png"], figures=figures)
    with pytest.warns(UserWarning, match="figure 'balance' is not drawn: no div, shift, skip_error"):
        made = plots.draw(ds, tmp_path, formats=["png"], figures=figures, strict=False)
    assert [path.name for path in made] == ["regret.png"]


@pytest.mark.parametrize(
    ("axes", "x", "curves"),
    [
        ({"initial_scale": [1.0, 4.0, 16.0]}, "initial_scale", {"uniINF": [1, 4, 16]}),
        ({"tail_index": [1.2, 1.6]}, "tail_index", {"uniINF": [1.2, 1.6]}),
        ({"initial_scale": [1.0, 4.0], "tail_index": [1.2, 1.6]}, "initial_scale", {"uniINF": [1, 4]}),
    ],
)
def test_a_grid_of_one_class_is_drawn_over_its_values(axes, x, curves, shown):
    attrs = {"policy": "UniINF(horizon=300)", "environment": "Pareto(means=[0.5, 1.0])"}
    ds = synthetic(axes, measures=False).assign_attrs(attrs)
    plots.sweep(ds, x=x)
    for panel in shown["panels"]:
        drawn = {line.get_label(): line.get_xdata().tolist() for line in panel.get_lines()}
        assert {label: drawn[label] for label in curves} == curves
    assert len(shown["panels"]) == (2 if len(axes) == 2 else 1)


def test_a_gap_of_environments_that_are_not_given_is_explained():
    ds = synthetic(LABELS, measures=False)
    with pytest.raises(ValueError, match=r"no coordinate 'gap', .* pass environments = {label: environment}"):
        plots.atlas(ds.assign_coords(tail_index=("environment", [1.2, 1.6])), x="tail_index", y="gap")


def test_exponents_of_the_figure_are_those_of_the_table(shown):
    """A figure has the interval, the digits and the rule for falling regret of the measured table."""
    ds = synthetic(LABELS, exponent=0.7, measures=False)
    late = ds["round"] > 2000
    ds["regret"] = ds.regret.where((ds.environment == "pareto") | ~late, 0.5 * ds.regret)  # falls at the end
    bent = ds.regret.sel(policy="uniform", environment="pareto") * np.log(ds["round"] + 1)
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds.environment != "pareto"), bent)
    plots.growth_curves(ds, "x.png")
    for policy, name in (("uniinf", "uniINF"), ("uniform", "uniform")):
        cells = [
            comparison.measured(ds.regret.sel(policy=policy, environment=place), None)
            for place in LABELS["environment"]
        ]
        assert (cells[1].verdict, growth.exponent_text(*cells[1].exponent)) == ("falling", "")
        assert f"{name}: {growth.exponent_text(*cells[0].exponent)}" in shown["legend"]
        assert f"{name} (regret falls)" in shown["legend"]

"""Figures that a study file names: what they show is what the data says."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.plots import style
from jaxbandit.studies.figures import FIGURES
from jaxbandit.theory import assumptions
from tests.support.comparison_cases import ENVIRONMENTS, LAW, ROUNDS, games


@pytest.fixture
def drawn(monkeypatch):
    """The figure at the moment it is saved."""
    held = []
    monkeypatch.setattr(style, "save", lambda figure, path, also=(): (held.append(figure), path)[1])
    return held


@pytest.mark.slow
def test_every_figure_a_study_may_name_is_drawn(drawn, tmp_path):
    """From one dataset that has all they need."""
    policies = ["uniinf", "htinf[moment_bound_factor=0.1]", "htinf[moment_bound_factor=10]"]
    environments = {
        f"pareto[tail_index={a},means={g}]": jb.Pareto(means=[1 - g, 1.0], tail_index=a)
        for a in (1.2, 1.6)
        for g in (0.1, 0.5)
    }
    environments["switching"] = jb.Switching(LAW)
    ds = games(lambda p, e: np.sqrt(ROUNDS), policies, environments)
    ds = ds.assign_coords(
        moment_bound_factor=("policy", [np.nan, 0.1, 10.0]), tail_index=("environment", [1.2, 1.2, 1.6, 1.6, np.nan])
    )
    ds = ds.assign({name: ds.regret for name in ("div", "shift", "skip_error", "calibration", "scale", "skipped")})
    options = {
        "sweep": {"x": "moment_bound_factor"},
        "atlas": {"x": "tail_index", "y": "gap", "environments": ["pareto"]},
        "table": {"policies": ["uniinf"]},
        "headline": {
            "left": "pareto[tail_index=1.2,means=0.1]",
            "middle": "switching",
            "right": [f"pareto[tail_index=1.6,means={g}]" for g in (0.1, 0.5)],
        },
    }
    figures = [{"name": name, **options.get(name, {})} for name in FIGURES if name != "heat"]
    made = plots.draw(ds, tmp_path, formats=["png"], environments=environments, figures=figures)
    assert {path.name for path in made} == {
        *(f"{name}.png" for name in FIGURES if name not in ("heat", "table")),
        *(f"table.{ending}" for ending in ("html", "md", "tex")),
    }
    assert len(drawn) == len(FIGURES) - 2
    with pytest.raises(ValueError, match="no policy 'unifin' to draw; did you mean 'uniinf'"):
        plots.draw(ds, tmp_path, environments=environments, figures=[{"name": "regret", "policies": ["unifin"]}])


def test_both_worlds_stand_side_by_side(drawn, tmp_path):
    ds = games(lambda p, e: (1 + (p == "htinf")) * np.sqrt(ROUNDS), ["uniinf", "htinf"], ["switching", "pareto"])
    ds["regret"] = ds.regret.where((ds.policy != "htinf") | (ds["round"] <= 100))
    plots.both_worlds(ds, tmp_path / "x.png", environments=ENVIRONMENTS)
    left, right = drawn[0].axes
    assert left.get_title() == "stochastic: Pareto, K = 2, α = 1.5"
    assert right.get_title() == "adversarial: switching of Pareto, K = 2, α = 1.5"
    assert [text.get_text() for text in left.texts] == ["uniINF", "HTINF (to $10^{2}$)"]
    with pytest.raises(ValueError, match="no environment is given for 'switching'"):
        plots.both_worlds(ds, tmp_path / "x.png", environments={})


def test_a_policy_that_is_not_told_is_a_horizontal_band(drawn, tmp_path):
    policies = ["uniinf", "htinf[moment_bound_factor=10]", "htinf[moment_bound_factor=0.1]"]
    level = dict(zip(policies, (3.0, 5.0, 2.0), strict=True))
    ds = games(lambda p, e: level[p] * ROUNDS**0.5, policies, ["pareto"])
    ds = ds.assign_coords(moment_bound_factor=("policy", [np.nan, 10.0, 0.1]))
    plots.sweep(ds, tmp_path / "x.png", x="moment_bound_factor", environments=ENVIRONMENTS)
    flat, swept, _ = drawn[0].axes[0].get_lines()
    final = ds.regret.isel(round=-1, environment=0).mean("seed")
    assert swept.get_xdata().tolist() == [0.1, 10.0]
    np.testing.assert_allclose(swept.get_ydata(), final.values[[2, 1]])
    np.testing.assert_allclose(flat.get_ydata(), float(final[0]))
    assert {text.get_text() for text in drawn[0].axes[0].texts} == {"HTINF", "uniINF (not given)"}
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["given the true value"]


def test_a_sweep_of_environments_may_be_relative(drawn, tmp_path):
    units = [0.01, 1.0, 100.0]
    environments = {f"pareto[means={u}]": jb.Pareto(means=[u / 2, u], tail_index=1.6) for u in units}
    ds = games(lambda p, e: environments[e].means(1)[1] * ROUNDS**0.5, ["uniinf"], environments, spread=0.01)
    plots.sweep(ds, tmp_path / "x.png", x="unit", relative=True, environments=environments)
    (line,) = drawn[0].axes[0].get_lines()
    np.testing.assert_allclose(line.get_xdata(), units)
    np.testing.assert_allclose(line.get_ydata(), 64, rtol=0.01)
    with pytest.raises(ValueError, match="no policy or environment has a 'budget'"):
        plots.sweep(ds, tmp_path / "x.png", x="budget", environments=environments)


def test_winners_are_sure_only_where_they_are():
    """Nine equal environments and one with a real winner. All 10 x 3 tests are corrected together: a false alarm on the
    whole map has probability 5 % at most, and the seed is fixed."""
    environments = {f"w{n}": jb.Pareto(means=[0.5, 1.0], tail_index=1.1 + 0.1 * n) for n in range(10)}
    ds = games(lambda p, e: (0.5 if (p, e) == ("a", "w3") else 1.0) * ROUNDS**0.5, ["a", "b", "c"], environments)
    found = plots.winners(ds, x="tail_index", y="gap", environments=environments)
    assert found.sure.values.tolist() == [[n == 3 for n in range(10)]]
    assert int(found.winner[0, 3]) == 0
    assert float(found.margin[0, 3]) == pytest.approx(0.5, abs=0.1)
    assert found["x"].values == pytest.approx([1.1 + 0.1 * n for n in range(10)])
    twice = xr.concat([ds, ds.assign_coords(environment=[f"v{n}" for n in range(10)])], "environment")
    again = environments | {f"v{n}": environment for n, environment in enumerate(environments.values())}
    with pytest.raises(ValueError, match="two environments share gap"):
        plots.winners(twice, x="tail_index", y="gap", environments=again)


def test_atlas_hatches_what_may_be_chance(drawn, tmp_path):
    environments = {f"w{n}": jb.Pareto(means=[0.5, 1.0], tail_index=1.2 + 0.4 * n) for n in range(2)}
    ds = games(
        lambda p, e: (0.5 if (p, e) == ("uniinf", "w0") else 1.0) * ROUNDS**0.5, ["uniinf", "htinf"], environments
    )
    plots.atlas(ds, tmp_path / "x.png", x="tail_index", y="gap", environments=environments)
    first, second = drawn[0].axes[0].patches
    assert (first.get_hatch(), second.get_hatch()) == (None, "////")
    assert drawn[0].axes[0].texts[0].get_text().startswith("uniINF\n−")
    handles = {text.get_text(): patch for text, patch in zip(*_legend(drawn[0]), strict=True)}
    assert handles["uniINF"].get_facecolor() == first.get_facecolor()  # the legend shows the colours of the cells


def _legend(figure):
    return figure.legends[0].get_texts(), figure.legends[0].get_patches()


def test_every_figure_marks_a_policy_outside_its_assumptions():
    """A dagger at the name, and its meaning in the note."""
    laws = {f"pareto[tail_index={tail}]": jb.Pareto(means=[0.5, 1.0], tail_index=tail) for tail in (1.2, 1.6)}
    first = next(iter(laws))
    ds = games(lambda p, e: (1.0 if p == "ucb1" else 2.0) * ROUNDS**0.5, ["ucb1", "uniinf"], laws)
    ds = ds.assign_coords(tail_index=("environment", [1.2, 1.6]))
    ds.attrs["outside"] = assumptions.as_attribute([("ucb1", first)])
    ds = ds.assign({name: ds.regret for name in ("scale", "skipped", "div", "shift", "skip_error")})
    figures = [
        plots.sweep(ds, x="tail_index", environments=laws),
        plots.atlas(ds, x="tail_index", y="gap", environments=laws),
        plots.ablation(ds, environments=laws),
        plots.decomposition(ds, environments=laws),
        plots.balance(ds, environments=laws),
    ]
    for figure in figures:
        texts = [text.get_text() for text in figure.findobj(Text)]
        assert any("UCB1†" in text for text in texts), texts
        assert not any("uniINF†" in text for text in texts)
        assert any("† outside its assumptions" in text for text in texts)
    cells = [text.get_text() for text in figures[1].axes[0].texts]
    assert [cell.startswith("UCB1†") for cell in cells] == [True, False]  # in the other environment it is inside


@pytest.mark.filterwarnings("ignore:.*outside its assumptions")
def test_a_watched_game_says_who_is_outside(tmp_path):
    policies, environment = [jb.UCB1(), jb.UniINF(horizon=20)], jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
    figure = plots.game(policies, environment, horizon=20)
    assert [panel.get_title().replace("\n", " ") for panel in figure.axes[:2]] == [
        "UCB1 (outside its assumptions)",
        "uniINF",
    ]
    page = plots.watch(policies, environment, tmp_path / "x.html", horizon=20).read_text(encoding="utf-8")
    assert '"name":"UCB1 (outside its assumptions)"' in page and '"name":"uniINF"' in page

"""Figures: what they show is what the dataset says, in every form a dataset comes in."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.cli import entry as cli
from jaxbandit.plots.common import environment_names, scale_regret
from jaxbandit.plots.gains import per_doubling
from jaxbandit.store import seal
from jaxbandit.theory.instance import instance_bound
from tests.support.plot_cases import LABELS, synthetic

STUDY = """
horizon = 4096
num_seeds = 32
[[policies]]
name = "uniform"
[[environments]]
name = "pareto"
means = [0.5, 1.0]
tail_index = 1.6
[[environments]]
name = "switching"
law = {name = "bernoulli", means = [0.2, 0.8]}
"""


def test_a_figure_is_written_in_every_format(tmp_path):
    ds = synthetic({"policy": ["uniinf"], "environment": ["pareto"]})
    figure = plots.regret_curves(ds, tmp_path / "regret.png", also=["pdf"])
    assert (tmp_path / "regret.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "regret.pdf").read_bytes()[:4] == b"%PDF"
    assert figure._repr_png_()[:4] == b"\x89PNG"  # in a notebook


@pytest.mark.usefixtures("shown")
def test_all_figures_a_dataset_allows_are_made(tmp_path):
    made = plots.draw(synthetic(LABELS), tmp_path / "figures")
    assert {path.name for path in made} == {
        f"{name}.{ending}" for name in ("regret", "growth", "decomposition") for ending in ("pdf", "png")
    }
    with pytest.raises(ValueError, match=r"formats is empty; possible file endings are .*pdf"):
        plots.draw(synthetic(LABELS), tmp_path, formats=[])
    with pytest.raises(ValueError, match=r"no figure can be written as ''; possible file endings are .*png"):
        plots.draw(synthetic(LABELS), tmp_path, formats=[""])
    with pytest.raises(ValueError, match=r"no figure can be written as 'pgf'"):  # TeX would execute the labels
        plots.draw(synthetic(LABELS), tmp_path, formats=["pgf"])


def test_regret_curves_show_the_means(shown):
    ds = synthetic(LABELS)
    plots.regret_curves(ds, "x.png", method="bootstrap", simultaneous=True)
    assert shown["titles"] == ["Pareto", "switching"]
    assert shown["cells"] == ["uniINF", "uniform"] * 2  # at the ends of the curves
    assert "bootstrap" in shown["note"][-1]
    assert "simultaneous over rounds, 32 seeds" in shown["note"][-1].replace("\n", " ")
    np.testing.assert_allclose(shown["lines"][1].get_ydata(), ds.regret.isel(policy=1, environment=0).mean("seed"))
    plots.regret_curves(ds, "x.png")
    assert shown["note"][-1] == "bands: normal, 95 %, 32 seeds"


def test_growth_shows_exponents_and_slope_guides(shown):
    ds = synthetic(LABELS, exponent=0.7).assign_attrs(study=STUDY)
    plots.growth_curves(ds, "x.png", environments=plots.environments_of(ds))
    assert shown["legend"][0].startswith("uniINF: T^0.70")
    assert not any("order only" in text for text in shown["legend"])  # off by default
    shown["lines"].clear()
    plots.growth_curves(ds, "x.png", environments=plots.environments_of(ds), guides=True)
    assert [text.split(": ")[1] for text in shown["legend"] if "order only" in text] == [
        "Σ (σ^α/Δ)^(1/(α−1)) log T",
        "σ K^(1−1/α) T^(1/α)",
    ]
    assert not any("of this environment" in text for text in shown["legend"])
    drawn = [line for line in shown["lines"] if "order only" in line.get_label()]
    looks = {(line.get_color(), line.get_linestyle()) for line in shown["lines"] if line not in drawn}
    assert (drawn[0].get_color(), drawn[0].get_linestyle()) not in looks
    rounds, values = drawn[1].get_data()
    assert rounds[0] >= rounds[-1] / 8  # a short segment
    np.testing.assert_allclose(np.diff(np.log(values)) / np.diff(np.log(rounds)), 1 / 2)  # Bernoulli: alpha = 2
    top = float(ds.regret.sel(environment=ds.environment[1]).mean("seed").max())
    assert values[-1] == pytest.approx(1.3 * top)


def test_growth_shows_multiples_for_the_policies_that_a_bound_binds(shown):
    ds = synthetic(LABELS).assign_attrs(study=STUDY)
    environments = plots.environments_of(ds)
    plots.growth_curves(ds, "x.png", environments=environments)
    first, second = [text for text in shown["legend"] if text.startswith("uniINF")]
    mean = float(ds.regret.isel(policy=0, environment=0, round=-1).mean("seed"))
    bound = instance_bound(environments[str(ds.environment.values[0])])
    expected = mean / (bound.nonnegative * np.log(float(ds["round"][-1])))
    assert first.endswith(f", {expected:.2g} × bound")
    assert "bound" not in second  # it changes
    assert not any("× bound" in text for text in shown["legend"] if text.startswith("uniform"))
    assert "no bound at finite T" in shown["note"][-1]


def test_growth_without_a_study_has_no_bound(shown):
    assert plots.environments_of(synthetic(LABELS)) == {}
    plots.growth_curves(synthetic(LABELS), "x.png")
    assert not any("order only" in text for text in shown["legend"])


def test_a_negative_regret_has_no_exponent(shown):
    ds = synthetic(LABELS)
    ds["regret"] = ds.regret * xr.DataArray([1, -1], dims="policy")
    plots.growth_curves(ds, "x.png")
    assert shown["legend"][1] == "uniform (regret not positive)"
    plots.regret_curves(ds, "x.png")
    assert all(panel.get_yscale() == "linear" for panel in shown["panels"])


def test_heat_map_shows_every_cell(shown):
    ds = synthetic({"initial_scale": [1.0, 4.0, 16.0], "tail_index": [1.2, 1.6]})
    plots.heat_map(ds, "x.png")
    panel = shown["panels"][0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("initial scale S₁", "tail index")
    expected = ds.regret.mean("seed").isel(round=-1).transpose("tail_index", "initial_scale")
    np.testing.assert_allclose(panel.images[0].get_array(), expected)
    assert shown["cells"] == [f"{value:.3g}" for value in expected.values.ravel()]
    plots.heat_map(ds, "x.png", x="tail_index")
    assert shown["panels"][0].get_xlabel() == "tail index"


def test_a_third_axis_gives_panels(shown):
    axes = {"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, 3.0], "c": [5.0, 6.0]}
    plots.heat_map(synthetic(axes), "x.png")
    assert shown["titles"][:2] == ["c = 5", "c = 6"]
    with pytest.raises(ValueError, match="takes two swept axes and one for panels"):
        plots.heat_map(synthetic(axes | {"d": [1.0, 2.0]}), "x.png")
    with pytest.raises(ValueError, match=r"takes two swept axes, but the dataset has a; .* plots.sweep\(ds, x='a'\)"):
        plots.heat_map(synthetic({"a": [1.0, 2.0]}), "x.png")
    with pytest.raises(ValueError, match="takes two swept axes, but the dataset has none"):
        plots.heat_map(synthetic({}), "x.png")
    with pytest.raises(ValueError, match="no swept axis 'q'; its swept axes are a, b, c"):
        plots.heat_map(synthetic(axes), "x.png", x="q")


def test_exceedance_is_the_share_of_games_above(shown):
    ds = synthetic(LABELS)
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds["round"] <= 600))
    plots.exceedance(ds, "x.png")
    assert shown["legend"] == ["uniINF", "uniform (to round 468)"]
    assert shown["note"][0] == "bands: Clopper-Pearson, at least 95 %, each x by itself, 32 seeds"
    assert all((panel.get_xscale(), panel.get_yscale()) == ("log", "log") for panel in shown["panels"])
    final = ds.regret.isel(policy=0, environment=0, round=-1).values
    x, chance = shown["lines"][0].get_data()
    np.testing.assert_allclose(chance, [(final >= at).mean() for at in x])
    assert {line.get_drawstyle() for line in shown["lines"]} == {"steps-pre"} and x.size == final.size
    assert (x.min(), x.max()) == (final.min(), final.max())
    band = shown["panels"][0].collections[0].get_paths()[0].vertices
    expected = jb.exceedance(ds.regret.isel(policy=0, environment=0, round=-1), [np.sort(final)[-2]])
    limits = band[np.isclose(band[:, 0], final.max()), 1]
    np.testing.assert_allclose([limits.min(), limits.max()], [expected.low[0], expected.high[0]])
    plots.exceedance(ds - 1e3, "x.png")
    assert {panel.get_xscale() for panel in shown["panels"]} == {"linear"}
    with pytest.raises(ValueError, match="needs every game"):
        plots.exceedance(jb.summary(ds), "x.png")


@pytest.mark.usefixtures("shown")
@pytest.mark.slow
def test_tails_are_drawn_unasked_of_many_seeds(tmp_path):
    ds = xr.concat([synthetic(LABELS, measures=False)] * 2, "seed")
    made = plots.draw(ds, tmp_path, formats=["png"])
    assert [path.stem for path in made] == ["regret", "growth", "exceedance"]


def test_decomposition_stacks_the_terms(shown):
    ds = synthetic(LABELS)
    plots.decomposition(ds, "x.png")
    assert shown["legend"] == ["Div", "Shift", "|SkipErr|", "pseudo-regret"]
    assert shown["titles"][0] == "uniINF in Pareto"
    top = max(path.vertices[:, 1].max() for path in shown["panels"][0].collections[-1].get_paths())
    assert top == pytest.approx(3.5 * float(ds.regret.isel(policy=0, environment=0).mean("seed")[-1]))
    assert shown["cells"][0] == "sum of the terms / regret = 3.5"
    # What the bound has: without the best arm, which stands first in one environment and changes in the other.
    environments = {
        "pareto": jb.Pareto(means=[0.5, 1.0], tail_index=1.5),
        "switching": jb.Switching(jb.Bernoulli(means=[0.2, 0.8])),
    }
    share = xr.DataArray([0.75, 0.25], dims="arm", coords={"arm": [0, 1]})
    ds = ds.sel(environment=list(environments)).assign(skip_error_by_arm=lambda ds: ds.skip_error * share)
    plots.decomposition(ds, "x.png", environments=environments)
    assert shown["legend"][2] == "|SkipErr| off the best arm"
    top = max(path.vertices[:, 1].max() for path in shown["panels"][0].collections[-1].get_paths())
    assert top == pytest.approx(2.0 * float(ds.regret.isel(policy=0, environment=0).mean("seed")[-1]))
    with pytest.raises(
        ValueError, match=r"no div, shift, skip_error in the dataset; run the study with measures = \['div'"
    ):
        plots.decomposition(synthetic(LABELS, measures=False), "x.png")


@pytest.mark.parametrize("keep", ["seeds", "summary"])
@pytest.mark.usefixtures("shown")
def test_datasets_as_simulate_makes_them(keep, tmp_path):
    """A sweep of one class a side: every point is a curve in a panel, and there is a heat map."""
    policies = jb.grid(jb.UniINF, horizon=50, initial_scale=[1.0, 4.0])
    environments = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6])
    ds = jb.simulate(policies, environments, horizon=50, num_seeds=16, record=8, keep=keep)
    made = plots.draw(ds, tmp_path, formats=["png"])
    assert {path.name for path in made} == {"regret.png", "growth.png", "heat.png"}
    assert plots.labelled(ds).policy.values[1] == "uniinf[initial_scale=4]"
    assert plots.labelled(ds).environment.values[1] == "pareto[tail_index=1.6]"
    several = plots.labelled(
        jb.simulate(jb.Uniform(), environments.points[0], horizon=50, num_seeds=16, record=8, keep=keep)
    )
    assert several.policy.values.tolist() == ["uniform"]
    assert several.environment.values.tolist() == ["pareto"]


@pytest.mark.usefixtures("shown")
def test_sweeps_of_a_labelled_dataset_have_heat_maps(tmp_path):
    labels = [f"uniinf[initial_scale={n}]" for n in (1, 4)]
    environments = ["pareto[tail_index=1.2]", "pareto[tail_index=1.6]", "switching"]
    ds = synthetic({"policy": labels, "environment": environments}, measures=False)
    coords = {"initial_scale": ("policy", [1.0, 4.0]), "tail_index": ("environment", [1.2, 1.6, np.nan])}
    made = plots.draw(ds.assign_coords(coords), tmp_path, formats=["png"])
    assert {path.name for path in made} == {"regret.png", "growth.png", "heat-uniinf-pareto.png"}


@pytest.mark.parametrize("highest", [3e4, -5.0])
def test_regrets_below_zero_stand_clear_of_the_frame(highest):
    panel = Figure().add_subplot()
    regret = np.array([highest, -2e4])
    panel.plot([1, 2], regret)
    scale_regret(panel, regret)
    bottom, top = panel.get_ylim()
    reach = max(highest, 0) + 2e4
    assert panel.get_yscale() == "linear"
    assert bottom <= -2e4 - 0.05 * reach and top >= max(highest, 0) + 0.05 * reach


@pytest.mark.usefixtures("shown")
def test_command(tmp_path):
    (tmp_path / "run").mkdir()
    content = seal.dataset_bytes(synthetic(LABELS).assign_attrs(study=STUDY))
    (tmp_path / "run" / "dataset.nc").write_bytes(content)
    done = CliRunner().invoke(cli.app, ["plot", str(tmp_path / "run"), "--format", "pdf", "--band", "bootstrap"])
    assert done.exit_code == 0, done.output
    assert [line.split("/")[-1] for line in done.output.split()[1::2]] == [
        "regret.pdf",
        "growth.pdf",
        "decomposition.pdf",
    ]
    done = CliRunner().invoke(cli.app, ["plot", str(tmp_path / "nowhere")])
    assert "does not exist; give the directory that `jaxbandit run` wrote" in str(done.exception)


def test_gains_are_what_each_doubling_adds(tmp_path):
    rounds, seeds = np.unique(np.geomspace(1, 1024, 60).astype(int)), np.arange(6)
    slopes = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    regret = xr.DataArray(slopes[:, None] * np.log2(rounds), dims=("seed", "round"), coords={"round": rounds})
    ends, gained = per_doubling(regret)
    assert ends[-1] == 1024 and ends.size == 10
    np.testing.assert_allclose(gained, np.tile(slopes[:, None], 10))  # log T gains the same in every doubling
    ds = xr.Dataset({"regret": regret.expand_dims(policy=["uniinf"], environment=["pareto"])})
    figure = plots.gains(ds.assign_coords(seed=seeds), tmp_path / "gains.png")
    (panel,) = figure.axes
    np.testing.assert_allclose(panel.lines[0].get_ydata(), 3.5)
    with pytest.raises(ValueError, match="two or more seeds"):
        plots.gains(ds.isel(seed=[0]))


def test_panels_of_one_kind_say_what_tells_them_apart():
    labels = ["pareto[means=0.5,1]", "pareto[means=0.2,1]", "bernoulli"]
    known = {label: jb.Pareto(means=[0.5, 1.0], tail_index=1.6) for label in labels[:2]}
    first, second, other = environment_names(labels, known)
    assert first.endswith("\nmeans = 0.5, 1") and second.endswith("\nmeans = 0.2, 1") and other == "Bernoulli"

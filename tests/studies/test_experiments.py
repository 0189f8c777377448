"""The experiments load and are cut down well; their figures and the table say what the data says."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.analysis import comparison
from jaxbandit.analysis.comparison import writers
from jaxbandit.cli import entry as cli
from jaxbandit.plots import style
from jaxbandit.store import cells
from jaxbandit.studies.figures import FIGURES, read_figures
from jaxbandit.studies.quick import thinned
from jaxbandit.studies.study import DataNeededError, Study, parse
from jaxbandit.theory import guarantees as theory

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
ROUNDS = np.unique(np.rint(np.geomspace(1, 4096, 25)).astype(int))
SEEDS = 64
LAW = jb.Pareto(means=[0.5, 1.0], tail_index=1.5556)
ENVIRONMENTS = {"pareto": LAW, "switching": jb.Switching(LAW)}


def games(curves, policies, environments, spread=0.2, seed=0):
    """A dataset whose regret is ``curves[policy, environment](t)`` times a positive number of mean 1 for each seed."""
    rng = np.random.default_rng(seed)
    shape = (len(policies), len(environments), SEEDS, 1)
    noise = rng.gamma(1 / spread**2, spread**2, size=shape)
    mean = np.asarray([[curves(p, e) for e in environments] for p in policies])[:, :, None, :]
    dims = ("policy", "environment", "seed", "round")
    ds = xr.Dataset(
        {"regret": (dims, mean * noise)},
        coords={"policy": list(policies), "environment": list(environments), "round": ROUNDS},
        attrs={"num_seeds": SEEDS, "title": "synthetic"},
    )
    return ds.assign(failed=(dims[:3], np.zeros(shape[:3])))


@pytest.fixture
def drawn(monkeypatch):
    """The figure at the moment it is saved."""
    held = []
    monkeypatch.setattr(style, "save", lambda figure, path, also=(): (held.append(figure), path)[1])
    return held


def study(policies, environments, **options):
    options = {"horizon": 100, "num_seeds": 8} | options
    return parse(options | {"policies": policies, "environments": environments})


PARETO = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.5}


# The files.


def paths():
    return sorted(path for path in EXPERIMENTS.glob("*.toml") if path.stem != "real_tables")


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_experiments_load_and_are_cut_down(path):
    full = Study.load(path)
    searched = full.sensitivity or full.tune or full.worst  # these commands draw their own
    assert full.figures or searched or path.stem == "quickstart"
    quick = full.quick()
    assert quick.horizon <= 2_000
    assert quick.num_seeds <= 64
    assert quick.figures == full.figures
    programs = {
        (type(game.policy), getattr(game.policy, "scale_loss", ""), type(game.environment), game.environment.num_arms)
        for game in cells.pairs(quick)
    }
    assert len(programs) <= 9  # compiling is what a quick run takes


def test_table_1_has_the_environments_asked_for():
    full = Study.load(EXPERIMENTS / "table1.toml")
    environments = [environment.environment for environment in full.resolved.declared]
    orders = {round(float(environment.moment_order), 3) for environment in environments}
    assert orders == {1.1, 1.3, 1.5, 1.8, 2.0}
    assert {environment.num_arms for environment in environments} == {2, 10, 50}
    kinds = [type(environment) for environment in environments]
    assert {kind: kinds.count(kind) for kind in kinds} == {jb.Pareto: 15, jb.Switching: 15, jb.Shifting: 10}
    assert {entry.name for entry in full.resolved.policies} == set(theory.GUARANTEES)
    assert (full.horizon, full.num_seeds >= 256) == (1_000_000, True)


def test_measured_tables_come_from_the_user(tmp_path):
    path = EXPERIMENTS / "real_tables.toml"
    with pytest.raises(DataNeededError, match="--data DIR: a directory of tables"):
        Study.load(path)
    done = CliRunner().invoke(cli.app, ["run", str(path), "--quick"])
    assert (done.exit_code, done.output.startswith("skipped: ")) == (0, True)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "long.npy", rng.exponential(size=(5_000, 3)))
    np.save(tmp_path / "short.npy", 50 * rng.exponential(size=(40, 2)))
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n")
    (tmp_path / "notes.md").write_text("no table")
    with pytest.warns(UserWarning, match=r"short.npy is left out: in stored order its 40 rows|bad.csv is left out: "):
        environments = Study.load(path, tmp_path).resolved.environment_grids
    found = [(point.name, point.order) for grid in environments for point in grid.points]
    assert found == [("long", "resampled"), ("short", "resampled"), ("long", "stored")]
    np.testing.assert_allclose(
        [np.quantile(np.abs(point.losses) * point.scale, 0.99) for grid in environments for point in grid.points],
        1,
        rtol=1e-5,
    )
    with pytest.raises(ValueError, match="no usable table of 100 rounds matches 'x\\*'"):
        study([{"name": "uniform"}], [{"name": "replay", "table": "x*"}])


# What a study file can say.


def test_factors_multiply_what_the_environment_declares():
    entry = {
        "name": "htinf",
        "moment_order": "environment",
        "moment_bound": "environment",
        "moment_bound_factor": [0.1, 1.0, 10.0],
    }
    made = study([entry], [PARETO])
    environment = made.resolved.declared[0].environment
    sigma = environment.moment(environment.moment_order)
    ((grid,),) = made.resolved.policy_grids
    np.testing.assert_allclose([point.moment_bound for point in grid.points], sigma * np.array([0.1, 1, 10]), rtol=1e-6)
    assert {point.moment_order for point in grid.points} == {environment.moment_order}
    assert [row["moment_bound_factor"] for row in grid.rows()] == [0.1, 1.0, 10.0]


def test_who_is_told_a_wrong_order_is_told_the_bound_of_the_right_one():
    entry = {"name": "htinf", "moment_order": "environment", "moment_bound": "environment", "moment_order_factor": 1.3}
    environment = study([entry], [PARETO]).resolved.declared[0].environment
    point = study([entry], [PARETO]).resolved.policy_grids[0][0].points[0]
    assert point.moment_order == pytest.approx(1.3 * environment.moment_order)
    assert point.moment_order > 1.5  # the environment has no such moment
    assert point.moment_bound == pytest.approx(environment.moment(environment.moment_order))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"moment_order": 1.5, "moment_bound": 2.0, "moment_bound_factor": 2.0}, 'set moment_bound = "environment"'),
        (
            {"moment_order": "environment", "moment_bound": "environment", "moment_bound_factor": [1.0, -1.0]},
            "above 0.*got -1.0",
        ),
        (
            {"moment_order": "environment", "moment_bound": "environment", "horizon_factor": 2.0},
            "no field 'horizon_factor'",
        ),
        (
            {"moment_order": "environment", "moment_bound": "environment", "moment_order_factor": 3.0},
            "moment_order must be",
        ),
        (
            {"moment_order": "environment", "moment_bound": "environment", "stop_at": 0},
            "stop_at must be a whole number >= 1",
        ),
    ],
)
def test_bad_entries_say_what_to_do(values, message):
    with pytest.raises(ValueError, match=message):
        study([{"name": "htinf", **values}], [PARETO])


def test_a_policy_may_stop_earlier(tmp_path):
    policies = [{"name": "uniform", "stop_at": stop} for stop in (30, 50, 100)]
    environments = [{"name": "bernoulli", "means": [0.2, 0.8]}, {"name": "bernoulli", "means": [0.1, 0.5, 0.9]}]
    made = study(policies, environments, record=4)
    told = study([{"name": "uniinf", "stop_at": 50}], environments).resolved.policy_grids[0][0].points[0].horizon
    assert told == 50  # as long as it plays
    ds = jb.run(made, tmp_path)
    assert ds["round"].values.tolist() == [1, 5, 22, 30, 50, 100]
    for n, stop in enumerate((30, 50, 100)):
        played = ds.regret.isel(policy=n).notnull().all(["environment", "seed"])
        np.testing.assert_array_equal(played, ds["round"] <= stop)
        pulls = ds.pulls.isel(policy=n, environment=0).sel(round=stop)
        np.testing.assert_array_equal(pulls.sum("arm"), stop)
        np.testing.assert_array_equal(pulls.isel(arm=2), 0)  # an arm the environment lacks
    np.testing.assert_array_equal(ds.regret[0].sel(round=30), ds.regret[2].sel(round=30))
    assert made.changed(horizon=20).rounds()[-1] == 20


def test_figures_are_checked_when_a_study_is_read():
    good = read_figures(
        ["table", {"name": "atlas", "x": "tail_index", "y": "gap", "file": "map", "policies": "uniinf"}]
    )
    assert [(figure.file, dict(figure.options)) for figure in good] == [
        ("table", {}),
        ("map", {"x": "tail_index", "y": "gap"}),
    ]
    for figures, message in (
        (["both_world"], "unknown figure 'both_world'; did you mean 'both_worlds'"),
        ([{"name": "sweep"}], "'sweep' needs x"),
        ([{"name": "sweep", "x": "gap", "z": 1}], "'sweep' has no option 'z'"),
        (["table", "table"], "two figures would be written to 'table'"),
        ([{"name": "table", "file": 3}], "file must be text, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            study([{"name": "uniform"}], [PARETO], figures=figures)


def test_quick_plays_the_policies_it_names():
    policies = [{"name": "uniform"}, {"name": "ucb1", "label": "mine"}, {"name": "exp3"}]
    made = study(policies, [PARETO], quick_policies=["uniform", "mine"])
    assert [entry.name for entry in made.quick().resolved.policies] == ["uniform", "ucb1"]
    with pytest.raises(ValueError, match="quick_policies names 'unifrm'; did you mean 'uniform'"):
        study(policies, [PARETO], quick_policies=["unifrm"])


def test_quick_keeps_the_ends_of_a_sweep():
    entry = {"name": "corrupted", "budget": [10, 100, 1000], "law": {"name": "pareto", "tail_index": [1.1, 1.5, 2.0]}}
    assert thinned(entry, ["budget", "law"], share=0.1) == {
        "name": "corrupted",
        "budget": [1, 100],
        "law": {"name": "pareto", "tail_index": [1.1, 2.0]},
    }
    laws = [{"name": "pareto", "means": [0.5, 1.0]}, {"name": "pareto", "means": [0.5, 1.0, 1.0]}]
    assert thinned({"name": "swap", "law": laws}, ["law"])["law"] == laws[:1]


# Figures.


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
    assert left.get_title() == "stochastic: pareto, K = 2, α = 1.5"
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
    swept, flat, _ = drawn[0].axes[0].get_lines()
    final = ds.regret.isel(round=-1, environment=0).mean("seed")
    assert swept.get_xdata().tolist() == [0.1, 10.0]
    np.testing.assert_allclose(swept.get_ydata(), final.values[[2, 1]])
    np.testing.assert_allclose(flat.get_ydata(), float(final[0]))
    legend = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert legend == ["HTINF", "uniINF (not given)", "given the true value"]


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


def test_a_policy_has_one_colour():
    alone, among = style.looks(["uniinf", "htinf"]), style.looks(["htinf", "mine", "uniinf", "uniinf[x=1]"])
    assert alone[0] == among[2]
    assert alone[1] == among[0]
    assert among[3]["color"] == among[2]["color"]
    assert among[3] != among[2]
    assert among[1]["color"] not in (among[0]["color"], among[2]["color"])
    variants = style.looks([f"uniinf[x={n}]" for n in range(3)])
    assert len({look["color"] for look in variants}) == 3
    assert set(style.POLICY_LOOKS) == set(jb.POLICIES)
    assert len(set(style.POLICY_LOOKS.values())) == len(jb.POLICIES)


# The table.


def growth(kind):
    curves = {"log": 10 * np.log(4 * ROUNDS), "root": ROUNDS**0.5, "linear": 0.4 * ROUNDS, "negative": -0.1 * ROUNDS}
    return (curves | {"saw": 100 + 10 * (np.arange(ROUNDS.size) % 2)})[kind]


def cell(kind, promised):
    regret = games(lambda p, e: growth(kind), ["p"], ["e"]).regret.isel(policy=0, environment=0)
    return comparison.measured(regret, promised)


def test_an_entry_says_what_was_seen():
    log, linear, root = cell("log", 0.0), cell("linear", 0.7), cell("root", 0.7)
    assert (log.verdict, linear.verdict, root.verdict) == ("logarithmic", "faster", "faster")
    assert linear.exponent[0] == pytest.approx(1)
    assert (linear.above, root.above, log.above) == (True, False, False)
    assert (linear.below, root.below, log.below) == (False, True, False)
    assert cell("negative", 0.7).below_zero
    saw = cell("saw", 0.7)
    assert np.isnan([*saw.exponent, *saw.ratio]).all()


@pytest.mark.parametrize(
    ("kind", "promised", "said"),
    [
        ("log", None, "like log T (1.00"),
        ("linear", None, "faster than log T (8.00"),
        ("root", 0.7, "faster than log T (2.83 [2.83, 2.83]); below T^0.7"),
        ("linear", 0.7, "faster than log T (8.00 [8.00, 8.00]); above T^0.7"),
        ("saw", 0.7, "falls"),
        ("negative", 0.7, "below 0"),
    ],
)
def test_what_a_cell_says(kind, promised, said):
    assert writers.regime(cell(kind, promised)).startswith(said)


def test_limits_are_told_apart():
    shown = dataclasses.replace(cell("linear", 0.0), regret=(203_123.0, 202_789.0, 203_456.0))
    assert writers._limits(shown) == ("203,100", "202,800", "203,500")
    wide = dataclasses.replace(shown, regret=(26_012.0, 22_190.0, 30_640.0))
    assert writers._limits(wide) == ("26,000", "22,200", "30,600")
    assert writers._limits(dataclasses.replace(shown, regret=(5.0, 5.0, 5.0))) == ("5", "5", "5")


def test_the_table_says_who_is_told_what_and_what_was_seen(tmp_path):
    policies = ["uniinf", "htinf", "robust_ucb", "ape2", "my|policy_1"]
    curves = {"pareto": growth("log"), "switching": growth("linear")}
    ds = games(lambda p, e: curves[e], policies, ENVIRONMENTS)
    ds["regret"] = ds.regret.where((ds.policy != "ape2") | (ds["round"] <= 512))
    table = comparison.compared(ds, environments=ENVIRONMENTS, title="Measured & proved")
    (block,) = table.blocks
    assert (block.num_arms, block.columns) == (2, (1.5,))
    told = {row.policy: row.told for row in block.rows}
    both = ("α", "σ")
    assert told == {
        "Lower bound": None,
        "uniINF": ("T",),
        "HTINF": both,
        "RobustUCB": both,
        "APE²": ("α",),
        "my|policy_1": None,
    }
    uniinf = block.rows[1]
    assert [line.stochastic for line in uniinf.lines] == [True, False]
    assert uniinf.lines[0].cells[0].verdict == "logarithmic"
    assert uniinf.lines[1].cells[0].promised == pytest.approx(1 / 1.5)
    assert uniinf.lines[1].cells[0].above
    assert block.rows[3].lines[1].order is None
    assert block.rows[4].lines[0].cells[0].stopped

    made = comparison.write(ds, tmp_path / "table", environments=ENVIRONMENTS, title="Measured & proved")
    page, markdown, latex = (path.read_text() for path in made)
    mean = float(ds.regret.sel(policy="uniinf", environment="pareto").isel(round=-1).mean())
    assert "<h1>Measured &amp; proved</h1>" in page
    assert f"<b>{mean:.3g}</b>" in page
    assert "http" not in page
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 * (1 + len(policies))
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert rows[2].startswith("| **Lower bound** | – | – | – | stochastic: one instance | Σ (σ^α/Δ)^(1/(α−1)) log T |")
    assert f"**{mean:.3g}**" in rows[4]
    assert "like log T (1.0" in rows[4]
    assert "; above T^0.67" in rows[5]
    assert "✓" not in rows[4].rsplit("|", 2)[1]  # one instance confirms no bound
    assert "† T = 512" in rows[10]
    assert r"Measured \& proved" in latex
    assert r"my|policy\_1" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    body = [line for line in latex.splitlines() if line.endswith(r"\\") and line.count("&")]
    assert {line.replace(r"\&", "").count("&") for line in body} == {7}
    assert latex.count("{") == latex.count("}")


def test_the_table_needs_every_seed_and_every_environment():
    ds = games(lambda p, e: growth("log"), ["uniinf"], ["pareto"])
    with pytest.raises(ValueError, match="no environment is given for 'pareto'"):
        comparison.compared(ds, environments={})
    with pytest.raises(ValueError, match='keep = "seeds"'):
        comparison.compared(jb.summary(ds), environments=ENVIRONMENTS)


def test_orders_of_the_theory():
    uniinf, optimistic = theory.GUARANTEES["uniinf"], theory.GUARANTEES["opt_htinf"]
    assert uniinf.stochastic.exponent(1.5, 10) == 0
    assert uniinf.adversarial.exponent(1.5, 10) == pytest.approx(2 / 3)
    assert optimistic.adversarial.exponent(1.5, 10) == pytest.approx(0.75)
    assert set(theory.GUARANTEES) <= set(jb.POLICIES)

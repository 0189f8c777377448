"""Results as one table: numbers, and labels that stay text in every format."""

import csv
import io

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit.analysis import escapes
from jaxbandit.analysis.outcomes import outcomes
from jaxbandit.analysis.table import rate_text, rows_csv
from jaxbandit.dataset.results import labelled
from jaxbandit.report.numbers import as_csv

EVIL = ["=cmd|' /C calc'!A0", "a|b*c* <script> [x](y) `z`", r"50 % \input{x} & $y_1$ ^ ~ # {"]
ENVIRONMENT = jb.Bernoulli(means=[0.2, 0.8])


@pytest.fixture(scope="module")
def results():
    """Regret of three policies with hostile labels, 200 seeds; the last one loses 3 of them."""
    rng = np.random.default_rng(0)
    regret = rng.normal(10.0, 1.0, (3, 1, 200, 2))
    regret[2, 0, :3, 1] = 90.0
    dims = ("policy", "environment", "seed", "round")
    coords = {"policy": EVIL, "environment": ["bernoulli"], "round": [50, 100]}
    return xr.Dataset({"regret": (dims, regret), "failed": (dims[:3], np.zeros((3, 1, 200), int))}, coords)


def test_outcomes_are_those_of_numpy(results):
    found = outcomes(
        results.assign(seeds=(("policy", "environment"), np.full((3, 1), 200))), None, {"bernoulli": ENVIRONMENT}
    )
    final = results.regret.values[2, 0, :, 1]
    last = found[2]
    assert (last.mean, last.seeds, last.rounds) == (pytest.approx(final.mean()), 200, 100)
    assert last.tail == pytest.approx(np.quantile(final, 0.99))
    assert last.lost[0] == 3 / 200  # above T Delta / 4 = 15
    assert last.lost[1] < 3 / 200 < last.lost[2] < 0.05
    assert found[0].lost[0] == 0


def test_csv_has_every_number_and_no_formula(results):
    rows = list(csv.DictReader(io.StringIO(jb.table(results, "csv", environments={"bernoulli": ENVIRONMENT}))))
    assert [row["policy"] for row in rows] == ["'" + EVIL[0], EVIL[1], EVIL[2]]
    assert float(rows[1]["regret_mean"]) == float(jb.summary(results).regret_mean[1, 0, 1])
    assert float(rows[2]["lost_rate"]) == 0.015
    assert rows[0]["failed"] == "0"


def test_markdown_keeps_its_columns(results):
    lines = jb.table(results, environments={"bernoulli": ENVIRONMENT}).splitlines()
    assert " ".join(lines[0].split()) == "| environment | policy | mean ± s.e. | median | 99 % | lost |"
    assert len(set(map(len, lines[:5]))) == 1  # aligned in plain text too
    assert all(line.replace(r"\|", "").count("|") == 7 for line in lines[:5])
    assert "<script>" not in lines[3] and "](" not in lines[3] and r"\*c\*" in lines[3]
    assert "1.5 % (0.31 to 4.3)" in lines[4]
    assert "lost" not in jb.table(results).splitlines()[0]  # no environments: no gap


def test_latex_has_no_foreign_command(results):
    text = jb.table(results, "latex")
    assert r"\input" not in text and r"50 \% \textbackslash{}input\{x\} \& \$y\_1\$" in text
    assert text.count(r"\\") == 4 and text.count(" & ") == 4 * 4
    with pytest.raises(ValueError, match="format must be"):
        jb.table(results, "html")


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "  =1", "＝1"])
def test_every_formula_is_made_text(text):
    assert escapes.spreadsheet(text) == "'" + text.replace("\t", " ")
    assert escapes.spreadsheet("x" + text) == "x" + text.replace("\t", " ")


@pytest.mark.parametrize("write", [rows_csv, as_csv])
def test_no_sign_in_a_label_or_a_heading_ends_a_row(write):
    row = {"a\r=1": "=2*3 \r=4", "\n+b": "x\n@y\x0b\x85\u2028z", "mean": -2.5}
    for read in (str.splitlines, lambda text: text.rstrip("\n").split("\n")):  # readers differ in what ends a line
        head, entries = read(write([row]))
        assert head == "a =1,' +b,mean" and entries == "'=2*3  =4,x @y   z,-2.5"


def test_rates_to_two_digits():
    assert rate_text((0.0, 0.0, 0.056)) == "0 % (0 to 5.6)"
    assert rate_text((1.0, 0.94, 1.0)) == "100 % (94 to 100)"
    assert rate_text((0.89, 0.888, 0.892)) == "89.0 % (88.8 to 89.2)"
    assert rate_text((1.0, 0.99996, 1.0)) == "100 % (99.996 to 100)"
    assert rate_text((0.01, 0.00996, 0.01004)) == "1 % (0.996 to 1.004)"
    assert rate_text((np.nan,) * 3) == "–"


def test_sweeps_of_one_class_are_labelled_by_side():
    sweep = jb.grid(jb.UniINF, horizon=20, initial_scale=[1.0, 4.0])
    environments = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6])
    ds = jb.simulate(sweep, environments, horizon=20, num_seeds=8, record=[20])
    rows = list(csv.DictReader(io.StringIO(jb.table(ds, "csv"))))
    assert [(row["policy"], row["environment"]) for row in rows][1] == (
        "uniinf[initial_scale=4]",
        "pareto[tail_index=1.2]",
    )
    for n, row in enumerate(rows):
        expected = float(ds.regret.isel(initial_scale=n % 2, tail_index=n // 2, round=-1).mean())
        assert float(row["regret_mean"]) == pytest.approx(expected)
        assert row["seeds"] == "8"


@pytest.mark.slow  # imports pandas
def test_export_writes_what_is_asked_for(results, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas

    from jaxbandit.cli import entry
    from jaxbandit.store import seal

    (tmp_path / "dataset.nc").write_bytes(seal.dataset_bytes(results))
    done = CliRunner().invoke(
        entry.app,
        ["export", str(tmp_path / "dataset.nc"), "--csv", "--latex", "--markdown", "--parquet"],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    names = {"table.csv", "curves.csv", "table.tex", "table.md", "table.parquet", "curves.parquet"}
    assert {path.name for path in (tmp_path / "export").iterdir()} == names
    curves = pandas.read_parquet(tmp_path / "export" / "curves.parquet")
    assert curves["round"].tolist() == [50, 100] * 3
    np.testing.assert_array_equal(curves.regret_mean, results.regret.mean("seed").values.ravel())
    again = pandas.read_csv(tmp_path / "export" / "curves.csv")
    np.testing.assert_array_equal(again.regret_mean, curves.regret_mean)


def test_a_gap_too_small_for_the_horizon_shows_no_lost_games(results):
    """If every policy loses its median game, readers see a dash, and programs the share."""
    near = {"bernoulli": jb.Bernoulli(means=[0.5, 0.6])}  # T Delta / 4 = 2.5, and the medians are 10
    found = outcomes(labelled(results), environments=near)
    assert [one.lost[0] for one in found] == [1.0, 1.0, 1.0] and not any(one.telling for one in found)
    assert "lost" not in jb.table(results, environments=near)
    one = results.copy(deep=True)
    one["regret"][0] = 0.0  # a policy that wins its games
    assert jb.table(one, environments=near).splitlines()[2].endswith(" 0 % (0 to 1.8) |")
    assert "100 % (98 to 100)" in jb.table(one, environments=near)


def test_every_format_says_who_is_outside_and_has_the_multiple_of_the_bound():
    environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
    with pytest.warns(UserWarning, match="outside its assumptions"):
        ds = jb.simulate([jb.UCB1(), jb.UniINF(horizon=50)], [environment], horizon=50, num_seeds=8, record=[50])
    known = {"pareto": environment}
    multiple = jb.theory.instance_bound(environment).multiple("uniinf", float(ds.regret[1].mean()), 50)
    ucb1, uniinf = jb.table(ds, environments=known).splitlines()[2:4]
    assert "| UCB1 (outside its assumptions) |" in ucb1 and ucb1.endswith(" – |")
    assert "| uniINF  " in uniinf and uniinf.endswith(f" {multiple:.2g} |")
    latex = jb.table(ds, "latex", environments=known)
    assert "& UCB1 (outside its assumptions) &" in latex and rf"& {multiple:.2g} \\" in latex
    assert "no bound at finite T" in latex
    rows = list(csv.DictReader(io.StringIO(jb.table(ds, "csv", environments=known))))
    assert [row["outside_assumptions"] for row in rows] == ["1", "0"]
    assert [row["multiple_of_bound"] for row in rows] == ["", str(multiple)]


def test_a_pair_outside_its_assumptions_has_no_multiple():
    environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
    policies = [jb.HTINF(moment_order=1.5, moment_bound=bound) for bound in (0.1, environment.moment(1.5))]
    shown = []
    with pytest.warns(UserWarning, match="is given moment_bound 0.1"):
        for policy in policies:
            ds = jb.simulate([policy], [environment], horizon=50, num_seeds=8, record=[50])
            shown.append("× bound" in jb.table(ds, environments={"pareto": environment}))
    assert shown == [False, True]

"""Growth on the report: exponents as the measured table has them, and lower bounds as orders."""

import dataclasses
import json
import re

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import report
from jaxbandit.analysis import comparison
from jaxbandit.report import findings, growth, points
from jaxbandit.theory import bounds
from tests.support.browser import WAIT, visit
from tests.support.report_cases import environments_of, kept_as_summary, study, written


def test_exponents_are_those_of_the_measured_table():
    """Regret of the study is that of the square root of the round, so 1/2 is in every interval."""
    ds = study()
    environments = environments_of(ds)
    found = {
        environment.label: environment for environment in growth.growths(findings.find(ds, environments=environments))
    }
    table = comparison.compared(ds, environments=environments)
    assert [environment.kind for environment in found.values()] == ["adversarial", "stochastic", "stochastic"]
    for environment in found.values():
        for n, row in enumerate(environment.rows):
            np.testing.assert_allclose(row.entry.exponent, [0.5, 0.5, 0.5, 0], atol=2e-3)
            (block,) = [block for block in table.blocks if block.num_arms == environments[environment.label].num_arms]
            entries = [
                entry for line in block.rows[n + 1].lines for entry in line.entries if entry
            ]  # below the lower bound
            # The page has bounds and lost games elsewhere.
            without = [dataclasses.replace(entry, multiple=None, lost=None) for entry in entries]
            assert repr(row.entry) in map(repr, without)  # NaN is not equal to itself
    by_policy = {row.policy: row for row in found["switching"].rows}
    uniinf, uniform = by_policy["uniinf[initial_scale=1]"], by_policy["uniform"]
    assert (uniinf.promised, uniinf.regime) == ("0.67", "faster than log T (2.81, 2.81 to 2.81); below T^0.67")
    assert uniinf.entry.promised == pytest.approx(1 / 1.5, abs=1e-4)
    assert (uniform.promised, uniform.proved, uniform.entry.below) == ("–", "", False)
    stochastic = {row.policy: row for row in found["pareto[tail_index=1.2]"].rows}
    assert stochastic["uniform"].entry.promised is None
    assert (stochastic["htinf"].promised, stochastic["htinf"].entry.verdict) == ("log T", "faster")


def test_a_logarithm_is_seen_as_one():
    ds = study()
    ds["regret"] = ds.regret / np.sqrt(ds["round"]) * np.log(2 * ds["round"])
    rows = [
        row
        for environment in growth.growths(findings.find(ds, environments=environments_of(ds)))
        for row in environment.rows
    ]
    assert all(row.regime.startswith("like log T (1.00") for row in rows)


def test_the_table_is_on_the_page(tmp_path):
    ds = study()
    page = written(ds, tmp_path, environments=environments_of(ds))
    part = page[page.index('id="growth-of-regret"') : page.index('id="all-numbers"')]
    assert part.count('scope="rowgroup"') == 3
    assert len(re.findall(r'<td class="num" data-name="e">T\^0\.50</td>', part)) == 12
    assert "; below T^0.67" in part
    assert "σ K^(1−1/α) T^(1/α)" in part
    assert "not shown" not in part


def test_without_environments_there_are_exponents_and_a_reason(tmp_path):
    page = written(study(), tmp_path)  # its study file names no environments
    assert "T^0.50" in page
    assert re.search(r"lower bounds are not shown: cannot rebuild the study", page)
    assert 'id="bound"' not in page
    ds = study()
    del ds.attrs["study"]
    assert "carries no study file; pass environments=" in written(ds, tmp_path)


@pytest.mark.parametrize("change", ["summary", "one seed", "few rounds"])
def test_what_says_nothing_of_growth_has_no_table(change, tmp_path):
    ds = {
        "summary": lambda: kept_as_summary(study()),
        "one seed": lambda: study(num_seeds=1),
        "few rounds": lambda: study().isel(round=slice(-4, None)),
    }[change]()
    assert 'id="growth-of-regret"' not in written(ds, tmp_path)


def test_a_policy_that_stops_earlier_is_marked(tmp_path):
    ds = study()
    ds["regret"] = ds.regret.where((ds.policy != "htinf") | (ds["round"] <= 500))
    page = written(ds, tmp_path, environments=environments_of(ds))
    assert len(re.findall(r"† T = \d+</td>", page)) == 3
    assert "†: this policy was played to fewer rounds" in page


def test_bounds_are_orders_at_the_recorded_rounds():
    ds = study()
    environments = environments_of(ds)
    data = points.explorer(findings.find(ds, environments=environments))
    environment = environments["switching"]
    sigma = environment.moment(environment.moment_order)
    np.testing.assert_allclose(
        data["bounds"][0]["at"], bounds.minimax(ds["round"].values, 2, environment.moment_order, sigma), rtol=5e-5
    )
    law = environments["pareto[tail_index=1.6]"]
    sigma = law.moment(law.moment_order)
    np.testing.assert_allclose(
        data["bounds"][2]["at"], bounds.instance(ds["round"].values, [0, 0.5, 0.5], law.moment_order, sigma), rtol=5e-5
    )
    assert all("order only" in bound["text"] for bound in data["bounds"])
    assert points.explorer(findings.find(ds))["bounds"] == [None] * 3


@pytest.mark.slow
def test_a_study_knows_its_environments(tmp_path):
    played = jb.Study(
        horizon=64,
        num_seeds=8,
        policies=[jb.Uniform()],
        environments=[jb.Pareto(means=[0.2, 0.8], tail_index=1.6), jb.Switching(jb.Bernoulli(means=[0.2, 0.8]))],
    )
    jb.run(played, tmp_path)
    page = report.write(tmp_path).read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [bound["text"] for bound in data["bounds"]] == [bounds.LABELS["instance"], bounds.LABELS["minimax"]]
    assert "<strong>switching</strong>, adversarial" in page


@pytest.mark.slow
def test_bounds_in_a_browser(tmp_path):
    """Off at first; if chosen, short dotted segments that are named; the frame stays that of the curves."""
    ds = study()
    ds["regret"] = ds.regret.where(
        ds.environment == "switching", ds.regret * 1e-3
    )  # bounds of Pareto environments: far above
    page = report.write(ds, tmp_path / "report.html", environments=environments_of(ds))
    script = """
    const plots = () => [...document.querySelectorAll(".view .plot")].slice(0, 2);
    const isBound = trace => (trace.name ?? "").startsWith("lower bound");
    const bounds = () => plots().map(plot => plot.data.filter(isBound).length);
    const says = () => [...document.querySelectorAll("#curves .says")].map(element => element.textContent);
    drawAll();
    await settled();
    const ranges = () => plots().map(plot => plot._fullLayout.yaxis.range);
    const found = {none: bounds(), silent: says(), after: ranges()};
    await choose("#bound", "order for the class");
    Object.assign(found, {bounds: bounds(), says: says(), before: ranges()});
    await choose("#y-scale", "linear");
    found.linear = bounds();
    found.top = plots()[0]._fullLayout.yaxis.range[1];
    return found;
    """
    found, console, requests, _ = visit(page, tmp_path, script, WAIT)
    assert (console, requests) == ([], [])
    assert found["bounds"] == [1, 1]
    assert "order only, for the class: σ K^(1−1/α) T^(1/α)." in found["says"][0]
    assert "for the class with these gaps" in found["says"][1]
    assert (found["none"], found["silent"]) == ([0, 0], ["", ""])
    assert found["before"] == found["after"]  # the frame is that of the curves
    assert found["linear"] == [1, 1]
    highest = float(ds.regret.sel(environment="switching").mean("seed").max())
    assert found["top"] < 1.5 * highest

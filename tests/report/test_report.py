"""The report: what its tables say is what the dataset says, and every study has a page."""

import builtins
import html
import json
import re
import shutil

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import plots, report
from jaxbandit.cli import entry as cli
from jaxbandit.report import findings, points, sections, sweeps, tails, verdicts
from jaxbandit.store.directory import StoreError
from jaxbandit.studies import limits
from jaxbandit.theory import assumptions
from tests.support.report_cases import Outside, environments_of, kept_as_summary, study, written


def test_verdicts_are_those_of_the_ranking():
    found = findings.find(study())
    ranks = jb.ranking(study())
    for n, verdict in enumerate(found.verdicts):
        expected = ranks.isel(environment=n).sortby("mean")
        assert [row.policy for row in verdict.rows] == expected.policy.values.tolist()
        np.testing.assert_allclose([row.mean for row in verdict.rows], expected["mean"])
        assert [row.beaten_by for row in verdict.rows] == expected.beaten_by.values.tolist()
        best = expected.policy.values[0]
        np.testing.assert_allclose([row.p_best for row in verdict.rows[1:]], expected.p_holm.sel(rival=best)[1:])
        assert (verdict.best.policy, verdict.is_sure, verdict.ties) == ("uniinf[initial_scale=1]", True, [])


def test_what_cannot_be_told_apart_is_called_open():
    found = findings.find(study().isel(policy=[1, 2, 3]))
    for verdict in found.verdicts:
        assert {verdict.best.policy, *(row.policy for row in verdict.ties)} == {"uniinf[initial_scale=4]", "htinf"}
    assert not any(verdict.is_sure for verdict in found.verdicts)


def test_a_summary_is_tested_without_pairs_and_holds_for_every_correlation():
    """Equal means, anticorrelated seeds: at 95 % at most about 5 % of 200 studies are called different."""
    rng = np.random.default_rng(1)
    luck = rng.standard_normal((200, 64))
    mean = np.stack([10 + luck.mean(1), 10 - luck.mean(1)])
    stderr = np.tile(luck.std(1, ddof=1) / 8, (2, 1))
    dims = ("policy", "environment", "round")
    stats = xr.Dataset({"regret_mean": (dims, mean[..., None]), "regret_stderr": (dims, stderr[..., None])})
    stats = stats.assign(regret_low=stats.regret_mean, regret_high=stats.regret_mean, seeds=64)
    stats = stats.assign_coords(policy=["a", "b"], environment=np.arange(200))
    sure = sum(verdict.is_sure for verdict in verdicts.verdicts(stats, stats))
    assert 1 <= sure <= 21  # binomial(200, 0.05): outside with probability 5e-4
    sharp = findings.find(kept_as_summary(study()))
    assert sharp.verdicts[0].best.policy == "uniinf[initial_scale=1]"
    assert "not paired" in sharp.verdicts[0].test


def test_seeds_that_not_all_have_played_are_left_out_of_the_pairs():
    ds = study()
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds.regret.seed < 20))
    found = findings.find(ds)
    assert "paired over 20 seeds" in found.verdicts[0].test
    mean = ds.regret.isel(policy=0, environment=0, round=-1, seed=slice(20)).mean()
    assert found.verdicts[0].best.mean == pytest.approx(float(mean))
    assert any("3 pairs with fewer than 32 seeds" in sentence for sentence in sections.troubles(found))


def test_cells_that_are_not_played_are_named(tmp_path):
    ds = study()
    ds["regret"] = ds.regret.where((ds.policy != "htinf") | (ds.environment != "switching"))
    ds["regret"] = ds.regret.where(ds.environment != "pareto[tail_index=1.6]")
    found = findings.find(ds)
    assert [verdict.missing for verdict in found.verdicts] == [["htinf"], []]
    assert "5 pairs not played yet: uniINF, S₁ = 1 in Pareto, tail_index = 1.6; uniINF" in next(
        sections.troubles(found)
    )
    page = written(ds, tmp_path)
    assert "in 2 of 2 environments played so far" in " ".join(page.split())
    with pytest.raises(ValueError, match="no cell of the study is finished; continue it"):
        findings.find(ds.isel(environment=[2]))


def test_a_policy_that_stops_earlier_is_named_and_not_ranked(tmp_path):
    ds = study()
    half = int(ds["round"][ds.sizes["round"] // 2])
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds["round"] <= half))
    found = findings.find(ds)
    for n, verdict in enumerate(found.verdicts):
        (stopped,) = verdict.stopped
        assert (stopped.policy, stopped.round, verdict.missing) == ("uniform", half, [])
        assert len(verdict.rows) == ds.sizes["policy"] - 1
        at = ds.regret.isel(environment=n).sel(round=half).mean("seed")
        assert stopped.mean == pytest.approx(float(at.sel(policy="uniform")))
        assert stopped.best == pytest.approx(float(at.sel(policy=verdict.best.policy)))
    assert list(sections.troubles(found)) == []  # it is meant so
    page = " ".join(written(ds, tmp_path).split())
    assert "every other ranked policy" in page
    assert f"Not ranked: uniform, which stops at round {half:,}" in page
    assert "Not ranked, as they stop before the last round: uniform" in page
    whole, last = ds.sizes["seed"] * ds.sizes["environment"], int(ds["round"][-1])
    rounds = whole * (last * (ds.sizes["policy"] - 1) + half)
    assert f"{limits.power(float(rounds))} rounds in all" in page
    assert "ranked policy" not in written(study(), tmp_path)


def test_broken_games_and_warnings_are_on_the_page(tmp_path):
    ds = study().assign_attrs(warnings="htinf is told a <wrong> sigma", infinite_losses=3)
    ds.failed[1, 0, :5] = 7
    page = written(ds, tmp_path)
    assert "broken games: 5 of uniINF, S₁ = 4" in page
    assert "5 of 384 games broken" in page
    assert "HTINF is told a &lt;wrong&gt; sigma: its guarantee does not cover this environment" in page
    assert "3 games suffered an infinite loss" in page
    assert '<a href="#warnings">3 warnings</a>' in page
    assert "No game is broken, nothing is missing" in written(study(), tmp_path)


def test_cells_that_are_not_played_do_not_hide_broken_games():
    ds = kept_as_summary(study())
    ds["failed"] = xr.full_like(ds.failed, -1)
    ds.failed[0, 0] = 2
    ds["regret_mean"] = ds.regret_mean.where(ds.failed >= 0)
    ds["seeds"] = xr.where(ds.failed >= 0, 32, 0)
    said = list(sections.troubles(findings.find(ds)))
    assert said[0] == (
        "broken games: 2 of uniINF, S₁ = 1, whose state was not finite (`failed` has the first such round)"
    )
    assert said[1].startswith("11 pairs not played yet")


def test_curves_are_the_summary_to_five_digits():
    ds = study()
    data = points.explorer(findings.find(ds))
    stats = jb.summary(ds)
    for name, values in {"mean": stats.regret_mean, "low": stats.regret_low, "high": stats.regret_high}.items():
        np.testing.assert_allclose(data["curves"][name], values, rtol=5e-5)
    assert max(len(json.dumps(x)) for x in data["curves"]["mean"][0][0]) <= 7
    assert data["policies"][1]["values"] == {"initial_scale": 4}
    assert [environment["values"] for environment in data["environments"]] == [
        {},
        {"tail_index": 1.2},
        {"tail_index": 1.6},
    ]
    assert data["shown"] == [0, 1, 2, 3]


def test_a_heat_map_needs_two_axes_that_meet():
    one, two = {"values": {"a": 1}}, {"values": {"a": 1, "b": 2}}
    other = {"values": {"b": 2}}
    assert points.has_heat({"policies": [one], "environments": [two, two]})
    assert points.has_heat({"policies": [one, one], "environments": [other, other]})
    assert not points.has_heat({"policies": [{"values": {}}], "environments": [one, one, other, other]})
    plain = {"values": {}}
    assert not sweeps.shows_heat({"policies": [plain, plain], "environments": [plain, plain]})  # the forest shows it
    assert sweeps.shows_heat({"policies": [plain] * 3, "environments": [plain] * 3})
    assert sweeps.shows_heat({"policies": [one, one], "environments": [other, other]})


def test_of_many_policies_the_best_of_each_class_is_shown_first():
    ds = study(num_policies=12).sortby("policy", ascending=False)
    shown = [str(ds.policy.values[n]) for n in points.explorer(findings.find(ds))["shown"]]
    assert len(shown) == points.AT_FIRST
    assert "uniinf[initial_scale=1]" in shown
    assert "uniinf[initial_scale=4]" not in shown


def test_bands_are_those_that_were_asked_for():
    ds = study()
    found = findings.find(ds, method="bootstrap", simultaneous=True)
    cell = ds.regret.isel(policy=1, environment=2)
    expected = jb.band(cell, method="bootstrap", simultaneous=True, num_resamples=plots.RESAMPLES)
    np.testing.assert_allclose(found.stats.regret_low.isel(policy=1, environment=2), expected.low)
    assert "simultaneous" in points.explorer(found)["band"]
    with pytest.raises(ValueError, match=r'bands need every seed, and a summary has none; run with keep = "seeds"'):
        findings.find(kept_as_summary(ds), method="bootstrap")


def test_bands_of_a_policy_that_stops_are_those_that_were_asked_for():
    ds = study()
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds["round"] <= 600))
    found = findings.find(ds, method="bootstrap").stats.sel(policy="uniform").isel(environment=0)
    cell = ds.regret.sel(policy="uniform").isel(environment=0).dropna("round")
    expected = jb.band(cell, method="bootstrap", num_resamples=plots.RESAMPLES)
    np.testing.assert_allclose(found.regret_low.dropna("round"), expected.low)


def test_the_tables_say_that_their_bands_are_normal(tmp_path):
    page = written(study(), tmp_path, method="bootstrap")
    assert page.count("95 % interval, normal</th>") == study().sizes["environment"]
    alone = written(study(num_seeds=1), tmp_path)
    assert "– to –" not in alone


def test_quantiles_of_final_regret_are_on_the_page(tmp_path):
    ds = study()
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds["round"] <= 600))
    rows = dict(tails.quantiles(findings.find(ds)))["switching"]
    final = ds.regret.isel(policy=1, environment=0, round=-1)
    found = jb.quantile(final, [0.5, 0.9, 0.99])
    np.testing.assert_allclose([row[0] for row in rows[1].quantiles], found.quantile_value)
    np.testing.assert_allclose([row[1:] for row in rows[1].quantiles], np.stack([found.low, found.high], -1))
    assert rows[1].worst == float(final.max())
    assert [row.stopped for row in rows] == [0, 0, 0, int(ds["round"][ds["round"] <= 600][-1])]
    page = written(ds, tmp_path)
    assert "<h3>Quantiles of final regret</h3>" in page
    assert "(at least " in page and "too few to bound the quantile" in page  # 32 games, 99 %
    assert "order statistics" in page
    for alone in (study(num_seeds=1), kept_as_summary(ds)):
        assert "Quantiles of final regret" not in written(alone, tmp_path)


def test_sweeps_of_one_class_a_side_keep_policies_and_environments_apart():
    sweep = jb.grid(jb.UniINF, horizon=50, initial_scale=[1.0, 4.0])
    environments = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6, 2.0])
    ds = jb.simulate(sweep, environments, horizon=50, num_seeds=16, record=8)
    found = findings.find(ds)
    assert found.ds.policy.values.tolist() == ["uniinf[initial_scale=1]", "uniinf[initial_scale=4]"]
    assert found.ds.environment.values.tolist() == [f"pareto[tail_index={tail:g}]" for tail in (1.2, 1.6, 2.0)]
    regret = found.ds.regret.sel(policy="uniinf[initial_scale=4]", environment="pareto[tail_index=1.6]")
    np.testing.assert_array_equal(
        regret.transpose("seed", "round"), ds.regret.sel(initial_scale=4, tail_index=1.6).transpose("seed", "round")
    )
    assert points.points(found.ds, "environment")[1]["values"] == {"tail_index": 1.6}


@pytest.mark.parametrize("keep", ["seeds", "summary"])
@pytest.mark.parametrize(("policies", "environments", "seeds"), [(1, 1, 32), (1, 3, 32), (3, 1, 32), (3, 2, 1)])
def test_every_shape_of_a_study_has_a_page(keep, policies, environments, seeds, tmp_path):
    ds = study(policies, environments, seeds)
    page = written(ds if keep == "seeds" else kept_as_summary(ds), tmp_path)
    assert not re.search(r"\bnan\b|None", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))
    outside = Outside()
    outside.feed(page)
    assert outside.found == []


def test_further_panels_stand_before_all_numbers(tmp_path):
    figure = {"data": [{"type": "bar", "x": ["</script>"], "y": np.array([1.5])}], "layout": {}}
    page = written(study(), tmp_path, panels=[report.Panel("Own <panel>", "<p>its text</p>", figure)])
    assert "<h2>Own &lt;panel&gt;</h2>\n<p>its text</p>" in page
    assert page.index('id="environments"') < page.index('id="own-panel"') < page.index('id="all-numbers"')
    held = re.search(r'data-drawing-of="own-panel">(.*?)</script>', page)
    assert json.loads(held[1])["data"][0]["x"] == ["</script>"]


PLAYED = {
    "title": "quick look",
    "horizon": 64,
    "num_seeds": 16,
    "policies": [jb.Uniform()],
    "environments": [jb.Bernoulli(means=[0.2, 0.8])],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """What ``run`` leaves."""
    path = tmp_path_factory.mktemp("report") / "run"
    jb.run(jb.Study(**PLAYED), path)
    return path


def test_command_reports_on_what_run_left(directory, tmp_path):
    done = CliRunner().invoke(cli.app, ["report", str(directory)])
    assert done.exit_code == 0, done.output
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert "<title>quick look</title>" in page
    assert "jaxbandit run study.toml --out results/run" in page
    assert str(directory) not in page
    saved = tmp_path / "study.toml"
    saved.write_text(html.unescape(re.search(r"<summary>study.toml</summary>\n<pre>(.*?)</pre>", page, re.DOTALL)[1]))
    assert jb.Study.load(saved).model_dump() == jb.Study(**PLAYED).model_dump()


def test_errors_name_the_remedy(directory, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="give the directory that `jaxbandit run` wrote"):
        report.write(tmp_path / "empty")
    with pytest.raises(ValueError, match="pass path="):
        report.write(study())
    with pytest.raises(ValueError, match="neither `regret` nor `regret_mean`"):
        report.write(study()[["failed"]], tmp_path / "x.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write .*; give another path with --out"):
        report.write(study(1, 1), tmp_path / "file" / "x.html")
    shutil.copytree(directory, tmp_path / "run", ignore=shutil.ignore_patterns("*.nc"))
    with pytest.raises(StoreError, match="no finished cell of its study yet; run it first"):
        report.write(tmp_path / "run")
    importing = builtins.__import__

    def without_jinja(name, *args, **kwargs):
        if name.startswith("jinja2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return importing(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_jinja)
    with pytest.raises(ValueError, match=r"needs jinja2.*pip install 'jaxbandit\[report\]'"):
        report.write(study(), tmp_path / "x.html")


def test_every_table_of_the_page_says_who_is_outside(tmp_path):
    ds = study()
    first = "uniinf[initial_scale=1]"
    ds.attrs["outside"] = assumptions.as_attribute([(first, str(label)) for label in ds.environment.values[:2]])
    page = written(ds, tmp_path, environments=environments_of(ds))
    assert "uniINF, S₁ = 1 (outside its assumptions in 2 of 3) has the least mean regret in 3 of 3" in page
    mark = '<span class="mark open">outside its assumptions</span>'
    growth, numbers = (page[page.index(f'id="{name}"') :] for name in ("growth-of-regret", "all-numbers"))
    ranking, quantiles = numbers.split("<h3>Quantiles of final regret</h3>")
    assert growth[: growth.index('id="all-numbers"')].count(mark) == 2
    assert quantiles[: quantiles.index("</table>")].count(mark) == 2
    summaries = re.findall(r"<summary>.*?</summary>", ranking)
    assert [mark in summary for summary in summaries] == [True, True, False]
    ds.attrs["outside"] = assumptions.as_attribute([(first, str(ds.environment.values[0]))])
    alone = written(ds.isel(policy=[0]), tmp_path, environments=environments_of(ds))
    assert "uniINF, S₁ = 1 (outside its assumptions) has a mean regret of" in alone

"""The page as a reader meets it: what is claimed, what is marked, what a hostile study cannot do."""

import csv
import html.parser
import io
import re
import urllib.parse

import numpy as np
import pytest
import xarray as xr
from matplotlib import font_manager, textpath

import jaxbandit as jb
from jaxbandit import report
from jaxbandit.analysis import risk
from jaxbandit.dataset.labels import POLICY_NAMES
from jaxbandit.plots import looks, style
from jaxbandit.report import environments, findings, headline, names, outcomes, points, sections, svg, sweeps
from tests.support.browser import WAIT, visit
from tests.support.report_cases import environments_of, kept_as_summary, study, written

HOSTILE = '</script><script>window.hit = 1</script><img src=x onerror="window.hit = 1">'


class Seen(html.parser.HTMLParser):
    """The text that a reader sees, every tag, and every attribute."""

    def __init__(self, page: str):
        super().__init__()
        self.text, self.tags, self.names, self._inside = [], [], set(), ""
        self.feed(re.sub(r"<script>.*?</script>", "<script></script>", page, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        if tag in ("script", "style", "pre"):
            self._inside = tag

    def handle_endtag(self, tag):
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data):
        if not self._inside:
            self.text.append(data)


def hostile() -> xr.Dataset:
    """A study with the worst names in every place that a page shows."""
    ds = study(3, 2)
    labels = [f"=cmd|' /C calc'!A0{HOSTILE}", f"uniinf[initial_scale={HOSTILE}]", "@SUM(1+1)"]
    ds = ds.assign_coords(policy=labels, environment=[f"a{HOSTILE}", f"-2+3{HOSTILE}[x=1]"])
    return ds.assign_attrs(
        title=HOSTILE, warnings=HOSTILE, study=f"title = '''{HOSTILE}'''\n", device=HOSTILE, platforms=HOSTILE
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    """The page of an ordinary study."""
    return written(study(), tmp_path_factory.mktemp("page"))


def table_of(page: str) -> list[dict[str, str]]:
    link = html.unescape(re.search(r'download="numbers.csv" href="data:text/csv;charset=utf-8,(.*?)"', page)[1])
    return list(csv.DictReader(io.StringIO(urllib.parse.unquote(link))))


def test_a_hostile_study_is_shown_and_not_run(tmp_path):
    page = written(hostile(), tmp_path)
    seen = Seen(page)
    assert seen.tags.count("script") == 4  # two of the page, plotly.js as text, and the numbers
    assert "img" not in seen.tags
    assert not [name for name in seen.names if name.startswith("on")]
    assert HOSTILE in "".join(seen.text)  # as text
    policy = re.search(r"script-src ([^;]*);", page)[1].split()
    assert len(policy) == 3
    assert all(re.fullmatch(r"'sha256-[\w+/]{43}='", one) for one in policy)
    rows = table_of(page)
    assert {row["label"][0] for row in rows} == {"'", "u"}
    assert all(row["environment"][0] in "a'" for row in rows)


@pytest.mark.slow
def test_a_browser_runs_nothing_of_a_hostile_study(tmp_path):
    page = report.write(hostile(), tmp_path / "report.html")
    script = """
    document.querySelector(".explorer").open = true;
    drawAll();
    await settled();
    const added = document.createElement("div");
    added.innerHTML = "<img src=x onerror='window.hit = 2'>";
    document.body.append(added);
    await settled();
    return [window.hit ?? 0, drawn.size];
    """
    found, console, requests, _ = visit(page, tmp_path, script, WAIT)
    assert found[0] == 0  # not even a handler that was put into the page
    assert found[1] >= 2
    assert requests == []
    assert not [line for line in console if "Content Security Policy" not in line]


def test_the_two_questions_are_those_of_claims():
    ds = study()
    known = environments_of(ds)
    found = findings.find(ds, environments=known)
    claims = jb.claims(ds, known)
    by_environment = {outcome.verdict.environment: outcome for outcome in found.outcomes}
    for label, outcome in by_environment.items():
        here = claims.sel(environment=label)
        best = outcome.verdict.best.policy
        others = here.policy.values != best
        assert (outcome.usual.winner == best) == bool(here.usual.sel(policy=best)[others].all())
        assert (outcome.mean.winner == best) == bool(here.better.sel(policy=best)[others].all())
        final = ds.regret.sel(environment=label).isel(round=-1)
        for policy, one in outcome.risks.items():
            tail = jb.quantile(final.sel(policy=policy), [0.99])
            assert one.tail[0] == pytest.approx(float(tail.quantile_value[0]))
            gaps = risk.gaps_of(known[label])
            if gaps is None or float(final.median("seed").min()) > ds["round"].values[-1] * gaps.smallest / 4:
                assert np.isnan(one.lost).all()
            else:
                lost = float((final.sel(policy=policy) > ds["round"].values[-1] * gaps.smallest / 4).mean())
                assert one.lost[0] == lost
                assert one.lost[1] <= lost <= one.lost[2]
    assert "this environment changes" in by_environment["switching"].mean.text
    open_ = by_environment["pareto[tail_index=1.6]"].mean
    needed = float(claims.sel(environment="pareto[tail_index=1.6]").seeds_needed[0, 1:].max())
    assert open_.winner or str(f"{needed:,.0f}")[0] in open_.text


def test_a_summary_says_what_was_not_kept(tmp_path):
    ds = kept_as_summary(study())
    found = findings.find(ds)
    stored = ds.regret_quantile.isel(round=-1).sel(quantile=0.99)
    for outcome in found.outcomes:
        for policy, one in outcome.risks.items():
            expected = float(stored.sel(policy=policy, environment=outcome.verdict.environment))
            assert one.tail[0] == pytest.approx(expected)
    older = ds.isel(quantile=ds["quantile"] < 0.99)
    page = written(older, tmp_path)
    assert page.count('data-name="99 % quantile">not kept<') == 12
    assert page.count('data-name="lost games">not kept<') == 12
    assert "because the seeds were not kept" in page


def test_a_quick_page_claims_nothing(page, tmp_path):
    quick = written(study().assign_attrs(quick=1), tmp_path)
    text = " ".join(Seen(quick).text)
    assert 'class="banner"' in quick
    assert "quick run, cut down by --quick" in text
    assert not re.search(r"\bsure(ly)?\b", text)
    assert not re.search(r">(claimed|decided)<", quick)
    assert 'class="banner"' not in page
    assert ">decided<" in page


def test_a_quick_run_is_marked(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        'horizon = 4000\nnum_seeds = 80\npolicies = [{name = "uniform"}]\n'
        'environments = [{name = "bernoulli", means = [0.2, 0.8]}]\n'
    )
    quick = jb.Study.load(path, quick=True)
    assert quick.is_quick and quick.changed(precision=0.5).is_quick
    assert not jb.Study.load(path).is_quick
    small = quick.changed(horizon=16, num_seeds=2)
    assert jb.run(small, tmp_path / "out").attrs["quick"] == 1


def test_a_page_of_a_few_pairs_is_less_than_a_megabyte(page):
    assert len(page.encode()) <= 1_000_000


@pytest.mark.slow
def test_a_page_of_200_pairs_is_at_most_two_megabytes(tmp_path):
    ds = study(10, 20, 8, np.unique(np.rint(np.geomspace(1, 100_000, 64)).astype(int)))
    assert len(written(ds, tmp_path, environments=environments_of(ds)).encode()) <= 2_000_000


def test_labels_are_those_of_the_papers(page):
    text = " ".join(Seen(page).text)
    assert "uniINF, S₁ = 4" in re.sub(r",\s+", ", ", text) and "Pareto, tail_index = 1.2" in re.sub(r",\s+", ", ", text)
    assert not re.search(r"\b(uniinf|htinf|(?<!\")pareto)\b", text)  # a message quotes a study file
    assert names.pretty("UniINF[initial_scale=4]") == "uniINF, S₁ = 4"  # of simulate()
    ds = study()
    assert names.short(points.points(ds, "policy")) == ["uniINF, S₁ = 1", "uniINF, S₁ = 4", "HTINF", "uniform"]


def test_a_policy_has_one_colour_on_page_and_print():
    ds = study()
    data = points.explorer(findings.find(ds))
    assert [point["light"] for point in data["policies"]] == [look["color"] for look in style.looks(ds.policy.values)]
    for point in data["policies"]:
        assert looks.contrast(point["light"], "#FFFFFF") >= 3
        assert looks.contrast(point["dark"], looks.DARK_PAGE) >= 3


def test_the_trust_bar_names_what_is_wrong():
    ds = study().assign_attrs(outside='[["htinf", "switching"]]')
    well = headline.checks(findings.find(study().assign_attrs(outside="[]")))
    weak = int(risk.fragile(study().regret.isel(round=-1).transpose("policy", "environment", "seed").values).sum())
    assert weak > 0
    assert [check.text for check in well if not check.well] == [f"{weak} means on few games ‡"]
    ds.failed[0, 0, :3] = 7
    ds["regret"] = ds.regret.where((ds.policy != "uniform") | (ds.environment != "switching"))
    ill = [check.text for check in headline.checks(findings.find(ds)) if not check.well]
    assert ill[:3] == ["3 of 352 games broken", "1 of 12 pairs missing", "1 of 12 pairs outside assumptions"]


def test_numbers_can_be_downloaded(page):
    ds, rows = study(), table_of(page)
    assert len(rows) == 12
    final = ds.regret.isel(round=-1)
    for row in rows:
        games = final.sel(policy=row["label"], environment=row["environment"])
        assert float(row["mean"]) == pytest.approx(float(games.mean()), rel=1e-5)
        assert float(row["quantile_99"]) == pytest.approx(float(games.quantile(0.99)), rel=1e-5)
    assert rows[0]["policy"] == "uniINF, S₁ = 1"


@pytest.mark.parametrize(
    ("values", "log"), [([1.0, 1e4], True), ([-1.0, 1e4], False), ([0.0, 1e4], False), ([5.0, 9.0], False)]
)
def test_an_axis_is_linear_if_signs_mix(values, log):
    axis = svg.axis(values)
    assert axis.log == log
    assert [0 <= axis.place(value) <= 1 for value in values] == [True, True]
    assert axis.place(values[0]) < axis.place(values[1])
    assert 1 <= len(axis.ticks(5)) <= 7


def test_a_sweep_marks_its_default():
    data = points.explorer(findings.find(study()))
    (found,) = sweeps.sweeps(data, "policy")
    assert (found.field, found.values, found.default) == ("initial_scale", [1.0, 4.0], 4.0)
    made = sweeps.panel(findings.find(study()), data, lambda _, **shown: " ".join(shown["figures"].values()))
    assert made is not None
    assert made.html.count(">default</text>") == 3  # an environment a figure


def product() -> xr.Dataset:
    """Games of one class, of which two fields are swept."""
    values = [(scale, factor) for scale in (1.0, 4.0) for factor in (0.5, 1.0)]
    labels = [f"uniinf[initial_scale={scale:g},horizon_factor={factor:g}]" for scale, factor in values]
    ds = study(4, 2).assign_coords(policy=labels).drop_vars("initial_scale")
    columns = dict(zip(("initial_scale", "horizon_factor"), np.transpose(values), strict=True))
    return ds.assign_coords({name: ("policy", column) for name, column in columns.items()})


def test_a_map_over_two_swept_values_needs_no_script(tmp_path):
    ds = product()
    found = findings.find(ds)
    (plane,) = sweeps.plane_sweeps(points.explorer(found), "policy")
    assert (plane.fields, plane.values) == (("initial_scale", "horizon_factor"), ([1.0, 4.0], [0.5, 1.0]))
    page = written(ds, tmp_path)
    maps = re.findall(r'<figcaption>uniINF in .*?</figcaption>(<svg class="figure".*?</svg>)', page)
    assert len(maps) == 2  # an environment a map
    final = ds.regret.isel(round=-1).mean("seed").transpose("environment", "policy").values
    for drawn, means in zip(maps, final, strict=True):
        numbers = re.findall(r'class="in-cell".*?>(.*?)</text>', drawn)
        rows = means[[0, 2, 1, 3]]  # a row has one horizon factor
        assert numbers == [svg.tick(float(f"{value:.3g}")) for value in rows]
    assert "A map has a cell for each pair of values" in " ".join(page.split())


def test_the_default_of_two_swept_values_is_framed():
    table = np.array([[1.0, 2.0], [3.0, np.nan]])
    drawn = svg.heat_map(table, ([1.0, 4.0], [0.5, 1.0]), ("a", "b"), "map", (1, 0))
    frame = float(re.search(r'class="cell-mark" x="([\d.]+)"', drawn)[1])
    cells = [float(x) for x in re.findall(r'<rect x="([\d.]+)"', drawn)]
    assert len(cells) == 3  # a missing number has no cell
    assert frame == pytest.approx(cells[1] + 1)
    assert "cell-mark" not in svg.heat_map(table, ([1.0, 4.0], [0.5, 1.0]), ("a", "b"), "map", (-1, 0))
    for shade in np.linspace(0, 1, 101):
        fill, ink = svg._colours(shade)
        assert looks.contrast(ink, fill) >= 4


def test_names_at_the_ends_of_lines_are_whole():
    """No name runs out of its figure in the widest usual font, and long labels keep the values that tell them apart."""
    font = font_manager.FontProperties(family="DejaVu Sans", weight="bold", size=11.5)
    for name in {*POLICY_NAMES.values(), "Robust MOSS", "uniINF, S₁ = 0.25"}:
        if len(name) <= names.LONGEST:
            room = svg.width(name) + 6
            assert textpath.TextPath((0, 0), name, prop=font).get_extents().width <= room, name
    data = points.points(product(), "policy")
    assert names.short(data) == ["uniINF, 1, 0.5", "uniINF, 1, 1", "uniINF, 4, 0.5", "uniINF, 4, 1"]
    assert names.of_bare(data) == "The values behind uniINF are initial scale and horizon factor."
    assert names.of_bare(points.points(study(), "policy")) == ""


def test_the_mark_of_a_default_keeps_clear_of_the_names():
    line = svg.Line("a", [1.0, 4.0], [1.0, 2.0], "#000")
    drawn = [svg.figure([line], "", svg.Axis(1, 4), svg.Axis(0, 2), "", "", [(at, "default")]) for at in (1.5, 4.0)]
    assert ['text-anchor="end" y="9">default' in one for one in drawn] == [False, True]


def test_dashed_lines_are_explained_where_there_are_any(tmp_path):
    dashed, explained = 'stroke-dasharray="5 4"', "Dashed lines are policies that are not swept"
    page = written(study(), tmp_path)
    assert dashed in page and explained in page
    page = written(study().isel(policy=[2, 3]), tmp_path)  # environments are swept, policies are not
    assert "regret over its tail index" in page
    assert dashed not in page and explained not in page


def test_the_finding_in_one_environment_says_by_how_much():
    ds = study(num_environments=1)
    (sentence,) = headline.sentences(findings.find(ds))
    means = np.sort(ds.regret.isel(round=-1, environment=0).mean("seed").values)
    assert sentence.startswith(f"uniINF, S₁ = 1 has the least mean regret in switching, {means[0]:.3g} (")
    assert f"with {means[1] / means[0]:.2f} times as much." in sentence
    assert (
        "In the usual game uniINF, S₁ = 1 surely beats every other policy. The lower mean is not claimed." in sentence
    )
    quick = list(headline.sentences(findings.find(ds.assign_attrs(quick=1))))
    assert quick[1] == headline.NOTHING_CLAIMED and "usual game" not in quick[0]
    (bare,) = headline.sentences(findings.find(ds.isel(seed=[0])))
    assert "The usual game is open because a test needs 2 seeds that all policies have played." in bare
    assert "nan" not in bare and "–" not in bare


def test_one_seed_has_no_interval_to_speak_of(tmp_path):
    page = " ".join(written(study(1, 1, 1).assign_attrs(num_seeds=1), tmp_path).split())
    assert "1 seed a pair" in page and "1 seeds" not in page
    assert "the bar its" not in page
    assert "exact sign test" not in page  # there is one policy
    assert "exact sign test" in " ".join(written(study(), tmp_path).split())


def test_warnings_name_pairs_as_the_page_does():
    ds = study()
    known = environments_of(ds)
    law = known["pareto[tail_index=1.6]"]
    ds = ds.assign_attrs(warnings=f"RobustMOSS in {law!r} is outside its assumptions: why")
    said = list(sections.troubles(findings.find(ds, environments=known)))
    assert said[0].startswith("Robust MOSS in Pareto, tail_index = 1.6 is outside its assumptions: why")


def test_seeds_lost_to_broken_games_are_counted():
    ds = study()
    ds.failed[1, 0, :5] = 7
    ds["regret"] = ds.regret.where(ds.failed == 0)
    said = [one for one in sections.troubles(findings.find(ds)) if "a broken game has no final regret" in one]
    assert said[0].endswith("no policy's game broke, 27 of 32 in switching")
    assert not [one for one in sections.troubles(findings.find(study())) if "broken" in one]


def test_environments_in_words():
    ds = study().assign_attrs(outside='[["htinf", "switching"]]')
    known = environments_of(ds)
    found = findings.find(ds, environments=known)
    law, moving = (environments.describe(found, label) for label in ("pareto[tail_index=1.6]", "switching"))
    assert law.facts["K"] == "3"
    assert law.facts["means"] == "0.5, 1 (2 arms)"
    assert law.facts["gaps"] == "0.5"
    assert law.facts["tail"] == "moments below order 1.6"
    assert law.facts["declared moment"].startswith("α = 1.54, σ = ")
    assert law.words == "Pareto losses: positive, with a power tail."
    assert (law.inside, law.outside, law.unproved) == (["uniINF (2 points)", "HTINF"], [], ["uniform"])
    assert moving.outside == ["HTINF"]
    assert moving.words.endswith("The law inside: Pareto.")
    assert "gaps" not in moving.facts
    assert environments.describe(findings.find(ds), "switching").words == ""


def test_many_pairs_are_not_tested(monkeypatch):
    monkeypatch.setattr(outcomes, "MOST", 3)
    outcome = findings.find(study(4, 1)).outcomes[0]
    assert "more than 3 policies are not tested" in outcome.usual.text


@pytest.mark.slow
def test_the_page_without_scripts(tmp_path):
    """Figures that are drawn beforehand are seen; charts that need a script, and their controls, are not."""
    page = report.write(study(), tmp_path / "report.html", environments=environments_of(study()))
    text = page.read_text(encoding="utf-8")
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL), encoding="utf-8")
    script = """
    const shown = target => [...document.querySelectorAll(target)].filter(one => one.getClientRects().length).length;
    return ["svg.figure", "svg.strip", ".explorer", ".plot", "select", "#theme"].map(shown);
    """
    found, console, _, _ = visit(bare, tmp_path, script, WAIT)
    assert console == []
    assert found[0] >= 3 and found[1] >= 12
    assert found[2:] == [0, 0, 0, 0]

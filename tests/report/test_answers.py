"""Sensitivity, tuning and worst cases on the report: the numbers of the results, drawn and in tables."""

import json
import re

import numpy as np
import pytest
import xarray as xr

from jaxbandit import report, sensitivity
from jaxbandit.report import answers, searches, words
from jaxbandit.search import study as searched
from jaxbandit.search.study import Found
from jaxbandit.store import seal
from tests.support.browser import WAIT, visit
from tests.support.report_cases import Outside, study, written

ENVIRONMENTS = [f"pareto[tail_index={tail:g}]" for tail in (1.2, 1.6)]
NAMES = ["initial_scale", "gap"]


def sensitivity_results() -> dict[str, xr.Dataset]:
    """Results of two policies in two environments; the second policy has no initial scale."""
    rng = np.random.default_rng(5)
    dims = ("policy", "environment", "parameter")
    coords = {
        "policy": ["uniinf", "uniform"],
        "environment": ENVIRONMENTS,
        "tail_index": ("environment", [1.2, 1.6]),
        "parameter": NAMES,
    }
    attrs = {
        "horizon": 1_000,
        "num_seeds": 64,
        "seed": 3,
        "dtype": "float32",
        "title": "what matters",
        "jaxbandit": "1",
    }

    def values(low: float, high: float) -> tuple:
        drawn = rng.uniform(low, high, (2, 2, 2))
        drawn[1, :, 0] = np.nan
        return dims, drawn

    def between(name: str, low: float, high: float) -> dict[str, tuple]:
        middle = values(low, high)
        return {name: middle, f"{name}_low": (dims, middle[1] - 0.1), f"{name}_high": (dims, middle[1] + 0.1)}

    def made(kind: str, variables: dict, **more) -> xr.Dataset:
        return xr.Dataset(variables, coords=coords).assign_attrs(
            attrs | {"kind": kind, "band": "bootstrap, 95 %"} | more
        )

    local = {name: values(0.1, 1) for name in ("value", "gradient", "elasticity", "bias", "variance_reduction")}
    local |= {f"{name}_stderr": values(0.01, 0.02) for name in ("gradient", "elasticity", "bias")}
    local |= {"extrapolated": (dims, np.zeros((2, 2, 2), bool)), "failed": (dims, np.zeros((2, 2, 2), int))}
    response = rng.uniform(50, 60, (2, 2, 2, 10))
    response[1, :, 0] = np.nan
    place = np.where(np.isnan(response), np.nan, np.geomspace(1, 16, 10))
    sobol = between("first_order", 0, 0.4) | between("total_order", 0.4, 0.8) | {"failed": (dims[:2], np.zeros((2, 2)))}
    sobol |= {"variance": (dims[:2], np.full((2, 2), 9.0)), "noise_variance": (dims[:2], np.full((2, 2), 1.0))}
    sobol |= {"response": ((*dims, "bin"), response), "response_stderr": ((*dims, "bin"), 0 * response + 2)}
    sobol |= {"response_value": ((*dims, "bin"), place)}
    ranges = {"range_low": [1.0, 0.1], "range_high": [16.0, 1.0], "range_scale": ["log", "linear"]}
    morris = (
        between("mu_star", 1, 2)
        | between("size", 1, 2)
        | between("sigma", 1, 2)
        | {"failed": (dims[:2], np.zeros((2, 2)))}
    )
    morris |= {"mu": values(-1, 1), "noise": values(0, 0.1)}
    return {
        "local": made("local sensitivity", local),
        "sobol": made("Sobol' indices", sobol).assign_coords({n: ("parameter", v) for n, v in ranges.items()}),
        "morris": made("Morris screening", morris),
    }


def tuned(difference: float = -20.0) -> xr.Dataset:
    steps = np.arange(6)
    return xr.Dataset(
        {
            "value": (("step", "parameter"), np.stack([4 + steps, 0.25 + steps / 10], axis=1)),
            "objective": ("step", 200.0 - steps),
            "held_out": ("step", [210.0, np.nan, np.nan, 190.0, np.nan, np.nan]),
            "default": ("parameter", [4.0, 0.25]),
            "tuned": ("parameter", [9.0, 0.999]),
            "low": ("parameter", [0.1, 0.01]),
            "high": ("parameter", [100.0, 1.0]),
            "regret": ("candidate", [220.0, 220.0 + difference]),
            "regret_low": ("candidate", [210.0, 210.0 + difference]),
            "regret_high": ("candidate", [230.0, 230.0 + difference]),
            "difference": difference,
            "difference_low": difference - 5,
            "difference_high": difference + 5,
        },
        coords={"step": steps, "parameter": ["initial_scale", "threshold_constant"], "candidate": ["default", "tuned"]},
        attrs={
            "verdict": "tuning <changes> it",
            "within_noise": int(abs(difference) < 5),
            "band": "bootstrap",
            "failed": 0,
        }
        | {
            "done": 1,
            "jaxbandit": "1",
            "commit": "0123456789ab",
            "way": "native",
            "title": "tuned",
            "study": "horizon = 10\n",
            "policy": "uniinf",
            "environment": "",
        },
    )


def worst(policy: str, height: float, bound: float = 1.0) -> xr.Dataset:
    T = np.array([100, 1_000, 10_000])
    regret = height * T**0.7
    return xr.Dataset(
        {
            "worst": (("horizon", "parameter"), np.array([[0.3], [0.2], [0.1]])),
            "regret": ("horizon", regret),
            "regret_low": ("horizon", 0.9 * regret),
            "regret_high": ("horizon", 1.1 * regret),
            "searched": ("horizon", 1.05 * regret),
            "given_regret": ("horizon", 0.5 * regret),
            "bound": ("horizon", bound * T ** (2 / 3)),
            "slope": 0.7,
            "slope_low": 0.65,
            "slope_high": 0.75,
        },
        coords={"horizon": T, "parameter": ["gap"]},
        attrs={"objective": "regret", "band": "bootstrap", "failed": 0, "done": 1, "policy": policy}
        | {"environment": "hard_pair", "title": "worst cases", "study": "", "jaxbandit": "1"},
    )


def keep(directory, *, results=None, searches=None):
    """Files as the commands leave them."""
    if results:
        (directory / "sensitivity").mkdir(parents=True)
        for kind, ds in results.items():
            marked = ds.assign_attrs(key="of the study", study='title = "what <matters>"\n')
            (directory / "sensitivity" / f"{kind}.nc").write_bytes(seal.dataset_bytes(marked))
    for name, ds in (searches or {}).items():
        (directory / f"{name}.nc").write_bytes(seal.dataset_bytes(ds))
    return directory


def held(page: str, name: str):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL)[1])


def drawing(page: str, name: str):
    return json.loads(re.search(rf'data-drawing-of="{name}">(.*?)</script>', page, re.DOTALL)[1])


def test_a_directory_of_sensitivity_results_has_a_page(tmp_path):
    results = sensitivity_results()
    page = report.write(keep(tmp_path, results=results)).read_text(encoding="utf-8")
    assert "<title>what matters</title>" in page
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Sensitivity", "Warnings", "Provenance"]
    assert "jaxbandit sensitivity study.toml --out results/" in page
    assert "jaxbandit run" not in page
    assert "what &lt;matters&gt;" in page
    data = held(page, "sensitivity-data")
    for kind, ds in results.items():
        bars = sensitivity.bars(ds)
        for name in ("value", "low", "high"):
            drawn = [
                [[row or [None] * 2 for row in environment] for environment in policy]
                for policy in data["bars"][kind][name]
            ]
            np.testing.assert_allclose(np.array(drawn, float), bars[name], rtol=5e-5)
    np.testing.assert_allclose(data["curves"]["mean"][0], results["sobol"].response[0], rtol=5e-5)
    assert data["curves"]["mean"][1][0][0] is None  # a parameter that the policy does not have
    assert data["curves"]["scales"] == ["log", "linear"]
    assert [environment["values"] for environment in data["environments"]] == [{"tail_index": 1.2}, {"tail_index": 1.6}]
    value, error = (float(results["local"][name][0, 0, 0]) for name in ("elasticity", "elasticity_stderr"))
    assert f'<td class="num">{value:.3g} ± {error:.3g}</td>' in page
    outside = Outside()
    outside.feed(page)
    assert outside.found == []


@pytest.mark.slow
def test_answers_stand_beside_the_games_of_the_same_directory(tmp_path):
    directory = keep(tmp_path, results=sensitivity_results())
    (directory / "dataset.nc").write_bytes(seal.dataset_bytes(study()))
    page = report.write(tmp_path).read_text(encoding="utf-8")
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    first = ["What was found", "Final regret", "Over the swept values", "Regret over rounds", "Environments"]
    assert headings[:7] == [*first, "Growth of regret", "Sensitivity"]
    assert headings[7:] == ["All numbers", "Warnings", "Provenance"]
    commands = re.search(r'<pre class="commands">(.*?)</pre>', page, re.DOTALL)[1].splitlines()
    assert [line.split()[1] for line in commands] == ["install", "run", "sensitivity", "report"]
    assert 'id="sensitivity-data"' not in written(study(), tmp_path)


@pytest.mark.slow
def test_failed_games_of_answers_are_warned_of(tmp_path):
    results = sensitivity_results()
    results["sobol"].failed[0, 1] = 3
    bad = tuned().assign_attrs(failed=2)
    page = report.write(keep(tmp_path, results=results, searches={"tune-uniinf": bad})).read_text(encoding="utf-8")
    assert "broken games: 3 behind the Sobol&#39; indices" in page
    assert "broken games: 2 of `jaxbandit tune`" in page
    (tmp_path / "dataset.nc").write_bytes(seal.dataset_bytes(study()))
    assert "2 warnings</a> to read" in report.write(tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("difference", "mark"), [(-20.0, "better"), (-2.0, "within noise"), (20.0, "worse")])
def test_tuning_is_drawn_and_judged(difference, mark, tmp_path):
    page = report.write(keep(tmp_path, searches={"tune-uniinf": tuned(difference)})).read_text(encoding="utf-8")
    assert f">{mark}</span>" in page
    assert "tuning &lt;changes&gt; it" in page
    assert "0.999 (edge)" in page
    assert "9 (edge)" not in page.replace("0.999 (edge)", "")
    way = drawing(page, "tuning-0")
    assert [line["name"] for line in way["data"]] == ["value", "tuned value", "default value"]
    assert (way["data"][1]["y"], way["data"][2]["y"]) == ([9, 9], [4, 4])
    objective = drawing(page, "tuning-2")
    assert objective["data"][1]["x"] == [0, 3]
    said = f"{words.number(difference)} ({words.number(difference - 5)} to {words.number(difference + 5)})"
    assert f'aria-label="paired difference {said}"' in page
    strip = searches.strip((difference, difference - 5, difference + 5))
    assert strip["low"] < strip["dot"] < strip["high"]
    assert (strip["low"] < strip["zero"] < strip["high"]) == (mark == "within noise")


def test_a_quick_search_is_never_called_better(tmp_path):
    quick = tuned().assign_attrs(quick=1)
    page = report.write(keep(tmp_path, searches={"tune-uniinf": quick})).read_text(encoding="utf-8")
    assert ">better</span>" not in page
    assert ">quick look</span>" in page and "tuning &lt;changes&gt; it" not in page
    assert 'class="banner"' in page
    assert "tune: a quick run" in page
    assert "0123456789ab" in page and "The same study gives the same bits on every CPU and NVIDIA GPU." in page


def test_worst_cases_stand_beside_the_bound(tmp_path):
    found = {"worst-uniinf-hard_pair": worst("uniinf", 1.0), "worst-htinf-hard_pair": worst("htinf", 0.5)}
    found["worst-htinf-hard_pair-T100"] = worst("htinf", 0.5).isel(horizon=0)
    del found["worst-htinf-hard_pair-T100"].attrs["policy"]  # the trace of one horizon
    for one in found.values():  # the worst gap of the longest horizon is the smallest that was searched
        one["low"], one["high"] = 0 * one.worst + 0.1, 0 * one.worst + 1.0
    page = report.write(keep(tmp_path, searches=found)).read_text(encoding="utf-8")
    assert page.count('<tr><th scope="row">HTINF</th><td data-name="around">hard pair</td>') == 3
    assert page.count("edge of gap</span>") == 2
    assert "An instance on the edge of its range is not the worst there is" in page
    assert "<strong>uniINF</strong> around hard pair: the worst regret found grows like T^0.70 (0.65 to 0.75)." in page
    lines = drawing(page, "worst-cases-0")["data"]
    assert [line["name"] for line in lines[:2]] == ["HTINF: T^0.70", "uniINF: T^0.70"]
    assert len(lines) == 3  # one bound: that of both
    assert lines[2]["name"] == "order of the lower bound"
    np.testing.assert_allclose(lines[2]["y"], np.array([100, 1_000, 10_000]) ** (2 / 3))
    assert "with\nconstant 1" in page
    figure = searches.worst(
        [Found(p, "a", worst(p, 1, n), tmp_path) for n, p in enumerate(("x", "y"), 1)], lambda *a, **k: ""
    )
    assert len(next(iter(figure.views.values()))["data"]) == 4  # two bounds: each has its own


def test_what_is_no_answer_is_left_alone(tmp_path):
    (tmp_path / "sensitivity").mkdir()
    (tmp_path / "tune-half.nc").write_bytes(b"half a file")
    (tmp_path / "tune-uniinf.nc").write_bytes(seal.dataset_bytes(tuned().assign_attrs(done=0)))
    with pytest.warns(UserWarning, match=r"tune-half.nc is damaged .*; this file is not used"):
        assert answers.answers(tmp_path, lambda *a, **k: "") is None
    with pytest.warns(UserWarning, match="tune-half.nc is damaged"):
        assert searched.load(tmp_path) == []
    with (
        pytest.warns(UserWarning, match="tune-half.nc is damaged"),
        pytest.raises(ValueError, match="give the directory that `jaxbandit run` wrote"),
    ):
        report.write(tmp_path)


LOOK = """
const plots = holder => [...document.querySelectorAll(`#sensitivity-${holder} .plot`)];
const bars = holder => plots(holder).map(plot => plot.querySelectorAll(".bars .point").length);
const errors = () => plots("local")[0].querySelectorAll(".errorbar path.yerror").length;
drawAll();
await settled();
"""


@pytest.mark.slow
def test_answers_in_a_browser(tmp_path):
    found = {"tune-uniinf": tuned(), "worst-uniinf-hard_pair": worst("uniinf", 1.0)}
    page = report.write(keep(tmp_path, results=sensitivity_results(), searches=found))
    seen, console, requests, _ = visit(
        page,
        tmp_path,
        LOOK
        + """
        const found = {bars: ["local", "sobol", "morris"].map(bars), errors: errors(), plots: drawn.size};
        found.curves = plots("curves").map(plot => plot.querySelectorAll(".lines path.js-line").length);
        found.kinds = plots("curves").map(plot => plot._fullLayout.xaxis.type);
        await click("#sensitivity-environments .chip[data-environment='0']");
        found.without = bars("local");
        found.pressed = document.activeElement.getAttribute("aria-pressed");
        await click("#sensitivity-environments .chip[data-environment='0']");
        await choose("#sensitivity-policy select", "uniform");
        found.other = bars("sobol");
        found.says = [...document.querySelectorAll("#sensitivity-curves .says")].map(says => says.textContent);
        found.value = plots("local")[0].data[0].y;
        const colour = () => plots("local")[0].data[0].error_y.color;
        const before = colour();
        await click("#theme");
        found.theme = before !== colour();
        return found;
        """,
        WAIT,
        "--window-size=1200,900",
    )
    assert (console, requests) == ([], [])
    assert seen["bars"] == [[4], [4, 4], [4, 4]]
    assert (seen["errors"], seen["plots"]) == (4, 1 + 2 + 2 + 2 + 3 + 1)
    assert (seen["curves"], seen["kinds"]) == ([4, 4], ["log", "linear"])
    assert (seen["without"], seen["pressed"]) == ([2], "false")
    assert "There are no numbers" in seen["says"][0]
    assert seen["says"][1] == ""
    expected = sensitivity_results()["local"].elasticity[1, 0]
    assert seen["value"][0] is None
    assert seen["value"][1] == pytest.approx(float(expected[1]), rel=5e-5)
    assert seen["theme"]

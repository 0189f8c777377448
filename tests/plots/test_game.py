"""One game, round by round: its numbers are the study's, and the page of it is whole, small and strict."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.cli.entry import app
from jaxbandit.plots.watch import page
from tests.support.browser import WAIT, visit

LAW = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
STUDY = """
title = "Two <games>"
horizon = 300
num_seeds = 4
seed = 5
[[policies]]
name = "uniinf"
initial_scale = [1.0, 4.0]
[[policies]]
name = "htinf"
moment_order = "environment"
moment_bound = "environment"
[[environments]]
name = "pareto"
means = [0.5, 1.0, 1.0]
tail_index = 1.6
"""


def made_up(rounds: int, arms: int) -> xr.Dataset:
    """The trace of two policies, the second without scale and threshold."""
    rng = np.random.default_rng(0)
    dims = ("policy", "t")
    loss = rng.pareto(1.2, (2, rounds))
    nothing = np.full(rounds, np.nan)
    return xr.Dataset(
        {
            "x": ((*dims, "arm"), rng.dirichlet(np.ones(arms), (2, rounds))),
            "played": (dims, rng.integers(arms, size=(2, rounds))),
            "loss": (dims, loss),
            "regret": (dims, np.cumsum(rng.random((2, rounds)), axis=1)),
            "scale": (dims, np.stack([np.linspace(4, 9, rounds), nothing])),
            "threshold": (dims, np.stack([np.full(rounds, 2.0), nothing])),
            "skipped": (dims, np.stack([loss[0] >= 2, np.zeros(rounds, bool)])),
        },
        coords={"policy": ["uniinf", "</script><b>"], "t": np.arange(1, rounds + 1), "arm": np.arange(arms)},
    )


@pytest.mark.parametrize("rounds, arms", [(40, 2), (100_000, 50)])
def test_the_page_is_whole_small_and_strict(rounds, arms):
    ds = made_up(rounds, arms)
    text = page(ds, "A <b>game</b>", "about")
    assert len(text.encode()) < 2_000_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|<b>", text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    first, second = data["games"]
    assert second["name"] == "</script><b>" and set(second["scale"]) == {None} and data["has_scale"]
    frames = np.asarray(data["rounds"]) - 1
    assert frames[-1] == rounds - 1 and len(first["x"]) == arms
    np.testing.assert_allclose(first["regret"], ds.regret.values[0][frames], rtol=1e-3)
    assert first["skips"][-1] == int(ds.skipped[0].sum())
    seen = {t for t, _, _, skipped in first["events"] if skipped}
    worst = 1 + int(np.argmax(ds.loss.values[0]))
    assert worst in seen  # the largest losses are shown, whatever rounds the slider leaves out


@pytest.mark.slow
def test_a_trace_is_the_game_of_the_study():
    policy = jb.UniINF(horizon=500)
    ds = plots.trace_game([policy, jb.Uniform()], LAW, horizon=120, game=2, seed=7)
    assert ds.policy.values.tolist() == ["uniinf", "uniform"]
    study = jb.simulate(policy, LAW, horizon=500, num_seeds=4, seed=7, record=[1, 50, 120, 500], measures=("scale",))
    at = ds.sel(policy="uniinf", t=[1, 50, 120])
    np.testing.assert_array_equal(at.regret, study.regret.isel(seed=2).sel(round=[1, 50, 120]))
    assert float(ds.sel(policy="uniinf", t=51).scale) == float(study.scale.isel(seed=2).sel(round=50))
    one = ds.sel(policy="uniinf")
    assert float(one.scale[0]) == 4 and bool(one.skipped.any())
    np.testing.assert_array_equal(abs(one.loss) >= one.threshold.astype("float32"), one.skipped)
    played = one.x.isel(arm=one.played)
    np.testing.assert_allclose(one.threshold, one.scale / 4 / (1 - played), rtol=1e-4)  # Eq. (3)
    assert not ds.sel(policy="uniform").threshold.notnull().any()
    with pytest.raises(ValueError, match="are too long; watch an earlier game, or fewer rounds"):
        plots.trace_game(policy, LAW, horizon=10_000_000, game=1)


@pytest.mark.slow
def test_the_command_writes_a_page_or_a_figure(tmp_path, shown):
    (tmp_path / "two.toml").write_text(STUDY)
    study = ["watch", str(tmp_path / "two.toml"), "--until", "40", "--policy", "htinf"]
    done = CliRunner().invoke(app, [*study, "--policy", "uniinf[initial_scale=4]", "--out", str(tmp_path / "w.html")])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "w.html").read_text()
    assert "Two &lt;games&gt;" in text and "Game 0 of study seed 5, 40 rounds." in text
    assert '"name":"uniINF, S\\u2081 = 4"' in text or '"name":"uniINF, S₁ = 4"' in text
    done = CliRunner().invoke(app, [*study, "--out", str(tmp_path / "w.png")])
    assert done.exit_code == 0, done.output
    assert [panel.get_ylabel() for panel in shown["panels"]] == ["probability $x_t$", "|loss|", "regret"]
    assert shown["titles"][0] == "HTINF" and "skipped loss" in shown["legend"]
    wrong = CliRunner().invoke(app, [*study, "--out", "w.xyz"])
    assert "--out w.xyz must end with one of .html, .htm, .png, .pdf, .svg; name another" in str(wrong.exception)
    wrong = CliRunner().invoke(app, [*study, "--policy", "uniinf"])
    assert "2 points of two.toml are called 'uniinf'; give one of 'uniinf[initial_scale=1]'" in str(wrong.exception)


@pytest.mark.slow
def test_the_page_counts_the_other_policies_and_has_commas(tmp_path):
    path, ds = tmp_path / "watch.html", made_up(1200, 2)
    script = (
        "return ['figcaption', '#at', 'section p'].map(one => [...document.querySelectorAll(one)].at(-1).textContent);"
    )
    for chosen, caption in ((ds.isel(policy=[0]), "regret"), (ds, "regret (the other policy is faint)")):
        path.write_text(page(chosen, "title", "about"), encoding="utf-8")
        found, at, said = visit(path, tmp_path, script, WAIT).found
        assert (found, at) == (caption, "1,200 of 1,200")
        assert said.startswith("Round 1,200: arm ")


def test_the_figure_of_a_game_names_its_environment(shown):
    plots.game(jb.UniINF(horizon=20), jb.Pareto(means=[0.5, 1.0], tail_index=1.6), horizon=20, seed=5)
    assert shown["note"][0] == "Pareto, K = 2, α = 1.54; game 0 of study seed 5, 20 rounds"

"""The command ``bench``: devices, bits, speed, one line to paste; and ``run`` on a machine without a card."""

import json
import pathlib

import pytest
from typer.testing import CliRunner

from jaxbandit.cli.entry import app, main
from jaxbandit.engine import bench, proof
from jaxbandit.engine.gpu import card as cards
from jaxbandit.engine.gpu import fleet
from tests.support.cuda import StandIn


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(bench, "LANES", {"cpu": (64,), "gpu": (64,)})
    monkeypatch.setattr(proof, "RECORDED", {"float32": proof.RECORDED["float32"]})
    fleet.forget()
    yield
    fleet.forget()


def last_line(result):
    return result.output.strip().splitlines()[-1]


@pytest.mark.slow
def test_bench_without_a_card_names_the_reason(monkeypatch):
    monkeypatch.setattr(cards, "bindings", lambda: StandIn(cards=0))
    result = CliRunner().invoke(app, ["bench", "--rounds", "5"])
    assert result.exit_code == 0, result.output
    line = last_line(result)
    assert line.startswith("jaxbandit ")
    assert "bits as recorded" in line
    assert "ns at 64 games" in line
    assert line.endswith("gpu: none (the CUDA driver shows no card)")


def test_a_run_on_a_card_that_is_not_there_names_the_remedy(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cards, "bindings", lambda: StandIn(cards=0))
    study = tmp_path / "study.toml"
    study.write_text(
        'title = "x"\nhorizon = 5\nnum_seeds = 2\n[[policies]]\nname = "uniform"\n'
        '[[environments]]\nname = "bernoulli"\nmeans = [0.2, 0.5]\n'
    )
    command = ["jaxbandit", "run", str(study), "--device", "gpu", "--out", str(tmp_path / "out"), "--quiet"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = " ".join("".join(capsys.readouterr()).split())
    assert "shows no card. The variable CUDA_VISIBLE_DEVICES may hide it." in said
    assert "To play on the CPUs, leave out --device gpu" in said


@pytest.mark.slow
def test_bench_reports_a_card(monkeypatch):
    api = StandIn(multiprocessors=1)
    monkeypatch.setattr(cards, "bindings", lambda: api)
    line = last_line(CliRunner().invoke(app, ["bench", "--rounds", "5"]))
    assert "gpu: 1 x Stand-in 0 (compute capability 8.0); bits as recorded;" in line
    assert line.count("ns at 64 games") == 2


@pytest.mark.slow
def test_bench_reports_a_card_with_other_bits(monkeypatch):
    api = StandIn(multiprocessors=1, edit=lambda text: text.replace("div.rn.f32", "div.approx.f32"))
    monkeypatch.setattr(cards, "bindings", lambda: api)
    result = CliRunner().invoke(app, ["bench", "--rounds", "5"])
    assert result.exit_code == 1
    assert last_line(result).endswith("bits DIFFER in float32")


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch, capsys):
    """The Python cells of the notebook for cloud cards, with few rounds and games."""
    notebook = json.loads((pathlib.Path(__file__).parents[2] / "notebooks" / "bench_on_a_gpu.ipynb").read_text())
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert any("jaxbandit bench" in source for source in code)
    api = StandIn(multiprocessors=1)
    monkeypatch.setattr(cards, "bindings", lambda: api)
    python = [source for source in code if not source.startswith(("!", "%"))]
    assert python
    for source in python:
        exec(source.replace("2_000", "6").replace("4_096", "40"), {})
    printed = capsys.readouterr().out
    assert "True" in printed
    assert "False" not in printed
    assert "Stand-in" in printed

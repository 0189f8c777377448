"""The command ``bench``: devices, bits, speed, one line to paste; and ``run`` on a machine without a card."""

import json
import pathlib
import time

import pytest
from typer.testing import CliRunner

from jaxbandit.cli import machine_facts
from jaxbandit.cli.entry import app, main
from jaxbandit.engine import bench, proof
from jaxbandit.engine.gpu import card as cards
from jaxbandit.engine.gpu import fleet
from tests.support.cuda import StandIn

ROOT = pathlib.Path(__file__).parents[2]


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
@pytest.mark.parametrize("launch", [5, 10])
def test_bench_gives_no_times_of_cpus_for_a_card_that_fails(monkeypatch, launch):
    """After two launches for each of two checks, a run that compiles has four launches, and then one is timed."""
    api = StandIn(multiprocessors=1)
    api.lose = {0: launch}
    monkeypatch.setattr(cards, "bindings", lambda: api)
    result = CliRunner().invoke(app, ["bench", "--rounds", "5"])
    assert result.exit_code == 1
    line = last_line(result)
    failure = "FAILED: Stand-in 0 (card 0) failed in cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)"
    assert line.endswith(f"gpu: 1 x Stand-in 0 (compute capability 8.0); bits as recorded; {failure}")
    assert "The CPUs play" not in result.output


@pytest.mark.slow
def test_bench_names_all_cards_and_one_that_fails_in_the_check(monkeypatch):
    api = StandIn(multiprocessors=1, cards=3)
    api.cards[2].name = api.cards[0].name
    api.lose = {1: 2}
    monkeypatch.setattr(cards, "bindings", lambda: api)
    line = last_line(CliRunner().invoke(app, ["bench", "--rounds", "5"]))
    names = "gpu: 2 x Stand-in 0 (compute capability 8.0), 1 x Stand-in 1 (compute capability 8.0)"
    assert f"{names}; not all bits compared; FAILED: Stand-in 1 (card 1) failed in cuStreamSynchronize" in line
    assert line.count(" ns at ") == 1, "the CPU's"


@pytest.mark.slow
def test_doctor_compares_bits(monkeypatch):
    def said(**about):
        monkeypatch.setattr(cards, "bindings", lambda: StandIn(multiprocessors=1, **about))
        result = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "300"})
        return result.exit_code, result.output

    monkeypatch.setattr(machine_facts, "ways_of", lambda policies: {("native", "a reason"): ["uniinf"]})
    code, output = said()
    assert code == 0
    assert output.startswith("OK: ")
    assert output.count("bits as recorded") == 2, "of the cores and the card"
    code, output = said(edit=lambda text: text.replace("div.rn.f32", "div.approx.f32"))
    assert code == 1
    assert output.startswith("WRONG BITS: 1 x Stand-in 0")
    assert "bits DIFFER in float32" in output
    monkeypatch.setattr(proof, "RECORDED", {"float32": "0" * 64})
    code, output = said(cards=0)
    assert code == 1
    assert "core computes other results than recorded, in float32" in output


@pytest.mark.slow
def test_doctor_compares_bits_quickly():
    began = time.process_time()
    assert bench.checked("cpu").good
    assert time.process_time() - began < 2


def notebook_code():
    """The code cells of the notebook for cloud cards."""
    notebook = json.loads((ROOT / "notebooks" / "bench_on_a_gpu.ipynb").read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("wheel", [False, True])
def test_the_notebook_installs_from_a_wheel_or_the_clone(monkeypatch, tmp_path, wheel):
    (source,) = [source for source in notebook_code() if "pip" in source]
    installed = []
    monkeypatch.setattr("subprocess.run", lambda command, check: installed.append(command[-1]))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"upload a wheel, jaxbandit-\*.whl"):
        exec(source, {})
    if wheel:
        (tmp_path / "jaxbandit-0.1.0-py3-none-any.whl").touch()
    else:
        monkeypatch.chdir(ROOT / "notebooks")
    exec(source, {})
    assert installed == [f"{tmp_path / 'jaxbandit-0.1.0-py3-none-any.whl' if wheel else ROOT}[cuda]"]


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch, capsys):
    """The Python cells of the notebook for cloud cards, with few rounds and games."""
    code = notebook_code()
    assert any("jaxbandit bench" in source for source in code)
    api = StandIn(multiprocessors=1)
    monkeypatch.setattr(cards, "bindings", lambda: api)
    python = [source for source in code if not source.startswith("!") and "pip" not in source]
    assert python
    for source in python:
        exec(source.replace("2_000", "6").replace("4_096", "40"), {})
    printed = capsys.readouterr().out
    assert "True" in printed
    assert "False" not in printed
    assert "Stand-in" in printed

"""The command line, as a user types it."""

import io
import json
import re
import subprocess
import sys
import tomllib
import warnings

import pytest
import xarray as xr
from rich.console import Console
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit.certify.statements import FACTS
from jaxbandit.cli import cards, layout
from jaxbandit.cli import entry as cli
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.policies import POLICIES
from jaxbandit.studies.study import parse

STUDY = """
title = "two seconds"
horizon = 50
num_seeds = 8

[[policies]]
name = "uniinf"
initial_scale = [1.0, 4.0]

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


QUICK_STUDY = """
horizon = 50
num_seeds = 8
record = 4

[[policies]]
name = "uniform"

[[environments]]
name = "bernoulli"
means = [[0.2, 0.8], [0.4, 0.5]]
"""


FOUR_ARMS = [{"name": "pareto", "means": [0.5, 1.0, 1.0, 1.0], "tail_index": 1.6}]


@pytest.mark.slow
def test_run_leaves_a_table_a_dataset_and_a_figure(tmp_path):
    """In a process of its own."""
    (tmp_path / "study.toml").write_text(STUDY)
    command = [sys.executable, "-m", "jaxbandit", "run", "study.toml", "--out", "out"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "two seconds" in done.stdout
    assert "±" in done.stdout
    assert "uniINF, S₁ = 4 " in done.stdout
    assert "99 %" in done.stdout and "lost" not in done.stdout  # 50 rounds are too few to call a game lost
    with xr.open_dataset(tmp_path / "out" / "dataset.nc", engine="h5netcdf") as ds:
        assert ds.regret.dims == ("policy", "environment", "seed", "round")
        assert ds.sizes["policy"] == 3
        assert ds.attrs["study"] == STUDY
    assert (tmp_path / "out" / "regret.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """The command line in this process, on one quick study."""
    (tmp_path / "study.toml").write_text(QUICK_STUDY)
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(cli.app, [*args], catch_exceptions=False)


def test_json_is_the_table_for_programs(invoke):
    done = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert (done["cells_played"], done["directory"]) == (2, "results/study")
    first = done["results"][0]
    assert (first["policy"], first["environment"], first["seeds"]) == ("uniform", "bernoulli[means=0.2,0.8]", 8)
    assert first["regret_low"] < first["regret_mean"] < first["regret_high"]
    assert first["regret_median"] <= first["regret_q99"]
    assert first["lost_low"] <= first["lost_rate"] <= first["lost_high"]
    assert first["moment_order"] == 2.0 and first["moment_bound"] == pytest.approx(0.8**0.5)
    assert first["multiple_of_bound"] is None  # nobody promises uniform play to be good
    other = json.loads(invoke("run", "study.toml", "--json", "--set", "policies.0.name=uniinf").stdout)["results"][0]
    bound = jb.theory.instance_bound(jb.Bernoulli(means=[0.2, 0.8]))
    assert other["multiple_of_bound"] == pytest.approx(bound.multiple("uniinf", other["regret_mean"], other["round"]))


def test_quiet_says_nothing_and_a_second_run_plays_nothing(invoke):
    assert invoke("run", "study.toml", "--quiet").output == ""
    again = invoke("run", "study.toml")
    assert "0 cells played, 2 found" in again.stdout
    assert "compiling" not in again.output  # no bar that stands at 0


@pytest.mark.slow
def test_cells_of_another_study_are_said_to_stay(invoke, tmp_path):
    invoke("run", "study.toml", "--out", "out", "--quiet")
    (tmp_path / "study.toml").write_text("seed = 5\n" + QUICK_STUDY)
    assert "also holds 2 cells of another study. They are kept" in invoke("run", "study.toml", "--out", "out").stdout


def test_certify_refuses_counts_of_nothing(invoke):
    """0 is no default: a full certificate takes minutes."""
    for option in ("--num-seeds", "--horizon"):
        done = CliRunner().invoke(cli.app, ["certify", option, "0"])
        assert isinstance(done.exception, ValueError)
        assert "must be a whole number" in str(done.exception)


@pytest.mark.slow
def test_certify_for_programs(invoke, tmp_path):
    """A quick certificate has a directory of its own, and ``--json`` prints the shape of the other commands."""
    law = '{name = "bernoulli", means = [0.2, 0.8]}'
    options = ["--quick", "--no-controls", "--horizon", "20", "--num-seeds", "2", "--environment", law]
    found = json.loads(invoke("certify", "--json", *options).stdout)
    assert (found["holds"], found["violated"], found["horizon"], found["seed"]) == (True, [], 20, 0)
    assert found["directory"] == "results/certify-quick"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["certify-quick"]
    assert {row["kind"] for row in found["results"]} == {"fact", "expectation", "conditional"}
    assert [row["violations"] for row in found["results"] if row["kind"] == "fact"] == [0] * len(FACTS)


def test_plan_says_what_it_takes_and_writes_nothing(invoke, tmp_path):
    said = invoke("plan", "study.toml").stdout
    for words in ("2 to play, 0 already stored", "16 games", "time", "memory", "disk"):
        assert words in said
    assert " 1.6 × 10⁷ rounds in all" in invoke("plan", "study.toml", "--horizon", "1000000").stdout
    assert json.loads(invoke("plan", "study.toml", "--json").stdout)["compiles"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.slow
def test_summaries_have_a_table_too(invoke, tmp_path):
    (tmp_path / "study.toml").write_text('keep = "summary"\n' + QUICK_STUDY)
    done = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert [row["seeds"] for row in done["results"]] == [8, 8]
    assert "±" in invoke("run", "study.toml").stdout


def test_one_seed_is_enough_for_a_run(invoke, tmp_path):
    """Warnings are errors here."""
    (tmp_path / "study.toml").write_text(QUICK_STUDY.replace("num_seeds = 8", "num_seeds = 1"))
    said = invoke("run", "study.toml").stdout
    assert "50 rounds, 1 seed)" in said
    assert "nan" not in said
    assert "regret.png" in said and "dataset.nc" in said
    assert "1 seed)" in invoke("plan", "study.toml").stdout


def test_a_figure_that_fails_costs_no_results(invoke, tmp_path):
    (tmp_path / "study.toml").write_text('figures = ["balance", "regret"]\n' + QUICK_STUDY)
    with pytest.warns(UserWarning, match="figure 'balance' is not drawn: no div, shift"):
        done = invoke("run", "study.toml")
    assert done.exit_code == 0
    assert "±" in done.stdout and "figures/regret.png" in done.stdout
    assert (tmp_path / "results" / "study" / "dataset.nc").is_file()
    with pytest.raises(ValueError, match="no div, shift"):
        invoke("plot", "results/study")
    with pytest.raises(ValueError, match="no figure can be written as ''; possible file endings are"):
        invoke("plot", "results/study", "--format", "")


@pytest.mark.slow
def test_precision_from_the_command_line(invoke):
    done = json.loads(invoke("run", "study.toml", "--json", "--precision", "0.5").stdout)
    assert [row["seeds"] for row in done["results"]] == [256, 256]


@pytest.fixture
def main(monkeypatch, capfd):
    """What ``python -m jaxbandit`` calls: the exit code, and what was written."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["jaxbandit", *args])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, capfd.readouterr()

    return run


def test_bad_study_ends_with_its_message(tmp_path, monkeypatch, main):
    (tmp_path / "study.toml").write_text(STUDY.replace("num_seeds", "num_seed"))
    monkeypatch.chdir(tmp_path)
    code, said = main("run", "study.toml")
    assert code == 2
    assert "did you mean 'num_seeds'" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param(
            "doctor",
            (
                "OK: all shipped policies",
                "cores",
                "JAX devices",
                "games are played by",
                "compiled code",
                "jaxlib",
                "llvmlite",
                "uniinf",
                "native",
            ),
            marks=pytest.mark.slow,
        ),
        ("list", ("uniinf", "pareto", "shipped studies: ", "next: jaxbandit list uniinf")),
        ("--version", ("jaxbandit 0",)),
    ],
)
def test_it_tells(command, shown, main):
    code, said = main(command)
    assert not code
    for word in shown:
        assert word in said.out


def test_list_has_a_plain_line_for_each(main):
    lines = main("list")[1].out.splitlines()
    for name in POLICIES | ENVIRONMENTS:
        assert len([line for line in lines if line.startswith(f"{name} ")]) == 1, name
    assert not [line for line in lines if re.search(r":math:|`|[│┃]", line) or line != line.rstrip()]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_list_has_one_line_each_on_a_terminal(width, monkeypatch):
    monkeypatch.setattr(layout, "on_terminal", lambda: True)
    for section, known in (("policies", POLICIES), ("environments", ENVIRONMENTS)):
        console = Console(width=width, file=io.StringIO())
        layout.show(console, cards.registry_table(section, width))
        lines = console.file.getvalue().splitlines()
        assert len(lines) == len(known) + 4 and max(map(len, lines)) <= width  # title, heads, rule, empty line
        assert [line.split()[0] for line in lines[3:-1]] == list(known)


@pytest.mark.parametrize("name", ["UniINF", "uniINF", "UNIINF", "StudentT", "RobustUCB"])
def test_a_card_is_found_by_class_label_and_any_case(name):
    entry = cards.card(name)[2]
    assert f'name = "{ {"StudentT": "student_t", "RobustUCB": "robust_ucb"}.get(name, "uniinf") }"' in entry


@pytest.mark.parametrize("name", [*POLICIES, *ENVIRONMENTS])
def test_a_card_has_an_entry_that_a_study_takes(name, tmp_path):
    title, facts, entry = cards.card(name)
    assert title and not re.search(r":math:|`|\\\\", "".join(layout.plain(facts)))
    (tmp_path / "losses.csv").write_text("a,b,c,d\n" + "1,2,3,4\n" * 50)
    content = tomllib.loads(QUICK_STUDY) | tomllib.loads(entry)
    content["environments"] = content["environments"] if name in ENVIRONMENTS else FOUR_ARMS
    assert parse(content, directory=tmp_path).resolved.pairs()


def test_a_card_has_every_promise_with_its_notes(main):
    def shown(name):
        return " ".join(main("list", name)[1].out.split())

    moss = shown("robust_moss")
    assert "in one stochastic instance (optimal up to log σ^α and log 1/Δ^α; Table 1 of" in moss
    assert "against an adversary and in the worst stochastic instance" in shown("ada_tinf")
    ape2 = shown("ape2")
    assert "with a Pareto or Fréchet perturbation" in ape2 and "log K)^(α/((α−1) a))" in ape2
    assert "for Weibull (the default), gamma and Gumbel perturbations" in ape2  # the note of the row
    assert "must be given a policy, a delay" in shown("delayed")


def test_a_card_of_a_shipped_study_names_the_command_that_shows_it():
    with pytest.raises(ValueError, match=r"'quickstart' is a shipped study.*jaxbandit plan quickstart"):
        cards.card("quickstart")
    with pytest.raises(ValueError, match="there is no policy or environment 'quick'"):
        cards.card("quick")

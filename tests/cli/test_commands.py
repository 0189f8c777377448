"""Rules that hold for every command: groups, help, shared options, Ctrl-C."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import typer.main
from typer.testing import CliRunner

from jaxbandit import interrupt, sensitivity
from jaxbandit.cli import commands, options
from jaxbandit.cli.entry import app
from jaxbandit.cli.entry import main as run_main
from jaxbandit.search import study

ROOT = pathlib.Path(__file__).parents[2]
REGISTERED = {info.name or info.callback.__name__: info for info in app.registered_commands}
COMMANDS = typer.main.get_command(app).commands
GROUPS = {
    commands.Panel.RUN: {"init", "run", "plan", "certify", "reproduce"},
    commands.Panel.LOOK: {"report", "plot", "export", "watch"},
    commands.Panel.SEARCH: {"tune", "worst", "sensitivity"},
    commands.Panel.REFERENCE: {"list", "inspect", "bench", "doctor"},
}
KEEPING = {"run", "certify", "reproduce", "tune", "worst", "sensitivity"}


def listed_options():
    """(command, option, parameter) of every option that help shows."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            for option in parameter.opts:
                if not getattr(parameter, "hidden", False):
                    yield name, option, parameter


def test_every_command_stands_in_a_group():
    for panel, names in GROUPS.items():
        assert {name for name, info in REGISTERED.items() if info.rich_help_panel == panel} == names
    assert set(REGISTERED) == set(COMMANDS) == set.union(*GROUPS.values())


def test_help_is_whole_sentences():
    for name, command in COMMANDS.items():
        assert re.fullmatch(r"[A-Z][a-z]+s (?s:.*)\.", command.help.strip()), name
    for name, option, parameter in listed_options():
        assert re.fullmatch(r"[A-Z].*\.", parameter.help), (name, option)
    text = CliRunner().invoke(app, ["--help"]).stdout
    places = [text.index(f"─ {panel} ─") for panel in GROUPS]
    assert places == sorted(places)


def test_an_option_means_the_same_in_every_command():
    seen = {}
    for name, option, parameter in listed_options():
        if option == "--out":
            continue
        meaning = (parameter.help, parameter.default, tuple(parameter.opts))
        assert seen.setdefault(option, meaning) == meaning, (name, option)
    for name, option, parameter in listed_options():
        if option == "--out":
            assert re.match(r"Results directory;|Directory for|File .*not a directory;", parameter.help), name
            assert parameter.default is None
    studies = [name for name, option, _ in listed_options() if option == "study"]
    assert set(studies) == {"run", "plan", "tune", "worst", "sensitivity"}
    for option in ("--out", "--quick", "--data", "--json", "--set", "--horizon", "--num-seeds", "--seed"):
        assert set(studies) <= {name for name, other, _ in listed_options() if other == option}, option


def test_old_names_of_options_are_read_and_not_shown():
    shown = {(name, option) for name, option, _ in listed_options()}
    for name, option in (("run", "--coordinator"), ("bench", "--rounds"), ("certify", "--world")):
        assert option in {one for parameter in COMMANDS[name].params for one in parameter.opts}
        assert (name, option) not in shown


@pytest.mark.parametrize(("command", "where"), [("tune", study), ("worst", study), ("sensitivity", sensitivity)])
def test_searches_change_values_of_their_study(command, where, monkeypatch, tmp_path):
    """The options of ``run`` reach the section too: its number of seeds and its horizons."""
    path, seen = tmp_path / "study.toml", []
    path.write_text(
        'horizon = 30\nnum_seeds = 4\n[[policies]]\nname = "uniinf"\n[[environments]]\nname = "bernoulli"\n'
        "means = [0.2, 0.8]\n[tune]\nparameters = {initial_scale = [1.0, 9.0]}\nnum_seeds = 16\n"
        "[worst]\nparameters = {gap = [0.1, 0.5]}\nhorizons = [10, 30]\n[sensitivity]\nlocal = ['gap']\nnum_seeds = 5\n"
    )

    def stopped(plan, *_, **__):
        seen.append(plan)
        raise ValueError("stopped here")

    monkeypatch.setattr(where, "run" if command == "sensitivity" else f"{command}_study", stopped)
    options = ["--set", "policies.0.initial_scale=2", "--horizon", "20", "--num-seeds", "8", "--seed", "3"]
    done = CliRunner().invoke(app, [command, str(path), "--out", str(tmp_path / "out"), *options])
    assert "stopped here" in str(done.exception)
    (plan,) = seen
    assert (plan.horizon, plan.num_seeds, plan.seed, plan.policies[0]["initial_scale"]) == (20, 8, 3, 2)
    assert (getattr(plan, command).num_seeds, plan.worst.horizons) == (8, None if command == "worst" else [10, 30])


def test_default_directories_and_the_way_on_are_made_in_one_place():
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "jaxbandit").rglob("*.py")}
    for text, place in (("To continue:", commands), ('Path("results")', options), ("os._exit(CODE)", commands)):
        assert [str(path) for path, source in sources.items() if text in source] == [place.__file__], text


class LeftError(BaseException):
    """In place of the end of the process."""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_ctrl_c_ends_every_command_with_one_line(name, monkeypatch, capfd):
    """Ctrl-C comes when the command's own function begins, in its thread; that thread is inside a long call."""
    free, began, code = threading.Event(), [], REGISTERED[name].callback.__wrapped__.__code__

    def trace(frame, event, _):
        if frame.f_code is code and not began:
            began.append(name)
            os.kill(os.getpid(), signal.SIGINT)
            free.wait(30)
            raise LeftError

    def leave(code):
        raise LeftError(code)

    arguments = [f"none of {name}" for parameter in COMMANDS[name].params if parameter.required]
    monkeypatch.setattr(sys, "argv", ["jaxbandit", name, *arguments])
    monkeypatch.setattr(commands.os, "_exit", leave)
    monkeypatch.setattr(interrupt, "GRACE_SECONDS", 0.01)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.settrace(trace)
    try:
        with pytest.raises(LeftError) as left:
            run_main()
    finally:
        threading.settrace(None)
        signal.signal(signal.SIGINT, before)
        free.set()
    assert began and left.value.args == (130,)
    said = capfd.readouterr().err.strip()
    assert "\n" not in said and "Traceback" not in said
    again = f"jaxbandit {name}" + "".join(f" '{argument}'" for argument in arguments)
    assert said.endswith(f"To continue: {again}" if name in KEEPING else f"To start again: {again}")
    assert said.startswith("stopped; ")


def test_ctrl_c_during_the_import_is_one_line_too(tmp_path):
    """The package is another one here, whose import takes long."""
    (tmp_path / "jaxbandit").mkdir()
    waiting = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)\n"
    (tmp_path / "jaxbandit" / "__init__.py").write_text(waiting)
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
        "sys.argv = ['jaxbandit', 'run', 'a study.toml']\n"
        "import jaxbandit_launcher\n"
        "jaxbandit_launcher.main()\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert time.monotonic() - began < 20
    assert done.returncode == 130
    assert done.stderr.strip() == "stopped; nothing was begun. To start again: jaxbandit run 'a study.toml'"


@pytest.mark.parametrize(
    ("typed", "problem", "remedy"),
    [
        (["runn"], "there is no command 'runn'", "did you mean 'run'?"),
        (["plot"], "missing argument 'SOURCE'", "see: jaxbandit plot --help"),
        (["run", "quickstart", "--horizon", "10.5"], "invalid value for '--horizon'", "see: jaxbandit run --help"),
        (["run", "quickstart", "--horizn", "10"], "no such option: --horizn", "see: jaxbandit run --help"),
    ],
)
def test_a_command_line_that_cannot_be_read_has_a_problem_and_a_remedy(typed, problem, remedy, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jaxbandit", *typed])
    with pytest.raises(SystemExit) as ended:
        run_main()
    first, second = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert first.startswith("error: ") and problem in first
    assert second.startswith("help:  ") and remedy in second


@pytest.mark.parametrize("name", COMMANDS)
def test_options_in_the_help_name_their_values(name):
    lines = CliRunner().invoke(app, [name, "--help"], terminal_width=100).stdout.splitlines()
    rows = [line for line in lines if re.match(r"\W+--(?!help)\w", line)]
    assert not [line for line in rows if re.search(r"<\w+(\[\w+\])?>", line)]
    assert not [line for line in rows if re.search(r"--(quick|quiet|json) +(N|X|PATH|TEXT)\b", line)]


def test_ctrl_c_during_the_import_of_the_module_is_one_line(tmp_path):
    """JAX is another module here, whose import takes long."""
    (tmp_path / "jax.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)\n")
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv)"
    command = [sys.executable, "-c", code, "-m", "jaxbandit", "run", "a study.toml"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr.strip() == "stopped; nothing was begun. To start again: jaxbandit run 'a study.toml'"


@pytest.mark.slow
@pytest.mark.parametrize("settings", [b"text.usetex: True\nfont.size: 77\n", b"\xff\xfe"], ids=["tex", "bytes"])
def test_settings_in_a_received_directory_do_not_apply(tmp_path, settings):
    (tmp_path / "matplotlibrc").write_bytes(settings)
    code = (
        "import contextlib, sys; sys.argv = ['jaxbandit', '--version']; from jaxbandit.cli import main\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "import matplotlib; print(matplotlib.rcParams['text.usetex'], matplotlib.rcParams['font.size'] == 77)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "False False", done.stderr

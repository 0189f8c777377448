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

from jaxbandit import interrupt
from jaxbandit.cli import commands, entry, options
from jaxbandit.cli.entry import app
from jaxbandit.cli.entry import main as run_main

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
    for option in ("--out", "--quick", "--data", "--json"):
        assert set(studies) <= {name for name, other, _ in listed_options() if other == option}, option


def test_default_directories_and_the_way_on_are_made_in_one_place():
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "jaxbandit").rglob("*.py")}
    exits = [commands, entry]  # a second Ctrl-C, and no memory left
    for text, places in {"To continue:": [commands], 'Path("results")': [options], "os._exit(": exits}.items():
        assert sorted(str(path) for path, source in sources.items() if text in source) == [p.__file__ for p in places]


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


def test_ctrl_c_during_the_import_of_the_module_is_one_line(tmp_path):
    """JAX is another module here, whose import takes long."""
    (tmp_path / "jax.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)\n")
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv)"
    command = [sys.executable, "-c", code, "-m", "jaxbandit", "run", "a study.toml"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr.strip() == "stopped; nothing was begun. To start again: jaxbandit run 'a study.toml'"

"""Tables in every width: nothing that tells rows apart is cut."""

import dataclasses
import io
import pathlib
import re
import sys

import pytest
from rich.console import Console

from jaxbandit import progress
from jaxbandit.cli import errors, layout
from jaxbandit.search import tables as search_tables
from jaxbandit.search.study import Found
from jaxbandit.sensitivity import tables as sensitivity_tables
from tests.support import answers

LABELS = ["uniinf[initial_scale=0.25]", "uniinf[initial_scale=16]", "a policy with a long name of its own"]


def table():
    made = layout.new_table("policy", "mean", "fails", title="A title that is longer than the table", right=["mean"])
    for n, label in enumerate(LABELS):
        made.add_row(label, f"{n}.5 ± 0.1", "0 % (0 to 5.6)")
    return made


def shown(width, monkeypatch):
    monkeypatch.setattr(layout, "on_terminal", lambda: True)
    out = io.StringIO()
    layout.show(Console(file=out, width=width, force_terminal=False), table())
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_width_cuts_a_label_or_a_number(width, monkeypatch):
    said = shown(width, monkeypatch)
    for part in (*LABELS, "2.5 ± 0.1", "0 % (0 to 5.6)"):
        assert part in said
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    assert ("  fails  0 %" in said) == (width < 70)  # one value a line if the columns do not fit


def test_a_pipe_gets_plain_lines():
    lines = layout.plain(table())
    assert lines[0] == "A title that is longer than the table"
    assert lines[2] == "uniinf[initial_scale=0.25]            0.5 ± 0.1  0 % (0 to 5.6)"
    assert len(lines) == 2 + len(LABELS)
    assert lines == [line.rstrip() for line in lines]


def test_tables_of_all_packages_have_one_form(monkeypatch):
    monkeypatch.setattr(layout, "on_terminal", lambda: True)
    ds = answers.worst()
    for one in (table(), search_tables.worst_table([Found("p", "e", ds, pathlib.Path("x.nc"))])):
        out = io.StringIO()
        layout.show(Console(file=out, width=300, force_terminal=False), one)
        assert not set("┏┃│└") & set(out.getvalue())
        assert re.fullmatch("─+", out.getvalue().splitlines()[2])


ESCAPE = "\x1b]0;x\x07\u202e[/]"  # sets the title of the window, turns the line round, and ends a markup of rich


def escaping_tables():
    """Tables of sensitivity, tune and worst, with labels from files that would control the terminal."""
    found = [
        (ds, Found(f"p{ESCAPE}", f"e{ESCAPE}", ds, pathlib.Path("x.nc"))) for ds in (answers.tuned(), answers.worst())
    ]
    (tuned, one), (worst, other) = found
    named = {"policy": [f"p{ESCAPE}"], "parameter": [f"x{ESCAPE}", "y"], "environment": [f"e{ESCAPE}", "f"]}
    yield search_tables.tune_table([dataclasses.replace(one, ds=tuned.assign_coords(parameter=named["parameter"]))])
    yield search_tables.worst_table([dataclasses.replace(other, ds=worst.assign_coords(parameter=[f"x{ESCAPE}"]))])
    for kind in sensitivity_tables.COLUMNS:
        yield sensitivity_tables.table(answers.sensitivity(kind).assign_coords(named))
    yield layout.facts_table({f"p{ESCAPE}": f"e{ESCAPE}"})


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 300])
def test_labels_of_files_do_not_control_the_terminal(terminal, width, monkeypatch):
    monkeypatch.setattr(layout, "on_terminal", lambda: terminal)
    for one in escaping_tables():
        out = io.StringIO()
        layout.show(Console(file=out, width=width, force_terminal=False), one)
        said = out.getvalue()
        assert "]0;x" in said and "[/]" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


def test_the_next_command_does_not_control_the_terminal(capsys):
    layout.say_next(layout.make_console(), f"jaxbandit report '{ESCAPE}'")
    assert not {"\x1b", "\x07", "\u202e"} & set(capsys.readouterr().out)


def test_errors_are_wrapped_at_words_and_end_with_the_remedy(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    errors.show_error("the study names a table that was not found; pass its directory with --data DIR")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err).splitlines()
    assert lines[0].startswith("error: the study")
    assert [line for line in lines if line.startswith("help:  pass its directory")]
    assert max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in lines).endswith("with --data DIR")


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("asked", "wait", "seen"), [(True, 9.0, True), (None, 0.01, True), (None, 9.0, False)])
def test_a_bar_appears_at_once_or_after_a_while(asked, wait, seen, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "WAIT_SECONDS", wait)
    with progress.bar(asked) as show:
        for _ in range(100 if seen else 1):
            progress.threading.Event().wait(0.01)
            if "compiling ..." in terminal.getvalue():
                break
        show(50, 100)
    assert ("compiling ..." in terminal.getvalue()) == seen
    assert ("50%" in terminal.getvalue()) == seen


def test_no_bar_without_a_terminal(monkeypatch):
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    with progress.bar(True) as show:
        show(1, 2)
    assert quiet.getvalue() == ""


def test_the_command_for_a_report_installs_what_it_lacks(monkeypatch):
    assert layout.report_of("results/a b") == "jaxbandit report 'results/a b'"
    monkeypatch.setattr(layout.importlib.util, "find_spec", lambda name: None)
    assert layout.report_of("results/a") == "pip install 'jaxbandit[report]' && jaxbandit report results/a"

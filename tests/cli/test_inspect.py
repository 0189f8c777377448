"""jaxbandit inspect, as a user types it."""

import re
import sys

import numpy as np
import pytest

from jaxbandit.cli import entry as cli
from jaxbandit.cli import layout
from tests.support.tables import write


def inspected(monkeypatch, capsys, *args):
    monkeypatch.setattr(sys, "argv", ["jaxbandit", "inspect", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, *capsys.readouterr()


def test_inspect_prints_the_facts_and_leaves_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    losses = (1 - rng.random((2000, 3))) ** (-1 / 1.5) * [1.0, 50.0, 60.0]
    losses[3, 2] = np.nan
    path = write(tmp_path, "csv", losses)
    code, out, err = inspected(monkeypatch, capsys, path.name)
    assert (code, err) == (0, "")
    for fact in ("2,000 rounds x 3 arms", "a replay needs every entry", "top 0.5 %", "truncated non-negative"):
        assert fact in out
    scale = 1 / np.quantile(losses[np.isfinite(losses)], 0.99)
    assert f"{scale:.4g} makes the 99 % quantile 1" in out
    assert f"{np.nanmean(losses[:, 2]):.5g}" in out
    assert re.search(r"rounds uniINF skips +about all / all / all of the 2,000 if", out)
    assert (tmp_path / "results" / "inspect-latency.png").read_bytes().startswith(b"\x89PNG")


def test_inspect_says_that_repeated_rows_make_intervals_too_narrow(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    losses = np.repeat((1 - rng.random((100, 2))) ** (-1 / 1.5), 7, axis=0)
    _, out, _ = inspected(monkeypatch, capsys, str(write(tmp_path, "npy", losses)))
    assert "86 % equal the entry of the round before, so the intervals below are too narrow" in out
    _, out, _ = inspected(monkeypatch, capsys, str(write(tmp_path, "npy", losses[::7])))
    assert "0 % equal the entry of the round before" in out and "too narrow" not in out


@pytest.mark.filterwarnings("ignore:Glyph")  # the figure has no sign for it
def test_names_of_arms_do_not_control_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(layout, "on_terminal", lambda: True)
    (tmp_path / "a.csv").write_text("a\x1b]0;x\x07,b\n" + "1,2\n3,4\n" * 50)
    code, out, err = inspected(monkeypatch, capsys, "a.csv")
    assert "\x1b]" not in out + err and "\x07" not in out + err and (code == 2 or "]0;x" in out)


def test_inspect_ends_with_the_message_of_a_bad_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, _, err = inspected(monkeypatch, capsys, "none.csv")
    assert code == 2
    assert "none.csv does not exist" in err


@pytest.mark.parametrize("losses", [[[0.0, 0.0]], [[1.0, 2.0], [3.0, -4.0]], [[5.0]]])
def test_inspect_takes_the_smallest_tables(losses, tmp_path, monkeypatch, capsys):
    path = write(tmp_path, "npy", losses)
    picture = tmp_path / "pictures" / "tails.png"
    code, _, err = inspected(monkeypatch, capsys, str(path), "--out", str(picture), "--rewards")
    assert (code, err) == (0, "")
    assert picture.exists()

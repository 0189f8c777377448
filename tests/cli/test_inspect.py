"""jaxbandit inspect, as a user types it."""

import re
import sys

import numpy as np
import pytest

from jaxbandit.cli import entry as cli
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

"""Study files and recorded studies that a stranger sent: each is read, or refused in words that name the file."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.studies import recorded

BODY = """
horizon = 20
num_seeds = 2
policies = [{name = "uniform"POLICY}]
environments = [{ENVIRONMENT}]
"""
BERNOULLI = 'name = "bernoulli", means = [0.2, 0.8]'


def load(place, head="", policy="", environment=BERNOULLI):
    (place / "study.toml").write_text(head + BODY.replace("POLICY", policy).replace("ENVIRONMENT", environment))
    return jb.Study.load(place / "study.toml")


@pytest.mark.parametrize(
    ("given", "said"),
    {
        "deep": ({"head": f"a = {'[' * 2_000}{']' * 2_000}"}, "study.toml is not valid TOML: its lists or tables"),
        "digits": ({"head": f"seed = {'9' * 5_000}"}, "study.toml is not valid TOML: .*digits"),
        "long title": ({"head": f'title = "{"x" * 10**6}"'}, "title must have at most 1,000 letters, got 1,000,000"),
        "escape": ({"head": r'title = "\u001b]0;x\u0007"'}, "title must not have control characters"),
        "nul": ({"head": r'title = "a\u0000b"'}, "title must not have control characters"),
        "long label": ({"policy": f', label = "{"x" * 20_000}"'}, "uniform.label must have at most 1,000 letters"),
        "label": ({"policy": r', label = "\u001b[31m"'}, "uniform.label must not have control characters"),
    }.values(),
)
def test_hostile_texts_are_refused(tmp_path, given, said):
    with pytest.raises(ValueError, match=said) as error:
        load(tmp_path, **given)
    assert "study.toml" in str(error.value)


@pytest.mark.parametrize("record", ["true", "[true, 3]"])
def test_truth_is_no_number_of_rounds(tmp_path, record):
    with pytest.raises(ValueError, match=r"record must be a number of rounds or a list of whole rounds, got .*True"):
        load(tmp_path, head=f"record = {record}")


def test_a_module_that_ends_the_process_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    text = BODY.replace("POLICY", "").replace("ENVIRONMENT", BERNOULLI).replace("uniform", "ends:Policy")
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(ValueError, match=r"cannot load 'ends:Policy' in \[\[policies\]\]: SystemExit: 3; write"):
        jb.Study.load(tmp_path / "study.toml")


def test_a_pattern_may_be_absolute(tmp_path):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.ones((30, 2)))
    found = load(tmp_path, environment=f'name = "replay", table = "{tmp_path}/*.npy"').resolved
    assert [point.name for point in found.points] == ["a", "b"]


@pytest.mark.parametrize("table", ["PLACE/a.npy", "../PLACE/a.npy", "**/a.npy", "PLACE/*.npy"])
def test_recorded_studies_open_no_table_of_their_choice(tmp_path, monkeypatch, table):
    np.save(tmp_path / "a.npy", np.ones((30, 2)))
    monkeypatch.chdir(tmp_path)
    table = table.replace("PLACE", str(tmp_path) if table.startswith("PLACE") else tmp_path.name)
    text = BODY.replace("POLICY", "").replace("ENVIRONMENT", f'name = "replay", table = "{table}"')
    with pytest.raises(ValueError, match=r"may lie anywhere on this machine, so it is not opened.*--data"):
        recorded.environments(text)
    assert len(recorded.environments(text, data=tmp_path)) == 1
    own = text.replace(table, "a.npy")
    assert len(recorded.environments(own)) == 1

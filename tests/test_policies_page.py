"""docs/policies.md is that of the registry; the walk-through of CONTRIBUTING.md runs."""

import pathlib
import re

import numpy as np
import pytest

import jaxbandit as jb
from benchmarks import cards, policies

ROOT = pathlib.Path(__file__).parents[1]
PAGE = policies.PAGE.read_text(encoding="utf-8")


def test_the_table_is_up_to_date():
    assert policies.replaced(PAGE, policies.table()) == PAGE, "run python -m benchmarks.policies"
    assert all(f"`{name}`" in PAGE for name in jb.POLICIES)


def test_cards_and_tables_of_choices_are_up_to_date():
    for path, text in cards.pages().items():
        assert path.read_text(encoding="utf-8") == text, "run python -m benchmarks.cards"
    assert set(cards.USE) == set(jb.POLICIES)


@pytest.mark.parametrize("name", policies.examples())
def test_every_row_is_measured(name):
    (row,) = re.findall(rf"^\| {re.escape(name)} \|.*$", PAGE, re.MULTILINE)
    assert re.search(r"\| \d+ \(\d+\.\d\) \|", row), row


def test_the_walk_through_runs():
    reference, policy = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    names = {}
    exec(reference, names)
    exec(policy, names)
    environment = jb.Bernoulli(means=[0.2, 0.8, 0.8])
    ds = jb.simulate(names["Exp3IX"](horizon=200), environment, horizon=200, num_seeds=64, trace=1, dtype="float64")
    assert float(ds.regret.isel(round=-1).mean()) < 60  # uniform play: 80
    paper = names["Reference"](3, 200)
    first = ds.isel(traced_seed=0)
    rounds = zip(first.trace_x.values, first.trace_arm.values, first.trace_loss.values, strict=True)
    for t, (x, arm, loss) in enumerate(rounds, start=1):
        np.testing.assert_allclose(x, paper.probabilities(t), rtol=1e-9)
        paper.update(t, x, int(arm), loss)


def test_cards_name_what_a_class_requires_and_words_on_costs_are_those_of_the_table():
    assert "### delayed (`delayed`)" in PAGE
    delayed = PAGE[PAGE.index("### delayed (`delayed`)") :]
    assert "- **Must be given:** a policy and a delay." in delayed[:400]
    assert "with a Pareto or Fréchet perturbation" in PAGE
    words = cards.costs().replace("\n  ", " ").splitlines()
    ratios = {name: float(ratio) for name, ratio in cards.standing().items()}
    for name, ratio in ratios.items():
        (line,) = [n for n, line in enumerate(words) if name.replace("`, ", "` (") in line.replace(")", "")]
        assert line == (ratio > 2) + (ratio > 4) + (ratio > 8), name

"""The measured table: exponents where they may be compared, and who is given what."""

import dataclasses
import re

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.analysis import comparison
from jaxbandit.analysis.comparison import writers
from jaxbandit.theory import assumptions
from jaxbandit.theory.guarantees import GUARANTEES
from tests.support.comparison_cases import ENVIRONMENTS, ROUNDS, games


def growth(kind):
    curves = {"log": 10 * np.log(4 * ROUNDS), "root": ROUNDS**0.5, "linear": 0.4 * ROUNDS, "negative": -0.1 * ROUNDS}
    return (curves | {"saw": 100 + 10 * (np.arange(ROUNDS.size) % 2)})[kind]


def entry(kind, promised):
    regret = games(lambda p, e: growth(kind), ["p"], ["e"]).regret.isel(policy=0, environment=0)
    return comparison.measured(regret, promised)


def test_an_entry_says_what_was_seen():
    log, linear, root = entry("log", 0.0), entry("linear", 0.7), entry("root", 0.7)
    assert (log.verdict, linear.verdict, root.verdict) == ("logarithmic", "faster", "faster")
    assert linear.exponent[0] == pytest.approx(1)
    assert (linear.above, root.above, log.above) == (True, False, False)
    assert (linear.below, root.below, log.below) == (False, True, False)
    assert entry("negative", 0.7).below_zero
    saw = entry("saw", 0.7)
    assert np.isnan([*saw.exponent, *saw.ratio]).all()


@pytest.mark.parametrize(
    ("kind", "promised", "said"),
    [
        ("log", None, "like log T (1.00"),
        ("linear", None, "faster than log T (8.00"),
        ("root", 0.7, "faster than log T (2.83, 2.83 to 2.83); below T^0.7"),
        ("linear", 0.7, "faster than log T (8.00, 8.00 to 8.00); above T^0.7"),
        ("saw", 0.7, "falls"),
        ("negative", 0.7, "below 0"),
    ],
)
def test_what_an_entry_says(kind, promised, said):
    assert writers.regime(entry(kind, promised)).startswith(said)


def test_limits_are_told_apart():
    shown = dataclasses.replace(entry("linear", 0.0), regret=(203_123.0, 202_789.0, 203_456.0))
    assert writers._limits(shown) == ("203,100", "202,800", "203,500")
    wide = dataclasses.replace(shown, regret=(26_012.0, 22_190.0, 30_640.0))
    assert writers._limits(wide) == ("26,000", "22,200", "30,600")
    assert writers._limits(dataclasses.replace(shown, regret=(5.0, 5.0, 5.0))) == ("5", "5", "5")


def test_the_table_says_who_is_told_what_and_what_was_seen(tmp_path):
    policies = ["uniinf", "htinf", "robust_ucb", "ape2", "my|policy_1"]
    curves = {"pareto": growth("log"), "switching": growth("linear")}
    ds = games(lambda p, e: curves[e], policies, ENVIRONMENTS)
    ds["regret"] = ds.regret.where((ds.policy != "ape2") | (ds["round"] <= 512))
    table = comparison.compared(ds, environments=ENVIRONMENTS, title="Measured & proved")
    (block,) = table.blocks
    assert (block.num_arms, block.columns) == (2, (1.5,))
    told = {row.policy: row.given for row in block.rows}
    both = ("α", "σ")
    assert told == {
        "Lower bound": None,
        "uniINF": ("T", "unit"),
        "HTINF": both,
        "RobustUCB": both,
        "APE²": ("α", "unit"),
        "my|policy_1": None,
    }
    uniinf = block.rows[1]
    assert [line.stochastic for line in uniinf.lines] == [True, False]
    assert uniinf.lines[0].entries[0].verdict == "logarithmic"
    assert uniinf.lines[1].entries[0].promised == pytest.approx(1 / 1.5)
    assert uniinf.lines[1].entries[0].above
    assert block.rows[3].lines[1].order is None
    assert block.rows[4].lines[0].entries[0].stopped

    made = comparison.write(ds, tmp_path / "table", environments=ENVIRONMENTS, title="Measured & proved")
    page, markdown, latex = (path.read_text() for path in made)
    mean = float(ds.regret.sel(policy="uniinf", environment="pareto").isel(round=-1).mean())
    assert "<h1>Measured &amp; proved</h1>" in page
    assert f"<b>{mean:.3g}</b>" in page
    assert "http" not in page
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 * (1 + len(policies))
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert rows[0].split(" | ")[4:8] == ["given unit?", "environment", "proved", "optimal up to logarithms?"]
    assert rows[2].startswith(
        "| **Lower bound** | – | – | – | – | stochastic: one instance | "
        r"$\Omega\bigl(\sum_i (\sigma^\alpha/\Delta_i)^{1/(\alpha-1)} \log T\bigr)$ |  |"
    )
    instance, worst = GUARANTEES["uniinf"].stochastic.flat, GUARANTEES["uniinf"].worst_case.flat
    proved = f"${instance}$ ¹; worst case: ${worst}$ | ✓; ✓ |"
    assert rows[4].startswith(f"| **uniINF** | ✓ | ✓ | yes | yes | stochastic: pareto | {proved}")
    assert "- ¹ optimal up to log σ^α and log 1/Δ_min, and only when all gaps are similar" in markdown
    assert "O(K (σ^α/Δ)^(1/(α−1)) log T log(σ^α/Δ))¹" in page and "<li>¹ optimal up to log" in page
    assert f"${instance}$$^{{1}}$; worst case: ${worst}$ & $\\checkmark$; $\\checkmark$ &" in latex
    assert r"\tilde O\bigl(\sigma K^{1-1/\alpha} T^{1/\alpha}\bigr)" in latex and r"\item $^{1}$ optimal up to" in latex
    assert f"**{mean:.3g}**" in rows[4]
    assert "like log T (1.0" in rows[4]
    multiple = jb.theory.instance_bound(ENVIRONMENTS["pareto"]).multiple("uniinf", mean, float(ROUNDS[-1]))
    assert f"; {multiple:.2g} × bound" in rows[4] and "× bound" not in rows[5]  # no bound where laws change
    assert f"{multiple:.2g} × bound" in page and rf"{multiple:.2g} $\times$ bound" in latex
    assert "no bound at finite T" in markdown
    assert "; above T^0.67" in rows[5]
    assert "✓" not in rows[4].rsplit("|", 2)[1]  # one instance confirms no bound
    assert "† T = 512" in rows[10]
    assert r"Measured \& proved" in latex
    assert r"my\textbar{}policy\_1" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    body = [line for line in latex.splitlines() if line.endswith(r"\\") and line.count("&")]
    assert {line.replace(r"\&", "").count("&") for line in body} == {8}
    assert latex.count("{") == latex.count("}")


def test_a_worst_case_promise_is_in_every_format():
    """AdaTINF has no bound for one instance; its bound against an adversary is also one for stochastic environments."""
    ds = games(lambda p, e: growth("log"), ["ada_tinf"], ["pareto"])
    table = comparison.compared(ds, environments=ENVIRONMENTS)
    plain, latex = "worst case: O(σ K^(1−1/α) T^(1/α) + √(K T))", r"worst case: $O\bigl(\sigma K^{1-1/\alpha}"
    assert rf"| {latex}" in writers.to_markdown(table)
    assert f"<td>{plain}</td>\n<td>✓</td>" in writers.to_html(table)
    assert latex in writers.to_latex(table)


def test_a_pair_outside_its_assumptions_has_no_order_and_no_mark():
    environments = ENVIRONMENTS | {"pareto[tail_index=2.1111]": jb.Pareto(means=[0.5, 1.0], tail_index=2.1111)}
    ds = games(lambda p, e: growth("log"), ["robust_ucb", "uniinf"], environments)
    outside = [("robust_ucb", "switching"), ("uniinf", "pareto")]
    ds.attrs["outside"] = assumptions.as_attribute(outside)
    table = comparison.compared(ds, environments=environments)
    rows = [line for line in writers.to_markdown(table).splitlines() if line.startswith("|")][4:]
    assert "**RobustUCB** (outside its assumptions in 1 of 3)" in rows[0]
    assert rows[1].split(" | ")[6:8] == ["outside its assumptions", ""]  # in all environments of this line
    assert rows[2].split(" | ")[6].startswith(r"$O\bigl(")  # in one of two: its own cell says so, and has no multiple
    assert ["outside its assumptions" in cell for cell in rows[2].split(" | ")[8:]] == [True, False]
    assert ["× bound" in cell for cell in rows[2].split(" | ")[8:]] == [False, True]
    for text in (writers.to_html(table), writers.to_latex(table)):
        assert text.count("outside its assumptions") == 4


def test_ties_leave_the_worst_case():
    environments = {"pareto": jb.Pareto(means=[0.5, 0.5, 1.0], tail_index=1.5556)}
    ds = games(lambda p, e: growth("log"), ["uniinf", "robust_ucb"], environments)
    (block,) = comparison.compared(ds, environments=environments).blocks
    uniinf, robust = (row.lines[0] for row in block.rows[1:])
    assert (uniinf.tied, uniinf.order, robust.tied) == (True, None, False)
    assert uniinf.entries[0].promised == pytest.approx(1 / 1.5, abs=1e-4)
    shown = writers.promises(uniinf, comparison.Footnotes())
    assert shown.startswith("outside its assumptions for one instance, as several arms are best; worst case: Õ(")


def test_the_table_needs_every_seed_and_every_environment():
    ds = games(lambda p, e: growth("log"), ["uniinf"], ["pareto"])
    with pytest.raises(ValueError, match="no environment is given for 'pareto'"):
        comparison.compared(ds, environments={})
    with pytest.raises(ValueError, match='keep = "seeds"'):
        comparison.compared(jb.summary(ds), environments=ENVIRONMENTS)

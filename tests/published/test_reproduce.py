"""Published tables: every one says how it was made, and a study that gives other numbers than its page is noticed."""

import pathlib
import re
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxbandit.cli import entry as cli
from jaxbandit.published import blocks, digests, reproduce, tables
from jaxbandit.published.digests import digest
from jaxbandit.published.registry import TABLES, Table
from jaxbandit.published.results import Results
from jaxbandit.store.assemble import load
from jaxbandit.studies.figures import read_figures
from jaxbandit.studies.study import DataNeededError, Study

ROOT = pathlib.Path(__file__).parents[2]
TINY = """title = "tiny"
horizon = 40
num_seeds = 8
[[policies]]
name = "uniform"
[[environments]]
name = "bernoulli"
means = [0.2, 0.8]
"""


def test_every_table_is_on_a_page_and_says_how_it_was_made():
    found = blocks.find(ROOT)
    assert {block.name for block in found} == set(TABLES)
    for block in found:
        assert block.made, f"{block.name} on {block.page.name} was never made: jaxbandit reproduce {block.name}"
        assert block.made["study"] == TABLES[block.name].study
        assert re.search(r"^\|[ :-]+\|", block.table, re.M), f"{block.name} on {block.page.name} is no table"
        assert all(block.made.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", reproduce.studies())
def test_the_study_behind_a_page_still_gives_its_numbers(name):
    """Plays the first rounds. If this fails, the numbers have changed: jaxbandit reproduce NAME writes the new ones."""
    there = [block for block in blocks.find(ROOT) if TABLES[block.name].study == name]
    try:
        now = {table: reproduce.current_digest(ROOT, table) for table in {block.name for block in there}}
    except DataNeededError:
        pytest.skip(f"{name} needs tables that are not in the repository")
    for block in there:
        assert block.made["digest"] == now[block.name], f"{block.page.name} is stale: jaxbandit reproduce {name}"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one study and one page."""
    for folder in ("docs", "experiments"):
        (tmp_path / folder).mkdir()
    (tmp_path / "experiments" / "tiny.toml").write_text(TINY)
    page = tmp_path / "docs" / "page.md"
    page.write_text("# Page\n\n<!-- reproduce tiny -->\nold\n<!-- end of tiny -->\n\nThe end.\n")
    monkeypatch.setitem(TABLES, "tiny", Table("tiny", tables.final_regret()))
    return tmp_path


def run(checkout, *options):
    place = ["--root", str(checkout), "--out", str(checkout / "results")]
    return CliRunner().invoke(cli.app, ["reproduce", "tiny", *place, *options])


def test_a_page_is_compared_and_rewritten(checkout):
    page = checkout / "docs" / "page.md"
    before = page.read_text()
    stale = run(checkout, "--check")
    assert (stale.exit_code, page.read_text()) == (1, before)
    assert "tiny on docs/page.md: differs" in stale.output
    assert run(checkout).exit_code == 0
    after = page.read_text()
    assert after.startswith("# Page\n\n<!-- reproduce tiny -->\n| mean regret")
    assert after.endswith("<!-- end of tiny -->\n\nThe end.\n")
    assert re.search(
        r"`jaxbandit reproduce tiny` \(8 seeds, 40 rounds\): jaxbandit \S+, numerics \d+, .*, digest", after
    )
    again = run(checkout, "--check")
    assert (again.exit_code, "the same" in again.output) == (0, True)

    number = re.search(r"\| uniform \| (\d)", after)
    page.write_text(after[: number.start(1)] + str((int(number[1]) + 1) % 10) + after[number.end(1) :])
    assert run(checkout, "--check").exit_code == 1  # one digit
    page.write_text(re.sub(r"digest \w", "digest x", after))
    assert run(checkout, "--check").exit_code == 1


def test_a_digest_is_of_the_numbers(tmp_path):
    def of(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return digest(Study.load(path))

    first = of(TINY)
    assert of(TINY.replace('"tiny"', '"other"')) == first
    for before, after in (("0.8", "0.9"), ("num_seeds = 8", "num_seeds = 9"), ("horizon = 40", "horizon = 41")):
        assert of(TINY.replace(before, after)) != first


def test_one_bit_of_one_game_changes_the_digest(tmp_path, monkeypatch):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    before, played = digest(Study.load(path)), digests.run_job

    def changed(job, engine, sink, *rest):
        def other(lanes, block):
            block["regret"][-1] = np.nextafter(block["regret"][-1], np.inf)
            sink(lanes, block)

        played(job, engine, other, *rest)

    monkeypatch.setattr(digests, "run_job", changed)
    assert digest(Study.load(path)) != before


def test_a_change_too_small_to_change_an_arm_changes_the_digest(tmp_path):
    def games(scale):
        path = tmp_path / "study.toml"
        path.write_text(TINY.replace('"uniform"', f'"uniinf"\ninitial_scale = {scale}'))
        return list(digests._first_games(Study.load(path)))

    loss, regret, x = zip(games(4.0), games(4.0 * (1 + 1e-6)), strict=True)
    np.testing.assert_array_equal(*loss)
    np.testing.assert_array_equal(*regret)
    assert not np.array_equal(*x)


def test_no_two_studies_write_figures_of_the_same_name():
    shown = "".join(page.read_text(encoding="utf-8") for page in blocks.pages(ROOT))
    found = {}
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        for figure in read_figures(tomllib.loads(path.read_text()).get("figures", [])):
            if f"img/{figure.file}.png" in shown:
                found.setdefault(figure.file, []).append(path.stem)
    assert found and all(len(names) == 1 for names in found.values()), found


def test_bad_places_and_names_say_what_to_do(tmp_path, checkout):
    done = CliRunner().invoke(cli.app, ["reproduce", "--root", str(tmp_path / "docs")])
    assert "is no checkout of jaxbandit" in str(done.exception)
    done = CliRunner().invoke(cli.app, ["reproduce", "tyni", "--root", str(checkout)])
    assert "did you mean 'tiny'" in str(done.exception)
    (checkout / "docs" / "page.md").write_text("<!-- reproduce tiny -->\n")
    assert "has no line <!-- end of tiny -->" in str(run(checkout).exception)
    (checkout / "docs" / "page.md").write_text("")
    assert "no page has a table of tiny" in str(run(checkout).exception)


@pytest.mark.filterwarnings("ignore:.*outside its assumptions")
def test_a_policy_outside_its_assumptions_is_named_so(checkout):
    outside = TINY.replace('"uniform"', '"ucb1"').replace('"bernoulli"', '"pareto"') + "tail_index = [1.5, 1.6]\n"
    (checkout / "experiments" / "tiny.toml").write_text(outside)
    assert run(checkout).exit_code == 0
    assert "| UCB1 (outside its assumptions) |" in (checkout / "docs" / "page.md").read_text()
    study = Study.load(checkout / "experiments" / "tiny.toml")
    results = Results(study, load(checkout / "results" / "tiny"))
    assert "| UCB1 (outside its assumptions) |" in tables.sweep("tail_index")(results)
    assert tables.pairs(growing=False)(results).count("| UCB1 (outside its assumptions) |") == 2
    one = results.ds.assign_attrs(outside='[["ucb1", "pareto[tail_index=1.5]"]]')
    shown = tables.sweep("tail_index")(Results(study, one))
    assert "| UCB1 (outside its assumptions in 1 of 2) |" in shown

"""The site: what it says runs, and its reference leaves no public name out."""

import ast
import importlib
import importlib.util
import inspect
import json
import pathlib
import re
import types

import jax
import pytest
from typer.testing import CliRunner

import jaxbandit as jb
from benchmarks import notebook, pages
from jaxbandit.cli import entry as cli

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Sizes of the pages, and those they are run with.
TINY = {"20_000": "200", "10_000": "100", "4_000": "400", "256": "16", "512": "24"}
FEWEST = {"README.md": 1, "index.md": 1, "replay.md": 1}  # outputs of a page; 3 unless named
RETURNS = re.compile(r"^(?:Returns|Yields):\n +(.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def builder():
    """What the site's builder adds to the pages."""
    spec = importlib.util.spec_from_file_location("site_pages", DOCS / "_ext" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference(builder) -> str:
    """The reference as the site's builder sees it."""
    return "\n".join(builder.expanded(page.read_text(encoding="utf-8")) for page in (DOCS / "reference").glob("*.md"))


def public_names() -> list[str]:
    """What is reachable as ``jb.X``, modules apart."""
    names = [name for name in (*vars(jb), *jb._LATER) if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(jb, name), types.ModuleType)]


def documented(reference: str) -> dict[str, object]:
    """Every name that the reference has a docstring of."""
    found = {}
    for path in re.findall(r"^\.\. auto(?:class|function):: ([\w.]+)", reference, re.MULTILINE):
        module, _, name = path.rpartition(".")
        found[path] = getattr(importlib.import_module(module), name)
    return found


def test_no_public_name_is_missing(reference):
    there = documented(reference)
    for name in public_names():
        in_prose = isinstance(getattr(jb, name), dict) and f"`jb.{name}`" in reference
        assert f"jaxbandit.{name}" in there or in_prose, f"jb.{name} is in no page of docs/reference"
    assert {*jb.POLICIES.values(), *jb.ENVIRONMENTS.values()} <= {
        obj for obj in there.values() if isinstance(obj, type)
    }


def test_no_name_stands_there_twice(reference):
    paths = re.findall(r"^\.\. auto(?:class|function):: ([\w.]+)", reference, re.MULTILINE)
    assert sorted(paths) == sorted(set(paths))


def test_every_command_is_there_with_help(reference):
    commands = re.findall(r"^## `jaxbandit (\w+)`\n\n(.+)", reference, re.MULTILINE)
    registered = {command.name or command.callback.__name__ for command in cli.app.registered_commands}
    assert {name for name, _ in commands} == registered
    for name, text in commands:
        assert not text.startswith("**"), f"`jaxbandit {name}` has no help"


def test_everything_named_has_a_docstring_that_names_its_arguments(reference):
    for path, obj in documented(reference).items():
        text = inspect.getdoc(obj) or ""
        assert text and not text.startswith(f"{obj.__name__}("), f"{path} has no docstring"  # what a dataclass makes up
        front_door = path.count(".") == 1 and "\n" in text
        if front_door or re.search(r"^(Args|Attributes):", text, re.MULTILINE):
            described = re.findall(r"^ {2}\*{0,2}(\w+):", text, re.MULTILINE)
            missing = [name for name in inspect.signature(obj).parameters if name not in described]
            assert not missing, f"the docstring of {path} does not say what {missing} is"


def test_what_is_fetched_from_another_host_is_seen(builder):
    for line in (
        '<script async src="https://cdn.example/x.js">',
        '<link rel="stylesheet" href="//x.example/a.css">',
        '<img alt="a" src="http://x.example/a.png">',
    ):
        assert builder.FETCHED.search(line)
    for line in ('<a href="https://arxiv.org">', '<script src="../_static/a.js">', '<link href="_static/a.css">'):
        assert not builder.FETCHED.search(line)


def test_tables_break_no_line_within_an_interval(builder):
    kept = "```text\n| a | 1 ± 2 |\n```\n\n1 ± 2 (3 to 4)\n"
    row = "| a policy | 1 ± 2 (3 to −4; lost 5 % [1, 9]) | 5\\* ± 1 | $(1, 2]$ | `1 to 2` |"
    joined = row.replace("1 ± 2 (3 to −4; lost 5 % [1, 9])", "1_±_2 (3_to_−4; lost_5_%_[1,_9])")
    joined = joined.replace("5\\* ± 1", "5\\*_±_1").replace("_", "\N{NO-BREAK SPACE}")
    assert builder.unbroken(f"{kept}\n{row}\n") == f"{kept}\n{joined}\n"


def typed(docstring: str) -> bool:
    """Whether the site would show the first words of a section on returned values as a type: a colon follows them."""
    return any(":" in re.sub(r"``.*?``", "", line) for line in RETURNS.findall(docstring))


def test_returned_values_are_described_in_prose():
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for path in sorted((ROOT / "jaxbandit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, documented):
                text = ast.get_docstring(node) or ""
                assert not typed(text), f"{path.name}, {node.name}: no colon in the first line below Returns"
    assert typed("Does.\n\nReturns:\n  ``mean``, by ``policy``: the mean.")
    assert not typed("Does.\n\nReturns:\n  A dataset with ``a: b``.\n  Its names: ``mean``.")


# Parts of a page that may be wide: fenced code, what commands write between two marks, displayed formulas.
WIDE = re.compile(
    r"^(?:```.*?^```|<!-- (?:reproduce )?(\S+) -->\n.*?^<!-- end(?:(?: of)? \1)? -->|\$\$.*?\$\$)$",
    re.DOTALL | re.MULTILINE,
)


def too_long(page: str) -> list[str]:
    """The lines of prose beyond 100 columns; a row of a table or a line with a link cannot be wrapped."""
    lines = WIDE.sub("", page).splitlines()
    return [line for line in lines if len(line) > 100 and not line.startswith("|") and "](" not in line]


def test_pages_read_well_without_the_builder():
    """A code host shows roles as they are typed, and long lines are hard to review."""
    pages_of_prose = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    for page in [*DOCS.rglob("*.md"), *pages_of_prose]:
        text = page.read_text(encoding="utf-8")
        found = re.search(r"\{[\w:]+\}`", text)
        assert not found, f"{page.name} has a raw role: {found}"
        assert not too_long(text), page.name


def test_a_long_line_of_prose_is_noticed():
    long = "word " * 25
    table, code, made = f"| {long} |", f"```bash\n{long}\n```", f"<!-- reproduce ties -->\n{long}\n<!-- end of ties -->"
    assert too_long(f"{table}\n\n{code}\n\n{made}\n\n{long}\n\n$$\n{long}\n$$\n\n[{long}](page.md)\n") == [long]


def test_the_landing_page_is_the_first_screen_of_the_readme():
    screen, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Try it\n")
    landing, _, groups = (DOCS / "index.md").read_text(encoding="utf-8").partition("## Learn\n")
    assert rest and groups
    assert landing == screen.replace("](docs/", "](")
    prose = re.sub(r"^(?:```.*?^```|<!--.*?<!-- end of \S+ -->|!\[.*?\))$", "", screen, flags=re.DOTALL | re.MULTILINE)
    assert 100 < len(prose.split()) <= 250
    assert len(re.findall(r"^!\[", screen, re.MULTILINE)) == screen.count("<!-- reproduce headline -->") == 1


def test_the_sidebar_has_every_page_once(builder):
    listed = []
    for index in ("index", "reference/index"):
        made = builder.sidebar((DOCS / f"{index}.md").read_text(encoding="utf-8"))
        assert ":caption: \n" not in made  # Sphinx refuses it
        listed += [(DOCS / index).parent / f"{path}.md" for path in re.findall(r"^\w.* <(.+)>$", made, re.MULTILINE)]
    assert sorted(listed) == sorted({*DOCS.glob("*.md"), *DOCS.glob("reference/*.md")} - {DOCS / "index.md"})


def test_the_notebook_is_the_tutorial_executed():
    page, kept = notebook.PAGE.read_text(encoding="utf-8"), json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    pictures = [output for cell in code for output in cell["outputs"] if "image/png" in output.get("data", {})]
    assert len(pictures) == 1
    assert len(notebook.NOTEBOOK.read_bytes()) < 200_000
    printed = {line.rstrip() for cell in code for output in cell["outputs"] for line in output.get("text", [])}
    outputs = [block for language, block in pages.BLOCK.findall(page) if language == "text"]
    assert {
        line for block in outputs for line in block.splitlines() if len(line) < 80
    } <= printed  # a kernel wraps others
    for cell in code:
        cell |= {"execution_count": None, "outputs": []}
    assert kept == json.loads(notebook.made(page)), "run python -m benchmarks.notebook"
    assert notebook.made(page) != notebook.made(page.replace("256", "255"))


def test_the_gallery_shows_what_its_study_files_say():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"```toml\n# from (\S+)\n(.*?)```\n+```bash\njaxbandit run experiments/(\S+)\n", page, re.DOTALL)
    assert len(shown) == page.count("```toml")
    for name, excerpt, played in shown:
        study = (ROOT / "experiments" / name).read_text(encoding="utf-8").splitlines()
        assert name == played
        assert f"](../experiments/{name})" in page
        assert not [line for line in excerpt.splitlines() if line and line not in study], name
    assert all((DOCS / image).exists() for image in re.findall(r"\]\((img/\S+)\)", page))


def test_the_citation_is_that_of_the_release():
    kept = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    page = (DOCS / "cite.md").read_text(encoding="utf-8").replace("{", "").replace("}", "")
    assert f"version = {jb.__version__}," in page
    assert f"version: {jb.__version__}\n" in kept
    for title in re.findall(r'^ *title: "(.*)"$', kept, re.MULTILINE):
        assert f"= {title}," in page
    people = re.findall(r"family-names: (\w+)\n +given-names: (\w+)", kept)
    assert " and ".join(f"{family}, {given}" for family, given in people) in page


@pytest.mark.long
def test_pages_run(tmp_path, monkeypatch):
    text = {path.name: path.read_text(encoding="utf-8") for path in pages.PAGES}
    for name, page in text.items():
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # as readers have them
            shown = pages.played(page, tmp_path, TINY)
        outputs = [block for language, block in pages.BLOCK.findall(shown) if language == "text"]
        assert len(outputs) >= FEWEST.get(name, 3), name
        assert all(block.strip() for block in outputs), name
    for made, kept in pages.IMAGES.items():
        assert (tmp_path / made).stat().st_size > 5_000
        assert f"img/{kept}" in text["tutorial.md"]
    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(cli.app, ["run", "first.toml", "--out", "results/first"])
    assert "0 cells played, 6 found" in again.output
    assert "0 cells played, 6 found" in text["tutorial.md"]

"""The repository keeps its own rules: layers, lengths, a README that runs."""

import ast
import functools
import pathlib
import re
import subprocess
import symtable
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "jaxbandit"

# A package imports only from the rows above its own, lazily too.
LAYERS = [
    {"version", "types", "random", "arms", "simplex", "checks", "progress", "interrupt", "outputs"},
    {"theory"},
    {"policies", "environments"},
    {"game"},
    {"grid", "parameters", "agent"},
    {"engine"},
    {"dataset"},
    {"simulation"},
    {"testing"},
    {"tables"},
    {"studies"},
    {"analysis"},
    {"store"},
    {"runs"},
    {"plots"},
    {"certify"},
    {"sensitivity"},
    {"search"},
    {"report"},
    {"published"},
    {"__init__"},
    {"cli"},
    {"__main__", "moved"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
WITHIN = (  # modules of the first row, in their order
    "version",
    "types",
    "checks",
    "random",
    "arms",
    "simplex",
    "progress",
    "interrupt",
    "outputs",
)
FOR_AUTHORS = {"types", "random", "arms", "simplex", "checks"}  # what a policy or an environment may import
BY_NAME = {"__init__", "sensitivity", "studies"}  # import a module whose name is computed: lazily, or a user's
MOST_MODULES, MOST_LINES = 14, 320


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def unit(path: pathlib.Path) -> str:
    """The package of a file, or its own name at the top."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


parsed = functools.cache(ast.parse)


def chain(node: ast.AST) -> str:
    """Returns an attribute of a name with its dots, such as ``engine.runner.run``; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return before and f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imports(source: str) -> list[tuple[str, str]]:
    """Returns what a file imports from the package, at its top or inside of a function: (unit, name in it).

    ``import_module("jaxbandit.engine")``, ``__import__("jaxbandit.engine")`` and attributes of an imported package,
    such as ``engine.runner.run``, count as imports too. The unit is empty if the import hides it.
    """
    dotted, bound, nodes = [], {}, list(ast.walk(parsed(source)))
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            where = "." * node.level + (node.module or "")
            dotted += [f"{where}.{alias.name}" for alias in node.names]
            bound |= {alias.asname or alias.name: f"{where}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            dotted += [alias.name for alias in node.names]
            bound |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.Call) and chain(node.func).split(".")[-1] in ("import_module", "__import__"):
            named = node.args[0] if node.args else None
            dotted.append(str(named.value) if isinstance(named, ast.Constant) else "..computed")
    for name in filter(None, (chain(node) for node in nodes if isinstance(node, ast.Attribute))):
        first, _, rest = name.partition(".")
        dotted.append(f"{bound.get(first, first)}.{rest}")
    found = []
    for name in dotted:
        top, *parts = name.split(".")
        if top == "jaxbandit":
            inside = parts[0] if parts and parts[0] in RANK else "__init__"
            found.append((inside, ".".join(parts[1:])))
        elif not top:
            found.append(("", name))
    return found


@functools.cache
def listed_names(name: str) -> list[str] | None:
    """Returns ``__all__`` of a package: the names and modules that other packages may use; None for a single module."""
    path = PACKAGE / name / "__init__.py"
    if not path.exists():
        return None
    found = (node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in found if ast.unparse(node.targets[0]) == "__all__")


def complaints(own: str, source: str) -> list[str]:
    """What a file of a package imports against the rules."""
    said = []
    for name, what in imports(source):
        if name == own:
            continue
        if not name:
            if own not in BY_NAME or what != "..computed":
                said.append(f"{own} imports {what}, which hides the package; write jaxbandit.PACKAGE.NAME")
            continue
        if own in WITHIN and name in WITHIN:
            allowed = WITHIN.index(name) < WITHIN.index(own)
        else:
            allowed = RANK[name] < RANK[own] or {name, own} == {"grid", "parameters"}
        if not allowed:
            said.append(f"{own} imports {name}, which stands above it")
        if own in ("policies", "environments") and name not in FOR_AUTHORS:
            said.append(f"{own} imports {name}, which is not for authors of policies and environments")
        if own == "engine" and name in ("theory", "policies", "environments"):
            said.append(f"engine imports {name}: it plays any class with the right methods and knows none of them")
        listed = listed_names(name)
        if what and listed is not None and what.split(".")[0] not in listed:
            said.append(f"{own} imports {name}.{what}, which {name}/__init__.py does not list")
    return said


def test_packages_import_only_what_stands_below_them():
    found = {str(path): complaints(unit(path), path.read_text(encoding="utf-8")) for path in modules()}
    assert not {path: said for path, said in found.items() if said}


@pytest.mark.parametrize(
    ("own", "source"),
    [
        ("policies", "from jaxbandit.engine import Engine"),
        ("policies", "def later():\n    from jaxbandit import engine"),
        ("environments", "from jaxbandit.policies.uniinf import UniINF"),
        ("store", "import jaxbandit.runs.player"),
        ("analysis", "import jaxbandit"),
        ("runs", "from jaxbandit.engine.runner import run"),
        ("runs", "from jaxbandit.store.manifest import Manifest"),
        ("runs", "from jaxbandit.store import manifest"),
        ("cli", "from jaxbandit.runs import player"),
        ("report", "from jaxbandit import search\nsearch.adversary"),
        ("types", "from jaxbandit import arms"),
        ("engine", "from jaxbandit.policies import POLICIES"),
        ("policies", "from ..engine import Engine"),
        ("policies", "from .. import engine"),
        ("policies", "from . import uniinf"),
        ("policies", 'import importlib\nimportlib.import_module("jaxbandit.engine")'),
        ("policies", 'from importlib import import_module\nimport_module("..engine", __package__)'),
        ("policies", 'import importlib\nimportlib.import_module("jaxbandit" + ".engine")'),
        ("policies", '__import__("jaxbandit.engine")'),
        ("policies", "from jaxbandit import engine\nengine.runner.run"),
        ("runs", "from jaxbandit import engine\nengine.runner.run"),
        ("runs", "from jaxbandit import engine as games\ngames.runner.run"),
        ("runs", "import jaxbandit.engine as games\ngames.runner.run"),
        ("runs", "import jaxbandit.engine\njaxbandit.engine.runner.run"),
    ],
)
def test_a_forbidden_import_is_noticed(own, source):
    assert complaints(own, source)


def test_packages_list_what_exists():
    """A package has a paragraph, and its ``__all__`` names objects of its ``__init__`` or its modules."""
    for path in sorted(PACKAGE.glob("*/__init__.py")):
        source, package = path.read_text(encoding="utf-8"), path.parent
        symbols = symtable.symtable(source, path.name, "exec").get_symbols()
        defined = {one.get_name() for one in symbols if one.is_imported() or one.is_assigned()}
        inside = {one.stem for one in package.glob("*.py")} | {one.parent.name for one in package.glob("*/__init__.py")}
        assert not [name for name in listed_names(package.name) or () if name not in defined | inside]
        assert "\n\n" in (ast.get_docstring(ast.parse(source)) or ""), f"{path} needs a paragraph"


def test_rooms_are_tidy():
    """Few modules at the top, short files, and a docstring of every package."""
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES
    long = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert not {path: lines for path, lines in long.items() if lines > MOST_LINES}
    assert not [path for path in PACKAGE.rglob("__init__.py") if not ast.get_docstring(ast.parse(path.read_text()))]


def imported_tests(source: str) -> list[str]:
    """Returns the test modules that a file of the tests imports."""
    named = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            named += [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
    return [name for name in named if any(part.startswith("test_") for part in name.split("."))]


def misplaced(path: str, packages: set[str]) -> bool:
    """Whether a test module lies neither in tests/ nor in a folder with the name of a package."""
    folder, _, name = path.rpartition("/")
    return name.startswith("test_") and folder not in {"tests", *(f"tests/{package}" for package in packages)}


def test_tests_mirror_the_package():
    """No test module imports another, and every one lies where its package says; support code has a docstring."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = {str(path): imported_tests(path.read_text(encoding="utf-8")) for path in files}
    assert not {path: names for path, names in found.items() if names}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert not [path for path in files if misplaced(path.relative_to(ROOT).as_posix(), packages)]
    shared = [path for path in files if path.parent.name in ("support", "reference")]
    assert not [path for path in shared if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert not [path for path in shared if path.name.startswith("test_")]
    for package in packages:
        assert list((ROOT / "tests" / package).glob("test_*.py")), f"no tests of jaxbandit.{package}"


@pytest.mark.parametrize(
    "source",
    [
        "from tests.store.test_damage import done",
        "from tests.store import test_damage",
        "from .test_damage import done",
        "def later():\n    import tests.test_arms",
    ],
)
def test_an_import_of_a_test_module_is_noticed(source):
    assert imported_tests(source)
    assert not imported_tests("from tests.support.stores import STUDY\nfrom jaxbandit import testing")


def test_a_misplaced_test_module_is_noticed():
    assert misplaced("tests/storage/test_damage.py", {"store"})
    assert misplaced("tests/support/test_damage.py", {"store"})
    assert not misplaced("tests/store/test_damage.py", {"store"})


@pytest.mark.slow
def test_old_paths_say_where_their_modules_are_now():
    """In a process of its own, where no module was imported before."""
    names = sorted(path.stem for path in (PACKAGE / "moved").glob("*.py"))
    assert names
    code = (
        "import importlib, warnings\n"
        f"for name in {names}:\n"
        "    with warnings.catch_warnings(record=True) as said:\n"
        "        warnings.simplefilter('always')\n"
        "        module = importlib.import_module('jaxbandit.' + name)\n"
        "    note = [str(one.message) for one in said if one.category is DeprecationWarning]\n"
        "    expected = f'jaxbandit.{name} has moved: import {module.__name__} instead'\n"
        "    assert note == [expected], (note, module)\n"
        "    assert importlib.import_module(module.__name__) is module\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def readme_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_readme_examples_run(tmp_path):
    blocks = readme_blocks("python")
    assert len(blocks) >= 2
    for block in blocks:
        code = block.replace("100_000", "1_000").replace("10_000", "500")  # the same lines, shorter
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True)


def test_readme_commands_are_one_line_each():
    commands = [block.strip() for block in readme_blocks("bash")]
    made = [command for command in commands if command.startswith("python3 -m venv")]
    assert len(made) == 2
    assert all("\n" not in command for command in made)
    assert "experiments/quickstart.toml" in made[0]
    assert made[1].endswith("-m pytest -q")


def test_import_is_quiet_and_starts_no_backend():
    code = (
        "import jaxbandit, jax._src.xla_bridge as b, sys\n"
        "assert not b.backends_are_initialized()\n"
        "assert not {'matplotlib', 'scipy', 'typer', 'xarray'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_run_plays_before_it_imports_what_only_results_need(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(
        'horizon = 8\nnum_seeds = 8\n[[policies]]\nname = "uniform"\n'
        '[[environments]]\nname = "bernoulli"\nmeans = [0.2, 0.8]\n'
    )
    code = (
        "import sys\nfrom jaxbandit import cli\nfrom jaxbandit.engine import native\n"
        "def first(*_):\n"
        "    print(sorted({'xarray', 'pandas', 'dask', 'matplotlib', 'scipy'} & set(sys.modules)))\n"
        "    raise ValueError('stop here')\n"
        "native.games.Block.advance = first\n"
        f"sys.argv = ['jaxbandit', 'run', {str(study)!r}, '--quiet', '--out', {str(tmp_path / 'out')!r}]\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "[]\n"), done.stderr
    assert "stop here" in done.stderr


def test_no_machine_paths():
    for path in [*modules(), ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        assert not re.search(r"/(root|work|home)/", path.read_text(encoding="utf-8")), path


# Nouns that look like verbs in the third person.
PLURALS = {"Arms", "Games", "Lines", "Losses", "Means", "Pulls", "Rewards", "Rows", "Values"}


def without_verb(source: str) -> list[str]:
    """Returns the functions whose docstring does not begin with a verb, such as "Returns"; a property has a noun."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(d) for d in node.decorator_list):
            first = (ast.get_docstring(node) or "Returns").split()[0].rstrip(",")
            if not re.fullmatch(r"[A-Z][a-z]+s", first) or first in PLURALS:
                found.append(f"{node.name}: {first}")
    return found


def test_docstrings_of_functions_begin_with_a_verb():
    """The checks of ``jaxbandit.testing`` state properties instead."""
    found = {str(path): without_verb(path.read_text(encoding="utf-8")) for path in modules() if unit(path) != "testing"}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    "first", ["The arm with the largest index.", "Eq. (2).", "x_t.", "Lines 5 to 8 of Algorithm 1."]
)
def test_a_docstring_without_a_verb_is_noticed(first):
    assert without_verb(f'def f():\n    """{first}"""')
    assert not without_verb(f'def f():\n    """Returns {first}"""')
    assert not without_verb(f'@functools.cached_property\ndef f(self):\n    """{first}"""')


# Words that the vocabulary has replaced: environment, common random numbers, given.
RETIRED = re.compile(r"(?<!both[\s-])\bworlds?\b|\bluck\b|\btold\b(?! apart)", re.IGNORECASE)
STILL_READ = {  # files that read the old words of studies and commands
    "jaxbandit/certify/__init__.py",
    "jaxbandit/cli/certificate.py",
    "jaxbandit/search/traces.py",
    "jaxbandit/studies/entries.py",
    "jaxbandit/studies/sections.py",
    "jaxbandit/studies/study_file.py",
}


def test_retired_words_stay_out():
    files = [*modules(), *PACKAGE.rglob("*.toml"), ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    found = {name: RETIRED.findall(text) for name, text in texts.items()}
    assert {name for name, words in found.items() if words} == STILL_READ


@pytest.mark.parametrize("text", ["the world", "Worlds differ", "by luck", "a policy is told alpha"])
def test_a_retired_word_is_noticed(text):
    assert RETIRED.search(text)
    kept = 'best of both worlds, "Best-of-Both-Worlds", plots/both_worlds.py, cannot be told apart'
    assert not RETIRED.search(kept)

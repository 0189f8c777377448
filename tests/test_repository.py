"""The repository keeps its own rules: layers, lengths, a README that runs."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "jaxbandit"

# A module imports only from the rows above its own (design: layers).
LAYERS = [
    ["types", "version", "assumptions", "measured", "aslib", "style", "student"],
    ["random", "inspection"],
    ["arms"],
    ["tails"],
    ["simplex", "robust", "bounds", "theory"],
    ["policies", "environments", "game"],
    ["grid", "readers", "facts", "checks", "study_file", "quick"],
    ["engine", "as_entry", "figures"],
    ["entries", "parameters", "labels"],
    ["sections"],
    ["study"],
    ["progress", "results"],
    ["statistics", "certify"],
    ["growth", "ranks"],
    ["comparison"],
    ["simulation", "coupled", "plots", "cellfile", "precision"],
    ["cells", "store", "writing"],
    ["cover", "player"],
    ["assemble"],
    ["campaign"],
    ["run_study", "forecast", "interrupt"],
    ["tables", "teams"],
    ["outcome", "sensitivity", "search"],
    ["commands", "report"],
    ["cli", "__init__"],
    ["__main__"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def unit(path: pathlib.Path) -> str:
    """The layer name of a file: its folder, or its own name at the top."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imported(path: pathlib.Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxbandit":
            parts = node.module.split(".")[1:]
            names |= {parts[0]} if parts else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {
                [*alias.name.split("."), "__init__"][1]
                for alias in node.names
                if alias.name.split(".")[0] == "jaxbandit"
            }
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_layers(path):
    own = unit(path)
    for name in imported(path) - {own}:
        if name not in RANK:  # a name of the package's front, used by the surface
            name = "__init__"
        assert RANK[name] < RANK[own] or (own == "cli" and name == "__init__"), f"{own} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 320


def test_the_engine_knows_games_and_no_policy_or_environment():
    """Any class with the right methods plays: the engine sees what it does, never what it is."""
    allowed = {"engine", "types", "random", "arms", "game", "grid"}
    for path in (PACKAGE / "engine").rglob("*.py"):
        assert imported(path) <= allowed, path


def test_policies_and_worlds_do_not_know_each_other():
    for folder, other in (("policies", "environments"), ("environments", "policies")):
        for path in (PACKAGE / folder).glob("*.py"):
            assert other not in imported(path)


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
        "assert 'matplotlib' not in sys.modules and 'typer' not in sys.modules\n"
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

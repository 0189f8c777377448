"""What a run tells of itself, what it takes of its process, and what it leaves as it was."""

import pathlib
import subprocess
import sys

import jax
import pytest

import jaxbandit as jb
from jaxbandit.engine import machine, ways
from jaxbandit.store import cells
from tests.support.helpers import PEAK, assert_mean, knows_peak
from tests.support.runs import run


def test_provenance():
    attrs = run().attrs
    for key in ("jaxbandit", "jax", "device", "dtype", "seed", "prng", "compile_seconds", "run_seconds", "policy"):
        assert key in attrs
    assert attrs["seed"] == 0


@pytest.mark.slow
@knows_peak
def test_memory_is_flat_in_the_horizon():
    """Peak RSS at T = 1e6 within 5 % of T = 1e4, each in a process of its own."""
    code = PEAK + (
        "import jaxbandit as jb\n"
        "w = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)\n"
        "jb.simulate(jb.UniINF(horizon={T}), w, horizon={T}, num_seeds=256, record=32)\n"
        "print(peak())\n"
    )
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", code.replace("{T}", str(T))], check=True, capture_output=True, text=True
            ).stdout
        )
        for T in (10_000, 1_000_000)
    ]
    assert peaks[1] <= 1.05 * peaks[0], peaks


@pytest.mark.slow
def test_many_lanes():
    ds = run(2, num_seeds=100_000, horizon=20, record=[20])
    assert ds.sizes["seed"] == 100_000
    assert (ds.pulls.sum("arm") == 20).all()
    assert_mean(ds.pulls[:5_000, 0, 0], float(ds.pulls[:, 0, 0].mean()))


PROCESS = """
import os, sys, jax, jax.numpy as jnp
if sys.argv[1] == "started":
    jax.devices()
if sys.argv[1] != "without":
    import jaxbandit as jb
if sys.argv[1] in ("played", "started"):
    ds = jb.simulate(jb.UniINF(horizon=9), jb.Bernoulli(means=[0.0, 1.0]), horizon=10, num_seeds=4)
    assert int(ds.pulls.isel(round=-1).sum()) == 40
scatter = jax.vmap(lambda a, b, i, x: (a.at[i].add(x), jnp.exp(b.at[i].add(x * x)).sum(axis=-1)))
zeros = jnp.zeros((64, 10))
program = jax.jit(scatter).lower(zeros, zeros, jnp.arange(64) % 10, jnp.ones(64)).compile()
print(os.environ.get("XLA_FLAGS"), sorted(jax.config.values.items(), key=str), jax.devices())
print(program.as_text())
"""


@pytest.mark.parametrize(
    "how", ["imported", pytest.param("played", marks=pytest.mark.slow), pytest.param("started", marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_a_process_is_left_as_it_is(how, tmp_path):
    """Flags, settings, devices and compiled programs of others, whether JAX has started before or not."""

    def process(how):
        command = [sys.executable, "-W", "error", "-c", PROCESS, how]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout

    without = process("without")
    assert "jax_enable_x64" in without and "HloModule" in without
    assert process(how) == without


def test_bits_of_machine_code_depend_on_nothing_but_the_game():
    """So cells that one machine has played serve another; those of the scan depend on XLA."""
    assert cells.platform("native") == {"way": "native"}
    assert set(cells.platform("scan")) == {"way", "jaxlib", "device", "instruction_set"}


@pytest.mark.slow
def test_the_way_is_told():
    assert run().attrs["device"].startswith("native: ")
    assert run(engine=jb.Engine(way="scan")).attrs["device"].startswith("scan: ")


@pytest.mark.parametrize("version", ["0.9.2", "0.14.1", "1.0.0"])
def test_a_jax_outside_of_the_tested_range_is_named_once(version, monkeypatch):
    monkeypatch.setattr(jax, "__version__", version)
    monkeypatch.setattr(ways, "_said", set())
    expected = rf"jax {version} is installed, but jaxbandit is tested with jax 0.10 to 0.12; .*'jax>=0.10,<0.13'"
    with pytest.warns(UserWarning, match=expected):
        run(policy=jb.Uniform())
    run(policy=jb.Uniform())  # a second warning would be an error


def test_a_python_newer_than_the_tested_ones_is_named_once(monkeypatch):
    monkeypatch.setattr(machine.sys, "version_info", (3, 15, 0, "final", 0))
    monkeypatch.setattr(ways, "_said", set())
    with pytest.warns(
        UserWarning, match=r"this is Python 3\.15, but jaxbandit is tested with Python 3\.11 to 3\.13; to "
    ):
        run(policy=jb.Uniform())
    run(policy=jb.Uniform())  # a second warning would be an error


def test_an_older_python_is_refused_in_words():
    code = "import sys\nsys.version_info = (3, 10, 0, 'final', 0)\nimport jaxbandit\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith(
        "ImportError: jaxbandit needs Python 3.11 or newer, and this is Python "
    )


def test_the_tested_range_is_that_of_the_dependency():
    root = pathlib.Path(__file__).parents[2]
    text = (root / "pyproject.toml").read_text()
    oldest, newest = (".".join(map(str, version)) for version in machine.TESTED_PYTHON)
    assert f'requires-python = ">={oldest}"' in text
    matrix = (root / ".ci" / "matrix").read_text()
    assert (f"try {newest} newest" in matrix, "3.14" in matrix) == (True, False)
    (oldest, newest) = machine.TESTED_JAX
    assert f'"jax>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"' in text

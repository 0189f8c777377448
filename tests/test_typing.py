"""What an editor and a type checker see of the package: every public name, every field, and a misspelt one."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import jaxbandit as jb

GOOD = """
import jaxbandit as jb

environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
policy = jb.UniINF(horizon=1_000, initial_scale=2.0)
ds = jb.simulate(policy, environment, horizon=1_000, num_seeds=8, engine=jb.Engine(progress=True))
jb.simulate([policy, jb.Exp3()], jb.Switching(environment, growth=1.6), horizon=1_000, num_seeds=8)
step, state = jb.step(policy, environment), jb.start(policy, environment)
scale: float = policy.initial_scale
jb.plots.regret_curves(ds, "regret.png")
jb.load("results").regret.mean()
"""
# A line, and what the checker says of it.
BAD = {
    "jb.UniINF(horizon=1_000, initial_scal=2.0)": 'No parameter named "initial_scal"',
    "jb.Pareto(means=[0.5, 1.0], tail_indx=1.6)": 'No parameter named "tail_indx"',
    "jb.UniINF()": 'Argument missing for parameter "horizon"',
    "jb.UniING(horizon=1_000)": '"UniING" is not a known attribute',
    "jb.simulate(policy, environment, horizon=1_000, num_seed=8)": 'No parameter named "num_seed"',
    "policy.initial_scale = 3.0": 'Attribute "initial_scale" is read-only',
}


def test_every_registered_class_is_a_public_name():
    for cls in (*jb.POLICIES.values(), *jb.ENVIRONMENTS.values()):
        assert getattr(jb, cls.__name__) is cls


@pytest.mark.slow
def test_a_script_under_pyright(tmp_path):
    if shutil.which("pyright", path=os.path.dirname(sys.executable)) is None:
        pytest.skip("pyright is not installed: pip install 'jaxbandit[lint]'")
    script = tmp_path / "script.py"
    script.write_text(GOOD + "\n".join(BAD) + "\n")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    said = {
        one["range"]["start"]["line"]: one["message"]
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    }
    first = GOOD.count("\n")
    assert not {line: message for line, message in said.items() if line < first}
    for number, (line, message) in enumerate(BAD.items(), start=first):
        assert message in said.get(number, ""), line

"""What an editor and a type checker see of the package: every public name, every field, and a misspelt one."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import jaxbandit as jb
from jaxbandit.studies import keywords, sections

GOOD = """
import jaxbandit as jb

environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
policy = jb.UniINF(horizon=1_000, initial_scale=2.0)
ds = jb.simulate(policy, environment, horizon=1_000, num_seeds=8, engine=jb.Engine(progress=True))
jb.simulate([policy, jb.Exp3()], jb.Switching(environment, growth=1.6), horizon=1_000, num_seeds=8)
step, state = jb.step(policy, environment), jb.start(policy, environment)
scale: float = policy.initial_scale
jb.plots.regret_curves(ds, "regret.png")
grid, family = jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6]), jb.Family(environment, {"gap": (0.01, 0.6)})
jb.Study(horizon=100, num_seeds=8, policies=[policy, {"name": "exp3"}], environments=[grid], record=[1, 100])
jb.Study(horizon=100, num_seeds=8, policies=policy, environments=(grid,), tune={"parameters": ["initial_scale"]})
jb.tune(policy, family, horizon=100, parameters={"initial_scale": (0.1, 40.0)}, steps=4)
jb.worst(policy, family, horizon=[100, 200], method="gradient", test_seeds=64)
jb.load("results").regret.mean()
"""
# A line, and what the checker says of it.
BAD = {
    "jb.UniINF(horizon=1_000, initial_scal=2.0)": 'No parameter named "initial_scal"',
    "jb.Pareto(means=[0.5, 1.0], tail_indx=1.6)": 'No parameter named "tail_indx"',
    "jb.UniINF()": 'Argument missing for parameter "horizon"',
    "jb.UniING(horizon=1_000)": '"UniING" is not a known attribute',
    "jb.simulate(policy, environment, horizon=1_000, num_seed=8)": 'No parameter named "num_seed"',
    "jb.Study(hurizon=3, num_seeds=8, policies=[policy], environments=[grid])": 'No parameter named "hurizon"',
    "jb.Study(horizon=3, policies=[policy], environments=[grid])": 'Argument missing for parameter "num_seeds"',
    "jb.Study(horizon=3, num_seeds='8', policies=[policy], environments=[grid])": "cannot be assigned",
    "jb.tune(policy, family, horizon=100, parameters=['initial_scale'], stepz=4)": 'No parameter named "stepz"',
    "jb.tune(policy, family, horizon=100)": 'Argument missing for parameter "parameters"',
    "jb.worst(policy, family, horizon=100, metod='gradient')": 'No parameter named "metod"',
    "policy.initial_scale = 3.0": 'Attribute "initial_scale" is read-only',
}


def test_every_registered_class_is_a_public_name():
    for cls in (*jb.POLICIES.values(), *jb.ENVIRONMENTS.values()):
        assert getattr(jb, cls.__name__) is cls


def test_keyword_arguments_are_the_fields_that_are_checked():
    """The types of the keyword arguments name the keys of the classes that check them, and the required ones."""
    for typed, checked, elsewhere in [
        (keywords.StudyKeywords, jb.Study, set()),
        (keywords.TuneKeywords, sections.Tune, {"environments"}),
        (keywords.WorstKeywords, sections.Worst, {"parameters", "horizons"}),
    ]:
        fields = {name: field for name, field in checked.model_fields.items() if name not in elsewhere}
        assert set(typed.__annotations__) == set(fields)
        assert typed.__required_keys__ == {name for name, field in fields.items() if field.is_required()}


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

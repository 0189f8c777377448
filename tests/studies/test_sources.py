"""Classes of notebooks, scripts and functions in studies: known by their source, found again, told apart."""

import linecache

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.studies import sources
from jaxbandit.types import field, pytree

CELL = """
import jax.numpy as jnp
from jaxbandit.types import field, pytree

FACTOR = 2.0

def law(state, share):
    return jnp.stack([share, 1 - share])

@pytree
class Mine:
    share: float = field(default=0.25, ge=0, le=1)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        return law(state, jnp.asarray(self.share) * FACTOR)

    def update(self, state, t, x, arm, loss):
        return state
"""
STUDY = {"horizon": 20, "num_seeds": 4, "environments": [jb.Bernoulli(means=[0.2, 0.8])]}


def executed(code, number=0):
    """The class of a notebook's cell: its source is known to linecache alone, its module to nobody."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    names = {"__name__": "notebook"}
    exec(compile(code, name, "exec"), names)
    return names["Mine"]


def test_a_class_of_a_notebook_is_studied_and_resumed(tmp_path):
    first = jb.run(jb.Study(policies=[executed(CELL)()], **STUDY), tmp_path)
    assert first.policy.values.tolist() == ["Mine"]
    again = jb.Study(policies=[executed(CELL, 1)()], **STUDY | {"num_seeds": 6})  # the cell, executed once more
    cells = {path.name for path in tmp_path.rglob("*.nc")}
    ds = jb.run(again, tmp_path)
    assert ds.sizes["seed"] == 6
    np.testing.assert_array_equal(ds.regret.isel(seed=slice(4)), first.regret)
    assert cells <= {path.name for path in tmp_path.rglob("*.nc")}
    edited = executed(CELL.replace("FACTOR = 2.0", "FACTOR = 1.0"), 2)
    other = jb.run(jb.Study(policies=[edited()], **STUDY), tmp_path)
    assert not np.array_equal(other.pulls, first.pulls)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2.0", "FACTOR = 3.0"),
        ("jnp.stack([share, 1 - share])", "jnp.stack([1 - share, share])"),
        ("default=0.25", "default=0.5"),
        ("le=1", "lt=1"),
        ("return state\n", "return state + 1\n"),
    ],
)
def test_what_a_class_uses_is_part_of_it(old, new):
    assert old in CELL
    digests = [sources.digest(executed(code, n)) for n, code in enumerate((CELL, CELL, CELL.replace(old, new)))]
    assert digests[0] == digests[1] != digests[2]


def test_a_class_without_source_is_known_by_its_bytecode():
    names = {"__name__": "nowhere"}
    exec(CELL, names)
    other = {"__name__": "nowhere"}
    exec(CELL.replace("FACTOR)", "FACTOR + 0)"), other)
    assert sources.digest(names["Mine"]) != sources.digest(other["Mine"])


def test_a_class_of_a_function_is_held_and_one_of_a_module_is_not():
    @pytree
    class Local:
        scale: float = field(default=1.0)

        def init(self, num_arms):
            return jnp.zeros(num_arms)

        def probabilities(self, state, t, key):
            return jnp.full(2, 0.5)

        def update(self, state, t, x, arm, loss):
            return state

    assert sources.is_held(Local)
    assert not sources.is_held(jb.UniINF)
    study = jb.Study(policies=[jb.grid(Local, scale=[1.0, 2.0])], **STUDY)
    name = study.policies[0]["name"]
    assert name == f"{__name__}:{Local.__qualname__}@{sources.digest(Local)}"
    assert study.changed(num_seeds=8).resolved.policies[0].cls is Local
    with pytest.raises(ValueError, match=r"was defined in a notebook, .*run its definition again and pass the object"):
        jb.Study(policies=[{"name": name[:-1]}], **STUDY)

"""Study files: what they may say, what they stand for, what they refuse."""

import pathlib
import re
import sys
import tomllib

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.dataset.labels import labels
from jaxbandit.store import cells
from jaxbandit.studies import entries, study
from jaxbandit.studies.study import Study

ROOT = pathlib.Path(__file__).parents[2]
BASE = {
    "horizon": 100,
    "num_seeds": 4,
    "policies": [{"name": "uniform"}],
    "environments": [{"name": "pareto", "means": [0.5, 1.0], "tail_index": [1.2, 1.6]}],
}
OWN_POLICY = '''
import jax.numpy as jnp
from jaxbandit.types import field, pytree


@pytree
class Always:
    """Plays one arm."""

    arm: float = field(default=0.0, ge=0)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        return (jnp.arange(state.shape[0], dtype=state.dtype) == self.arm).astype(state.dtype)

    def update(self, state, t, x, arm, loss):
        return state
'''


def made(**changes) -> Study:
    return Study(**(BASE | changes))


def test_lists_are_axes_and_vectors_are_values():
    environments = made().resolved.declared
    assert [environment.environment.tail_index for environment in environments] == [1.2, 1.6]
    assert all(environment.environment.num_arms == 2 for environment in environments)
    swept = made(environments=[{"name": "bernoulli", "means": [[0.1, 0.2], [0.3, 0.4]]}])
    assert len(swept.resolved.declared) == 2


def test_zip_joins_axes_and_the_rest_is_a_product():
    entry = {
        "name": "uniinf",
        "initial_scale": [1.0, 4.0],
        "scale_loss": ["clip", "raw"],
        "threshold_constant": [0.1, 0.2],
        "zip": [["initial_scale", "threshold_constant"]],
    }
    grid = made(policies=[entry]).resolved.policy_grids[0][0]
    seen = [(point.initial_scale, point.scale_loss, point.threshold_constant) for point in grid.points]
    assert seen == [(1.0, "clip", 0.1), (1.0, "raw", 0.1), (4.0, "clip", 0.2), (4.0, "raw", 0.2)]
    assert labels([("uniinf", grid)])[-1] == "uniinf[initial_scale=4,threshold_constant=0.2,scale_loss=raw]"
    one = made(policies=[entry | {"zip": ["initial_scale", "threshold_constant"]}])
    assert len(one.resolved.policy_grids[0][0].points) == 4


def test_references_are_looked_up_in_each_environment():
    told = made(policies=[{"name": "htinf", "moment_order": "environment", "moment_bound": "environment"}])
    games = cells.pairs(told)
    for game in games:
        alpha = game.environment.moment_order
        assert game.policy.moment_order == alpha
        assert game.policy.moment_bound == game.environment.moment(alpha)
    assert len({game.key for game in games}) == 2


def test_a_bound_is_that_of_the_order_the_policy_is_told():
    told = made(policies=[{"name": "htinf", "moment_order": [1.1, "environment"], "moment_bound": "environment"}])
    fixed, by_reference = [game for game in cells.pairs(told) if game.index[1] == 1]
    assert fixed.policy.moment_bound == fixed.environment.moment(1.1)
    assert by_reference.policy.moment_order == pytest.approx(1.54)
    assert labels([("htinf", told.resolved.policy_grids[0][0])]) == [
        "htinf[moment_order=1.1]",
        "htinf[moment_order=environment]",
    ]


def test_a_environment_may_declare_another_order():
    environments = made(
        environments=[{"name": "pareto", "means": [1.0], "tail_index": 1.6, "moment_order": 1.3}]
    ).resolved.declared
    assert environments[0].moment_order == 1.3


def test_horizon_by_reference_default_and_own():
    entries_ = [{"name": "uniinf"}, {"name": "uniinf", "horizon": "environment"}, {"name": "uniinf", "horizon": 7}]
    grids = [grids[0] for grids in made(policies=entries_).resolved.policy_grids]
    assert [grid.points[0].horizon for grid in grids] == [100, 100, 7]


def test_a_policy_may_have_its_own_seeds():
    games = cells.pairs(made(policies=[{"name": "uniform", "num_seeds": 9}, {"name": "exp3"}]))
    assert [game.num_seeds for game in games] == [9, 9, 4, 4]


def test_environments_inside_environments_are_swept():
    law = {"name": "pareto", "means": [0.5, 1.0], "tail_index": [1.2, 1.6]}
    assert len(made(environments=[{"name": "switching", "law": law}]).resolved.declared) == 2


def test_a_policy_of_ones_own_beside_the_study(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_policy_beside.py").write_text(OWN_POLICY)
    text = 'horizon = 10\nnum_seeds = 2\n[[policies]]\nname = "own_policy_beside:Always"\narm = [0, 1]\n'
    path = tmp_path / "study.toml"
    path.write_text(text + '[[environments]]\nname = "bernoulli"\nmeans = [0.0, 1.0]\n')
    games = cells.pairs(Study.load(path))
    assert [float(game.policy.arm) for game in games] == [0.0, 1.0]
    assert games[0].about["policy"]["source"] != "unknown"


def test_installed_packages_register_names(tmp_path, monkeypatch):
    (tmp_path / "bandit_plugin.py").write_text(OWN_POLICY)
    info = tmp_path / "bandit_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bandit-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jaxbandit.policies]\nalways = bandit_plugin:Always\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "always" in entries.names("policies")
    grid = made(policies=[{"name": "always", "arm": 1}]).resolved.policy_grids[0][0]
    assert (grid.cls.__name__, grid.points[0].arm) == ("Always", 1)
    with pytest.raises(ValueError, match="did you mean 'always'"):
        made(policies=[{"name": "alway"}])


def test_entries_that_are_made_from_files_know_the_studys_directory(tmp_path, monkeypatch):
    def prepare(values, directory):
        return {"means": np.loadtxt(directory / values["table"]).tolist()}

    monkeypatch.setitem(entries.PREPARE, "bernoulli", prepare)
    (tmp_path / "means.txt").write_text("0.25\n0.75\n")
    path = tmp_path / "study.toml"
    entry = '[[environments]]\nname = "bernoulli"\ntable = "means.txt"\n'
    path.write_text('horizon = 9\nnum_seeds = 1\n[[policies]]\nname = "uniform"\n' + entry)
    assert Study.load(path).resolved.declared[0].environment.arm_means.tolist() == [0.25, 0.75]


def test_python_and_toml_are_the_same_study(tmp_path):
    built = Study(
        title="both ways",
        horizon=1_000,
        num_seeds=8,
        record=[10, 1_000],
        policies=[
            jb.grid(jb.UniINF, horizon=1_000, initial_scale=[1.0, 4.0]),
            jb.UniINFVariant(horizon=1e6, threshold_constant=np.inf),
        ],
        environments=[
            jb.Switching(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), lengths=[10, 20]),
            BASE["environments"][0],
        ],
    )
    read = Study.load(built.save(tmp_path / "built.toml"))
    assert read.model_dump() == built.model_dump()
    assert [game.key for game in cells.pairs(read)] == [game.key for game in cells.pairs(built)]
    assert tomllib.loads(built.toml())["policies"][0] == {
        "name": "uniinf",
        "horizon": 1_000,
        "initial_scale": [1.0, 4.0],
    }


def test_a_changed_study_is_saved_as_changed(tmp_path):
    path = made().save(tmp_path / "study.toml")
    loaded = Study.load(path)
    assert loaded.toml() == path.read_text()
    assert Study.load(loaded.changed(num_seeds=9).save(tmp_path / "changed.toml")).num_seeds == 9


def test_a_local_class_without_the_methods_is_no_policy():
    from jaxbandit.types import pytree

    @pytree
    class Local:
        def init(self, num_arms): ...

    with pytest.raises(ValueError, match=r"Local@\w+' in .* is no policy: it has no probabilities"):
        made(policies=[Local()])


def test_what_determines_the_numbers_is_in_the_key():
    def key(**changes):
        return cells.pairs(made(**changes))[0].key

    assert key() == key()
    assert key() == key(horizon=200)  # uniform play and Pareto losses do not know it
    assert key() == key(num_seeds=9)
    different = [key(seed=1), key(dtype="float64"), key(policies=[{"name": "exp3"}]), key(keep="summary")]
    assert len({key(), *different}) == 5
    uniinf = {"policies": [{"name": "uniinf"}]}
    assert key(**uniinf) != key(**uniinf, horizon=200)
    fixed = {"policies": [{"name": "uniinf", "horizon": 50}]}
    assert key(**fixed) == key(**fixed, horizon=200)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": [{"name": "uniform", "num_seed": 3}]}, "no field 'num_seed'; did you mean 'num_seeds'"),
        (
            {"policies": [{"name": "uniinf", "zip": [["initial_scale", "threshold_constant"]]}]},
            "'initial_scale', which is not swept",
        ),
        (
            {
                "policies": [
                    {
                        "name": "uniinf",
                        "initial_scale": [1, 2],
                        "threshold_constant": [1, 2, 3],
                        "zip": [["initial_scale", "threshold_constant"]],
                    }
                ]
            },
            "lists of one length: initial_scale has 2, threshold_constant has 3",
        ),
        (
            {"policies": [{"name": "htinf", "moment_order": "wrld", "moment_bound": 1}]},
            'must be a number or "environment"',
        ),
        ({"policies": [{"name": "uniinf", "initial_scale": []}]}, "is an empty list, so there is nothing to sweep"),
        ({"policies": [{"name": "uniform", "num_seeds": 0}]}, "num_seeds must be a whole number >= 1"),
        (
            {"environments": [{"name": "switching", "law": {"name": "pareto", "means": [1.0]}}]},
            "pareto needs tail_index",
        ),
        ({"record": [5, 3]}, "strictly increasing"),
        ({"horizon": 1}, "horizon"),
        ({"precision": -0.1}, "precision"),
        ({"policies": [{"name": "os:path"}]}, "is no class made with"),
    ],
)
def test_refused(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        study.parse(BASE | change)


def test_examples_of_the_documentation_load(tmp_path):
    text = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    np.savez(tmp_path / "latency.npz", losses=np.arange(1.0, 21.0).reshape(10, 2))
    for n, block in enumerate(blocks):
        content = tomllib.loads(block)
        for key, value in BASE.items():  # a block may show a part: the rest is filled in
            content.setdefault(key, value)
        study.parse(content, f"block {n}", data=tmp_path)
    described = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert set(Study.model_fields) <= described


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_experiments_load(path, tmp_path):
    np.save(tmp_path / "latency.npy", np.ones((5_000, 2)))  # for the ones that play on their user's tables
    for name, rows in (("seattle", 57_104), ("planetlab", 8_460)):
        np.savez(tmp_path / f"{name}_server_choice.npz", losses=np.ones((rows, 2)))
    assert cells.pairs(Study.load(path, tmp_path))


def test_the_keys_of_a_dictionary_are_labels(tmp_path):
    """As in ``simulate``."""
    policies = {"mine": jb.grid(jb.UniINF, horizon=50, initial_scale=[1.0, 4.0]), "other": jb.Uniform()}
    made = jb.Study(horizon=50, num_seeds=4, policies=policies, environments={"coins": jb.Bernoulli(means=[0.2, 0.5])})
    ds = jb.run(made, tmp_path)
    assert ds.policy.values.tolist() == ["mine[initial_scale=1]", "mine[initial_scale=4]", "other"]
    assert ds.environment.values.tolist() == ["coins"]
    assert study.parse(tomllib.loads(made.toml())).policies == made.policies

"""The names of cells: recorded once, so that a file of the package that moves leaves results where they are found."""

import dataclasses
import json
import pathlib

import numpy as np

import jaxbandit as jb
from jaxbandit.store import cellfile, cells
from jaxbandit.types import public_fields

# What a game of these is named by. A change here orphans every result there is: raise NUMERICS only if numbers change.
PARETO = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.6}
RECORDED = {
    ("uniinf", "pareto"): "109c9c7a05eda2f7",
    ("htinf", "switching"): "c0e14b745bbb0e96",
    ("robust_ucb", "replay"): "3d929044fa6245dd",
    ("uniinf_variant", "pareto"): "a6f07e892f321c5a",  # threshold_constant is recorded as threshold, its first name
}
# The digest of the description of every registered class with these values. A new class adds its line, which the test
# prints. If a line changes, then no result with that class is found any more.
DESCRIBED = pathlib.Path(__file__).with_name("descriptions.json")
LAW = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
GIVEN = {
    "horizon": 100,
    "moment_order": 1.5,
    "moment_bound": 2.0,
    "mean_bound": 1.0,
    "policy": jb.UniINF(horizon=100),
    "delay": 3,
    "means": [0.25, 0.75],
    "tail_index": 1.6,
    "num_arms": 3,
    "gap": 0.125,
    "probability": 0.01,
    "gain": 100.0,
    "law": LAW,
    "losses": [[0.5, 1.0], [1.5, 0.25]],
    "outliers": jb.Gaussian(means=[50.0]),
    "epsilon": 0.05,
    "shift": 1.0,
    "kind": "sinusoidal",
    "amplitude": 0.25,
    "budget": 10,
}
MORE = {"drifting": {"period": 50}, "scheduled": {"means": [[0.5, 1.0], [1.0, 0.5]]}}


def study():
    given = {"moment_order": 1.5, "moment_bound": 2.0}
    variant = {"name": "uniinf_variant", "threshold_constant": 0.5}
    return jb.Study(
        horizon=100,
        num_seeds=8,
        policies=[{"name": "uniinf"}, {"name": "htinf", **given}, {"name": "robust_ucb", **given}, variant],
        environments=[
            PARETO,
            {"name": "switching", "law": PARETO, "lengths": [10, 90]},
            {"name": "replay", "losses": np.linspace(0, 1, 200).reshape(100, 2).tolist()},
        ],
    )


def keys():
    plan = study()
    games = {game.index: game for game in cells.pairs(plan)}
    names = [(entry["name"], other["name"]) for entry in plan.policies for other in plan.environments]
    return {name: cells.digest(games[n // 3, n % 3].about | {"numerics": 0}) for n, name in enumerate(names)}


def test_recorded_names_stay():
    found = keys()
    assert {name: found[name] for name in RECORDED} == RECORDED


def described(name: str, cls: type) -> str:
    fields = public_fields(cls).items()
    needed = {key for key, spec in fields if spec.default is dataclasses.MISSING or spec.metadata.get("nested")}
    assert needed <= GIVEN.keys(), f"add {needed - GIVEN.keys()} to GIVEN"
    return cells.digest(cells.describe(cls(**{key: GIVEN[key] for key in needed} | MORE.get(name, {}))))


def test_descriptions_of_all_classes_stay():
    registered = {"policies": jb.POLICIES, "environments": jb.ENVIRONMENTS}
    found = {
        kind: {name: described(name, cls) for name, cls in sorted(names.items())} for kind, names in registered.items()
    }
    assert found == json.loads(DESCRIBED.read_text()), json.dumps(found, indent=1)


def test_names_of_files_stay():
    """Of a native cell and of one that the scan has played, on a machine that is given here."""
    pair = next(pair for pair in cells.pairs(study()) if pair.index == (0, 0))
    cell = cells.Cell(dataclasses.replace(pair, about=pair.about | {"numerics": 0}, way="native"), 8, 16, (1, 10, 100))
    assert cell.name == "109c9c7a05eda2f7-8-16-ae0d0277e32eaa5f.nc"
    scan = {"way": "scan", "jaxlib": "0.10.0", "device": "cpu (cpu)", "instruction_set": "0123456789ab"}
    assert cellfile.file_name(cell.pair.key, 8, 16, cell.rounds, scan) == "109c9c7a05eda2f7-8-16-fed930cef198cd6f.nc"
    assert set(cells.platform("scan")) == set(scan)


def test_a_description_has_registry_names_and_no_module():
    about = cells.describe(jb.Switching(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), lengths=[10, 90]))
    assert (about["class"], about["law"]["class"]) == ("switching", "pareto")
    assert "jaxbandit" not in str(about)

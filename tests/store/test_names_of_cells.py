"""The names of cells: recorded once, so that a file of the package that moves leaves results where they are found."""

import numpy as np

import jaxbandit as jb
from jaxbandit.store import cells

# What a game of these is named by. A change here orphans every result there is: raise NUMERICS only if numbers change.
PARETO = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.6}
RECORDED = {
    ("uniinf", "pareto"): "109c9c7a05eda2f7",
    ("htinf", "switching"): "c0e14b745bbb0e96",
    ("robust_ucb", "replay"): "3d929044fa6245dd",
    ("uniinf_variant", "pareto"): "a6f07e892f321c5a",  # threshold_constant is recorded as threshold, its first name
}


def keys():
    given = {"moment_order": 1.5, "moment_bound": 2.0}
    variant = {"name": "uniinf_variant", "threshold_constant": 0.5}
    study = jb.Study(
        horizon=100,
        num_seeds=8,
        policies=[{"name": "uniinf"}, {"name": "htinf", **given}, {"name": "robust_ucb", **given}, variant],
        environments=[
            PARETO,
            {"name": "switching", "law": PARETO, "lengths": [10, 90]},
            {"name": "replay", "losses": np.linspace(0, 1, 200).reshape(100, 2).tolist()},
        ],
    )
    games = {game.index: game for game in cells.pairs(study)}
    names = [(entry["name"], other["name"]) for entry in study.policies for other in study.environments]
    return {name: cells.digest(games[n // 3, n % 3].about | {"numerics": 0}) for n, name in enumerate(names)}


def test_recorded_names_stay():
    found = keys()
    assert {name: found[name] for name in RECORDED} == RECORDED


def test_a_description_has_registry_names_and_no_module():
    about = cells.describe(jb.Switching(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), lengths=[10, 90]))
    assert (about["class"], about["law"]["class"]) == ("switching", "pareto")
    assert "jaxbandit" not in str(about)

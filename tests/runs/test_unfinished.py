"""Checkpoints and parts belong to the cells of their study: another study in the directory leaves them alone."""

import threading

import pytest

import jaxbandit as jb
from jaxbandit.runs import unfinished
from jaxbandit.store.directory import Store
from tests.support.stores import assert_same

ENGINE = jb.Engine(block=16, devices=1, checkpoint=0.0, chunk=100)


def study(**values):
    given = {"horizon": 3000, "num_seeds": 40, "record": 5, "policies": [{"name": "exp3"}]}
    return jb.Study(**given | {"environments": [{"name": "bernoulli", "means": [0.2, 0.8]}]} | values)


def stopped(one, directory):
    """Plays a study until some seeds of its cell are done and others are under way."""
    stop = threading.Event()

    def notice(done, total, *_):
        if done >= 0.41 * total:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        jb.run(one, directory, engine=ENGINE, notice=notice, stop=stop)
    return {path.name: path.read_bytes() for path in unfinished.files(Store(directory))}


@pytest.mark.slow
def test_a_second_study_keeps_the_first_ones_games(tmp_path):
    first, second = study(), study(policies=[{"name": "uniform"}])
    kept = stopped(first, tmp_path / "both")
    assert {name.rpartition(".")[2] for name in kept} == {"ckpt", "part"}
    jb.run(second, tmp_path / "both", engine=ENGINE)
    assert {path.name: path.read_bytes() for path in unfinished.files(Store(tmp_path / "both"))} == kept
    assert_same(jb.run(first, tmp_path / "both", engine=ENGINE), jb.run(first, tmp_path / "alone", engine=ENGINE))
    assert list(unfinished.files(Store(tmp_path / "both"))) == []


def test_a_shorter_study_of_the_same_pairs_keeps_them_and_a_longer_one_does_not(tmp_path):
    kept = stopped(study(), tmp_path)
    jb.run(study(horizon=300), tmp_path, engine=ENGINE)
    assert {path.name for path in unfinished.files(Store(tmp_path))} == set(kept)
    jb.run(study(horizon=4000, record=[1, 7, 55, 405, 3000, 4000]), tmp_path, engine=ENGINE)
    assert study().rounds() == [1, 7, 55, 405, 3000]
    assert list(unfinished.files(Store(tmp_path))) == []

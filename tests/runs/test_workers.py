"""Workers of an executor: they find the tables, refuse another version, and fail in words."""

import concurrent.futures

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.runs import teams
from jaxbandit.store.directory import StoreError
from tests.support.stores import ENGINE, STUDY, assert_same


def test_tables_of_another_directory_reach_the_workers(tmp_path):
    (tmp_path / "tables").mkdir()
    np.save(tmp_path / "tables" / "losses.npy", np.linspace(0, 1, 60).reshape(30, 2))
    text = 'horizon = 20\nnum_seeds = 8\nrecord = 3\n[[policies]]\nname = "uniform"\n'
    (tmp_path / "study.toml").write_text(text + '[[environments]]\nname = "replay"\ntable = "losses.npy"\n')
    study = jb.Study.load(tmp_path / "study.toml", tmp_path / "tables")
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        ds = jb.run(study, tmp_path / "team", engine=ENGINE, team=teams.ExecutorTeam(executor))
    assert_same(ds, jb.run(study, tmp_path / "alone", engine=ENGINE))


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (lambda *args: (_ for _ in ()).throw(KeyError("seeds")), r"a worker failed \(KeyError: 'seeds'\).*are kept"),
        (None, r"a worker runs jaxbandit .*, but the study is played by another; install the same there"),
    ],
)
def test_a_worker_that_fails_is_named(tmp_path, monkeypatch, patch, said):
    original = teams.play_task

    def older(content, directory, store, specs, told):
        return original(content, directory, store, specs, told | {"written_by": "another"})

    monkeypatch.setattr(teams, "play_task", patch or older)
    with concurrent.futures.ThreadPoolExecutor(1) as executor, pytest.raises(StoreError, match=said):
        jb.run(STUDY, tmp_path, engine=ENGINE, team=teams.ExecutorTeam(executor))

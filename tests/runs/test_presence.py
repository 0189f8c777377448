"""Processes that share a directory: signs of life, lost processes, slow leaders, and files of earlier runs."""

import concurrent.futures
import json
import os
import threading
import time

import pytest

import jaxbandit as jb
from jaxbandit.runs import presence, teams
from jaxbandit.runs.campaign import Campaign, Report
from jaxbandit.runs.presence import Presence
from jaxbandit.store import cellfile
from jaxbandit.store.directory import Store, StoreError
from tests.support.helpers import some
from tests.support.stores import ENGINE, STUDY, assert_same, cell_paths


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Signs of life in quick succession, and patience."""
    monkeypatch.setattr(presence, "BEAT", 0.02)
    monkeypatch.setattr(presence, "LOST", 60.0)
    monkeypatch.setattr(teams, "LOOK_AGAIN", 0.1)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(presence, "LOST", 0.4)


def run(directory, number, count, **options):
    team = teams.ProcessTeam(number, count)
    return jb.run(STUDY, directory, engine=ENGINE, team=team, **options), team


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("apart", some([True], [False]))
def test_who_is_left_does_the_rest_and_leads(tmp_path, done, number, apart, impatient, monkeypatch):
    monkeypatch.setattr(teams, "WHOLE_CELLS", 1 if apart else 8)
    with pytest.warns(match=rf"number {1 - number} of 2 processes has not appeared .*--process-id {1 - number}\)"):
        ds, team = run(tmp_path / "team", number, 2)
    assert team.leads
    assert_same(ds, done[0])


@pytest.mark.filterwarnings("default")
def test_a_process_that_falls_silent_is_named_and_one_that_comes_back_is_counted_again(tmp_path, impatient):
    with Presence(tmp_path, 0, 2) as here:
        with Presence(tmp_path, 1, 2) as other:
            until(lambda: here._seen[1].alive)
            assert here.here() == [0, 1]
            with pytest.warns(match=rf"number 1 of 2 processes \(process {os.getpid()} on .*is lost: no sign of life"):
                other._ended.set()
                until(lambda: here.here() == [0])
            other._write(presence.PLAYING)
            until(lambda: here.here() == [0, 1])
        until(here.done)
        assert here.here() == [0]


@pytest.mark.filterwarnings("default")
def test_a_process_that_is_stopped_is_named_at_once(tmp_path):
    with Presence(tmp_path, 0, 2) as here:
        with pytest.raises(KeyboardInterrupt), Presence(tmp_path, 1, 2):
            until(lambda: here._seen[1].alive)
            raise KeyboardInterrupt
        with pytest.warns(match="number 1 of 2 processes .* has stopped. The others play its share"):
            until(lambda: here.here() == [0])
            assert not here.done()


def test_clocks_do_not_matter(tmp_path, monkeypatch):
    clock = time.time
    monkeypatch.setattr(presence, "LOST", 1.0)
    monkeypatch.setattr(time, "time", lambda: 1e9 - clock())  # runs backwards
    with Presence(tmp_path, 0, 2) as here, Presence(tmp_path, 1, 2):
        until(lambda: here._seen[1].alive)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            os.utime(tmp_path / "team" / "process-1.json", (1, 1))
            assert here.here() == [0, 1]
            time.sleep(0.05)


def both(directory, teams_, stop):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(jb.run, STUDY, directory, engine=ENGINE, team=team, stop=stop) for team in teams_]
        concurrent.futures.wait(runs, timeout=60, return_when=concurrent.futures.FIRST_EXCEPTION)
        stop.set()
    return [run.result() for run in runs]


def test_files_of_an_earlier_larger_run_are_no_processes(tmp_path, done):
    (tmp_path / "team" / "team").mkdir(parents=True)
    for number in range(4):
        said = {"pid": 1, "host": "gone", "beat": 3, "state": "playing", "about": {"platform": "another"}}
        (tmp_path / "team" / "team" / f"process-{number}.json").write_text(json.dumps(said))
    for ds in both(tmp_path / "team", [teams.ProcessTeam(0, 2), teams.ProcessTeam(1, 2)], threading.Event()):
        assert_same(ds, done[0])


def test_a_slow_leader_leaves_finished_cells_alone(tmp_path, done, monkeypatch):
    """The leader reads the directory, and both its cells and a damaged file are finished by others before it mends."""
    store = Store(tmp_path / "team")
    store.prepare()
    damaged = store.cells / cell_paths(done[1])[0].name
    damaged.write_bytes(b"damaged")
    with pytest.warns(match="this file is not used"):
        campaign = Campaign(STUDY, store, Report())
    original = cellfile.read_header

    def finished_meanwhile(path):
        try:
            return original(path)
        finally:
            for cell in cell_paths(done[1]):
                store.write(store.cells / cell.name, cell.read_bytes())

    monkeypatch.setattr(cellfile, "read_header", finished_meanwhile)
    campaign.set_aside_damaged()
    assert [path.name for path in cell_paths(tmp_path / "team")] == [path.name for path in cell_paths(done[1])]


def test_a_follower_mends_for_itself(tmp_path, done):
    """A damaged file under a cell's name is no cell, whoever leads."""
    store = Store(tmp_path / "team")
    store.prepare()
    (store.cells / cell_paths(done[1])[0].name).write_bytes(b"damaged")
    with pytest.warns(), concurrent.futures.ThreadPoolExecutor(1) as pool:
        follower = pool.submit(run, tmp_path / "team", 1, 2)
        until(lambda: list(store.parts.glob("*.part")))
        assert_same(run(tmp_path / "team", 0, 2)[0], done[0])
        assert_same(follower.result()[0], done[0])


@pytest.mark.filterwarnings("ignore:number 1 of 2 processes")
def test_another_study_is_refused_in_words(tmp_path):
    """Whichever of the two notices first is refused; the other then plays alone."""
    stop, refused = threading.Event(), []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        longer = STUDY.changed(horizon=60)
        other = pool.submit(jb.run, longer, tmp_path / "team", engine=ENGINE, team=teams.ProcessTeam(1, 2), stop=stop)
        until(lambda: (tmp_path / "team" / "team" / "process-1.json").exists())
        try:
            run(tmp_path / "team", 0, 2)
        except StoreError as error:
            refused.append(str(error))
        stop.set()
        refused.append(str(other.exception()))
    assert any("has another study than this process" in error for error in refused), refused


def test_a_directory_of_another_run_is_refused_and_that_of_this_team_is_shared(tmp_path):
    store = Store(tmp_path)
    store.prepare()
    with store.locked(), pytest.raises(StoreError, match="in use by"):
        run(tmp_path, 0, 2)
    with store.locked(", number 1 of 2 processes,"), teams.ProcessTeam(0, 2).holding(store):
        pass


def test_process_numbers_are_checked(monkeypatch):
    with pytest.raises(ValueError, match="give both"):
        teams.process_team("localhost:1234", None, None)
    with pytest.raises(ValueError, match="--process-id is 2, but with --num-processes 2 it is one of 0 to 1"):
        teams.process_team("localhost:1234", 2, 2)
    assert teams.process_team(None, None, None) is None
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    monkeypatch.setenv("SLURM_PROCID", "3")
    team = teams.process_team(None, None, None)
    assert team is not None and (team.number, team.count) == (3, 4)


def test_a_pipe_in_the_place_of_a_sign_of_life(tmp_path):
    (tmp_path / "team").mkdir()
    os.mkfifo(tmp_path / "team" / "process-1.json")
    with presence.Presence(tmp_path, 0, 2) as here:
        assert here.here() == [0, 1]

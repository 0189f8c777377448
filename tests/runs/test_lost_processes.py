"""Three processes share a directory and one is killed: a message within 15 s, and the bits of an undisturbed run."""

import pathlib
import random
import subprocess
import sys
import threading
import time

import pytest

import jaxbandit as jb
from tests.support.stores import assert_same

STUDY = """
horizon = {horizon}
num_seeds = 600
record = 8

[[policies]]
name = "tsallis_inf"

[[policies]]
name = "uniinf"

[[environments]]
name = "pareto"
means = [0.5, 1.0]
tail_index = {tails}
"""
FEW, MANY = "[1.2, 1.6]", str([1.2 + 0.05 * n for n in range(14)])  # with many pairs each process plays whole cells


class Member:
    """A process of the team, its words, and when it said them."""

    def __init__(self, study: pathlib.Path, directory: pathlib.Path, number: int):
        flags = ["--coordinator", "localhost:1", "--num-processes", "3", "--process-id", str(number)]
        command = [sys.executable, "-m", "jaxbandit", "run", str(study), "--out", str(directory), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said: list[tuple[float, str]] = []
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self):
        for line in self.process.stderr or ():
            self.said.append((time.monotonic(), line))

    def wait(self) -> int:
        code = self.process.wait(timeout=900)
        self.thread.join()
        return code


def play(place: pathlib.Path, whole, seconds: float, rng: random.Random) -> str:
    """Plays a study of so many seconds with three processes of which one is killed; returns what happened."""
    directory, victim = place / "team", rng.randrange(3)
    members = [Member(place / "study.toml", directory, number) for number in range(3)]
    try:
        if rng.random() < 0.75:  # else it is killed while it starts
            while not (directory / "team" / f"process-{victim}.json").exists():
                time.sleep(0.05)
            time.sleep(rng.uniform(0, seconds))
        else:
            time.sleep(rng.uniform(0, 2))
        over = members[victim].process.poll() is not None
        members[victim].process.kill()
        killed = time.monotonic()
        rest = [member for number, member in enumerate(members) if number != victim]
        assert [member.wait() for member in rest] == [0, 0], [member.said for member in members]
        ended = time.monotonic()
    finally:
        for member in members:
            member.process.kill()
            member.wait()
    for member in rest:
        text = "".join(line for _, line in member.said)
        assert "Traceback" not in text, text
        named = [at - killed for at, line in member.said if f"number {victim} of 3 processes" in line]
        assert over or ended - killed < 15 or named, text
        assert all(seconds < 15 for seconds in named)
    assert_same(jb.load(directory), whole)
    assert not list((directory / "cells").glob("*.damaged*")) and not list(directory.rglob("*.part"))
    return f"process {victim}: {'over' if over else 'killed'}, named after {named}, ended after {ended - killed:.1f} s"


@pytest.mark.parametrize(
    "tries", [pytest.param(1, id="1", marks=pytest.mark.slow), pytest.param(10, id="10", marks=pytest.mark.long)]
)
def test_one_of_three_processes_is_killed(tmp_path, tries):
    rng = random.Random(5)
    for number in range(tries):
        place = tmp_path / str(number)
        place.mkdir()
        tails, horizon = (FEW, 300_000) if number % 2 == 0 else (MANY, 40_000)
        (place / "study.toml").write_text(STUDY.format(tails=tails, horizon=horizon))
        began = time.monotonic()
        whole = jb.run(jb.Study.load(place / "study.toml"), place / "alone").load()
        print(play(place, whole, time.monotonic() - began, rng), flush=True)

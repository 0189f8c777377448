"""Three processes share a directory and one is killed: a message within 15 s, and the bits of an undisturbed run."""

import pathlib
import random
import subprocess
import sys
import threading
import time

import numpy as np
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
    """A process of the team, its words, when it said them, and when it began to look at the others."""

    def __init__(self, study: pathlib.Path, directory: pathlib.Path, number: int):
        flags = ["--coordinator", "localhost:1", "--num-processes", "3", "--process-id", str(number)]
        command = [sys.executable, "-m", "jaxbandit", "run", str(study), "--out", str(directory), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.file = directory / "team" / f"process-{number}.json"
        self.said: list[tuple[float, str]] = []
        self.there = 0.0
        self.threads = [threading.Thread(target=target) for target in (self._listen, self._watch)]
        for thread in self.threads:
            thread.start()

    def _listen(self):
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self.said.append((time.monotonic(), line))

    def _watch(self):
        while self.process.poll() is None and not self.file.exists():
            time.sleep(0.05)
        self.there = time.monotonic()

    def wait(self) -> int:
        code = self.process.wait(timeout=900)
        for thread in self.threads:
            thread.join()
        return code


def play(place: pathlib.Path, whole, seconds: float, rng: random.Random) -> str:
    """Plays a study of so many seconds with three processes of which one is killed; returns what happened."""
    directory, victim = place / "team", rng.randrange(3)
    members = [Member(place / "study.toml", directory, number) for number in range(3)]
    try:
        if rng.random() < 0.75:  # else it is killed while it starts
            members[victim].threads[1].join()
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
    named = []
    for member in rest:
        text = "".join(line for _, line in member.said)
        assert "Traceback" not in text, text
        told = [at for at, line in member.said if f"number {victim} of 3 processes" in line]
        named += [at - max(killed, member.there) for at in told]
        assert over or told or ended - max(killed, member.there) < 15, text
    assert all(seconds < 15 for seconds in named), named
    assert_same(jb.load(directory), whole)
    assert not list((directory / "cells").glob("*.damaged*")) and not list(directory.rglob("*.part"))
    what = "over" if over else f"killed, named after {np.round(named, 1)} s"
    return f"process {victim}: {what}, ended after {ended - killed:.1f} s"


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

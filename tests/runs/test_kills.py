"""``kill -9`` at random moments, with seeds, horizon and policies added in between: the bits of an undisturbed run."""

import contextlib
import itertools
import multiprocessing
import pathlib
import random
import signal
import time
import warnings
from collections.abc import Iterator

import pytest

import jaxbandit as jb
from tests.support.stores import assert_same

ENVIRONMENTS = [
    {"name": "pareto", "means": [0.5, 1.0], "tail_index": [1.2, 1.6, 2.0]},
    {"name": "switching", "law": {"name": "bernoulli", "means": [0.2, 0.8]}},
]
POLICIES = [{"name": "tsallis_inf"}, {"name": "uniinf", "initial_scale": [1.0, 4.0]}, {"name": "exp3"}]
RECORD = [500, 1000, 2000, 4000, 8000, 16_000]


def study(seeds: int, records: int, policies: int) -> jb.Study:
    """A study of so many hundred seeds, recorded rounds and policies. The longer ones continue the shorter."""
    return jb.Study(
        num_seeds=100 * seeds,
        horizon=RECORD[records - 1],
        record=RECORD[:records],
        policies=POLICIES[:policies],
        environments=ENVIRONMENTS,
    )


def play(size: tuple[int, int, int], directory: pathlib.Path, said) -> None:
    """Plays a study to its end, in a process of its own, and says how far it is."""
    said.send("starting")
    warnings.simplefilter("ignore")
    engine = jb.Engine(block=64, checkpoint=0.05)  # on all cores
    jb.run(study(*size), directory, engine=engine, notice=lambda *_: said.send("playing"))
    said.send("done")


def heard(said) -> Iterator[str]:
    """What a process says until it ends."""
    with contextlib.suppress(EOFError):
        while True:
            yield said.recv()


@contextlib.contextmanager
def started(size, directory):
    # Every run is a process of its own. They are forked from one that has imported all they need and started no
    # backend, and find what they compile on disk: what a start costs is not what is tested.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["jaxbandit.runs.run_study", __name__])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=play, args=(size, directory, there))
    process.start()
    there.close()
    yield process, heard(here)
    process.join()
    here.close()


def files(directory: pathlib.Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.glob("cells/*.nc")}


@pytest.mark.parametrize(
    "kills", [pytest.param(5, id="5", marks=pytest.mark.slow), pytest.param(100, id="100", marks=pytest.mark.long)]
)
def test_kills_and_extensions(tmp_path, kills):
    rng, done = random.Random(8), 0
    for number in itertools.count():
        size, directory, finished, ended = (1, 3, 1), tmp_path / str(number), {}, False
        grown = [tuple(rng.sample([(1, 0, 0), (0, 1, 0), (0, 0, 1)], 3)) for _ in range(3)]
        for step in [(0, 0, 0), *itertools.chain(*grown)]:
            size = tuple(min(a + b, most) for a, b, most in zip(size, step, (4, 6, 3), strict=True))
            for _ in range(rng.randint(0, 2) if done < kills else 0):
                with started(size, directory) as (process, said):
                    steps = 0 if rng.random() < 0.2 else rng.randint(1, 4)  # some before anything is played
                    words = list(itertools.islice(said, 1 + steps))
                    assert words[0] == "starting"
                    time.sleep(rng.uniform(0, 0.05 if steps else 2.0))
                    process.kill()
                assert process.exitcode in (-signal.SIGKILL, 0)
                done += process.exitcode != 0
                finished = assert_kept(finished, directory, ended)
                ended = process.exitcode == 0
        with started(size, directory) as (process, said):
            assert "done" in said
        assert process.exitcode == 0
        assert_kept(finished, directory, ended=True)
        whole = tmp_path / f"whole {number}"
        assert_same(jb.load(directory), jb.run(study(*size), whole))
        assert_no_leftovers(directory, whole)
        print(f"{done} kills over {number + 1} studies", flush=True)
        if done >= kills:
            return


def assert_kept(finished, directory, ended):
    """No finished cell was written again; it goes only when a run has ended that played the same games further."""
    now = files(directory)
    assert all(now[name] == about for name, about in finished.items() if name in now)
    if not ended:
        gone = {name.split("-")[0] for name in finished.keys() - now.keys()}
        assert gone <= {name.split("-")[0] for name in now}, "a finished cell is gone"
    return now


def assert_no_leftovers(directory, whole):
    """Unfinished files are left of other studies only: a policy that is given another horizon is another one."""
    pairs = {path.name.split("-")[0] for path in whole.glob("cells/*.nc")}
    left = [path for path in directory.rglob("*") if path.suffix in (".part", ".ckpt")]
    assert not [path for path in left if path.name.split("-")[0].rpartition(".")[2] in pairs]
    assert not [path for path in directory.rglob("*") if path.suffix in (".tmp", ".damaged")]

"""A study of many cells that is run, stopped and extended 50 times: the same bits, and nothing is left behind."""

import contextlib
import gc
import os
import random
import threading

import numpy as np
import pytest

import jaxbandit as jb

ENGINE, TIMES = jb.Engine(block=4096, devices=1, chunk=8, checkpoint=0.0), 50


def study(cells: int, horizon: int) -> jb.Study:
    means = [[0.1 + 0.8 * n / 10_000, 0.95] for n in range(cells)]
    environments = [{"name": "bernoulli", "means": means}]
    record = [4, 16, 32][: 2 + (horizon == 32)]
    return jb.Study(
        horizon=horizon, num_seeds=2, record=record, policies=[{"name": "uniform"}], environments=environments
    )


def held() -> tuple[int, int]:
    """The open files and the threads of this process."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors as Linux shows them")
@pytest.mark.parametrize(
    "cells",
    [pytest.param(500, id="500", marks=pytest.mark.slow), pytest.param(10_000, id="10000", marks=pytest.mark.long)],
)
def test_run_stopped_and_extended(tmp_path, cells):
    rng, stopped = random.Random(1), 0
    jb.run(study(8, 16), tmp_path / "first", engine=ENGINE)  # what the first run opens stays open
    before = held()
    for number in range(1, TIMES + 1):
        share, stop = rng.choice([0.0, 0.3, 0.7, 2.0]), threading.Event()

        def notice(done, total, *_, share=share, stop=stop):
            if done >= share * total:
                stop.set()

        with contextlib.suppress(KeyboardInterrupt):
            now = study(cells * number // TIMES, 16 if number < TIMES // 2 else 32)
            jb.run(now, tmp_path / "out", engine=ENGINE, notice=notice, stop=stop)
        stopped += stop.is_set()
    ds = jb.run(study(cells, 32), tmp_path / "out", engine=ENGINE)
    after = held()
    assert after[0] <= before[0] and after[1] <= before[1], (before, after)
    assert stopped > TIMES // 4
    files = [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sorted({path.parts[0] for path in files}) == ["cells", "lock", "store.json"]
    assert len(files) == cells + 2
    fresh = jb.run(study(cells, 32), tmp_path / "fresh", engine=ENGINE)
    for name in ("regret", "loss", "pulls", "failed"):
        np.testing.assert_array_equal(ds[name].values, fresh[name].values)
    print(f"{cells} cells, {TIMES} runs, {stopped} stopped; descriptors and threads {before}, then {after}")

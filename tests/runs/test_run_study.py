"""Studies in a directory: the same bits as ``simulate``, added to and gone on with, never played twice."""

import os
import threading

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.dataset import labels, results
from jaxbandit.engine import blocks, checkpoint, native, run_job
from jaxbandit.runs import player
from jaxbandit.runs.campaign import Report
from jaxbandit.store import cellfile

SWITCHING = {"name": "switching", "law": {"name": "bernoulli", "means": [0.2, 0.8]}, "lengths": [30, 50, 1000]}
BASE = {
    "horizon": 60,
    "num_seeds": 100,
    "record": 8,
    "policies": [{"name": "exp3"}, {"name": "moss", "exploration": [0.5, 1.0]}],  # quick to compile
    "environments": [SWITCHING | {"law": {"name": "bernoulli", "means": [[0.2, 0.8], [0.4, 0.5], [0.1, 0.3]]}}],
}
SMALL = {"policies": [{"name": "exp3"}], "environments": [SWITCHING]}
ENGINE = jb.Engine(block=64, devices=1)  # cells straddle blocks


def study(**changes) -> jb.Study:
    return jb.Study(**(BASE | changes))


def run(plan, directory, **options) -> tuple[xr.Dataset, Report]:
    report = Report()
    ds = jb.run(plan, directory, engine=options.pop("engine", ENGINE), report=report, **options)
    return ds.load(), report


def assert_same(first: xr.Dataset, second: xr.Dataset) -> None:
    """The same variables and coordinates, bit for bit."""
    assert set(first.variables) == set(second.variables)
    for name in first.variables:
        assert first[name].dims == second[name].dims
        np.testing.assert_array_equal(first[name].values, second[name].values, err_msg=str(name))


def files(directory):
    """Finished cells with what a rewrite would change."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (directory / "cells").iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    return *run(study(), directory), directory


def test_the_numbers_are_simulates(whole):
    ds, report, _ = whole
    assert report.played == 9 and report.found == 0
    policies = [jb.Exp3(), jb.grid(jb.MOSS, horizon=60, exploration=[0.5, 1.0])]
    laws = [jb.Bernoulli(means=means) for means in ([0.2, 0.8], [0.4, 0.5], [0.1, 0.3])]
    environments = [jb.grid(jb.Switching, law=laws, lengths=[30, 50, 1000])]
    expected = jb.simulate(policies, environments, horizon=60, num_seeds=100, record=8, engine=ENGINE)
    assert_same(ds.drop_vars(["seeds", "moment_order", "moment_bound"]), expected)
    assert ds.regret.dtype == np.float64 and ds.pulls.dtype == np.int32


def test_a_study_that_is_done_is_not_played_again(whole):
    ds, _, directory = whole
    before = files(directory)
    again, report = run(study(), directory)
    assert (report.played, report.found) == (0, 9)
    assert files(directory) == before
    assert_same(again, ds)
    assert_same(jb.load(directory).load(), ds)
    assert not any((directory / "parts").iterdir()) and not any((directory / "checkpoints").iterdir())


def test_values_are_read_when_they_are_looked_at(whole, monkeypatch):
    ds, _, directory = whole
    read = []
    original = cellfile.read_part
    monkeypatch.setattr(
        cellfile, "read_part", lambda header, *rest, **kw: read.append(header) or original(header, *rest, **kw)
    )
    lazy = jb.load(directory)
    assert not read
    point = lazy.regret.isel(policy=1, environment=2, seed=slice(90, 99), round=-1)
    np.testing.assert_array_equal(point.values, ds.regret.values[1, 2, 90:99, -1])
    assert len(read) == 1
    np.testing.assert_array_equal(lazy.pulls[:, 0, ::7, [0, 3], 1].values, ds.pulls.values[:, 0, ::7][:, :, [0, 3], 1])
    np.testing.assert_array_equal(lazy.failed[::-1, 1, -5:].values, ds.failed.values[::-1, 1, -5:])


def test_more_seeds_values_and_environments_extend(tmp_path):
    run(study(num_seeds=30, **SMALL), tmp_path)
    before = files(tmp_path)
    more = {"policies": [{"name": "exp3"}, {"name": "moss"}], "environments": [SWITCHING], "num_seeds": 100}
    ds, report = run(study(**more), tmp_path)
    assert before.items() <= files(tmp_path).items()
    assert (report.found, report.played) == (1, 2)
    fresh, _ = run(study(**more), tmp_path / "fresh")
    assert_same(ds, fresh)
    fewer, report = run(study(num_seeds=50, **SMALL), tmp_path)
    assert report.played == 0
    np.testing.assert_array_equal(fewer.regret.values[0], ds.regret.values[0, :, :50])


@pytest.mark.parametrize("keep", ["seeds", "summary"])
def test_a_longer_horizon_goes_on(tmp_path, keep, monkeypatch):
    policies = [{"name": "exp3"}, {"name": "moss"}]
    short, _ = run(study(policies=policies, keep=keep), tmp_path)
    started = []
    monkeypatch.setattr(player, "run_job", lambda job, *args: started.append(job) or run_job(job, *args))
    ds, _ = run(study(policies=policies, keep=keep, horizon=100), tmp_path)
    assert sorted((type(job.pairs[0][0]).__name__, job.start) for job in started) == [("Exp3", 60), ("MOSS", 0)]
    rounds = ds["round"].values.tolist()
    assert rounds[:8] == short["round"].values.tolist() and rounds[-1] == 100 and len(rounds) > 8
    fresh, _ = run(study(policies=policies, keep=keep, horizon=100, record=rounds), tmp_path / "fresh")
    assert_same(ds, fresh)
    back, report = run(study(policies=policies[:1], keep=keep), tmp_path)  # the shorter one is inside the longer
    assert report.played == 0
    assert_same(back, short.isel(policy=[0]).drop_vars([name for name in short.coords if name not in back.coords]))


def test_summaries_are_those_of_simulate_and_pool(tmp_path):
    ds, _ = run(study(keep="summary", num_seeds=60, **SMALL), tmp_path)
    environment = jb.Switching(jb.Bernoulli(means=[0.2, 0.8]), lengths=[30, 50, 1000])
    settings = {"horizon": 60, "record": 8, "keep": "summary", "engine": ENGINE}
    expected = jb.simulate([jb.Exp3()], [environment], num_seeds=60, **settings)
    assert_same(ds.drop_vars(["seeds", "moment_order", "moment_bound"]), expected)
    pooled, report = run(study(keep="summary", num_seeds=100, **SMALL), tmp_path)
    assert (report.found, report.played) == (1, 1)
    at_once = jb.simulate([jb.Exp3()], [environment], num_seeds=100, **settings)
    for name in ("regret_mean", "regret_stderr", "loss", "pulls"):
        np.testing.assert_allclose(pooled[name], at_once[name], rtol=1e-12, err_msg=name)
    assert pooled.seeds.item() == 100


def test_summaries_of_fewer_quantiles_are_read_and_go_on(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:  # as an earlier version kept them
        for module in (cellfile, labels):
            patch.setattr(module, "QUANTILES", labels.QUANTILES[:5])
        patch.setattr(results.summarise, "__defaults__", (labels.QUANTILES[:5],))
        run(study(keep="summary", num_seeds=60, **SMALL), tmp_path)
    old = jb.load(tmp_path).regret_quantile.squeeze().sel(round=60)
    assert old.sizes["quantile"] == 6 and np.isnan(old[5]) and np.isfinite(old[:5]).all()
    longer, report = run(study(keep="summary", num_seeds=60, horizon=90, record=[60, 90], **SMALL), tmp_path)
    assert report.played == 1
    assert np.isfinite(longer.regret_quantile.sel(round=90)).all()


def test_seeds_are_added_until_the_precision_is_reached(tmp_path):
    policies = [{"name": "exp3"}, {"name": "moss", "max_seeds": 120}]
    environments = [SWITCHING | {"lengths": [1000, 1, 1]}]  # no switch within the horizon
    plan = study(policies=policies, environments=environments, num_seeds=64, precision=0.05, max_seeds=2000)
    ds, _ = run(plan, tmp_path)
    seeds = ds.seeds.values
    assert (seeds[1] == 120).all()
    assert (seeds[0] >= 256).all() and (seeds[0] <= 2000).all()
    assert np.isnan(ds.regret.values[1, :, 120:]).all() and (ds.failed.values[1, :, 120:] == -1).all()
    stats = jb.summary(ds).isel(round=-1)
    own = ds.regret.values[0, 0, : seeds[0, 0], -1]
    assert float(stats.regret_stderr[0, 0]) == pytest.approx(own.std(ddof=1) / np.sqrt(own.size))
    assert (1.96 * stats.regret_stderr[0] <= 0.05 * stats.regret_mean[0]).all()
    again, report = run(plan, tmp_path)
    assert report.played == 0
    assert_same(again, ds)


@pytest.mark.parametrize("moments", [(1, 4, 9)])
def test_a_run_that_breaks_off_goes_on_to_the_same_bits(tmp_path, whole, moments):
    """As after a kill: nothing but whole files is left. tests/runs/test_survival.py kills for real."""
    engine = jb.Engine(block=64, devices=1, checkpoint=0.0)
    finished = {}
    for moment in moments:
        calls = iter(range(moment))

        def notice(*_, calls=calls):
            if next(calls, None) is None:
                raise RuntimeError("broken off")

        with pytest.raises(RuntimeError, match="broken off"):
            jb.run(study(), tmp_path, engine=engine, notice=notice)
        assert finished.items() <= files(tmp_path).items()
        finished = files(tmp_path)
    ds, _ = run(study(), tmp_path)
    assert finished.items() <= files(tmp_path).items()
    assert_same(ds, whole[0])


def test_games_go_on_from_a_checkpoint(tmp_path, monkeypatch):
    """With several calls a block, so that a checkpoint lies between two recorded rounds."""
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 1e9)  # calls of as many rounds as a chunk has
    monkeypatch.setattr(blocks, "FIRST_CALL", 64)
    plan = study(**SMALL, horizon=500, record=[7, 450, 500])
    expected, _ = run(plan, tmp_path / "whole")
    calls = iter(range(3))

    def notice(*_):
        if next(calls, None) is None:
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        jb.run(plan, tmp_path / "cut", engine=jb.Engine(block=64, chunk=64, devices=1, checkpoint=0.0), notice=notice)
    (path,) = (tmp_path / "cut" / "checkpoints").iterdir()
    _, about = checkpoint.unpack(path.read_bytes())
    assert (about["t"], about["reached"]) == (192, 1)
    rounds = []
    ds, _ = run(plan, tmp_path / "cut", notice=lambda done, total, *_: rounds.append((done, total)))
    assert rounds[-1][1] == 100 * 500 - 64 * 192
    assert_same(ds, expected)


def test_all_games_under_way_are_saved_when_it_is_stopped(tmp_path, monkeypatch):
    """Two blocks on two cores, both between their first and their last call."""
    if jb.Engine().cores() < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 1e9)  # calls of as many rounds as a chunk has
    monkeypatch.setattr(blocks, "FIRST_CALL", 64)
    plan = study(**SMALL, horizon=500, num_seeds=128, record=[7, 450, 500])
    expected, _ = run(plan, tmp_path / "whole")
    stop, begun = threading.Event(), threading.Barrier(2, timeout=60)
    original, seen = native.games.Block.advance, set()

    def advance(block, *args):
        played = original(block, *args)
        if id(block) not in seen:  # neither block is stopped before both have played a call
            seen.add(id(block))
            begun.wait()
        return played

    monkeypatch.setattr(native.games.Block, "advance", advance)
    with pytest.raises(KeyboardInterrupt):
        engine = jb.Engine(block=64, chunk=64, devices=2)
        jb.run(plan, tmp_path / "cut", engine=engine, notice=lambda *_: stop.set(), stop=stop)
    monkeypatch.setattr(native.games.Block, "advance", original)
    saved = [checkpoint.unpack(path.read_bytes())[1] for path in (tmp_path / "cut" / "checkpoints").iterdir()]
    assert len(saved) == 2 and all(0 < about["t"] < 500 for about in saved)
    ds, _ = run(plan, tmp_path / "cut")
    assert_same(ds, expected)


def test_damaged_checkpoints_and_parts_are_played_again(tmp_path, whole):
    engine = jb.Engine(block=64, devices=1, checkpoint=0.0)
    calls = iter(range(3))  # a cell is whole, a part of the next one is there

    def notice(*_):
        if next(calls, None) is None:
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError):
        jb.run(study(), tmp_path, engine=engine, notice=notice)
    left = [*(tmp_path / "parts").iterdir(), *(tmp_path / "checkpoints").iterdir()]
    assert left
    for path in left:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.warns(UserWarning, match="is damaged"):
        ds, _ = run(study(), tmp_path)
    assert_same(ds, whole[0])


def test_plan_counts_and_measures(tmp_path):
    plan = study()
    found = jb.plan(plan, tmp_path / "none", engine=ENGINE)
    assert (found.cells, found.found, found.compiles, found.lanes) == (9, 0, 2, 900)
    assert found.seed_rounds == 900 * 60
    assert found.run_seconds > 0 and found.memory_bytes > 50e6
    assert not (tmp_path / "none").exists()
    run(plan, tmp_path)
    written = sum(os.path.getsize(tmp_path / "cells" / name) for name in files(tmp_path))
    assert 0.7 < found.disk_bytes / written < 1.4
    assert jb.plan(plan, tmp_path, engine=ENGINE).cells == 0


def test_plan_needs_no_directory():
    assert jb.plan(study(**SMALL), engine=ENGINE).cells == 1


def test_dask_takes_it_over(whole):
    pytest.importorskip("dask", reason="needs Dask: pip install 'jaxbandit[dask]'")
    ds, _, directory = whole
    mean = jb.load(directory).chunk().regret.mean("seed")
    assert mean.chunks is not None
    np.testing.assert_allclose(mean.values, ds.regret.mean("seed"), rtol=1e-12)


def test_another_study_in_the_same_directory_has_its_own_rounds(tmp_path):
    run(study(**SMALL, num_seeds=8), tmp_path)
    other = {"policies": [{"name": "exp3"}], "environments": [{"name": "bernoulli", "means": [0.1, 0.9]}]}
    ds, _ = run(study(**other, num_seeds=8, horizon=100), tmp_path)
    assert ds["round"].values.tolist() == np.unique(np.rint(np.geomspace(1, 100, 8))).astype(int).tolist()

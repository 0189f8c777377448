"""Studies beyond every machine: an answer in words within two seconds, with the numbers and the value to change."""

import time

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.runs import forecast
from jaxbandit.store.directory import StoreError
from jaxbandit.studies import limits

BASE = {"horizon": 1000, "num_seeds": 8, "policies": [{"name": "uniform"}]}
ENVIRONMENT = {"name": "pareto", "means": [0.5, 1.0], "tail_index": 1.6}
LONG = np.linspace(1.1, 1.9, 1000).tolist()


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"num_seeds": 10**12}, r"lower num_seeds \(now 1,000,000,000,000\)"),
        ({"num_seeds": 10**12, "keep": "summary"}, "lower num_seeds"),
        ({"precision": 1e-9, "max_seeds": 10**12}, r"lower max_seeds \(now 1,000,000,000,000\)"),
        ({"horizon": 2 * 10**9, "record": 10**9}, r"lower record \(now 1,000,000,000\)"),
        (
            {
                "environments": [ENVIRONMENT | {"tail_index": LONG, "means": [[0.1, x] for x in LONG]}],
                "policies": [{"name": "uniinf", "initial_scale": LONG}],
            },
            r"lower the number of environments \(now 1,000,000\)",
        ),
        ({"environments": [ENVIRONMENT | {"means": [0.5] * 10**6}]}, r"lower the number of arms \(now 1,000,000\)"),
    ],
    ids=["seeds", "summary", "precision", "rounds", "grid", "arms"],
)
def test_too_large(tmp_path, monkeypatch, change, advice):
    monkeypatch.setattr(limits, "total_memory", lambda: 16e9)
    monkeypatch.setattr(limits, "whole_disk", lambda directory: 1e12)
    began = time.process_time()
    with pytest.raises(ValueError, match=rf"games need at least .* of memory.*disk space.*here are 16 GB.*{advice}"):
        jb.run(jb.Study(**BASE | {"environments": [ENVIRONMENT]} | change), tmp_path)
    assert time.process_time() - began < 2
    assert not list(tmp_path.iterdir())


def test_plan_says_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "free_disk", lambda directory: 1e6)
    study = jb.Study(**BASE | {"environments": [ENVIRONMENT], "num_seeds": 10**6})
    for use in (forecast.plan, jb.run):
        with pytest.raises(StoreError, match=r"1,000,000 games in .* need at least .*1 MB of free disk space; make"):
            use(study, tmp_path)
        with pytest.raises(ValueError, match=r"1,000,000 games need.*a disk of 1 MB; lower num_seeds"):
            monkeypatch.setattr(limits, "whole_disk", lambda directory: 1e6)
            use(study, tmp_path)
        monkeypatch.undo()
        monkeypatch.setattr(limits, "free_disk", lambda directory: 1e6)


def test_the_estimate_is_a_lower_bound_of_the_plan(tmp_path):
    study = jb.Study(**BASE | {"environments": [ENVIRONMENT], "num_seeds": 512})
    needs, planned = study.check_size(tmp_path), forecast.plan(study, tmp_path)
    assert needs.games == planned.lanes
    assert needs.memory_bytes <= planned.memory_bytes and needs.disk_bytes <= planned.disk_bytes


def test_only_what_is_left_needs_disk_space(tmp_path, monkeypatch):
    study = jb.Study(**BASE | {"environments": [ENVIRONMENT], "num_seeds": 128})
    larger = study.changed(num_seeds=192)
    jb.run(study, tmp_path)
    whole, left = (limits.file_bytes(2, seeds, len(study.rounds()), 1, False) for seeds in (192, 64))
    monkeypatch.setattr(limits, "free_disk", lambda directory: left)
    assert whole > left
    jb.run(larger, tmp_path)  # 128 seeds are there
    (tmp_path / "cells" / "another study's").write_bytes(bytes(10 * whole))
    manifest = (tmp_path / "store.json").read_bytes()
    for use in (forecast.plan, jb.run):
        with pytest.raises(
            StoreError, match=r"192 games in 1 cells that are left need at least .*free disk space; make"
        ):
            use(study.changed(num_seeds=384), tmp_path)
        with pytest.raises(StoreError, match=r"192 games in 1 cells that are left"):
            use(larger, tmp_path / "new")
    assert (tmp_path / "store.json").read_bytes() == manifest


MANY_ARMS = {"name": "bernoulli", "means": np.linspace(0.1, 0.9, 500).tolist()}


@pytest.mark.parametrize(
    "change",
    [
        {"policies": [{"name": "uniform", "num_seeds": 2000}, {"name": "exp3"}, {"name": "tsallis_inf"}]},
        {"policies": [{"name": "uniform", "num_seeds": 2000, "stop_at": 2}, {"name": "exp3"}]},
        {"environments": [ENVIRONMENT, MANY_ARMS], "policies": [{"name": "uniform"}, {"name": "exp3"}]},
        {"precision": 0.5, "max_seeds": 10**6},
    ],
    ids=["seeds", "stops", "arms", "precision"],
)
def test_a_finished_study_needs_no_disk_space(tmp_path, monkeypatch, change):
    study = jb.Study(**BASE | {"environments": [ENVIRONMENT]} | change)
    jb.run(study, tmp_path)
    monkeypatch.setattr(limits, "free_disk", lambda directory: 0.0)
    assert forecast.plan(study, tmp_path).cells == 0
    jb.run(study, tmp_path)


def test_a_longer_horizon_needs_space_for_whole_cells(tmp_path, monkeypatch):
    study = jb.Study(**BASE | {"environments": [ENVIRONMENT]})
    longer = study.changed(horizon=1100)
    stored = limits.file_bytes(2, 8, len(study.rounds()), 1, False)
    jb.run(study, tmp_path)
    monkeypatch.setattr(limits, "free_disk", lambda directory: stored)  # the rest alone would fit
    with pytest.raises(StoreError, match=r"8 games in 1 cells that are left need at least"):
        jb.run(longer, tmp_path)


def test_a_study_file_of_a_million_arms_is_answered_at_once(tmp_path):
    means = ",".join(["1"] * 10**6)
    (tmp_path / "study.toml").write_text(f'horizon = 9\nenvironments = [{{name = "pareto", means = [{means}]}}]')
    began = time.process_time()
    with pytest.raises(ValueError, match=r"study.toml has more than 2,000,000 bytes.*write long lists to a table"):
        jb.Study.load(tmp_path / "study.toml")
    assert time.process_time() - began < 1

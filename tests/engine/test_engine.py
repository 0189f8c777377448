"""The engine changes how, never what: bits, calls, blocks, keys, compiled programs."""

import subprocess
import sys
import threading
import types

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine import blocks, native, runner
from tests.support.runs import HORIZON, MEASURES, assert_same_bits, environment, run


@pytest.mark.parametrize(
    "options",
    [
        {"block": 1},
        {"block": 13},
        {"block": 1024},
        {"devices": 1},
        pytest.param({"chunk": 1}, marks=pytest.mark.slow),
        {"chunk": 7},
    ],
    ids=lambda options: "-".join(f"{key}{value}" for key, value in options.items()),
)
@pytest.mark.parametrize(
    "num_arms", [2, pytest.param(10, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.slow)]
)
def test_bits_do_not_depend_on_how_it_is_run(num_arms, options):
    assert_same_bits(run(num_arms), run(num_arms, engine=jb.Engine(**options)))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"block": 13}, {"chunk": 7}])
def test_bits_of_the_scan_do_not_depend_on_how_it_is_run(options):
    assert_same_bits(run(engine=jb.Engine(way="scan")), run(engine=jb.Engine(way="scan", **options)))


@pytest.mark.slow
def test_bits_of_the_scan_do_not_depend_on_the_devices(tmp_path):
    """They split every block: here 80 games on one, two and three devices, the last block of each padded."""
    code = (
        "import jax, numpy, sys\n"
        "jax.config.update('jax_num_cpu_devices', int(sys.argv[1]))\n"
        "import jaxbandit as jb\n"
        "w = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)\n"
        "engine = jb.Engine(way='scan', block=79)\n"
        "ds = jb.simulate(jb.UniINF(horizon=300), w, horizon=300, num_seeds=80, record=[7, 300], engine=engine)\n"
        "assert f'scan: {sys.argv[1]} x' in ds.attrs['device'], ds.attrs['device']\n"
        "numpy.savez(sys.argv[2], **{name: ds[name].values for name in ds.data_vars})\n"
    )
    found = []
    for count in (1, 2, 3):
        path = tmp_path / f"{count}.npz"
        subprocess.run([sys.executable, "-c", code, str(count), str(path)], check=True)
        found.append(np.load(path))
    assert {"pulls", "loss", "regret"} <= set(found[0].files)
    for other in found[1:]:
        for name in found[0].files:
            np.testing.assert_array_equal(found[0][name], other[name], err_msg=name)


@pytest.fixture
def calls(monkeypatch):
    """The calls of machine code, as (first round, last round)."""
    seen, original = [], native.games.Block.advance

    def advance(self, t, until, record):
        seen.append((t, until))
        return original(self, t, until, record)

    monkeypatch.setattr(native.games.Block, "advance", advance)
    return seen


def test_chunk_is_the_most_rounds_of_a_call(calls, monkeypatch):
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 1e9)  # no call is too long
    run(engine=jb.Engine(chunk=40, devices=1), num_seeds=8, horizon=100, record=[3, 100])
    assert calls == [(0, 4), (4, 36), (36, 76), (76, 100)]
    calls.clear()
    run(engine=jb.Engine(devices=1), num_seeds=8, horizon=10_000, record=[10_000])
    assert calls[0] == (0, 4)
    rounds = [until - t for t, until in calls[:-1]]
    assert rounds == sorted(rounds) and rounds[-1] > rounds[0]


def test_calls_are_kept_short(calls, monkeypatch):
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 0.0)
    run(engine=jb.Engine(devices=1), num_seeds=8, horizon=200, record=[200])
    assert calls[0] == (0, 4)  # a round of many large games may take long
    assert {until - t for t, until in calls[1:]} == {1}


def test_a_block_stops_when_another_is_broken_off(calls, monkeypatch):
    if jb.Engine().cores() < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 1e9)  # calls of as many rounds as a chunk has
    monkeypatch.setattr(blocks, "FIRST_CALL", 64)
    options = {"num_seeds": 128, "horizon": 6400, "record": [6400]}
    run(engine=jb.Engine(block=64, chunk=64, devices=2), **options)
    whole, _ = len(calls), calls.clear()
    assert whole == 200

    broken_off = threading.Event()

    def broken(done, total):  # for one of the two
        if len(calls) >= 10 and not broken_off.is_set():
            broken_off.set()
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        run(engine=jb.Engine(block=64, chunk=64, devices=2, progress=broken), **options)
    assert len(calls) < 20


@pytest.mark.slow
def test_bits_of_many_arms_do_not_depend_on_the_block():
    """Arrays over 600 arms lie in memory and are looped over."""
    assert_same_bits(run(600, engine=jb.Engine(devices=1)), run(600, engine=jb.Engine(block=13)))


GIVEN = {"moment_order": 2.0, "moment_bound": 1.0}


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        jb.RobustUCB(**GIVEN, estimator="catoni"),
        jb.RobustUCB(**GIVEN, estimator="median_of_means", max_rounds=HORIZON),
        jb.RobustMOSS(horizon=HORIZON, **GIVEN),
        jb.AdaRUCB(horizon=HORIZON),
    ],
    ids=["catoni", "median_of_means", "robust_moss", "adar_ucb"],
)
def test_bits_of_robust_means_do_not_depend_on_how_they_are_run(policy):
    """Sums and medians over what an arm has seen; 80 games on all cores, and in two blocks on one."""
    assert_same_bits(run(3, policy), run(3, policy, engine=jb.Engine(block=64, devices=1)))


@pytest.mark.parametrize(
    "num_arms", [2, pytest.param(10, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)]
)
def test_bits_do_not_depend_on_company(num_arms):
    alone = run(num_arms)
    sweep = jb.grid(jb.UniINF, horizon=HORIZON, initial_scale=[1.0, 4.0])
    assert_same_bits(alone, run(num_arms, sweep).sel(initial_scale=4.0, drop=True))
    assert_same_bits(alone, run(num_arms, num_seeds=160).isel(seed=slice(80)))  # as many as the sweep
    both = run(num_arms, [jb.Uniform(), jb.UniINF(horizon=HORIZON)])
    assert_same_bits(alone, both.sel(policy="uniinf").isel(environment=0).drop_vars(["policy", "environment"]))


@pytest.mark.slow
def test_bits_do_not_depend_on_what_is_watched():
    plain = run()
    assert_same_bits(plain, run(trace=3))
    assert_same_bits(plain, run(measures=MEASURES))


def test_a_block_fits_its_memory_and_leaves_no_core_idle():
    small, large = (types.SimpleNamespace(lane_bytes=size, width=8) for size in (200, 1 << 19))
    engine = jb.Engine()
    assert [engine.lanes(small, 1, count) for count in (1, 8, 9, 500, 2**20)] == [8, 8, 16, 504, runner.MOST_LANES]
    assert [engine.lanes(small, 2, count) for count in (1, 17, 500, 10_000)] == [8, 16, 256, 1256]
    assert engine.lanes(large, 1, 10**6) == runner.BLOCK_BYTES // large.lane_bytes == 128
    assert engine.lanes(large, 4, 10**6) == 128
    assert engine.lanes(types.SimpleNamespace(lane_bytes=1 << 30, width=8), 1, 10**6) == 64
    assert [jb.Engine(block=13).lanes(games, 2, 10**6) for games in (small, large)] == [13, 13]
    for count in range(1, 3000, 7):
        lanes = engine.lanes(small, 3, count)
        assert lanes % 8 == 0 and lanes - 8 < -(-count // 3)  # three blocks, but for whole vectors


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**31, 2**32 + 1, 2**64 - 1])
def test_lanes_have_the_keys_of_their_games(seed):
    """They are those of JAX where it reads 64 bits of a seed, whatever is played in."""
    numbers = np.array([0, 1, 63, 10**6, 2**32 - 1], np.uint32)
    with jax.enable_x64(True):
        key = jax.random.key(np.uint64(seed), impl="threefry2x32")
        expected = [jax.random.key_data(jax.random.fold_in(key, n)) for n in numbers]
    keys = [jax.random.key_data(jb.game_key(seed, n)) for n in numbers]
    np.testing.assert_array_equal(keys, expected)
    np.testing.assert_array_equal(random.game_words(random.seed_words(seed), numbers).T, expected)


def test_seeds_differ_and_seed_matters():
    ds = run()
    assert len(np.unique(ds.loss.values[:, -1])) == ds.sizes["seed"]
    assert not np.array_equal(ds.loss, run(seed=1).loss)


@pytest.mark.slow
def test_common_random_numbers():
    """Two policies on one seed have common random numbers: losses relative to the mean are equal."""
    ds = jb.simulate([jb.Uniform(), jb.UniINF(horizon=50)], environment(3), horizon=50, num_seeds=20, trace=20)
    means = np.asarray([0.5, 1.0, 1.0])
    relative = ds.trace_loss / means[ds.trace_arm]
    np.testing.assert_allclose(relative.isel(policy=0), relative.isel(policy=1), rtol=1e-5)


def test_one_trace_for_all_values(monkeypatch):
    calls = []  # six arms: no other test has had this program traced
    original = jb.UniINF.update

    def counted(self, *args):
        calls.append(1)
        return original(self, *args)

    monkeypatch.setattr(jb.UniINF, "update", counted)

    def play(*args, **options):
        return run(6, *args, **options)

    play()
    first = len(calls)
    assert first > 0
    play(jb.UniINF(horizon=77.0, initial_scale=2))
    play(jb.grid(jb.UniINF, horizon=[10, 20, 30], initial_scale=[1.0, np.float32(2)]))
    play(num_seeds=3)
    play(engine=jb.Engine(block=17, devices=1))
    play(horizon=1000, record=[5, 6, 7, 8, 1000])
    play(record=40)
    jb.simulate(
        jb.UniINF(horizon=9),
        jb.grid(jb.Pareto, means=[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 1, 1, 1, 1, 1]], tail_index=[1.2, 2.0]),
        horizon=50,
        num_seeds=7,
    )
    assert len(calls) == first


@pytest.mark.parametrize("way", ["native", "scan"])
def test_play_in_a_shard_map_plays_the_same_games(way):
    policy, environment = jb.UniINF(horizon=50), jb.Switching(jb.Bernoulli(means=[0.2, 0.5]))
    keys = jax.vmap(jb.game_key, (None, 0))(0, np.arange(8))
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("games",))
    one = jax.sharding.PartitionSpec("games")

    def play(words):
        return jb.play(policy, environment, words, [10, 50], way=way)

    spread = jax.jit(jax.shard_map(play, mesh=mesh, in_specs=one, out_specs=one, check_vma=False))
    out, alone = spread(jax.random.key_data(keys)), jb.play(policy, environment, keys, [10, 50], way=way)
    for name, values in alone.items():
        np.testing.assert_array_equal(out[name], values)

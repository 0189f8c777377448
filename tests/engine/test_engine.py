"""The engine changes how, never what: bits, compiles, memory, records, traces."""

import pathlib
import subprocess
import sys
import threading
import types
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine import blocks, machine, native, runner, ways
from jaxbandit.game import is_stationary
from jaxbandit.store import cells
from jaxbandit.types import field, pytree
from tests.support.helpers import PEAK, assert_mean, knows_peak

HORIZON, RECORD = 300, [1, 7, 100, 300]
MEASURES = ("scale", "skipped", "div", "shift", "skip_error")


def environment(num_arms):
    return jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)


def run(num_arms=3, policy=None, **options):
    options = {"horizon": HORIZON, "num_seeds": 80, "record": RECORD} | options
    return jb.simulate(policy or jb.UniINF(horizon=HORIZON), environment(num_arms), **options)


def assert_same_bits(ds, other):
    assert set(ds.data_vars) <= set(other.data_vars)
    for name in ds.data_vars:
        np.testing.assert_array_equal(ds[name].values, other[name].values, err_msg=str(name))
        for coord in ds[name].coords:
            np.testing.assert_array_equal(ds[name][coord].values, other[name][coord].values)


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

    def advance(self, t, until, stops):
        seen.append((t, until))
        return original(self, t, until, stops)

    monkeypatch.setattr(native.games.Block, "advance", advance)
    return seen


def test_chunk_is_the_most_rounds_of_a_call(calls, monkeypatch):
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 1e9)  # no call is too long
    run(engine=jb.Engine(chunk=40, devices=1), num_seeds=8, horizon=100, record=[3, 100])
    assert calls == [(0, 40), (40, 80), (80, 100)]
    calls.clear()
    run(engine=jb.Engine(devices=1), num_seeds=8, horizon=10_000, record=[10_000])
    assert calls[0] == (0, blocks.FIRST_ROUNDS)
    rounds = [until - t for t, until in calls[:-1]]
    assert rounds == sorted(rounds) and rounds[-1] > rounds[0]


def test_calls_are_kept_short(calls, monkeypatch):
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 0.0)
    run(engine=jb.Engine(devices=1), num_seeds=8, horizon=200, record=[200])
    assert calls[0] == (0, blocks.FIRST_ROUNDS)
    assert max(until - t for t, until in calls[1:]) <= 16


def test_a_block_stops_when_another_is_broken_off(calls, monkeypatch):
    if jb.Engine().cores() < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 1e9)  # calls of as many rounds as a chunk has
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


TOLD = {"moment_order": 2.0, "moment_bound": 1.0}


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        jb.RobustUCB(**TOLD, estimator="catoni"),
        jb.RobustUCB(**TOLD, estimator="median_of_means", max_rounds=HORIZON),
        jb.RobustMOSS(horizon=HORIZON, **TOLD),
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
    """Two policies on one seed meet the same luck: losses relative to the mean are equal."""
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


def test_regret_is_exact_in_a_changing_environment():
    law = jb.Gaussian(means=[0.0, 0.25, 1.0])
    switching = jb.Switching(law, lengths=[10, 25, 7])
    ds = jb.simulate(jb.Uniform(), switching, horizon=60, num_seeds=6, record=list(range(1, 61)), trace=6)
    table = np.stack([np.asarray(switching.means(jnp.int32(t)), np.float64) for t in range(1, 61)])
    played = np.take_along_axis(table[None], ds.trace_arm.values[..., None], axis=2)[..., 0]
    expected = played.cumsum(axis=1) - table.cumsum(axis=0).min(axis=1)
    np.testing.assert_allclose(ds.regret, expected, atol=1e-6)


def test_regret_is_pulls_times_gaps():
    ds = run()
    np.testing.assert_allclose(ds.regret, (ds.pulls * [0.0, 0.5, 0.5]).sum("arm"), rtol=1e-15)
    np.testing.assert_array_equal(ds.pulls.sum("arm"), np.broadcast_to(RECORD, ds.regret.shape))


def test_trace_tells_the_tallies():
    ds = run(trace=5)
    one_hot = ds.trace_arm.values[..., None] == np.arange(3)
    at = np.asarray(RECORD) - 1
    np.testing.assert_array_equal(one_hot.cumsum(axis=1)[:, at], ds.pulls[:5])
    np.testing.assert_allclose(ds.trace_loss.values.astype(np.float64).cumsum(axis=1)[:, at], ds.loss[:5], rtol=1e-12)
    np.testing.assert_allclose(ds.trace_x.sum("arm"), 1, atol=1e-6)


@pytest.mark.parametrize("changing", [False, True], ids=["stationary", "changing"])
def test_play_is_what_simulate_does(changing):
    """The same machine code, the sums rounded to float32 at the end."""
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(80))
    arena = jb.Switching(environment(3), lengths=[3, 50, 20]) if changing else environment(3)
    policy = jb.Uniform() if changing else jb.UniINF(horizon=HORIZON)
    out = jax.jit(jb.play)(policy, arena, keys, jnp.asarray(RECORD))
    ds = jb.simulate(policy, arena, horizon=HORIZON, num_seeds=80, record=RECORD)
    np.testing.assert_array_equal(out["pulls"], ds.pulls)
    np.testing.assert_array_equal(out["loss"], ds.loss.values.astype(np.float32))
    np.testing.assert_allclose(out["regret"], ds.regret, rtol=1e-5, atol=1e-5)
    assert (out["failed"] == 0).all()


def test_both_ways_play_one_game():
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(80))
    play = jax.jit(jb.play, static_argnames="way")
    one, other = (
        play(jb.UniINF(horizon=HORIZON), environment(3), keys, jnp.asarray(RECORD), way=way) for way in ways.WAYS
    )
    short = slice(0, 2)  # rounding parts two right programs after some hundred rounds
    np.testing.assert_array_equal(one["pulls"][:, short], other["pulls"][:, short])
    np.testing.assert_allclose(one["loss"][:, short], other["loss"][:, short], rtol=1e-5)
    assert_mean(one["regret"][:, -1] - other["regret"][:, -1], 0.0)


@pytest.mark.slow
def test_play_under_vmap_and_jvp(x64):
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(6))
    record = jnp.asarray([20])
    stacked = jb.UniINF(horizon=np.full(2, 20.0), initial_scale=np.array([1.0, 4.0]))
    both = jax.jit(jax.vmap(jb.play, (0, None, None, None)))(stacked, environment(2), keys, record)
    one = jax.jit(jb.play)(jb.UniINF(horizon=20.0, initial_scale=4.0), environment(2), keys, record)
    np.testing.assert_array_equal(both["pulls"][1], one["pulls"])

    def final_scale(initial_scale):
        policy = jb.UniINF(horizon=20.0, initial_scale=initial_scale)
        step, key = jb.step(policy, environment(2)), jb.game_key(0, 0)
        return jax.lax.fori_loop(0, 10, lambda _, s: step(s, key), jb.start(policy, environment(2))).policy.scale

    value_and_slope = jax.jit(lambda scale: jax.jvp(final_scale, (scale,), (1.0,)))
    h = 1e-6
    (below, _), (value, slope), (above, _) = (value_and_slope(scale) for scale in (4 - h, 4.0, 4 + h))
    np.testing.assert_allclose(slope, (above - below) / (2 * h), rtol=1e-5)
    assert value > 4


def test_summary_is_the_summary_of_the_seeds():
    seeds, kept = run(measures=MEASURES), run(measures=MEASURES, keep="summary")
    stats = jb.summary(seeds)
    for name in ("regret_mean", "regret_stderr", "regret_quantile"):
        np.testing.assert_allclose(kept[name].transpose(*stats[name].dims), stats[name], rtol=1e-12)
    np.testing.assert_allclose(kept.pulls, seeds.pulls.mean("seed"), rtol=1e-12)
    np.testing.assert_allclose(kept.skipped, seeds.skipped.mean("seed"), rtol=1e-12)
    assert "seed" not in kept.dims


@pytree
class OneInfiniteLoss:
    """Loss 0.5 in every round but the tenth."""

    num_arms: ClassVar[int] = 2

    def means(self, t):
        return jnp.full(2, 0.5)

    def loss(self, t, arm, key):
        return jnp.where(t == 10, jnp.inf, 0.5)


def test_infinite_losses_are_said():
    ds = jb.simulate(jb.UniINF(horizon=20), OneInfiniteLoss(), horizon=20, num_seeds=4, record=[5, 20])
    assert np.isfinite(ds.loss[:, 0]).all()
    assert np.isposinf(ds.loss[:, 1]).all()
    assert (ds.failed == 0).all()
    assert ds.attrs["infinite_losses"] == 4


@pytree
class Hoarder:
    """Plays at random and keeps its losses in a table."""

    def init(self, num_arms):
        return jnp.zeros((3, num_arms))

    def probabilities(self, state, t, key):
        return jnp.full(2, 0.5)

    def update(self, state, t, x, arm, loss):
        return state.at[t % 3, arm].set(loss)


def test_what_breaks_a_table_is_said_at_the_next_recorded_round():
    ds = jb.simulate(Hoarder(), OneInfiniteLoss(), horizon=20, num_seeds=4, record=[5, 11, 20])
    assert (ds.failed == 11).all()
    assert (jb.simulate(Hoarder(), OneInfiniteLoss(), horizon=9, num_seeds=4).failed == 0).all()


def test_stationarity_is_read_off():
    assert is_stationary(environment(3))
    assert not is_stationary(jb.Switching(environment(3)))


def test_provenance():
    attrs = run().attrs
    for key in ("jaxbandit", "jax", "device", "dtype", "seed", "prng", "compile_seconds", "run_seconds", "policy"):
        assert key in attrs
    assert attrs["seed"] == 0


@pytest.mark.slow
@knows_peak
def test_memory_is_flat_in_the_horizon():
    """Peak RSS at T = 1e6 within 5 % of T = 1e4, each in a process of its own."""
    code = PEAK + (
        "import jaxbandit as jb\n"
        "w = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)\n"
        "jb.simulate(jb.UniINF(horizon={T}), w, horizon={T}, num_seeds=256, record=32)\n"
        "print(peak())\n"
    )
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", code.replace("{T}", str(T))], check=True, capture_output=True, text=True
            ).stdout
        )
        for T in (10_000, 1_000_000)
    ]
    assert peaks[1] <= 1.05 * peaks[0], peaks


@pytest.mark.slow
def test_many_lanes():
    ds = run(2, num_seeds=100_000, horizon=20, record=[20])
    assert ds.sizes["seed"] == 100_000
    assert (ds.pulls.sum("arm") == 20).all()
    assert_mean(ds.pulls[:5_000, 0, 0], float(ds.pulls[:, 0, 0].mean()))


@pytest.mark.long
@pytest.mark.parametrize("environment", ["pareto", "student_t"])
def test_float32_is_good_enough(environment):
    """Mean regret in float32 and float64 within 4 standard errors, on unpaired seeds."""
    means = [0.5] + [1.0] * 9
    law = (
        jb.Pareto(means=means, tail_index=1.3) if environment == "pareto" else jb.StudentT(means=means, tail_index=1.5)
    )
    options = {"horizon": 200_000, "num_seeds": 512, "record": [200_000]}
    finals = [
        jb.simulate(jb.UniINF(horizon=200_000), law, dtype=dtype, seed=seed, **options).regret.values[:, 0]
        for seed, dtype in enumerate(("float32", "float64"))
    ]
    difference = finals[0].mean() - finals[1].mean()
    stderr = np.sqrt(sum(final.var(ddof=1) / final.size for final in finals))
    assert abs(difference) <= 4 * stderr, (difference, stderr)


PROCESS = """
import os, sys, jax, jax.numpy as jnp
if sys.argv[1] == "started":
    jax.devices()
if sys.argv[1] != "without":
    import jaxbandit as jb
if sys.argv[1] in ("played", "started"):
    ds = jb.simulate(jb.UniINF(horizon=9), jb.Bernoulli(means=[0.0, 1.0]), horizon=10, num_seeds=4)
    assert int(ds.pulls.isel(round=-1).sum()) == 40
scatter = jax.vmap(lambda a, b, i, x: (a.at[i].add(x), jnp.exp(b.at[i].add(x * x)).sum(axis=-1)))
zeros = jnp.zeros((64, 10))
program = jax.jit(scatter).lower(zeros, zeros, jnp.arange(64) % 10, jnp.ones(64)).compile()
print(os.environ.get("XLA_FLAGS"), sorted(jax.config.values.items(), key=str), jax.devices())
print(program.as_text())
"""


@pytest.mark.parametrize(
    "how", ["imported", pytest.param("played", marks=pytest.mark.slow), pytest.param("started", marks=pytest.mark.slow)]
)
def test_a_process_is_left_as_it_is(how, tmp_path):
    """Flags, settings, devices and compiled programs of others, whether JAX has started before or not."""

    def process(how):
        command = [sys.executable, "-W", "error", "-c", PROCESS, how]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout

    without = process("without")
    assert "jax_enable_x64" in without and "HloModule" in without
    assert process(how) == without


def test_bits_of_machine_code_depend_on_nothing_but_the_game():
    """So cells that one machine has played serve another; those of the scan depend on XLA."""
    assert cells.platform("native") == {"way": "native"}
    assert set(cells.platform("scan")) == {"way", "jaxlib", "device", "instruction_set"}


def test_the_way_is_told():
    assert run().attrs["device"].startswith("native: ")
    assert run(engine=jb.Engine(way="scan")).attrs["device"].startswith("scan: ")


@pytree
class Astray:
    """Plays at random until round 5, whose x is no probability vector."""

    wrong: jax.Array = field(vector=True)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        wrong = jnp.asarray(self.wrong)  # fields refuse NaN and infinity: 98 and 99 stand for them
        wrong = jnp.where(wrong == 98, jnp.nan, jnp.where(wrong == 99, jnp.inf, wrong))
        return jnp.where(t == 5, wrong, jnp.full(2, 0.5))

    def update(self, state, t, x, arm, loss):
        return state


@pytest.mark.parametrize("way", ways.WAYS)
@pytest.mark.parametrize("changing", [False, True], ids=["stationary", "changing"])
def test_no_arm_is_drawn_off_the_simplex(way, changing):
    """Not finite, negative, or a sum off by more than 1e-3; the last x is within."""
    environment = jb.Bernoulli(means=[0.2, 0.8])
    environment = jb.Switching(environment, lengths=[3, 50]) if changing else environment
    wrong = [[98, 0.5], [99, 0.0], [-0.25, 1.25], [0.5, 0.4], [0.5, 0.5015], [0.5, 0.5005]]
    ds = jb.simulate(
        jb.grid(Astray, wrong=wrong),
        environment,
        horizon=8,
        num_seeds=6,
        record=[4, 5, 8],
        trace=6,
        engine=jb.Engine(way=way),
    )
    lost, fine = ds.isel(wrong=slice(5)), ds.isel(wrong=5)
    assert (lost.failed == 5).all() and (fine.failed == 0).all()
    arms = lost.trace_arm.values
    assert (arms[..., 4] == -1).all() and (np.delete(arms, 4, axis=-1) >= 0).all()
    assert np.isnan(lost.trace_loss.values[..., 4]).all()
    assert np.isfinite(lost.regret.values[..., 0]).all() and np.isnan(lost.regret.values[..., 1:]).all()
    np.testing.assert_array_equal(lost.pulls.sum("arm"), np.broadcast_to([4, 4, 7], (5, 6, 3)))
    assert np.isfinite(fine.regret).all() and (fine.pulls.sum("arm") == [4, 5, 8]).all()


@pytest.mark.parametrize("version", ["0.9.2", "0.14.1", "1.0.0"])
def test_a_jax_outside_of_the_tested_range_is_named_once(version, monkeypatch):
    monkeypatch.setattr(jax, "__version__", version)
    monkeypatch.setattr(ways, "_said", set())
    expected = rf"jax {version} is installed, but jaxbandit is tested with jax 0.10 to 0.12; .*'jax>=0.10,<0.13'"
    with pytest.warns(UserWarning, match=expected):
        run(policy=jb.Uniform())
    run(policy=jb.Uniform())  # a second warning would be an error


def test_the_tested_range_is_that_of_the_dependency():
    text = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    (oldest, newest) = machine.TESTED_JAX
    assert f'"jax>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"' in text

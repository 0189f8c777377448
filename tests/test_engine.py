"""The engine changes how, never what: bits, compiles, memory, records, traces."""

import functools
import pathlib
import subprocess
import sys
import threading
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import blocks, cells, engine, fusion, random, runner, xla
from jaxbandit.game import as_arrays, is_stationary
from jaxbandit.types import pytree
from tests.helpers import PEAK, assert_mean, filled, knows_peak

HORIZON, RECORD = 300, [1, 7, 100, 300]
MEASURES = ("scale", "skipped", "div", "shift", "skip_error")


def world(num_arms):
    return jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)


def run(num_arms=3, policy=None, **options):
    options = {"horizon": HORIZON, "num_seeds": 80, "record": RECORD} | options
    return jb.simulate(policy or jb.UniINF(horizon=HORIZON), world(num_arms), **options)


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


@pytest.mark.parametrize("num_seeds", [pytest.param(80, marks=pytest.mark.slow), 300])
def test_bits_do_not_depend_on_whether_devices_play_apart(num_seeds, monkeypatch):
    """Cores play blocks of their own; the devices of a GPU machine split every block, here in one call and in three."""
    apart = run(num_seeds=num_seeds)
    monkeypatch.setattr(jb.Engine, "apart", lambda self: False)
    split = run(num_seeds=num_seeds, engine=jb.Engine(block=64))
    assert_same_bits(apart, split)


def test_a_block_stops_when_another_is_broken_off(monkeypatch):
    if jax.local_device_count() < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr(blocks, "FIRST_ROUNDS", 64)
    monkeypatch.setattr(blocks, "TARGET_SECONDS", 0.0)  # calls of 64 rounds
    calls, original = [], blocks.call
    monkeypatch.setattr(blocks, "call", lambda *args: calls.append(args) or original(*args))

    run(num_seeds=128, engine=jb.Engine(block=64, devices=2), horizon=6400, record=[6400])
    whole, _ = len(calls), calls.clear()
    assert whole == 200

    broken_off = threading.Event()

    def broken(done, total):  # for one of the two
        if len(calls) >= 10 and not broken_off.is_set():
            broken_off.set()
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        run(num_seeds=128, engine=jb.Engine(block=64, devices=2, progress=broken), horizon=6400, record=[6400])
    assert len(calls) < 20


@pytest.mark.slow
def test_bits_of_many_arms_do_not_depend_on_the_block():
    """By default 32 games; no other number of arms has so narrow a block."""
    assert jb.Engine(devices=1).width(600, 1202, num_lanes=40) == 32
    assert_same_bits(run(600, engine=jb.Engine(devices=1)), run(600, engine=jb.Engine(block=128)))


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
    """Sums and medians over what an arm has seen; 80 games in one block on all devices, in two on one."""
    assert_same_bits(run(3, policy), run(3, policy, engine=jb.Engine(block=64, devices=1)))


@pytest.mark.parametrize(
    "num_arms", [2, pytest.param(10, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)]
)
def test_bits_do_not_depend_on_company(num_arms):
    alone = run(num_arms)
    sweep = jb.grid(jb.UniINF, horizon=HORIZON, initial_scale=[1.0, 4.0])
    assert_same_bits(alone, run(num_arms, sweep).sel(initial_scale=4.0, drop=True))
    assert_same_bits(alone, run(num_arms, num_seeds=160).isel(seed=slice(80)))  # of the width of the sweep
    both = run(num_arms, [jb.Uniform(), jb.UniINF(horizon=HORIZON)])
    assert_same_bits(alone, both.sel(policy="uniinf").isel(environment=0).drop_vars(["policy", "environment"]))


@pytest.mark.slow
def test_bits_do_not_depend_on_what_is_watched():
    plain = run()
    assert_same_bits(plain, run(trace=3))
    assert_same_bits(plain, run(measures=MEASURES))


def test_a_block_is_no_wider_than_what_plays_and_fits_the_cache(monkeypatch):
    one, all_devices = jb.Engine(devices=1), jb.Engine()
    monkeypatch.setattr(xla, "second_cache", lambda: 2 << 20)
    assert [one.width(arms, 2 * arms + 2) for arms in (2, 10, 32, 100, 1000)] == [1024, 1024, 640, 256, 32]
    monkeypatch.setattr(xla, "second_cache", lambda: 512 << 10)
    assert [one.width(arms, 2 * arms + 2) for arms in (2, 10, 32, 100, 1000)] == [1024, 512, 320, 128, 32]
    assert [one.width(10, 22, num_lanes=n) for n in (1, 64, 65, 500, 10**6)] == [64, 64, 128, 512, 512]
    assert all_devices.width(10, 22, num_lanes=256 * jax.local_device_count()) == 256
    assert one.width(100, 202, num_lanes=10**6) == 128  # a wider one would leave the cache
    assert jb.Engine(devices=1, block=256).width(10, 22, num_lanes=1) == 256


def test_the_second_cache_is_as_the_system_says(tmp_path, monkeypatch):
    for text, size in {"2048K\n": 2 << 20, "1280K\n": 1280 << 10, "unknown": 512 << 10, None: 512 << 10}.items():
        monkeypatch.setattr(xla, "SECOND_CACHE", tmp_path / f"{text and text.strip()}")
        if text:
            xla.SECOND_CACHE.write_text(text)
        assert xla.second_cache.__wrapped__() == size


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**31, 2**32 + 1, 2**64 - 1])
def test_lanes_have_the_keys_of_their_games(seed):
    """They are those of JAX where it reads 64 bits of a seed, whatever is played in."""
    numbers = np.array([0, 1, 63, 10**6, 2**32 - 1], np.uint32)
    with jax.enable_x64(True):
        key = jax.random.key(np.uint64(seed), impl="threefry2x32")
        expected = [jax.random.key_data(jax.random.fold_in(key, n)) for n in numbers]
    keys = [jax.random.key_data(jb.game_key(seed, n)) for n in numbers]
    np.testing.assert_array_equal(keys, expected)
    np.testing.assert_array_equal(runner._key_words(random.seed_words(seed), numbers).T, expected)


def test_seeds_differ_and_seed_matters():
    ds = run()
    assert len(np.unique(ds.loss.values[:, -1])) == ds.sizes["seed"]
    assert not np.array_equal(ds.loss, run(seed=1).loss)


@pytest.mark.slow
def test_common_random_numbers():
    """Two policies on one seed meet the same luck: losses relative to the mean are equal."""
    ds = jb.simulate([jb.Uniform(), jb.UniINF(horizon=50)], world(3), horizon=50, num_seeds=20, trace=20)
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
    play = functools.partial(run, 6, engine=jb.Engine(block=64))  # of one width
    play()
    first = len(calls)
    assert first > 0
    play(jb.UniINF(horizon=77.0, initial_scale=2))
    play(jb.grid(jb.UniINF, horizon=[10, 20, 30], initial_scale=[1.0, np.float32(2)]))
    play(num_seeds=3)
    play(horizon=1000, record=[5, 6, 7, 8, 1000])
    play(record=40)
    jb.simulate(
        jb.UniINF(horizon=9),
        jb.grid(jb.Pareto, means=[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 1, 1, 1, 1, 1]], tail_index=[1.2, 2.0]),
        horizon=50,
        num_seeds=7,
        engine=jb.Engine(block=64),
    )
    assert len(calls) == first


@pytest.mark.skipif(not fusion.pays(), reason="needs the XLA options of jaxbandit.xla")
def test_a_round_is_one_kernel():
    lanes, stops = 64, jnp.arange(16, dtype=jnp.int32)
    policy, environment = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[..., None], (*leaf.shape, lanes)),
        (as_arrays(jb.UniINF(horizon=HORIZON)), as_arrays(world(10))),
    )
    keys, program = jnp.zeros((2, lanes), jnp.uint32), engine.Program(stationary=True)
    carry = engine.begin(policy, keys, 10, program)
    compiled = engine.advance.lower(policy, environment, keys, carry, jnp.int32(0), stops, program=program).compile()
    kernels = [line.split(" fusion(")[0] for line in compiled.as_text().splitlines() if " fusion(" in line]
    results = [kernel.count(f"[{lanes}]") for kernel in kernels]
    num_results = sum(leaf.size for leaf in jax.tree.leaves((carry.state, carry.sums, carry.failed))) // lanes + 1
    assert sorted(results)[-1] == num_results
    assert sorted(results)[-2] < num_results / 2, results


def test_regret_is_exact_in_a_changing_world():
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


def test_play_is_what_simulate_does():
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(80))
    changing = jb.Switching(world(3), lengths=[3, 50, 20])
    for policy, environment in ((jb.UniINF(horizon=HORIZON), world(3)), (jb.Uniform(), changing)):
        out = jax.jit(jb.play)(policy, environment, keys, jnp.asarray(RECORD))
        ds = jb.simulate(policy, environment, horizon=HORIZON, num_seeds=80, record=RECORD)
        short = slice(0, 2)  # rounding parts two right programs after some hundred rounds
        np.testing.assert_array_equal(out["pulls"][:, short], ds.pulls[:, short])
        np.testing.assert_allclose(out["regret"][:, short], ds.regret[:, short], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(out["loss"][:, short], ds.loss[:, short], rtol=1e-5)
        assert (out["failed"] == 0).all()
        assert_mean(out["regret"][:, -1] - ds.regret[:, -1].values, 0.0)


@pytest.mark.slow
def test_play_under_vmap_and_jvp(x64):
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(6))
    record = jnp.asarray([20])
    stacked = jb.UniINF(horizon=np.full(2, 20.0), initial_scale=np.array([1.0, 4.0]), threshold=np.full(2, 0.25))
    both = jax.jit(jax.vmap(jb.play, (0, None, None, None)))(stacked, world(2), keys, record)
    one = jax.jit(jb.play)(jb.UniINF(horizon=20.0, initial_scale=4.0), world(2), keys, record)
    np.testing.assert_array_equal(both["pulls"][1], one["pulls"])

    def final_scale(initial_scale):
        policy = jb.UniINF(horizon=20.0, initial_scale=initial_scale)
        step, key = jb.step(policy, world(2)), jb.game_key(0, 0)
        return jax.lax.fori_loop(0, 10, lambda _, s: step(s, key), jb.start(policy, world(2))).policy.scale

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
    assert is_stationary(world(3))
    assert not is_stationary(jb.Switching(world(3)))


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
        "engine = jb.Engine(block=128)\n"  # no more lanes than games on two devices
        "jb.simulate(jb.UniINF(horizon={T}), w, horizon={T}, num_seeds=256, record=32, engine=engine)\n"
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
    options = {"horizon": 200_000, "num_seeds": 512, "record": [200_000], "engine": filled(512)}
    finals = [
        jb.simulate(jb.UniINF(horizon=200_000), law, dtype=dtype, seed=seed, **options).regret.values[:, 0]
        for seed, dtype in enumerate(("float32", "float64"))
    ]
    difference = finals[0].mean() - finals[1].mean()
    stderr = np.sqrt(sum(final.var(ddof=1) / final.size for final in finals))
    assert abs(difference) <= 4 * stderr, (difference, stderr)


@pytest.mark.slow
def test_late_import_still_right(tmp_path):
    """A user who started JAX first gets right results and one warning that says what to do."""
    code = (
        "import warnings, jax\n"
        "jax.devices()\n"
        "import jaxbandit as jb\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(2):\n"
        "        ds = jb.simulate(jb.Uniform(), jb.Bernoulli(means=[0.0, 1.0]), horizon=10, num_seeds=4)\n"
        "ours = [w for w in caught if 'jaxbandit' in str(w.message)]\n"
        "assert len(ours) == 1 and 'Import jaxbandit before' in str(ours[0].message), caught\n"
        "print(int(ds.pulls.isel(round=-1).sum()))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert out.stdout.strip() == "40"


def test_other_programs_of_the_process_are_left_alone(tmp_path):
    """Under the engine's own options XLA ends the process at these two scatters."""
    code = (
        "import jaxbandit as jb, jax, jax.numpy as jnp\n"
        "scatter = jax.vmap(lambda a, b, i, x: (a.at[i].add(x), b.at[i].add(x * x)))\n"
        "zeros = jnp.zeros((64, 10))\n"
        "print(float(jax.jit(scatter)(zeros, zeros, jnp.arange(64) % 10, jnp.ones(64))[0].sum()), jb.xla.status())\n"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert out.stdout.split() == ["64.0", "yes"]


def test_a_cpus_options_are_for_cpus_alone(monkeypatch):
    assert xla.status() == "yes"
    assert xla.compiler_options()["xla_disable_hlo_passes"]
    settings = {"jax_platforms": "cuda,cpu"}
    monkeypatch.setattr(xla, "setting", settings.get)
    assert "GPU or TPU" in xla.status()
    assert xla.compiler_options() == {}
    monkeypatch.setattr(xla, "_warned", False)
    with pytest.warns(UserWarning, match="might have found a GPU or TPU, but plays on CPUs.*Set JAX_PLATFORMS=cpu"):
        xla.warn_if_slow()
    xla.warn_if_slow()  # once
    settings["jax_platforms"] = "cpu"
    assert xla.status() == "yes"
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_extra_options=-unroll-threshold=9")
    assert "have another xla_cpu_use_multi_output_fusion, -unroll-threshold" in xla.status()


def test_flags_that_may_change_bits_are_part_of_the_platform(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", xla.with_options("--xla_force_host_platform_device_count=3", wide=True))
    assert xla.other_flags() == []
    mine = "--xla_cpu_max_isa=SSE4_2 --xla_backend_extra_options=-fast --xla_disable_hlo_passes=dce"
    monkeypatch.setenv("XLA_FLAGS", xla.with_options(mine, wide=False))
    assert xla.other_flags() == sorted(mine.split())
    assert cells.platform.__wrapped__()["xla_options"] == "jaxbandit's " + " ".join(sorted(mine.split()))


def test_xla_settings_keep_what_the_user_set():
    options = xla.OPTIONS | xla.ORDER
    ours = ",".join(f"{name}={value}" for name, value in options.items())
    off = "--xla_disable_hlo_passes=cpu_multi_output_fusion"
    assert xla.with_options("", wide=False) == f"--xla_backend_extra_options={ours} {off}"
    assert xla.with_options("--xla_foo=1", wide=False).startswith("--xla_foo=1 --xla_backend_extra_options=")
    mine = "--xla_backend_extra_options=bar=2"
    assert xla.with_options(f"{mine} --xla_foo=1", wide=False) == f"{mine},{ours} --xla_foo=1 {off}"
    mine = "--xla_backend_extra_options=" + ",".join(f"{name}=off" for name in options)
    assert xla.with_options(mine, wide=False) == f"{mine} {off}"
    assert xla.with_options(mine, wide=True) == f"{mine} --xla_cpu_prefer_vector_width=512 {off}"
    mine = f"{mine} --xla_cpu_prefer_vector_width=128"
    assert xla.with_options(mine, wide=True) == f"{mine} {off}"
    passes = "--xla_disable_hlo_passes=dce"
    assert xla.with_options(f"{passes} {mine}", wide=True) == f"{mine} {passes},cpu_multi_output_fusion"
    assert xla.cache_directory("here") == pathlib.Path("here")

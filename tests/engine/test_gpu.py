"""Cards behind a stand-in for the CUDA driver, which executes the PTX by an interpreter: memory, streams, failures."""

import collections
import concurrent.futures
import pathlib
import re
import threading
import time
import tomllib
import warnings

import jax
import numpy as np
import pytest
from packaging.requirements import Requirement

import jaxbandit as jb
from benchmarks import host
from jaxbandit.engine import checkpoint, gpu, proof, ways
from jaxbandit.engine.gpu import card as cards
from jaxbandit.engine.gpu import fleet
from jaxbandit.runs.teams import ProcessTeam
from tests.support.blocks import keys_of, parameters_of, shape_of
from tests.support.cuda import CUresult, StandIn
from tests.support.ptx import Module

PARETO = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
HORIZON, SEEDS = 12, 300
CALLS = [
    *("cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDriverGetVersion", "cuDeviceGetCount"),
    *("cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemGetInfo", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync"),
    *("cuMemcpyDtoHAsync", "cuModuleLoadData", "cuModuleGetFunction", "cuStreamCreate", "cuLaunchKernel"),
    *("cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuStreamSynchronize", "cuStreamDestroy", "cuModuleUnload"),
]
# Calls that a run also makes when its games are done.
FREEING = ["cuCtxSetCurrent", "cuStreamSynchronize", "cuMemFree", "cuStreamDestroy", "cuModuleUnload"]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    """Every test looks for cards anew; the recorded games are those in float32, so that the check is quick."""
    monkeypatch.setattr(proof, "RECORDED", {"float32": proof.RECORDED["float32"]})
    fleet.forget()
    ways._said.clear()
    yield
    fleet.forget()


@pytest.fixture
def machine(monkeypatch):
    """Puts cards into this machine."""

    def build(**about):
        api = StandIn(**{"multiprocessors": 1} | about)
        monkeypatch.setattr(cards, "bindings", lambda: api)
        return api

    return build


def simulated(engine=None, seeds=SEEDS, **rest):
    """The numbers of a small study."""
    ds = jb.simulate(
        jb.UniINF(horizon=HORIZON), PARETO, horizon=HORIZON, num_seeds=seeds, record=3, engine=engine, **rest
    )
    return ds


def assert_same(a, b):
    for name in a.data_vars:
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=str(name))


def heard(work):
    """The result of a function and the warnings about cards that it gives."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = work()
    return result, [str(one.message) for one in said if "guarantee" not in str(one.message)]


GPU = jb.Engine(devices="gpu")


def test_the_recorded_digests_are_those_of_this_cpu(monkeypatch):
    from jaxbandit.engine import native

    monkeypatch.undo()
    assert len(proof.RECORDED) == 2
    assert proof.differing(native.compiled) == []


def test_a_study_on_cards_is_that_of_the_cpu(machine):
    api = machine(cards=2)
    found = simulated(GPU)
    assert_same(found, simulated())
    assert found.attrs["device"] == "native: 1 x Stand-in 0, 1 x Stand-in 1"
    assert all(card.launches > 2 for card in api.cards), "both cards play"


@pytest.mark.slow
def test_cards_keep_no_memory_streams_or_kernels(machine):
    def nothing_is_open():
        return not (api.opened(Module) or api.opened(collections.deque) or any(card.memory.taken for card in api.cards))

    def interrupted(done, total):
        raise KeyboardInterrupt

    api = machine(cards=2)
    simulated(GPU, seeds=64, trace=1)
    assert api.calls["cuModuleLoadData"] == api.calls["cuModuleUnload"] == 6, "the check, the games, those with a trace"
    assert nothing_is_open()
    with pytest.raises(KeyboardInterrupt):
        simulated(jb.Engine(devices="gpu", progress=interrupted), seeds=64)
    assert nothing_is_open()
    api.failures["cuStreamCreate", api.calls["cuStreamCreate"] + 4] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    api.failures["cuStreamCreate", api.calls["cuStreamCreate"] + 2] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.warns(UserWarning, match="other cards play"), pytest.raises(gpu.NoMemoryError):
        simulated(GPU, seeds=64)
    assert nothing_is_open()
    assert GPU.in_flight(shape_of(jb.UniINF(horizon=HORIZON), PARETO), 100) == 128
    assert nothing_is_open()


@pytest.mark.slow
def test_two_blocks_are_in_flight_on_a_card(machine):
    api = machine()
    most = []
    launch, wait = api.cuLaunchKernel, api.cuStreamSynchronize
    flying: set[int] = set()

    def launched(*arguments):
        flying.add(arguments[8])
        most.append(len(flying))
        time.sleep(0.02)
        return launch(*arguments)

    def waited(stream):
        result = wait(stream)
        flying.discard(stream)
        return result

    api.cuLaunchKernel, api.cuStreamSynchronize = launched, waited
    simulated(jb.Engine(devices="gpu", block=64, chunk=4))
    assert max(most) == 2


@pytest.mark.slow
def test_a_trace_and_cuts_are_those_of_the_cpu(machine):
    machine()
    engine = jb.Engine(devices="gpu", block=32, chunk=5)
    assert_same(simulated(engine, seeds=40, trace=2), simulated(seeds=40, trace=2))


def test_a_tally_and_a_carry_go_in_and_out(machine):
    api = machine()
    policy, environment = jb.UniINF(horizon=HORIZON), PARETO
    shape = shape_of(policy, environment)
    games = gpu.Games(shape, cards.visible(api))
    parameters, keys = parameters_of(shape, policy, environment, 40), keys_of(40)
    block = games.block(parameters, keys)
    block.start()
    block.advance(0, 5, np.array([5]))
    carry = block.carry()
    block.close()
    again = games.block(parameters, keys)
    again.start(carry)
    for a, b in zip(carry, again.carry(), strict=True):
        np.testing.assert_array_equal(a, b)
    again.close()


@pytest.mark.slow
def test_lanes_come_from_cores_and_memory(machine):
    shape = shape_of(jb.UniINF(horizon=HORIZON), PARETO)
    assert gpu.Games(shape, cards.visible(machine(multiprocessors=3))).most_lanes() == 3 * 128
    games = gpu.Games(shape, cards.visible(machine(multiprocessors=1000, memory=1 << 20)))
    assert 1000 < games.most_lanes() < 10_000
    assert games.most_lanes() * games.lane_bytes * 2 <= 1 << 20


@pytest.mark.slow
def test_blocks_leave_memory_for_tallies_and_tables(machine):
    table = np.random.default_rng(0).uniform(size=(30_000, 2))
    games = {"horizon": HORIZON, "num_seeds": 3000, "record": list(range(1, HORIZON + 1))}
    for environment, kib in ((PARETO, 500), (jb.Replay(table), 1000)):
        fleet.forget()
        machine(multiprocessors=1000, memory=kib << 10)
        found = jb.simulate(jb.UCB1(), environment, **games, engine=GPU)
        assert_same(found, jb.simulate(jb.UCB1(), environment, **games))
        assert "core" not in found.attrs["device"]


@pytest.mark.slow
def test_a_card_plays_as_many_games_at_a_time_as_it_can_hold(machine):
    shape = shape_of(jb.UniINF(horizon=HORIZON), PARETO)
    for count, blocks in ((1, {320: 160, 65_536: 32_768, 400_000: 50_016}), (2, {65_536: 16_384})):
        games = gpu.Games(shape, cards.visible(machine(cards=count, multiprocessors=512)))
        assert games.most_lanes() == 65_536
        assert {number: GPU.lanes(games, games.threads, number) for number in blocks} == blocks


# Failures


@pytest.mark.slow
@pytest.mark.parametrize("function", CALLS)
def test_a_failure_of_any_call_is_clear_and_loses_nothing(machine, function):
    wanted = simulated(seeds=64)
    api = machine()
    fleet.usable()
    checked = api.calls[function]  # calls that look for cards and check them
    simulated(GPU, seeds=64)
    count = api.calls[function]
    assert count, "the engine calls it"
    for number in {1, checked, checked + 1, (checked + count) // 2, count} & set(range(1, count + 1)):
        fleet.forget()
        (api := machine()).failures[function, number] = CUresult.CUDA_ERROR_LAUNCH_FAILED
        if number <= checked:
            with pytest.raises(gpu.CardError, match="To play on the CPUs, leave out --device gpu") as error:
                simulated(GPU, seeds=64)
            said = [str(error.value)]
        else:
            found, said = heard(lambda: simulated(GPU, seeds=64))
            assert_same(found, wanted)
            assert all("The CPUs play" in one and "no result is lost" in one for one in said)
            if not said and (function in FREEING or api.calls[function] < number):  # all games are done
                continue
        assert len(said) == 1, (number, checked, count)
        assert re.search(rf"({function} failed|failed in {function}): CUDA_ERROR_LAUNCH_FAILED \(719\)", said[0])


def test_a_card_lost_in_the_middle_leaves_its_games_to_the_cpus(machine):
    api = machine()
    api.lose = {0: 6}
    with pytest.warns(
        UserWarning, match=r"Stand-in 0 \(card 0\) failed .* The CPUs play the \d+ games .* no result is lost"
    ):
        found = simulated(GPU)
    assert_same(found, simulated())
    assert "core" in found.attrs["device"]
    again, said = heard(lambda: simulated(GPU))
    assert_same(again, found)
    assert "Stand-in" not in again.attrs["device"]
    assert not said, "one warning of a loss suffices"


PHASES = [
    *("cuModuleLoadData", "cuModuleGetFunction", "cuStreamCreate", "cuMemGetInfo"),
    *("cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuMemAlloc", "cuMemcpyHtoDAsync", "cuLaunchKernel"),
    *("cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuMemFree", "cuStreamDestroy", "cuModuleUnload"),
]


def three():
    """A study of three shapes, which are played one after the other."""
    policies = [jb.UniINF(horizon=HORIZON), jb.HTINF(moment_order=1.5, moment_bound=2.0), jb.UCB1()]
    return jb.Study(horizon=HORIZON, num_seeds=64, policies=policies, environments=[PARETO])


def cells(directory):
    """The bytes of a directory's cells, by name."""
    return {path.name: path.read_bytes() for path in (directory / "cells").iterdir()}


@pytest.fixture
def of_the_cpus(tmp_path):
    """The cells of the study above, played by the CPUs."""
    jb.run(three(), tmp_path / "cpu")
    return cells(tmp_path / "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_a_study_of_several_shapes_survives_a_loss_in_each_phase(machine, monkeypatch, tmp_path, of_the_cpus, count):
    monkeypatch.setattr(proof, "RECORDED", {})  # the calls of the check are not of interest here
    api = machine(cards=count)
    jb.run(three(), tmp_path / "whole", engine=GPU)
    assert cells(tmp_path / "whole") == of_the_cpus
    for function in PHASES:
        fleet.forget()
        broken, directory = machine(cards=count), tmp_path / function
        broken.failures[function, api.calls[function] // 2] = CUresult.CUDA_ERROR_LAUNCH_FAILED  # in the second shape
        _, said = heard(lambda directory=directory: jb.run(three(), directory, engine=GPU))
        assert cells(directory) == of_the_cpus
        assert len(said) == 1, (function, said)
        assert f"failed in {function}" in said[0]
        assert ("The CPUs play" if count == 1 else "The other cards play its games") in said[0]
        assert count == 1 or sum(card.launches for card in broken.cards) > 6, "the other card plays on"


@pytest.mark.slow
def test_a_card_lost_in_the_middle_leaves_its_games_to_the_other_card(machine):
    api = machine(cards=2)
    api.lose = {1: 4}
    with pytest.warns(UserWarning, match=r"Stand-in 1 \(card 1\) failed .* The other cards play its games"):
        found = simulated(GPU)
    assert_same(found, simulated())
    assert "core" not in found.attrs["device"]
    done = []
    simulated(jb.Engine(devices="gpu", progress=lambda n, total: done.append((n, total))))
    assert done[-1][0] == done[-1][1] == SEEDS * HORIZON


@pytest.mark.slow
def test_progress_ends_at_the_total_after_a_loss(machine):
    machine().lose = {0: 6}
    done = []
    with pytest.warns(UserWarning, match="The CPUs play"):
        simulated(jb.Engine(devices="gpu", progress=lambda n, total: done.append((n, total))))
    assert done[-1][0] == done[-1][1] == SEEDS * HORIZON


# One directory for cards and CPUs


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("gpu", "cpu"), ("cpu", "gpu"), ("gpu", "gpu")])
def test_a_study_that_stops_on_one_device_continues_on_another(machine, tmp_path, of_the_cpus, first, second):
    api, stop, seen = machine(), threading.Event(), []

    def notice(*about):
        seen.append(about)
        if len(seen) == 5:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        engine = jb.Engine(devices=first, chunk=2, block=32)
        jb.run(three(), tmp_path / "both", engine=engine, notice=notice, stop=stop)
    saved = [checkpoint.unpack(path.read_bytes())[1]["t"] for path in (tmp_path / "both" / "checkpoints").iterdir()]
    assert saved and all(0 < t < HORIZON for t in saved)
    fleet.forget()
    fleet.usable()
    launches, done = api.cards[0].launches, []
    jb.run(three(), tmp_path / "both", engine=jb.Engine(devices=second), notice=lambda *about: done.append(about))
    assert (api.cards[0].launches > launches) == (second == "gpu")
    assert done[-1][1] < seen[-1][1] == 3 * 64 * HORIZON, "the rounds of the checkpoints are not played again"
    assert cells(tmp_path / "both") == of_the_cpus


@pytest.mark.slow
def test_cards_and_cpus_share_a_directory(machine, tmp_path, of_the_cpus):
    api, stop = machine(), threading.Event()
    fleet.usable()
    launches = api.cards[0].launches
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        runs = [
            both.submit(jb.run, three(), tmp_path / "both", engine=engine, team=ProcessTeam(number, 2), stop=stop)
            for number, engine in enumerate((GPU, jb.Engine(devices="cpu")))
        ]
        concurrent.futures.wait(runs, timeout=60, return_when=concurrent.futures.FIRST_EXCEPTION)
        stop.set()  # if one has failed, the other does not wait for it
        assert [run.exception() for run in runs] == [None, None]
    assert api.cards[0].launches > launches
    assert cells(tmp_path / "both") == of_the_cpus


def test_no_memory_is_an_error_with_a_remedy(machine):
    machine(memory=1 << 17)
    remedy = r"Run fewer seeds at a time \(--num-seeds, or Engine\(block=...\) in Python\), or end other programs"
    with pytest.raises(gpu.CardError, match=rf"no memory left for .* MiB of a block. {remedy}"):
        simulated(jb.Engine(devices="gpu", block=2048), seeds=2048)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["cuDevicePrimaryCtxRetain", "cuMemAlloc", "cuModuleLoadData"])
def test_no_memory_at_the_start_is_not_taken_for_wrong_bits(machine, function):
    machine().failures[function, 1] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(gpu.CardError, match=r"Stand-in 0 \(card 0\) has no memory left.*End other programs") as error:
        simulated(GPU)
    assert "digests" not in str(error.value)
    fleet.forget()
    machine(cards=2).failures[function, 1] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    found, said = heard(lambda: simulated(GPU, seeds=32))
    assert found.attrs["device"] == "native: 1 x Stand-in 1"
    assert len(said) == 1
    assert re.search(r"Stand-in 0 \(card 0\) has no memory left.* The other cards play", said[0])


def test_a_card_that_computes_otherwise_is_refused(machine):
    machine(edit=lambda text: text.replace("div.rn.f32", "div.approx.f32"))
    with pytest.raises(gpu.CardError, match=r"does not reproduce the recorded digests in float32.*jaxbandit bench"):
        simulated(GPU)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"version": 11040}, r"for CUDA 11.4, but jaxbandit needs 12.0 or later. Update NVIDIA's driver"),
        ({"capability": (6, 1)}, r"Stand-in 0 has 6.1, but compute capability 7.0 or later is needed"),
        ({"cards": 0}, "shows no card. The variable CUDA_VISIBLE_DEVICES may hide it"),
    ],
)
def test_machines_that_cannot_play_say_so(machine, about, message):
    machine(**about)
    with pytest.raises(gpu.CardError, match=message):
        simulated(GPU)


def test_no_driver_is_an_error_with_a_remedy(machine):
    def missing(flags):
        raise RuntimeError("libcuda.so.1 was not found")

    machine().cuInit = missing
    with pytest.raises(gpu.CardError, match=r"no CUDA driver .*libcuda.so.1 was not found.*525 or later.*--device gpu"):
        simulated(GPU)


def test_no_bindings_is_an_error_with_a_remedy(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(gpu.CardError, match=r"pip install 'jaxbandit\[cuda\]'"):
        simulated(GPU)


def test_cpus_play_with_one_message_if_nobody_asked_for_a_card(machine, monkeypatch):
    wanted = simulated()
    machine(capability=(6, 1))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.warns(UserWarning, match=r"no card is new enough.*\. The CPUs play instead") as said:
        assert_same(simulated(), wanted)
        assert_same(simulated(), wanted)
    assert len([one for one in said if "CPUs play" in str(one.message)]) == 1


@pytest.mark.slow
def test_cards_play_if_they_are_the_default_device_of_jax(machine, monkeypatch):
    api = machine()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert simulated().attrs["device"] == "native: 1 x Stand-in 0"
    launches = api.cards[0].launches
    assert "core" in simulated(jb.Engine(devices="cpu")).attrs["device"]
    assert api.cards[0].launches == launches


def test_settings_are_checked():
    with pytest.raises(ValueError, match="must be 'cpu', 'gpu' or a number of cores, got 'tpu'"):
        jb.Engine(devices="tpu")
    with pytest.raises(ValueError, match="leave out one of them"):
        jb.Engine(devices="gpu", way="scan")


# The host's share


@pytest.mark.slow
def test_the_host_takes_little_time_for_a_block():
    """65,536 games, K = 10, 16 recorded rounds; other programs only make it longer, so one try of several suffices."""
    assert any(host.measured(seconds=0.0, blocks=4).host < host.BAR for _ in range(5))


def test_the_extra_fits_the_oldest_driver():
    """Version 13 of the bindings needs a driver for CUDA 13, but a driver for CUDA 12 is promised."""
    root = pathlib.Path(__file__).parents[2]
    (extra,) = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["cuda"]
    major = cards.OLDEST_DRIVER // 1000
    found = [
        version for version in ("11.8", "12.6", "12.9.10", "13.0", "13.4") if version in Requirement(extra).specifier
    ]
    assert found == [version for version in found if version.startswith(f"{major}.")] != []
    slow = re.search(r"^slow\(\).*?environment test '([^']*)'", (root / ".ci" / "run").read_text(), re.M | re.S)
    assert slow and "cuda" in slow[1].split(","), "CI installs them for the next test"


@pytest.mark.slow
def test_the_stand_in_has_the_functions_of_the_driver():
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    for name in (*CALLS, "cuInit", "cuGetErrorName"):
        real = (getattr(driver, name).__doc__ or "").split(")")[0].split("(")[1]
        ours = getattr(StandIn, name)
        assert len([part for part in real.split(",") if part.strip()]) == ours.__code__.co_argcount - 1, name
    for name in CUresult:
        assert int(getattr(driver.CUresult, name.name)) == name
    for kind in StandIn.CUdevice_attribute:
        assert int(getattr(driver.CUdevice_attribute, kind.name)) == kind

"""The benchmarks tell a fast program from a slow one, and a right one from a wrong one."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

import jaxbandit as jb
from benchmarks import competitors, guard, peer_worker, peers, records, roofline, sass, speed, surface, sweeps
from jaxbandit.engine import usable_cores
from jaxbandit.store.cells import pairs

ROOT = pathlib.Path(__file__).parents[1]


def busy(milliseconds, regret=None):
    """A run that keeps the processor busy for so long."""

    def run():
        end = time.process_time() + milliseconds / 1e3
        while time.process_time() < end:
            pass
        return np.linspace(99.0, 101.0, 64) if regret is None else regret

    return run


def doctored(times_slower):
    """A run of ours that is so many times slower than it should be, beside the plain one."""
    share = 4 * times_slower / guard.EXPECTED
    return {guard.OURS: (busy(share), 1), guard.PLAIN: (busy(4), 1)}


@pytest.fixture
def results(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    monkeypatch.setattr(records, "RESULTS", path)
    return path


def test_the_guard_passes_what_is_as_fast_as_expected(results, capsys):
    assert guard.main([], doctored(1.0)) == 0
    assert "of the processor time" in capsys.readouterr().out


def test_the_guard_notices_a_doctored_slow_run(results, capsys):
    assert guard.main([], doctored(3.0)) == 1
    assert "was lost" in capsys.readouterr().out


def test_the_guard_knows_the_machine(results):
    """A machine whose usual ratio is kept is held to it."""
    assert guard.main(["--keep"], doctored(0.2)) == 0
    (line,) = records.kept("guard")
    assert line["machine"] == records.machine() and line["commit"] == records.commit()
    assert line["ratio"] == pytest.approx(guard.EXPECTED / 0.2, rel=0.5)
    assert guard.main([], doctored(1.0)) == 1
    line["machine"] = "another"
    results.write_text(json.dumps(line) + "\n")
    assert guard.main([], doctored(1.0)) == 0


def test_the_guard_notices_idle_cores():
    assert "cores are idle" in guard.verdict(100.0, None, "native: 1 x x86_64 core", cores=2)
    assert guard.verdict(100.0, None, "native: 2 x x86_64 core", cores=2) is None
    assert guard.verdict(100.0, None, guard.played_by(), usable_cores()) is None


def test_the_guard_notices_the_scan():
    assert "not played by machine code" in guard.verdict(100.0, None, "scan: 1 x cpu (cpu, x86_64)", cores=1)


@pytest.mark.slow
def test_the_guard_notices_an_engine_without_llvm(tmp_path):
    (tmp_path / "llvmlite.py").write_text("raise ImportError('there is none')\n")
    run = [sys.executable, "-m", "benchmarks.guard", "--repeats", "1"]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(run, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not played by machine code" in done.stdout


def test_a_wrong_kernel_is_seen():
    made = {name: busy(1) for name in (speed.OURS, "C++ float32", "Numba prange")}
    made["NumPy over seeds"] = busy(1, np.linspace(79.0, 81.0, 64))
    measured = speed.interleaved(made, seed_rounds=1, repeats=1)
    marked = [line for line in speed.table(measured).splitlines() if "**differs**" in line]
    assert len(marked) == 1 and "NumPy over seeds" in marked[0]


def test_bars_are_judged():
    fast, slow = (speed.Figure(time, 0.0, 1.0, 1.0) for time in (1.0, 9.0))
    made = {speed.OURS: fast, "C++ float32": fast, "C++ float32, Halley": fast, "Numba prange": slow}
    made |= {"jaxbandit float64": slow, "C++ float64, Halley": fast, "plain vmap(scan)": slow}
    single, double, newton, missing, numba, numpy, plain = speed.bars(speed.ratios(made)).splitlines()[2:]
    assert "| 1.00 | <= 1.2 | reached |" in single
    assert "| 9.00 | <= 1.25 | missed |" in double
    assert "| 1.00 | another solver, no bar |" in newton
    assert "not measured" in missing
    assert "| 9.00 | >= 4 | reached |" in numba
    assert "not measured" in numpy
    assert "| 9.00 | >= 12 | missed |" in plain


@pytest.mark.long
def test_all_competitors_play_one_game():
    """Mean regrets within 5 standard errors, a false alarm in 1.7 million; C++ and Numba have the same random bits."""
    figures, regrets = {}, {}
    for name, run in (speed.limits(300, 512) | speed.others(300, 512)).items():
        regrets[name] = run()
        figures = figures | speed.interleaved({name: run}, 1, 1)
    assert "differs" not in speed.table(figures)
    in_float64 = competitors.numba_prange(speed.MEANS, speed.TAIL_INDEX, 300, 512, "float64", 2)()
    np.testing.assert_allclose(regrets["C++ float64"], in_float64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("halley", [False, True], ids=["newton", "halley"])
def test_the_limit_draws_no_arm_off_the_simplex(halley, dtype, monkeypatch):
    """From a scale of 4 x is a probability vector; from 0 it is NaN, and from -4 Halley's steps end off the simplex."""
    play = functools.partial(competitors.cpp, [0.5, 1.0, 1.0], 1.6, 20, 5, dtype, 1, halley=halley)
    for scale, fine in {4.0: True, 0.0: False, -4.0: not halley}.items():
        monkeypatch.setattr(sys.modules["benchmarks.competitors.cpp"], "INITIAL_SCALE", scale)
        try:
            regret = play()()
        except RuntimeError as missing:
            pytest.skip(str(missing))
        assert (np.isfinite(regret) if fine else np.isnan(regret)).all(), (scale, regret)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["numba_prange", "numpy_seeds", "plain_vmap_scan"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_the_others_draw_no_arm_off_the_simplex(name, dtype, monkeypatch):
    """From a scale of 4 x is a probability vector; from 0 it is NaN."""
    module = sys.modules[getattr(competitors, name).__module__]
    for scale, fine in {4.0: True, 0.0: False}.items():
        monkeypatch.setattr(module, "INITIAL_SCALE", scale)
        if name == "numba_prange":
            pytest.importorskip("numba")
            module._numba_player.cache_clear()
        regret = getattr(competitors, name)([0.5, 1.0, 1.0], 1.6, 20, 5, dtype, 1)()
        assert (np.isfinite(regret) if fine else np.isnan(regret)).all(), (scale, regret)
    if name == "numba_prange":
        module._numba_player.cache_clear()


def test_numpy_plays_the_game_of_the_others():
    regret = competitors.numpy_seeds([0.5, 1.0], 1.6, 100, 64, "float32", 1)()
    assert regret.shape == (64,)
    assert 0 < regret.mean() < 25  # uniform play


def test_pages_have_their_marks():
    page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
    assert records.replaced(page, "x", "new\\1") == "a\n<!-- x -->\nnew\\1\n<!-- end of x -->\nb\n"
    with pytest.raises(ValueError, match="lacks the marks <!-- y -->"):
        records.replaced(page, "y", "new")


def test_kept_lines_are_read():
    """Every line of the file that is in the repository."""
    for line in records.RESULTS.read_text().splitlines() if records.RESULTS.exists() else []:
        assert {"benchmark", "date", "commit", "machine"} <= json.loads(line).keys()


def test_a_peer_that_is_not_there_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr(peers, "environment", lambda name: sys.executable)
    with peers.started(["smpybandits"]) as found:
        assert found == []
    assert "SMPyBandits: left out, ModuleNotFoundError" in capsys.readouterr().out


def test_peers_live_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert peers.cache_directory().is_relative_to(tmp_path)
    assert not peers.cache_directory().is_relative_to(ROOT)


def test_a_peer_plays_the_game():
    """One that always plays the best arm has no regret; one that plays the last has the gap in every round."""

    class Stubborn:
        def play(self, policy, means, horizon, seed):
            arm = {"best": 0, "last": means.size - 1}[policy]
            rewards = []
            pulls = peer_worker.play_by_hand(lambda: arm, lambda _, r: rewards.append(r), means, horizon, seed)
            assert len(rewards) == horizon and set(rewards) <= {0.0, 1.0}
            return pulls

    for policy, regret in (("best", 0.0), ("last", 10.0)):
        answer = peer_worker.answer(Stubborn(), policy, peers.MEANS, horizon=50, budget=0, seed=1)
        assert (answer["games"], answer["regrets"]) == (1, [pytest.approx(regret)])


def test_peers_are_judged():
    slow, fast = peers.Figure(1e3, 1.0, 0.1), peers.Figure(5e5, 1.0, 0.1)
    measured = {("ucb1", "jaxbandit"): fast, ("ucb1", "pymab"): slow, ("ucb1", "smpybandits"): slow}
    rows = peers.table(measured).splitlines()
    assert "| 500 times | >= 300: reached |" in rows[3]
    assert "| 500 times | >= 1000: missed |" in rows[4]


def test_growth_is_fitted():
    work = np.geomspace(1e5, 1e9, 5)
    assert surface.fit(work, 0.02 + 2e-8 * work) == (pytest.approx(0.02), pytest.approx(2e-8))
    a, b = surface.fit(work, 2e-8 * work * np.array([0.9, 1.0, 1.0, 1.0, 1.0]))  # the least squares have a < 0
    assert a == 0 and b == pytest.approx(2e-8, rel=0.03)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_policy_has_its_sweep():
    """A sweep and one of its points, with as many games, for all of the registry."""
    found = sweeps.examples()
    assert {entry["name"] for entry, _, _ in found.values()} == set(jb.POLICIES)
    for entry, swept, values in found.values():
        assert len(set(values)) == sweeps.POINTS
        sweep, point = sweeps.plans(entry, swept, values, 100).values()
        assert (len(pairs(sweep)), len(pairs(point))) == (sweeps.POINTS, 1)
        assert point.num_seeds == sweeps.POINTS * sweep.num_seeds


def test_the_page_has_a_place_for_every_table():
    page = records.PAGE.read_text()
    for mark in ("speed", "peers", "sweeps", *surface.PARTS):
        records.replaced(page, mark, "x")


DISASSEMBLED = """
.text.play:
        /*0000*/                   MOV R1, c[0x0][0x28] ;               /* 0x00000a0000017a02 */
                                                                        /* 0x000fe40000000f00 */
.L_x_1:
        /*0010*/                   IADD3 R0, R0, 0x1, RZ ;              /* 0x0000000100007810 */
                                                                        /* 0x000fc80007ffe0ff */
.L_x_2:
        /*0020*/                   FADD R2, R2, R3 ;                    /* 0x0000000302027221 */
                                                                        /* 0x000fc80000000000 */
        /*0030*/               @P0 BRA `(.L_x_3) ;                      /* 0x0000004000000947 */
                                                                        /* 0x000fea0003800000 */
        /*0040*/                   MOV R0, 0xdc0 ;                      /* 0x00000dc000007802 */
                                                                        /* 0x000fe40000000f00 */
        /*0050*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath) ; /* 0x0000584000007944 */
                                                                        /* 0x000fea0003c00000 */
.L_x_3:
        /*0060*/                   MUFU.RCP R0, R41 ;                   /* 0x0000002900007308 */
                                                                        /* 0x000e640000001000 */
        /*0070*/              @!P1 BRA `(.L_x_2) ;                      /* 0x0000004000007947 */
                                                                        /* 0x000fea0003800000 */
        /*0080*/              @!P2 BRA `(.L_x_1) ;                      /* 0x0000004000007947 */
                                                                        /* 0x000fea0003800000 */
.L_x_4:
        /*0090*/                   BRA `(.L_x_4);                       /* 0x0000004000007947 */
                                                                        /* 0x000fea0003800000 */
.text.begin:
"""  # noqa: E501


def test_a_round_is_the_inner_loop_without_its_rare_paths():
    found = sass.round_of(DISASSEMBLED)
    assert [one.name for one in found] == ["FADD", "BRA", "MUFU.RCP", "BRA"]
    assert [one.stall for one in found] == [4, 5, 2, 5]
    assert [one.pipe for one in found] == ["float", "control", "special", "control"]
    with pytest.raises(ValueError, match="no loop over rounds"):
        sass.round_of(DISASSEMBLED.replace("BRA `(.L_x_1)", "EXIT"))


def test_the_roofline_is_the_largest_of_its_bounds():
    card = roofline.Card("sm_80", units=2, clock=1.0, warps=64, rates={"float": 64, "integer": 64, "special": 16})
    assert [card.games(registers) for registers in (16, 64, 122, 128, 129, 255)] == [
        2 * 32 * warps for warps in (64, 32, 16, 16, 12, 8)
    ]
    add, root = sass.Instruction("FADD", "", 1), sass.Instruction("MUFU.RSQ", "", 1)
    mixed = [sass.Instruction(name, "", 1) for name in ("FADD", "LOP3.LUT", "BRA")]
    for a_round, clocks in (
        ([add] * 10, 2 * 8 * 10),  # 16 of 32 threads in a clock
        ([root] * 10, 8 * 8 * 10),
        (mixed * 10, 8 * 30),  # one instruction in a clock
        ([dataclasses.replace(add, stall=100)] * 10, 1000),
    ):
        assert card.nanoseconds(sass.Cost(64, 0, a_round)) == pytest.approx(clocks / card.games(64))
    records.replaced(roofline.PAGE.read_text(), "roofline", "x")

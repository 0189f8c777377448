"""The GPU kernel plays the scan's game: interpreted on a CPU, and translated for a GPU without one."""

import functools
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from benchmarks.policies import examples as policies
from benchmarks.worlds import examples as worlds
from jaxbandit import draws, engine, kernels, lanes, xla
from jaxbandit.game import as_arrays, is_stationary

PARETO = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
LANES, ROUNDS = 8, 20
TOO_LARGE = {"adar_ucb", "robust_moss", "robust_ucb"}  # policies with tables
SHARED = {"drifting", "corrupted", "scheduled"}  # worlds whose tables all lanes share


class Games:
    """Some games of one kind before round 1, and how to play them in a kernel."""

    def __init__(self, policy, world, num_lanes=LANES):
        spread = functools.partial(
            jax.tree.map, lambda leaf: jnp.broadcast_to(leaf[..., None], (*leaf.shape, num_lanes))
        )
        self.parameters = spread(as_arrays(policy)), spread(as_arrays(world))
        self.num_arms = world.num_arms
        self.program = engine.Program(stationary=is_stationary(world))
        self.keys = np.arange(2 * num_lanes, dtype=np.uint32).reshape(2, num_lanes)
        begin = functools.partial(engine.begin, num_arms=world.num_arms, program=self.program)
        self.carry = jax.eval_shape(begin, self.parameters[0], self.keys)
        self.in_play = self.carry.state, self.carry.sums, self.carry.failed
        self.draws = draws.needed(*self.parameters, self.carry.state)
        self.one = functools.partial(engine._play_one, self.draws, self.program)

    def begin(self):
        return engine.begin(self.parameters[0], self.keys, self.num_arms, self.program)

    def fit(self):
        return kernels.fits(self.one, self.draws, self.parameters, self.in_play)

    def kernel(self, how):
        def play(in_play, pulls, behind, last):
            rounds = behind, last
            return kernels.play(self.one, self.draws, self.parameters, in_play, pulls, self.keys, rounds, how)

        return jax.jit(play)

    def in_kernel(self):
        play, carry = self.kernel(kernels.INTERPRETED), self.begin()
        in_play, pulls = (carry.state, carry.sums, carry.failed), carry.pulls
        in_play, pulls = play(in_play, pulls, jnp.int32(0), jnp.int32(7))
        return play(in_play, pulls, jnp.int32(7), jnp.int32(ROUNDS))

    def in_scan(self):
        stops = jnp.full(1, ROUNDS, jnp.int32)
        return engine.advance(*self.parameters, self.keys, self.begin(), stops[0], stops, program=self.program)[1]

    def for_gpu(self):
        play = self.kernel(kernels.COMPILED)
        traced = play.trace(self.in_play, self.carry.pulls, jnp.int32(0), jnp.int32(ROUNDS))
        return traced.lower(lowering_platforms=("cuda",)).as_text()


def assert_same_play(games):
    """The same arms; losses and states to 1e-5: XLA may contract other products and sums than in the scan."""
    (state, sums, failed), pulls = games.in_kernel()
    tally = games.in_scan()
    np.testing.assert_array_equal(pulls, tally.pulls[0])
    assert int(pulls.sum()) == LANES * ROUNDS
    np.testing.assert_array_equal(failed, tally.failed[0])
    for name, (total, lost) in sums.items():
        played = np.asarray(total, np.float64) + np.asarray(lost)
        expected = np.asarray(tally.sums[name][0][0], np.float64) + np.asarray(tally.sums[name][1][0])
        np.testing.assert_allclose(played, expected, rtol=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


@pytest.mark.slow
def test_the_kernel_plays_what_the_scan_plays():
    assert_same_play(Games(jb.UniINF(horizon=ROUNDS), PARETO))


@pytest.mark.long
@pytest.mark.parametrize("world", ["gaussian", "outlier_mixture", "swap", "minimax_hard"])
def test_the_kernel_plays_other_worlds(world):
    assert_same_play(Games(jb.UniINF(horizon=ROUNDS), worlds([0.2, 0.5, 1.0])[world]))


@pytest.mark.long
@pytest.mark.parametrize("policy", ["ucb1", "exp3", "`tsallis_inf`, rv", "htinf", "sao_ht"])
def test_the_kernel_plays_other_policies(policy):
    made = policies()
    assert_same_play(Games(made.get(policy) or made[f"`{policy}`"], PARETO))


@pytest.mark.slow
def test_the_kernel_plays_in_float64(x64):
    assert_same_play(Games(jb.UniINF(horizon=ROUNDS), PARETO))


def test_uniinf_is_translated_for_a_gpu():
    games = Games(jb.UniINF(horizon=ROUNDS), PARETO, num_lanes=256)
    assert games.fit()
    text = games.for_gpu()
    assert text.count("xla.gpu.triton") == 1
    assert "grid_x = 2" in text and "num_warps = 4" in text


@pytest.mark.long
def test_what_fits_is_translated_for_a_gpu():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Catoni is told an order this world does not have
        games = {name: Games(policy, PARETO) for name, policy in policies().items()}
    games |= {name: Games(jb.UniINF(horizon=ROUNDS), world) for name, world in worlds([0.2, 0.5, 1.0]).items()}
    for name, game in games.items():
        left_out = any(f"`{policy}`" in name for policy in TOO_LARGE) or name in SHARED
        assert game.fit() != left_out, name
        if not left_out:
            assert game.for_gpu().count("xla.gpu.triton") == 1, name


def mesh(platform):
    """As much of a mesh as kernels look at."""
    return SimpleNamespace(devices=np.array([SimpleNamespace(platform=platform)]), size=1)


def test_the_kernel_is_for_gpus():
    games = Games(jb.UniINF(horizon=ROUNDS), PARETO)
    chosen = functools.partial(kernels.choose, games.one, games.draws, games.parameters, games.carry)
    assert chosen(None) is None
    assert chosen(jb.Engine().mesh()) is None
    assert chosen(mesh("tpu")) is None
    assert chosen(mesh("gpu")) is not None
    assert kernels.mode(mesh("gpu")) == kernels.COMPILED


def test_what_does_not_fit_is_left_to_the_scan():
    wide = jb.Pareto(means=[0.5] + [1.0] * 99, tail_index=1.6)
    assert not Games(jb.UniINF(horizon=ROUNDS), wide).fit()
    games = Games(jb.UniINF(horizon=ROUNDS), PARETO)
    shared = jax.tree.map(lambda leaf: lanes.Shared(leaf[..., 0]), games.parameters)
    assert not kernels.fits(games.one, games.draws, shared, games.in_play)

    def with_lgamma(policy, *rest):
        in_play, seen = games.one(policy, *rest)
        return in_play, seen | {"arm": seen["arm"] + jax.lax.lgamma(policy.horizon).astype(jnp.int32)}

    def with_sort(policy, environment, *rest):
        in_play, seen = games.one(policy, environment, *rest)
        return in_play, seen | {"arm": jnp.sort(environment.arm_means)[0].astype(jnp.int32)}

    for unfit in (with_lgamma, with_sort):
        assert not kernels.fits(unfit, games.draws, games.parameters, games.in_play)


@pytest.mark.slow
def test_a_study_by_way_of_the_kernel(monkeypatch):
    """``simulate`` as on a GPU, its kernel interpreted: the same luck, the same play, at every recorded round."""
    options = {"horizon": ROUNDS, "num_seeds": LANES, "record": [1, 7, ROUNDS], "measures": ("scale",)}
    policy, world, original = jb.UniINF(horizon=ROUNDS), jb.Pareto(means=[0.5, 1.0], tail_index=1.6), kernels.play
    scanned = jb.simulate(policy, world, engine=jb.Engine(devices=1), **options)
    ways = []

    def play(*args):
        ways.append(args[-1])
        return original(*args)

    monkeypatch.setattr(kernels, "play", play)
    monkeypatch.setattr(kernels, "mode", lambda mesh: kernels.INTERPRETED)
    # A chunk of its own, so that no compiled scan is at hand.
    by_kernel = jb.simulate(policy, world, engine=jb.Engine(devices=1, chunk=ROUNDS), **options)
    assert set(ways) == {kernels.INTERPRETED}
    for name in ("pulls", "failed", "regret"):
        np.testing.assert_array_equal(by_kernel[name], scanned[name])
    for name in ("loss", "scale"):
        np.testing.assert_allclose(by_kernel[name], scanned[name], rtol=1e-5)


def test_widths(monkeypatch):
    one = jb.Engine(devices=1)
    monkeypatch.setattr(xla, "second_cache", lambda: 512 << 10)
    assert one.width(10, 22) == 512
    assert one.width(10, 22, num_lanes=320) == 320
    assert one.width(10, 22, num_lanes=650) == 384  # twice, and not 512 twice
    assert one.width(100, 202, num_lanes=1300) == 128
    monkeypatch.setattr(kernels, "mode", lambda mesh: kernels.COMPILED)
    assert one.width(10, 22) == kernels.LANES
    assert one.width(10, 22, num_lanes=5000) == 5120
    assert one.width(10, 22, num_lanes=1) == 64
    assert one.width(10, 4096) == kernels.NUMBERS // 4096
    assert jb.Engine(devices=1, block=128).width(10, 22) == 128

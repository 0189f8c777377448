"""Certificates: the checks in the compiled game agree with NumPy's and hold for uniINF; test_controls breaks it."""

import dataclasses
import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.certify import certificates as certificates
from jaxbandit.certify import conditional, expectations, parts
from jaxbandit.certify.certificates import broken, certify, default_environments, holds, read_environments
from jaxbandit.certify.facts import FACTS, SUMS, Certified
from jaxbandit.engine import tallies
from jaxbandit.types import pytree
from tests.support import trajectories
from tests.support.references import last, states_after

ENVIRONMENT = jb.Pareto(means=[0.5, 1.0], tail_index=1.3)


@pytest.fixture(scope="module")
def certificate():
    return certify({"Pareto": ENVIRONMENT}, horizon=400, num_seeds=128, steps=False)


def test_uniinf_is_certified(certificate):
    assert holds(certificate)
    assert broken(certificate) == []
    assert certificate.violations.shape == (1, len(FACTS))
    assert certificate.attrs["seed_rounds"] == 400 * 128
    assert float(certificate.tolerance[0]) == 64 * 2 * 2.0**-52


@pytest.mark.slow
def test_a_certified_policy_plays_as_the_one_in_it():
    policy = jb.UniINF(horizon=400)
    options = {"horizon": 400, "num_seeds": 16, "dtype": "float64"}
    both = [jb.simulate(p, ENVIRONMENT, **options) for p in (policy, Certified(policy))]
    np.testing.assert_array_equal(both[0].pulls, both[1].pulls)


def test_ratios_come_close_and_say_where(certificate):
    """Tight inequalities are attained; loose ones are reported as loose; equalities are at rounding level."""
    at = certificate.isel(environment=0)
    worst = {str(name): float(at.worst.sel(fact=name)) for name in at.fact.values}
    for name, fact in FACTS.items():
        assert 0 <= worst[name] <= (4 * 2.0**-52 if fact.equal else 1), name
    assert worst["ftrl"] == worst["growth_at_most"] == worst["skipped_rounds"] == 1
    assert min(worst[name] for name in ("stability_above", "stability_below", "div", "div_sum")) > 0.9
    assert worst["div_printed"] == pytest.approx(worst["div"] * 1.033 / 2048)
    assert worst["stability_above_printed"] == pytest.approx(worst["stability_above"] * 1.3986 / 2)
    inequality = [name for name in FACTS if not FACTS[name].equal]
    assert (at.seed.sel(fact=inequality) < 128).all()
    assert (at["round"].sel(fact=inequality) >= 1).all()
    assert (at["round"] <= 400).all()


@pytest.fixture(scope="module")
def trajectory():
    """A game of a script, and the certificate's state after each round of the same game."""
    with jax.enable_x64(True):
        game = trajectories.play(jb.UniINF(horizon=1_000.0), 3, trajectories.heavy_tailed(5, 2.0, 1.2))
        policy = Certified(jb.UniINF(horizon=1_000.0), best_arm=1)
        return game, states_after(policy, 3, game.arm, game.loss)


def test_sums_are_those_of_the_trajectory(trajectory):
    game, states = trajectory
    found = dict(zip(SUMS, (states.sums + states.sums_lost).T, strict=True))
    skip_error = np.where(game.skipped & (game.arm != 1), np.abs(game.loss), 0)
    expected = {
        "suffered": game.estimate * game.x_arm,
        "estimate_size": np.abs(game.estimate),
        "div": game.div,
        "growth": game.growth,
        "skipped": game.skipped,
        "skip_error": skip_error,
        **{f"moment_{a:g}": np.abs(game.loss) ** a for a in (1, 1.25, 1.5, 1.75, 2)},
    }
    for name, terms in expected.items():
        np.testing.assert_allclose(found[name], np.cumsum(terms), rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(found["log_barrier"], trajectories.log_barrier_sum(game)[:-1], rtol=1e-12)
    np.testing.assert_allclose(states.estimates + states.estimates_lost, game.cumulative_estimate, rtol=1e-11)
    assert 5 < game.skipped.sum() < game.skipped.size - 5
    assert skip_error.any()


def test_ratios_are_those_of_the_trajectory(trajectory):
    game, states = trajectory
    K, log_T, S = game.num_arms, game.log_horizon, game.S[:-1]
    ratio = game.z / game.x[:-1]
    weighted = (game.estimate * game.x_arm * game.x_rest) ** 2 / S
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = {
            "stability_above": ratio.max(axis=1) / 1.3986,
            "stability_below": 0.7556 / ratio.min(axis=1),
            "div": np.where(weighted > 0, game.div / (1.033 * weighted), 0),
            "div_sum": np.cumsum(game.div) / (2.11 * np.cumsum(game.growth) * K * log_T),
            "div_sum_printed": np.cumsum(game.div) / (4096 * game.S[1:] * K * log_T),
        }
    for name, ratios in expected.items():
        place = list(FACTS).index(name)
        np.testing.assert_allclose(states.worst[:, place], np.fmax.accumulate(ratios), rtol=1e-10, err_msg=name)
        assert states.at[-1, place] == np.nanargmax(ratios) + 1


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("loss", [1e300, np.inf, -np.inf, 0.0, 1e-200])
def test_extreme_losses_violate_nothing(loss):
    rounds = trajectories.ROUNDS
    policy = Certified(jb.UniINF(horizon=100.0))
    state = last(states_after(policy, 3, np.arange(rounds, dtype=np.int32) % 3, np.full(rounds, loss)))
    assert not state.violations.any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


def test_progress_counts_seed_rounds():
    seen = []
    engine = jb.Engine(block=64, progress=lambda done, total: seen.append((done, total)))
    certify({"a": ENVIRONMENT, "b": ENVIRONMENT}, horizon=400, num_seeds=64, engine=engine, steps=False)
    assert seen[-1] == (2 * 400 * 64, 2 * 400 * 64)
    assert all(one[0] <= other[0] for one, other in itertools.pairwise(seen))


def test_a_stopped_certificate_continues_with_the_same_numbers(certificate, tmp_path, monkeypatch):
    """The run is stopped in its second part of three; a damaged part is played again."""
    monkeypatch.setattr(parts, "ROUNDS", 400 * 64)
    assert list(parts.seed_ranges(400, 128)) == [(0, 64), (64, 128)]
    played = []

    def play(*args):
        if len(played) == stop_after:
            raise KeyboardInterrupt
        played.append(args[2])
        return real(*args)

    real = certificates._play
    monkeypatch.setattr(certificates, "_play", play)
    stop_after = 1
    options = {"horizon": 400, "num_seeds": 128, "directory": tmp_path, "steps": False}
    with pytest.raises(KeyboardInterrupt):
        certify({"Pareto": ENVIRONMENT}, **options)
    stop_after = 10
    resumed = certify({"Pareto": ENVIRONMENT}, **options)
    assert played == [(0, 64), (64, 128)]
    xr.testing.assert_identical(resumed.drop_attrs(), certificate.drop_attrs())
    again = certify({"Pareto": ENVIRONMENT}, **options)
    assert len(played) == 2 and again.identical(resumed)
    certify({"Pareto": ENVIRONMENT}, seed=1, **options)  # other games
    assert len(played) == 4
    one = next((tmp_path / "parts").glob("*.nc"))
    one.write_bytes(one.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="its games are played again"):
        certify({"Pareto": ENVIRONMENT}, **options)
        certify({"Pareto": ENVIRONMENT}, seed=1, **options)
    assert len(played) == 5


def test_expectations(certificate):
    at = certificate.isel(environment=0)
    assert (at.low < at.excess).all()
    assert (at.excess < at.high).all()
    assert (at.high < 0).all()
    assert (at.ratio >= 0).all()
    assert (at.ratio < 1).all()


def test_a_environment_without_a_moment_has_no_expectation_to_check():
    class Plain:
        num_arms = 2

        def means(self, t):
            return jnp.array([0.2, 0.5])

    assert expectations.games_of(Plain(), 4.0, 10, {}, np.zeros(3)) is None
    assert all(np.isnan(values).all() for values in expectations.compared(None).values())
    found = conditional.conditional(jb.UniINF(horizon=10.0), Plain(), 10)
    assert np.isnan(found.step_ratio).all()


def spread(low, high):
    return np.linspace(low, high, 64)


GAMES = expectations.Games(
    K=2, T=1_000, S_1=4.0, alpha=1.5, sigma=1.0, gap=0.5,
    scale=spread(5, 6), div=spread(5, 7), shift=spread(30, 31),
    skip_error=spread(3, 4), off_best=spread(50, 60), regret=spread(25, 30),
)  # fmt: skip


def test_every_expectation_can_fail():
    """With S of millions, and so on, every left side is too large; a gap that is not there voids the last three."""
    verdicts = [expectations.verdict(*pair) for pair in zip(*_limits(GAMES), strict=True)]
    assert "VIOLATED" not in verdicts
    large = dict.fromkeys(("scale", "div", "shift", "skip_error"), spread(1e9, 1.1e9))
    for n, name in enumerate(expectations.EXPECTATIONS):
        worse = dataclasses.replace(GAMES, **({"regret": large["div"]} if name == "regret" else large))
        assert _limits(worse)[0][n] > 0, name
    assert np.isnan(_limits(dataclasses.replace(GAMES, gap=None))[0]).tolist() == [False] * 5 + [True] * 3


def _limits(games):
    found = expectations.compared(games)
    return found["low"], found["high"]


def test_bounds_of_the_theorems_by_hand():
    k_log_t = 2 * np.log(1_000)
    step = np.sqrt(1 + 1 / (16 * k_log_t))
    right = {name: fact.right(GAMES) for name, fact in expectations.EXPECTATIONS.items()}
    np.testing.assert_allclose(right["scale"], np.sqrt(2) * 4 + (1_000 / k_log_t) ** (2 / 3))
    np.testing.assert_allclose(right["shift_adversarial"], right["scale"] * k_log_t)
    np.testing.assert_allclose(right["shift_stochastic"], 16 * step * k_log_t + GAMES.regret / 4)  # M = 4 (1/0.5)^2
    M = (4 / 0.5) ** 2
    skips = 1 + np.log(4 * M / 4) / np.log(step)
    np.testing.assert_allclose(right["skip_stochastic"], M * skips + GAMES.regret / 4)


@pytest.mark.slow
def test_single_step_bounds_hold_and_see_a_moment_that_is_understated():
    @pytree
    class Understated(jb.Gaussian):
        def moment(self, alpha):
            return super().moment(alpha) / 4

    policy, arms = jb.UniINF(horizon=500.0), {"means": [0.5, 1.0], "scale": 0.1}
    honest = conditional.conditional(policy, jb.Gaussian(**arms), 500)
    assert (honest.step_high < 1).all()
    assert (honest.step_low > 0).all()
    lie = conditional.conditional(policy, Understated(**arms), 500)
    assert (lie.step_low.sel(conditional=["div", "shift"]) > 1).all()
    assert lie.step_ratio.sel(conditional="div_printed") == pytest.approx(
        float(lie.step_ratio.sel(conditional="div")) * 2.066 / 4096
    )


def test_the_best_arm_of_a_changing_environment():
    law = jb.Bernoulli(means=[0.2, 0.5, 0.8])
    assert tallies.best_fixed_arms(law, np.array([1, 10])).tolist() == [0, 0]
    changing = jb.Switching(law, lengths=[3, 100])
    assert tallies.best_fixed_arms(changing, np.array([3, 5, 10])).tolist() == [0, 0, 2]


def test_environments_by_name(tmp_path):
    (environment,) = read_environments('{name = "student_t", means = [0.5, 1.0], tail_index = 1.5}').values()
    assert isinstance(environment, jb.StudentT)
    path = tmp_path / "study.toml"
    path.write_text(
        'horizon = 10\nnum_seeds = 1\n[[policies]]\nname = "uniform"\n'
        '[[environments]]\nname = "pareto"\nmeans = [0.5, 1.0]\ntail_index = [1.2, 1.6]\n'
    )
    assert len(read_environments(str(path))) == 2
    with pytest.raises(ValueError, match="pareto needs means, tail_index"):
        read_environments("pareto")
    with pytest.raises(ValueError, match="is not an inline table"):
        read_environments("{name = }")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 1}, "horizon must be a whole number >= 2, got 1"),
        ({"num_seeds": 0}, "num_seeds must be a whole number >= 1, got 0"),
        ({"horizon": 2, "environments": {"w": jb.Bernoulli(means=[0.1] * 3)}}, "2 <= K <= T, got K = 3, T = 2 in w"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        certify(options.pop("environments", {"Pareto": ENVIRONMENT}), **options)


def test_float32_is_refused():
    with pytest.raises(ValueError, match="float64, got float32; pass simulate"):
        Certified(jb.UniINF(horizon=10.0)).init(2)


@pytest.mark.long
def test_default_environments_are_certified():
    environments = default_environments((2,)) | {"Student-t": default_environments((10,))["Student-t 1.5, K = 10"]}
    ds = certify(environments, horizon=1_000, num_seeds=128)
    assert holds(ds), broken(ds)
    assert ds.violations.shape == (5, len(FACTS))


@pytest.mark.long
def test_command(tmp_path):
    environment = '{name = "pareto", means = [0.5, 1.0, 1.0], tail_index = 1.3}'
    command = [sys.executable, "-m", "jaxbandit", "certify", "--quick", "--environment", environment]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"PASS: {len(FACTS)} facts hold in all 64,000 seed-rounds in 1 environment\n")
    assert done.stdout.count("was detected: it violates") == 4

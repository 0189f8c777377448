"""OMD-LB-HT's mirror step, and the tests, weights and switch of SAO-HT."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.policies import omd_lb_ht
from tests.reference import sao_ht
from tests.support.policies import quick_jit
from tests.support.references import Table, chosen, heavy_tailed_losses, states_after

GIVEN = {"moment_bound": 1.0, "failure_probability": 1e-3}


def played(policy, num_arms, arms, losses):
    """The states after each of these rounds, the first one before them; float64."""

    after = states_after(policy, num_arms, arms, losses)
    return [policy.init(num_arms), *(jax.tree.map(lambda leaf, n=n: leaf[n], after) for n in range(len(arms)))]


@pytest.mark.usefixtures("x64")
def test_omd_pinned_numbers():
    policy = jb.OMDLBHT(horizon=100.0, moment_order=2.0, moment_bound=1.0, failure_probability=0.01)
    states = played(policy, 3, (0, 1, 2), (1.0, -2.0, 7.0))  # the last is trimmed
    expected = [
        (0.3333164672, 0.3333417664, 0.3333417664),
        (0.333299601, 0.3333755013, 0.3333248977),
        (0.333299601, 0.3333755013, 0.3333248977),
    ]
    np.testing.assert_allclose([1 / state.inverse for state in states[1:]], expected, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_sao_pinned_numbers():
    policy = jb.SAOHT(horizon=1_000.0, moment_order=1.5, **GIVEN)
    np.testing.assert_allclose(policy._log_beta(3), 26.23942951, rtol=1e-9)
    np.testing.assert_allclose(policy._width(jnp.float64(4), 3), 309.7188407, rtol=1e-9)
    states = played(policy, 3, (0, 1, 2, 0, 1, 2), (0.05, -0.03, 0.4, 0.06, 0.3, -0.02))
    np.testing.assert_allclose(states[3].cumulative_loss, (0.15, -0.09, 1.2), rtol=1e-9)
    np.testing.assert_allclose(states[3].mean_estimate, (0.05, -0.03, 0), atol=1e-12)
    np.testing.assert_allclose(states[6].cumulative_loss, (0.33, 0.81, 1.14), rtol=1e-9)
    np.testing.assert_allclose(states[6].mean_estimate, (0.055, -0.015, -0.01), rtol=1e-9)
    skips = jb.SAOHT(horizon=1_000.0, moment_order=1.5, initial_rounds="skipped", **GIVEN)
    np.testing.assert_allclose(played(skips, 3, (0, 1, 2), (0.05, -0.03, 0.4))[3].cumulative_loss, 0)


@pytest.mark.parametrize("num_arms", [1, 2, 10, 100])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
def test_mirror_step_on_any_input(num_arms, dtype, tolerance):
    """Steps up to a hundred times the paper's largest, either sign, arms at the floor: the weights of a bisection."""
    rng = np.random.default_rng(num_arms)
    floor = 1e-3 / num_arms
    rows = []
    for step in (1e-6, 1e-3, 0.025, 0.5):
        for _ in range(12):
            w = np.maximum(rng.dirichlet(np.full(num_arms, 0.3)), floor)
            w = np.maximum(floor, w / w.sum())
            w[np.argmax(w)] -= w.sum() - 1
            rates = step * rng.uniform(1, 5, num_arms)
            force = np.zeros(num_arms)
            arm = rng.integers(num_arms)
            force[arm] = rng.choice([-1.0, 1.0]) / w[arm]
            rows.append((w, rates, force))
    with jax.enable_x64(dtype == "float64"):
        w, rates, force = (np.stack(part).astype(dtype) for part in zip(*rows, strict=True))

        def weights(w, rates, force):
            nu = omd_lb_ht._multiplier(1 / w, rates, force, jnp.asarray(1 / floor, dtype))
            return 1 / jnp.minimum(1 / w + rates * (force - nu), jnp.asarray(1 / floor, dtype))

        found = np.asarray(quick_jit(jax.vmap(weights))(w, rates, force), np.float64)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=num_arms * tolerance / 10)
    if dtype == "float64":
        expected = np.stack([sao_ht.mirror_step(*row, floor) for row in rows])
        np.testing.assert_allclose(found, expected, rtol=tolerance)


@pytest.mark.usefixtures("x64")
def test_invariants_of_omd():
    policy = jb.OMDLBHT(horizon=400.0, moment_order=1.5, constant_scale=1e-3, **GIVEN)
    losses = heavy_tailed_losses(400, 3, seed=1)
    rng = np.random.default_rng(0)
    states = played(
        policy, 3, *zip(*[(arm, losses[t, arm]) for t, arm in enumerate(rng.integers(3, size=400))], strict=True)
    )
    inverse, growth, level = (np.stack([getattr(s, name) for s in states]) for name in ("inverse", "growth", "level"))
    np.testing.assert_allclose((1 / inverse).sum(axis=1), 1, rtol=1e-12)
    least = 400 ** (-1 / 3) * 3 ** (-2 / 3) / 3
    assert (1 / inverse >= least * (1 - 1e-12)).all()
    assert (np.diff(growth, axis=0) >= 0).all()
    assert growth.max() > 1
    assert (level >= inverse).all()


def mechanism(losses, **values):
    """x and states of one game of SAO-HT, with constants small enough to act within it."""
    rounds = len(losses)
    policy = jb.SAOHT(horizon=float(rounds), moment_order=2.0, moment_bound=1.0, constant_scale=0.03, **values)
    environment = Table(losses=losses)
    step, key = jb.step(policy, environment), jb.game_key(0, 0)

    def body(state, _):
        after = step(state, key)
        return after, (policy.probabilities(state.policy, after.t, None), after.policy)

    return quick_jit(lambda: jax.lax.scan(body, jb.start(policy, environment), length=rounds)[1])()


@pytest.mark.usefixtures("x64")
def test_no_arm_is_removed_before_each_was_played():
    """The constants are so small that (5) would hold in round 2: it is tested from round K + 1 on."""
    policy = jb.SAOHT(horizon=1_000.0, moment_order=1.5, constant_scale=1e-9, **GIVEN)
    states = played(policy, 3, (0, 1, 2, 0), (0.0, 0.1, 0.2, 0.0))
    assert [state.removed.tolist() for state in states[1:]] == [[0, 0, 0]] * 3 + [[0, 4, 4]]
    assert [int(state.switched) for state in states[1:4]] == [0, 0, 0]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("removed_width", "multiple", "fires"),
    [("round", 1.5, True), ("round", 2.1, False), ("removal", 0.75, True), ("removal", 1.1, False)],
)
def test_the_width_of_an_arm_that_was_removed_long_ago(removed_width, multiple, fires):
    """Test (8) compares with 2 W; alpha is 2 and the arm left at a quarter of t, when W was half as large."""
    policy = jb.SAOHT(horizon=1e4, moment_order=2.0, removed_width=removed_width, **GIVEN)
    t, tau = jnp.float64(400), 100
    width = policy._width(t, 2)
    L = jnp.array([0.0, multiple * width * t / tau])
    removed, pulls = jnp.array([0, tau], jnp.int32), jnp.array([200, 200], jnp.int32)
    state = policy.init(2)._replace(cumulative_loss=L, mean_estimate=L / t, removed=removed, pulls=pulls)
    assert bool(policy._suspicious(state, t, width)) == fires


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("fallback_horizon", "rounds"), [("remaining", 40.0), ("full", 100.0)])
def test_the_horizon_of_the_fallback(fallback_horizon, rounds):
    policy = jb.SAOHT(horizon=100.0, moment_order=1.5, fallback_horizon=fallback_horizon, **GIVEN)
    alone = jb.OMDLBHT(horizon=rounds, moment_order=1.5, **GIVEN)
    now = jnp.int32(61), jnp.full(2, 0.5), jnp.int32(1), jnp.float64(0.7)
    after = policy.update(policy.init(2)._replace(switched=jnp.int32(60)), *now)
    np.testing.assert_allclose(after.fallback.inverse, alone.update(alone.init(2), *now).inverse, rtol=1e-14)
    assert after.fallback.inverse[1] > 2


@pytest.mark.slow
def test_stochastic_losses_remove_arms():
    losses = np.tile(np.float32([0, 1, 1]), (10_000, 1))
    x, states = mechanism(losses)
    x = np.asarray(x)
    removed = np.asarray(states.removed)
    assert int(states.switched[-1]) == 0
    assert removed[-1][0] == 0
    assert (removed[-1][1:] > 1_000).all()
    assert (np.diff((removed > 0).astype(int), axis=0) >= 0).all()
    tau = removed[-1][1]
    t = np.arange(1, len(losses) + 1)[tau:]  # q tau / t from the round after
    np.testing.assert_allclose(x[tau:, 1] * t, x[tau - 1, 1] * tau, rtol=1e-5)
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_a_change_of_the_best_arm_switches_for_good():
    before, after = np.float32([0, 1, 1]), np.float32([1, 0, 1])
    x, states = mechanism(np.repeat([before, after], [5_000, 7_000], axis=0), fallback_scale=1e-3)
    switched = np.asarray(states.switched)
    at = int(switched[-1])
    assert at > 5_000
    assert np.unique(switched).tolist() == [0, at]
    np.testing.assert_allclose(x[at], 1 / 3, rtol=1e-6)  # the fallback starts uniform
    np.testing.assert_allclose(x[-1], 1 / states.fallback.inverse[-2], rtol=1e-6)
    assert x[-1][1] > 0.5  # and learns


@pytest.mark.slow
def test_the_width_of_removed_arms():
    """As printed, (8) fires at nine times the round of removal in an environment that never changes."""
    losses = np.tile(np.float32([-1, 1]), (9_000, 1))
    printed, older = (mechanism(losses, removed_width=kind)[1] for kind in ("round", "removal"))
    tau = int(np.asarray(printed.removed)[np.asarray(printed.removed)[:, 1] > 0][0, 1])
    assert int(printed.switched[-1]) == pytest.approx(9 * tau, rel=0.3)
    assert int(older.switched[-1]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_scale_equivariance():
    losses = heavy_tailed_losses(150, 3, seed=3)
    for cls in (jb.SAOHT, jb.OMDLBHT):
        one, eight = (
            cls(horizon=150.0, moment_order=1.5, moment_bound=sigma, failure_probability=0.01, constant_scale=0.002)
            for sigma in (1.0, 8.0)
        )
        np.testing.assert_array_equal(chosen(one, losses), chosen(eight, losses, scale=8.0))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_the_default_failure_probability_is_one_over_the_horizon():
    losses = heavy_tailed_losses(150, 3, seed=3)
    for cls in (jb.SAOHT, jb.OMDLBHT):
        fields = {"horizon": 150.0, "moment_order": 1.5, "moment_bound": 1.0, "constant_scale": 0.002}
        same = [chosen(cls(**fields, failure_probability=zeta), losses) for zeta in (None, 1 / 150)]
        np.testing.assert_array_equal(*same)


@pytest.mark.slow
def test_the_papers_constants_play_uniformly_here():
    """As the documentation says; and no arm may leave before 6 W_t < t."""
    policy = jb.SAOHT(horizon=2_000.0, moment_order=2.0, moment_bound=1.0)
    ds = jb.simulate(policy, jb.Bernoulli(means=[0.0, 1.0]), horizon=2_000, num_seeds=32, record=[2_000])
    assert ds.regret.mean() == pytest.approx(1_000, rel=0.02)
    late = jb.SAOHT(horizon=3.9e6, moment_order=2.0, moment_bound=1.0)
    assert 6 * late._width(jnp.float32(3.9e6), 2) < 3.9e6
    early = jb.SAOHT(horizon=3.7e6, moment_order=2.0, moment_bound=1.0)
    assert 6 * early._width(jnp.float32(3.7e6), 2) > 3.7e6


def test_bad_values_say_the_remedy():
    with pytest.raises(ValueError, match=r"SAOHT.failure_probability must be < 1.*1 / horizon"):
        jb.SAOHT(horizon=10, moment_order=1.5, moment_bound=1.0, failure_probability=1.0)
    with pytest.raises(ValueError, match=r"OMDLBHT.moment_bound must be > 0.*environment.moment"):
        jb.OMDLBHT(horizon=10, moment_order=1.5, moment_bound=0.0)
    with pytest.raises(ValueError, match=r"SAOHT.fallback_horizon must be one of 'remaining', 'full'"):
        jb.SAOHT(horizon=10, moment_order=1.5, moment_bound=1.0, fallback_horizon="half")

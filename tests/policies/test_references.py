"""Every policy in step with its NumPy reference, and the identities that join them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.policies.htinf import HTINFState
from tests.reference import (
    ada_hedge,
    adar_ucb,
    ape2,
    clipped_sgd_ucb,
    exp3,
    exp3_plus_plus,
    ftpl,
    htinf,
    lb_inf_v,
    robust_moss,
    robust_ucb,
    sao_ht,
    tsallis_inf,
    ucb,
    uniinf,
)
from tests.support.policies import quick_jit
from tests.support.references import ROUNDS, Case, assert_in_step, chosen, follow, heavy_tailed_losses, reference_game


def normals(key, num_arms):
    return random.normal(key, (num_arms,))


def one_normal(key, num_arms):
    """What an update draws."""
    del num_arms
    return random.normal(key)


def upper_uniforms(key, num_arms):
    """What APE2 takes for 1 - U, as U."""
    return 1 - random.deep_uniform(key, (num_arms,))


def uniforms(key, num_arms):
    return random.uniform(key, (num_arms,))


EXACT = {"form": "exact", "max_rounds": ROUNDS}
GIVEN = {"horizon": ROUNDS, "moment_order": 1.5, "moment_bound": 1.0, "failure_probability": 1e-3}

CASES = [
    Case("uniinf", uniinf.UniINF, {"horizon": ROUNDS}),
    Case("uniinf_variant", uniinf.UniINF, {"horizon": ROUNDS, "threshold_constant": 0.5, "scale_loss": "skip"}),
    Case("htinf", htinf.HTINF, {"moment_order": 1.5, "moment_bound": 1.0}),
    Case("htinf", htinf.HTINF, {"moment_order": 1.05, "moment_bound": 3.0}),
    Case("htinf", htinf.HTINF, {"moment_order": 2.0, "moment_bound": 0.5}),
    Case("opt_htinf", htinf.OptHTINF),
    Case("ada_tinf", htinf.AdaTINF, {"horizon": ROUNDS}),
    Case("ada_tinf", htinf.AdaTINF, {"horizon": 50, "skipped_cost": "signed", "after_doubling": "zero"}),
    Case("tsallis_inf", tsallis_inf.TsallisINF, {"estimator": "iw"}),
    Case("tsallis_inf", tsallis_inf.TsallisINF, {"estimator": "rv"}),
    Case("exp3", exp3.Exp3),
    Case("ada_hedge", ada_hedge.AdaHedge),
    Case("ada_hedge", ada_hedge.AdaHedge, {"exploration": 0.1}),
    Case("exp3_plus_plus", exp3_plus_plus.Exp3PlusPlus),
    Case("exp3_plus_plus", exp3_plus_plus.Exp3PlusPlus, {"alpha": 0.5, "beta": 0.01}),
    Case("ftpl", ftpl.FTPL, {"rate": 0.5}, {"nodes": 96}),
    Case("lb_inf_v", lb_inf_v.LBINFV, {"horizon": ROUNDS}),
    Case(
        "clipped_sgd_ucb",
        clipped_sgd_ucb.ClippedSGDUCB,
        {"horizon": ROUNDS, "mean_bound": 1.0, "exploration": 0.5, "smoothing": 0.1},
        noise=one_normal,
    ),
    Case("ucb1", ucb.UCB1),
    Case("moss", ucb.MOSS, {"horizon": ROUNDS}),
    Case("thompson", ucb.GaussianThompson, noise=normals),
    Case("ape2", ape2.APE2, {"moment_order": 1.5, "scale": 1.0}, EXACT, noise=upper_uniforms),
    Case("mr_ucb", ape2.MRUCB, {"horizon": ROUNDS, "moment_order": 2.0, "scale": 0.5}, EXACT),
    Case("mr_ape", ape2.MRAPE, {"horizon": ROUNDS, "moment_order": 1.2, "scale": 2.0}, EXACT, noise=uniforms),
    Case("omd_lb_ht", sao_ht.OMDLBHT, GIVEN),
    Case("sao_ht", sao_ht.SAOHT, GIVEN),
    Case("sao_ht", sao_ht.SAOHT, GIVEN | {"constant_scale": 0.01}),
    Case("sao_ht", sao_ht.SAOHT, GIVEN | {"moment_order": 2.0, "moment_bound": 3.0, "constant_scale": 0.002}),
    Case("robust_moss", robust_moss.RobustMOSS, {"horizon": ROUNDS, "moment_order": 1.5, "moment_bound": 1.0}),
    Case(
        "robust_moss",
        robust_moss.RobustMOSS,
        {"horizon": 300, "moment_order": 2.0, "moment_bound": 0.1, "level_ratio": 1.5, "exploration": 4.0},
    ),
    Case("robust_ucb", robust_ucb.RobustUCB, {"moment_order": 1.5, "moment_bound": 1.0}, EXACT),
    Case("robust_ucb", robust_ucb.RobustUCB, {"moment_order": 2.0, "moment_bound": 0.1}, EXACT),
    Case(
        "robust_ucb",
        robust_ucb.RobustUCB,
        {"moment_order": 1.5, "moment_bound": 0.5, "estimator": "median_of_means"},
        EXACT,
    ),
    Case("robust_ucb", robust_ucb.RobustUCB, {"moment_order": 2.0, "moment_bound": 1.0, "estimator": "catoni"}, EXACT),
    Case("adar_ucb", adar_ucb.AdaRUCB, {"horizon": ROUNDS - 1}, EXACT),
]


# Policies without a reference, and why.
WITHOUT = {
    "uniform": "it plays 1/K in every round: there is nothing to transcribe",
    "uniinf_first_losses": "test_uniinf_first_losses holds it against the reference of uniINF",
    "doubling": "test_doubling holds it against the policy inside",
    "delayed": "test_delayed holds it against the policy inside",
}
BOUNDED = {"exp3", "exp3_plus_plus", "ftpl", "lb_inf_v", "moss", "thompson", "tsallis_inf", "ucb1"}


def test_every_policy_has_a_reference():
    found = {case.name for case in CASES}
    missing = set(jb.POLICIES) - found - set(WITHOUT)
    assert not missing, f"add the references of {missing} to CASES, or say in WITHOUT why there is none"
    assert found | set(WITHOUT) == set(jb.POLICIES), "a case or a reason names no policy"
    assert not found & set(WITHOUT)


def losses_for(case: Case, num_arms: int, rounds: int) -> np.ndarray:
    """Heavy tails where the policy is made for them, [0, 1] where it is not."""
    if case.name in BOUNDED:
        return np.random.default_rng(num_arms).random((rounds, num_arms)) * np.linspace(0.5, 1, num_arms)
    return heavy_tailed_losses(rounds, num_arms, seed=num_arms)


def games():
    """Every case with two arms and with five: fast is the first case of each policy, with one of them."""
    for index, case in enumerate(CASES):
        heavy = bool(case.own) or case.name in ("sao_ht", "omd_lb_ht", "robust_moss")
        never = case.name in {one.name for one in CASES[:index]} | {"mr_ucb", "mr_ape", "lb_inf_v"}
        for num_arms in (2, 5):
            slow = never or num_arms != (2 if heavy else 5)
            yield pytest.param(index, num_arms, id=f"{num_arms}-{case}", marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("index", "num_arms"), list(games()))
@pytest.mark.usefixtures("x64")
def test_in_step_with_the_reference(index, num_arms):
    """2000 rounds in step; 200 rounds when the policy weighs by its own x."""
    case = CASES[index]
    game = reference_game(case, losses_for(case, num_arms, ROUNDS))
    assert_in_step(case, game)
    assert len(np.unique(game.arm)) == num_arms


ARMS, LOSSES = (0, 1, 0, 2), (0.05, -0.05, 2.0, 0.1)

PINNED = [  # policy, arms, losses, {round: x}
    (
        lambda: jb.HTINF(moment_order=1.5, moment_bound=1.0),
        ARMS,
        LOSSES,
        {
            2: (0.2916683407, 0.3541658297, 0.3541658297),
            3: (0.286190696, 0.3826089569, 0.331200347),
            4: (0.2941242337, 0.3738606749, 0.3320150915),
            5: (0.3188311251, 0.3938711359, 0.287297739),
        },
    ),
    (lambda: jb.OptHTINF(), ARMS, LOSSES, {5: (0.3230190781, 0.377362588, 0.2996183339)}),
    (
        lambda: jb.AdaTINF(horizon=10),
        (0, 1, 0, 2, 1),
        (0.1, 0.5, 20.0, 1.0, -0.3),
        {4: (0.3285483067, 0.3357258466, 0.3357258466), 5: (0.3491434938, 0.356167343, 0.2946891632)},
    ),
    (
        lambda: jb.TsallisINF(),
        ARMS,
        (1.0, 0.0, 0.5, 1.0),
        {2: (0.07743185601, 0.461284072, 0.461284072), 5: (0.04285243546, 0.7294239595, 0.2277236051)},
    ),
    (
        lambda: jb.TsallisINF(estimator="rv"),
        ARMS,
        (1.0, 0.0, 0.5, 1.0),
        {5: (0.004737520929, 0.8734723656, 0.1217901134)},
    ),
    (
        lambda: jb.Exp3(),
        (0, 1, 0),
        (1.0, 0.0, 0.5),
        {2: (0.121653969, 0.4391730155, 0.4391730155), 3: (0.1491486148, 0.4254256926, 0.4254256926)},
    ),
]


@pytest.mark.parametrize("case", range(len(PINNED)))
@pytest.mark.usefixtures("x64")
def test_pinned_numbers(case):
    make, played, suffered, expected = PINNED[case]
    x, _ = follow(make(), 3, [*played, 0], [*suffered, 0.0])  # the x after the last round is that of one more
    for t, expected_x in expected.items():
        np.testing.assert_allclose(x[t - 1], expected_x, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_the_logarithm_of_an_index_counts_the_rounds_played():
    """Two indices that cross between log 7 and log 8: after 7 rounds the second arm is played, after 8 the first."""
    clipped = jb.ClippedSGDUCB(horizon=100.0, mean_bound=1.0, exploration=1.0)
    ucb = jb.UCB1(exploration=2**-0.5)
    between = np.sqrt(np.log(7.5)) * (3**-0.5 - 4**-0.5)
    pulls, estimate = jnp.array([3, 4], jnp.int32), jnp.array([0.0, between])
    states = (
        clipped.init(2)._replace(pulls=pulls, estimate=estimate),
        ucb.init(2)._replace(pulls=pulls, reward=estimate * jnp.array([3.0, 4.0])),
    )
    for policy, state in zip((clipped, ucb), states, strict=True):
        assert [int(np.argmax(policy.probabilities(state, jnp.int32(t), None))) for t in (8, 9)] == [1, 0]


def test_htinf_sums_to_one_for_moments_near_order_one():
    """At alpha = 1.001 the solver's q is 1001, and float32 alone would move the sum by a ten-thousandth."""
    policy = jb.HTINF(moment_order=1.001, moment_bound=1.0)
    losses = np.random.default_rng(0).exponential(size=(200, 10)).astype(np.float32) * 100
    states = HTINFState(losses - losses.min(axis=1, keepdims=True), np.zeros_like(losses))
    x = quick_jit(jax.vmap(lambda state: policy.probabilities(state, jnp.int32(100), None)))(states)
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("loss", "level"), [(1.7, 0), (1.8, 1)])
def test_the_budget_of_ada_tinf(loss, level):
    """At K = 1 and T = 2 it is sqrt(3) = 1.73; a skipped loss costs its size."""
    policy = jb.AdaTINF(horizon=2.0)
    after = policy.update(policy.init(1), jnp.int32(1), jnp.ones(1), jnp.int32(0), jnp.float64(loss))
    assert (after.cumulative_loss[0], after.cost, after.level > 0) == (0, loss, level > 0)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_family_identities():
    """HTINF(2, sigma) is Tsallis-INF with 2 / (sigma sqrt t) where nothing is skipped; OptHTINF is HTINF(2, 1)."""
    small = 1e-3 * np.random.default_rng(0).random((300, 4))
    at_2 = chosen(jb.HTINF(moment_order=2.0, moment_bound=1.0), small)
    np.testing.assert_array_equal(at_2, chosen(jb.TsallisINF(), small))
    heavy = heavy_tailed_losses(150, 4, seed=0)
    at_2 = chosen(jb.HTINF(moment_order=2.0, moment_bound=1.0), heavy)
    np.testing.assert_array_equal(at_2, chosen(jb.OptHTINF(), heavy))
    frozen = chosen(jb.AdaTINF(horizon=1e30), heavy)  # a budget that is never spent
    np.testing.assert_array_equal(frozen, chosen(jb.OptHTINF(), heavy))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_scale_equivariance_where_it_must_hold_and_fail():
    losses = heavy_tailed_losses(150, 3, seed=3)
    known = [jb.HTINF(moment_order=1.5, moment_bound=sigma) for sigma in (1.0, 8.0)]
    np.testing.assert_array_equal(chosen(known[0], losses), chosen(known[1], losses, scale=8.0))
    for policy in (jb.UniINF(horizon=150.0), jb.OptHTINF(), jb.AdaTINF(horizon=150.0)):
        assert (chosen(policy, losses) != chosen(policy, losses, scale=8.0)).any()

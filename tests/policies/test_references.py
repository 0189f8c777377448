"""Every policy in step with its NumPy reference, and the identities that join them."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.game import as_arrays
from tests.policies.test_contract import quick_jit
from tests.policies.test_uniinf_reference import REFERENCES, heavy_tailed_losses
from tests.reference import adar_ucb, ape2, exp3, htinf, robust_moss, robust_ucb, sao_ht, tsallis_inf, ucb

ROUNDS = 2_000


@dataclasses.dataclass(frozen=True)
class Pair:
    """A policy and the class of its reference, with the fields both are given."""

    name: str
    reference: Any
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    own: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields the policy alone is given
    noise: Any = None  # what the policy draws from its key, to be handed to the reference

    def __str__(self):
        return "-".join([self.name, *map(str, (self.fields | self.own).values())])


def normals(key, num_arms):
    return random.normal(key, (num_arms,))


def upper_uniforms(key, num_arms):
    """What APE2 takes for 1 - U, as U."""
    return 1 - random.deep_uniform(key, (num_arms,))


def uniforms(key, num_arms):
    return random.uniform(key, (num_arms,))


EXACT = {"form": "exact", "max_rounds": ROUNDS}
TOLD = {"horizon": ROUNDS, "moment_order": 1.5, "moment_bound": 1.0, "failure_probability": 1e-3}

PAIRS = [
    Pair("htinf", htinf.HTINF, {"moment_order": 1.5, "moment_bound": 1.0}),
    Pair("htinf", htinf.HTINF, {"moment_order": 1.05, "moment_bound": 3.0}),
    Pair("htinf", htinf.HTINF, {"moment_order": 2.0, "moment_bound": 0.5}),
    Pair("opt_htinf", htinf.OptHTINF),
    Pair("ada_tinf", htinf.AdaTINF, {"horizon": ROUNDS}),
    Pair("ada_tinf", htinf.AdaTINF, {"horizon": 50, "skipped_cost": "signed", "after_doubling": "zero"}),
    Pair("tsallis_inf", tsallis_inf.TsallisINF, {"estimator": "iw"}),
    Pair("tsallis_inf", tsallis_inf.TsallisINF, {"estimator": "rv"}),
    Pair("exp3", exp3.Exp3),
    Pair("ucb1", ucb.UCB1),
    Pair("moss", ucb.MOSS, {"horizon": ROUNDS}),
    Pair("thompson", ucb.GaussianThompson, noise=normals),
    Pair("ape2", ape2.APE2, {"moment_order": 1.5, "scale": 1.0}, EXACT, noise=upper_uniforms),
    Pair("mr_ucb", ape2.MRUCB, {"horizon": ROUNDS, "moment_order": 2.0, "scale": 0.5}, EXACT),
    Pair("mr_ape", ape2.MRAPE, {"horizon": ROUNDS, "moment_order": 1.2, "scale": 2.0}, EXACT, noise=uniforms),
    Pair("omd_lb_ht", sao_ht.OMDLBHT, TOLD),
    Pair("sao_ht", sao_ht.SAOHT, TOLD),
    Pair("sao_ht", sao_ht.SAOHT, TOLD | {"constant_scale": 0.01}),
    Pair("sao_ht", sao_ht.SAOHT, TOLD | {"moment_order": 2.0, "moment_bound": 3.0, "constant_scale": 0.002}),
    Pair("robust_moss", robust_moss.RobustMOSS, {"horizon": ROUNDS, "moment_order": 1.5, "moment_bound": 1.0}),
    Pair(
        "robust_moss",
        robust_moss.RobustMOSS,
        {"horizon": 300, "moment_order": 2.0, "moment_bound": 0.1, "level_ratio": 1.5, "exploration": 4.0},
    ),
    Pair("robust_ucb", robust_ucb.RobustUCB, {"moment_order": 1.5, "moment_bound": 1.0}, EXACT),
    Pair("robust_ucb", robust_ucb.RobustUCB, {"moment_order": 2.0, "moment_bound": 0.1}, EXACT),
    Pair(
        "robust_ucb",
        robust_ucb.RobustUCB,
        {"moment_order": 1.5, "moment_bound": 0.5, "estimator": "median_of_means"},
        EXACT,
    ),
    Pair("robust_ucb", robust_ucb.RobustUCB, {"moment_order": 2.0, "moment_bound": 1.0, "estimator": "catoni"}, EXACT),
    Pair("adar_ucb", adar_ucb.AdaRUCB, {"horizon": ROUNDS - 1}, EXACT),
]


def test_every_policy_has_a_reference():
    tested = (
        {pair.name for pair in PAIRS} | set(REFERENCES) | {"uniform", "uniinf_variant"}
    )  # the latter: test_ablations
    assert set(jb.POLICIES) == tested


def losses_for(pair: Pair, num_arms: int, rounds: int) -> np.ndarray:
    """Heavy tails where the policy is made for them, [0, 1] where it is not."""
    if pair.name in ("exp3", "tsallis_inf", "ucb1", "moss", "thompson"):
        return np.random.default_rng(num_arms).random((rounds, num_arms)) * np.linspace(0.5, 1, num_arms)
    return heavy_tailed_losses(rounds, num_arms, seed=num_arms)


@functools.cache
def reference_game(index: int, num_arms: int, rounds: int):
    """x, arm and loss of every round of a game the reference plays."""
    pair = PAIRS[index]
    table = losses_for(pair, num_arms, rounds)
    uniforms = np.random.default_rng(1).random(rounds)
    player = pair.reference(num_arms, **pair.fields)
    noise = _noise(pair, num_arms, rounds)
    xs, played, suffered = [], [], []
    for t in range(1, rounds + 1):
        x = player.probabilities(t, None if noise is None else noise[t - 1])
        arm = int(np.argmax(uniforms[t - 1] * x.sum() < np.cumsum(x)))
        player.update(t, x, arm, table[t - 1, arm])
        xs.append(x)
        played.append(arm)
        suffered.append(table[t - 1, arm])
    return np.stack(xs), np.asarray(played, np.int32), np.asarray(suffered)


def _key(t):
    return jax.random.fold_in(jax.random.key(5), t)


def _noise(pair: Pair, num_arms: int, rounds: int):
    if pair.noise is None:
        return None
    with jax.enable_x64(True):
        draw = quick_jit(jax.vmap(lambda t: pair.noise(_key(t), num_arms)))
        return np.asarray(draw(jnp.arange(1, rounds + 1)))


def follow(pair: Pair, num_arms: int, played, suffered, x_given=None) -> np.ndarray:
    """x of every round as the policy has it, on the given arms and losses; float64.

    With ``x_given`` the policy weighs losses by the reference's x, so that rounding is not amplified by
    play and the comparison can be long.
    """
    policy = as_arrays(jb.POLICIES[pair.name](**pair.fields, **pair.own))
    rounds = len(played)
    given = np.full((rounds, num_arms), np.nan) if x_given is None else x_given
    rows = [np.resize(column, (ROUNDS, *column.shape[1:])) for column in (played, suffered, given)]
    play = _follow_optimised if pair.own else _follow
    return np.asarray(play(policy, *rows, jnp.int32(rounds)))[:rounds]


def _rounds_of(policy, played, suffered, given, rounds):
    """x of so many rounds; where none is given the policy goes by its own. One program for all lengths and values."""

    def body(n, loop):
        state, xs = loop
        x = policy.probabilities(state, n + 1, _key(n + 1))
        weights = jnp.where(jnp.isnan(given[n]), x, given[n])
        return policy.update(state, n + 1, weights, played[n], suffered[n]), xs.at[n].set(x)

    return jax.lax.fori_loop(0, rounds, body, (policy.init(given.shape[1]), jnp.zeros_like(given)))[1]


_follow = quick_jit(_rounds_of)
_follow_optimised = jax.jit(_rounds_of)  # exact forms: here the time is play


def games():
    """Every pair with two arms and with five: fast with one of them, but for what another fast pair plays nearly."""
    for index, pair in enumerate(PAIRS):
        heavy = bool(pair.own) or pair.name in ("sao_ht", "omd_lb_ht", "robust_moss")
        never = pair.fields.get("estimator") == "catoni" or pair.name in ("mr_ucb", "mr_ape")
        for num_arms in (2, 5):
            slow = never or num_arms != (2 if heavy else 5)
            yield pytest.param(index, num_arms, id=f"{num_arms}-{pair}", marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("index", "num_arms"), list(games()))
@pytest.mark.usefixtures("x64")
def test_in_step_with_the_reference(index, num_arms):
    """2000 rounds in step; 200 rounds when the policy weighs by its own x."""
    x, played, suffered = reference_game(index, num_arms, ROUNDS)
    np.testing.assert_allclose(follow(PAIRS[index], num_arms, played, suffered, x), x, rtol=1e-9, atol=1e-15)
    own = follow(PAIRS[index], num_arms, played[:200], suffered[:200])
    np.testing.assert_allclose(own, x[:200], rtol=1e-9, atol=1e-15)
    assert len(np.unique(played)) == num_arms


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
    policy = make()
    state = policy.init(3)
    probabilities, update = quick_jit(lambda *now: policy.probabilities(*now, None)), quick_jit(policy.update)
    for t in range(1, len(played) + 2):
        x = probabilities(state, jnp.int32(t))
        np.testing.assert_allclose(x, expected.get(t, x), rtol=1e-9)
        if t <= len(played):
            state = update(state, jnp.int32(t), x, jnp.int32(played[t - 1]), jnp.float64(suffered[t - 1]))


def _chosen(policy, losses, scale=1.0):
    """Arms a policy plays by itself on a table of losses times a scale, float64."""
    return np.asarray(_arms_of(as_arrays(policy), losses, np.random.default_rng(2).random(len(losses)), scale))


@quick_jit
def _arms_of(policy, losses, uniforms, scale):
    def body(state, row):
        t, uniform, losses_t = row
        x = policy.probabilities(state, t, _key(t))
        arm = jnp.argmax(uniform * x.sum() < jnp.cumsum(x)).astype(jnp.int32)
        return policy.update(state, t, x, arm, scale * losses_t[arm]), arm

    rounds, num_arms = losses.shape
    rows = (jnp.arange(1, rounds + 1, dtype=jnp.int32), uniforms, losses)
    return jax.lax.scan(body, policy.init(num_arms), rows)[1]


@pytest.mark.usefixtures("x64")
def test_family_identities():
    """HTINF(2, sigma) is Tsallis-INF with 2 / (sigma sqrt t) where nothing is skipped; OptHTINF is HTINF(2, 1)."""
    small = 1e-3 * np.random.default_rng(0).random((300, 4))
    at_2 = _chosen(jb.HTINF(moment_order=2.0, moment_bound=1.0), small)
    np.testing.assert_array_equal(at_2, _chosen(jb.TsallisINF(), small))
    heavy = heavy_tailed_losses(150, 4, seed=0)
    at_2 = _chosen(jb.HTINF(moment_order=2.0, moment_bound=1.0), heavy)
    np.testing.assert_array_equal(at_2, _chosen(jb.OptHTINF(), heavy))
    frozen = _chosen(jb.AdaTINF(horizon=1e30), heavy)  # a budget that is never spent
    np.testing.assert_array_equal(frozen, _chosen(jb.OptHTINF(), heavy))


@pytest.mark.usefixtures("x64")
def test_scale_equivariance_where_it_must_hold_and_fail():
    losses = heavy_tailed_losses(150, 3, seed=3)
    told = [jb.HTINF(moment_order=1.5, moment_bound=sigma) for sigma in (1.0, 8.0)]
    np.testing.assert_array_equal(_chosen(told[0], losses), _chosen(told[1], losses, scale=8.0))
    for policy in (jb.UniINF(horizon=150.0), jb.OptHTINF(), jb.AdaTINF(horizon=150.0)):
        assert (_chosen(policy, losses) != _chosen(policy, losses, scale=8.0)).any()

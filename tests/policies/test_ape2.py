"""The p-robust mean, its bounded form, and the policies built on it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.policies import influence
from jaxbandit.policies.ape2 import _bonus
from tests.reference import ape2
from tests.support.policies import quick_jit
from tests.support.references import chosen, heavy_tailed_losses

DEVIATION = 0.02  # of c / n^{1-1/p} times the mean of |Y/c|^p, as the docstrings promise


def estimates(losses, form, order, scale=1.0, max_rounds=4096):
    """The estimate of the only arm after every loss."""
    rows = jnp.asarray(losses)
    return np.asarray(
        _estimates(rows, form, jnp.asarray(order, rows.dtype), jnp.asarray(scale, rows.dtype), max_rounds)
    )


@functools.partial(quick_jit, static_argnames=("form", "max_rounds"))
def _estimates(losses, form, order, scale, max_rounds):
    def body(state, loss):
        after = influence.add_reward(state, jnp.int32(0), loss, order, scale)
        return after, after.estimate[0]

    return jax.lax.scan(body, influence.no_rewards(1, form, max_rounds), losses)[1]


@pytest.mark.usefixtures("x64")
def test_robust_constant():
    orders = [1.1, 1.2, 1.5, 1.8, 1.9, 2.0]
    expected = [0.7188580698, 0.5942008193, 0.4386913377, 0.4195944495, 0.4405572348, 0.5]
    np.testing.assert_allclose([influence.robust_constant(p) for p in orders], expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("order", [1.05, 1.5, 2.0])
def test_influence_function(order):
    """Odd, increasing, and between the two logarithms that make the tail bound close."""
    z = np.concatenate([-np.logspace(4, -6, 200), np.logspace(-6, 4, 200)])
    psi = np.asarray(influence._psi(jnp.asarray(z), order)(1.0, 1.0))
    np.testing.assert_allclose(psi, -psi[::-1], rtol=1e-12)
    assert (np.diff(psi) > 0).all()
    power = float(influence.robust_constant(order)) * np.abs(z) ** order
    assert (np.exp(psi) <= (1 + z + power) * (1 + 1e-9)).all()
    assert (np.exp(-psi) <= (1 - z + power) * (1 + 1e-9)).all()


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("form", ["exact", "bounded"])
@pytest.mark.parametrize("order", [1.01, 1.2, 1.5, 2.0])
@pytest.mark.parametrize("kind", ["heavy", "constant", "outlier"])
def test_estimate_against_the_reference(form, order, kind):
    rng = np.random.default_rng(0)
    losses = {
        "heavy": rng.standard_t(1.5, 1_100) + 0.5,
        "constant": np.full(1_100, 0.7),
        "outlier": np.where(np.arange(1_100) == 30, 1e30, rng.random(1_100)),
    }[kind]
    found = estimates(losses, form, order, scale=0.8)
    for n in [1, 2, 3, 4, 5, 7, 11, 16, 23, 64, 100, 180, 256, 500, 1_024, 1_100]:
        rewards = (-losses[:n]).tolist()
        exact = ape2.robust_mean(rewards, order, 0.8)
        width = 0.8 / n ** (1 - 1 / order) * np.mean(np.abs(losses[:n] / 0.8) ** order)
        at_a_level = form == "exact" or n in (1, 4, 16, 64, 256, 1_024)
        allowed = 1e-9 * max(abs(exact), 1) if at_a_level else DEVIATION * width
        assert abs(found[n - 1] - exact) <= allowed, (n, found[n - 1], exact, allowed)


@pytest.mark.usefixtures("x64")
def test_the_deviation_bound_holds_for_every_reward_and_place():
    """The error of the cubic per reward, over |z|^p: the bound is its sum."""
    z = np.logspace(-6, 15, 400)
    worst = []
    for order in (1.001, 1.1, 1.3, 1.6, 2.0):
        for position in (0.3, 0.5, 0.8, 1.4, 1.5, 7.5, 11.5):
            level = jnp.arange(14.0)
            weights = np.asarray(influence._cubic(level, jnp.asarray(position)))
            np.testing.assert_allclose(weights.sum(), 1)
            growth = 4.0 ** ((np.arange(14) - position) / order)  # s / s_n
            psi = influence._psi(jnp.asarray(z), order)
            values = [g * np.asarray(psi(1 / g, g**-order)) for g in growth]
            error = np.abs(sum(w * v for w, v in zip(weights, values, strict=True)) - np.asarray(psi(1.0, 1.0)))
            worst.append(np.max((error - 1e-12) / z**order))
    assert 0.01 < max(worst) < DEVIATION


def test_equal_rewards_do_not_drift_in_float32():
    losses = np.full(200_000, 0.7, np.float32)
    found = estimates(losses, "bounded", 2.0, max_rounds=2**18)
    n = 200_000
    s = n**0.5
    assert found[-1] == pytest.approx(-s * ape2.psi(0.7 / s, 2.0), rel=1e-5)


@pytest.mark.usefixtures("x64")
def test_beyond_max_rounds_the_scale_stays():
    """With room for 16 rounds the scale grows to that of 16 plays, c 16^(1/p), and no further."""
    found = estimates(np.full(64, 0.7), "bounded", 2.0, scale=0.8, max_rounds=16)
    s = 0.8 * 16**0.5
    assert found[-1] == pytest.approx(-s * ape2.psi(0.7 / s, 2.0), rel=1e-9)


@pytest.mark.usefixtures("x64")
def test_pinned_numbers():
    """p = 1.5, c = 1: two arms with three and two rewards."""
    policy = jb.APE2(moment_order=1.5, form="exact", max_rounds=8)
    state, update = policy.init(2), quick_jit(policy.update)
    rows = [(0, 0.5), (1, 1.0), (0, 3.0), (1, 0.1), (0, -0.2)]
    for arm, reward in rows:
        state = update(state, jnp.int32(1), jnp.ones(2), jnp.int32(arm), jnp.float64(-reward))
    expected = [ape2.robust_mean([r for a, r in rows if a == arm], 1.5, 1.0) for arm in (0, 1)]
    np.testing.assert_allclose(state.estimate, expected, rtol=1e-12)
    np.testing.assert_allclose(state.estimate, [0.9127313997, 0.5416259858], rtol=1e-9)


QUANTILES = {  # at U = 0.3 and 0.9, p = 1.5, two arms
    "weibull": (0.3566749439, 2.302585093),
    "gamma": (0.3566749439, 2.302585093),
    "gumbel": (-0.1856267589, 2.250367327),
    "pareto": (1.082486921, 1.668100537),
    "frechet": (0.9595888276, 1.648855858),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("law", ["weibull", "gamma", "gumbel", "pareto", "frechet"])
@pytest.mark.parametrize("num_arms", [2, 100])
def test_perturbations_are_quantiles(monkeypatch, law, num_arms):
    uniforms = np.resize([0.3, 0.9], num_arms)
    monkeypatch.setattr(random, "deep_uniform", lambda key, shape: jnp.asarray(1 - uniforms))
    for order in (1.5, 2.0):  # log 100 is above p^2/(p-1) at 2, below at 1.5
        found = jb.APE2(moment_order=order, perturbation=law)._perturbations(None, num_arms)
        np.testing.assert_allclose(found, ape2.perturb(uniforms, law, num_arms, order), rtol=1e-12)
    if num_arms == 2:
        found = jb.APE2(moment_order=1.5, perturbation=law)._perturbations(None, 2)
        np.testing.assert_allclose(found, QUANTILES[law], rtol=1e-9)


@pytest.mark.parametrize("law", ["weibull", "gumbel", "pareto", "frechet"])
def test_perturbations_are_finite_at_the_ends(monkeypatch, law):
    monkeypatch.setattr(random, "deep_uniform", lambda key, shape: jnp.asarray([1.0, 2.0**-97]))
    assert np.isfinite(jb.APE2(moment_order=1.5, perturbation=law)._perturbations(None, 2)).all()


@pytest.mark.parametrize(
    ("law", "values"), [("bernoulli", {0.0, 1.0}), ("rademacher", {-1.0, 1.0}), ("symmetric", None), ("uniform", None)]
)
@pytest.mark.slow
def test_bounded_perturbations(law, values):
    """With one play each and equal estimates the index is the perturbation: its law shows in who wins."""
    policy = jb.MRAPE(horizon=1e6, moment_order=1.5, perturbation=law)
    state, update = policy.init(2), quick_jit(policy.update)
    for arm in (0, 1):
        state = update(state, jnp.int32(1), jnp.ones(2), jnp.int32(arm), jnp.float32(0.5))
    keys = jax.random.split(jax.random.key(0), 4_000)
    first = float(np.mean(quick_jit(jax.vmap(lambda key: policy.probabilities(state, jnp.int32(3), key)[0]))(keys)))
    expected = 0.75 if values else 0.5  # ties go to the lowest index
    assert abs(first - expected) < 0.04


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
@pytest.mark.parametrize("form", ["exact", "bounded"])
def test_scale_equivariance(form):
    losses = heavy_tailed_losses(150, 3, seed=3)
    shape = {"form": form, "max_rounds": 256}

    def policies(s):
        return [
            jb.APE2(moment_order=1.5, scale=s, **shape),
            jb.MRUCB(horizon=150, moment_order=1.5, scale=s, estimator_scale=0.1 * s, **shape),
            jb.MRAPE(horizon=150, moment_order=1.5, scale=s, **shape),
        ]

    for one, eight in zip(policies(1.0), policies(8.0), strict=True):
        np.testing.assert_array_equal(chosen(one, losses), chosen(eight, losses, scale=8.0))


@pytest.mark.usefixtures("x64")
def test_a_huge_scale_gives_the_sample_mean():
    losses = heavy_tailed_losses(100, 1, seed=0)[:, 0]
    for form in ("exact", "bounded"):
        np.testing.assert_allclose(estimates(losses, form, 1.5, scale=1e12)[-1], -losses.mean(), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_mr_index():
    """T = 100, K = 2, three and two plays: the numbers of the definition; no bonus after T / K plays."""
    policy = jb.MRUCB(horizon=100, moment_order=1.5)
    state = policy.init(2)
    for arm in (0, 1, 0, 1, 0):
        state = policy.update(state, jnp.int32(1), jnp.zeros(2), jnp.int32(arm), jnp.float64(1.0))
    np.testing.assert_allclose(_bonus(policy, state), [1.95071004, 2.554823435], rtol=1e-9)
    state = state._replace(pulls=jnp.asarray([50, 51], jnp.int32))
    np.testing.assert_array_equal(_bonus(policy, state), [0, 0])


@pytest.mark.slow
def test_forms_play_alike():
    """Common random numbers, one law: the regret of the two forms is the same within noise."""
    environment = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
    regret = [
        jb.simulate(
            jb.APE2(moment_order=1.5, form=form, max_rounds=256), environment, horizon=256, num_seeds=512, record=[256]
        ).regret.values[:, 0]
        for form in ("exact", "bounded")
    ]
    assert np.mean(regret[0] == regret[1]) > 0.8
    assert abs(regret[0].mean() - regret[1].mean()) < 1


@pytest.mark.parametrize("rounds", [0, -5, 1e3, "many"])
def test_bad_rounds_say_the_remedy(rounds):
    with pytest.raises(ValueError, match=r"APE2.max_rounds must be a whole number >= 1.*rounds you run"):
        jb.APE2(moment_order=1.5, max_rounds=rounds)


def test_bad_choices_say_the_remedy():
    with pytest.raises(ValueError, match=r"APE2.perturbation must be one of 'weibull'.*got 'normal'"):
        jb.APE2(moment_order=1.5, perturbation="normal")
    with pytest.raises(ValueError, match=r"MRUCB.form must be one of 'bounded', 'exact'"):
        jb.MRUCB(horizon=10, moment_order=1.5, form="long")
    with pytest.raises(ValueError, match=r"MRAPE.scale must be > 0.*units of the losses"):
        jb.MRAPE(horizon=10, moment_order=1.5, scale=0)

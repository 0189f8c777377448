"""The score estimator: right where the jump is scored, wrong where it is not, and the laws it leans on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import sensitivity
from jaxbandit.sensitivity.score import _conditioned
from tests.support.laws import LAWS

PARETO = jb.Pareto(means=[1.0, 2.0], tail_index=1.3)
LOMAX = jb.Lomax(means=[0.5, 1.0, 1.5], tail_index=1.5)
GAUSSIAN = jb.Gaussian(means=[-0.5, 0.5], scale=2.0)
UNIINF = jb.UniINF(horizon=100)
HTINF = jb.HTINF(moment_order=1.5, moment_bound=2.0)
TRIPLES = [
    pytest.param(UNIINF, "initial_scale", PARETO, id="uniinf-scale-pareto"),
    pytest.param(jb.UniINFVariant(horizon=100), "threshold_constant", LOMAX, id="uniinf-threshold-lomax"),
    pytest.param(UNIINF, "initial_scale", GAUSSIAN, id="uniinf-scale-gaussian"),
    pytest.param(HTINF, "moment_bound", LOMAX, id="htinf-bound-lomax"),
    pytest.param(HTINF, "moment_order", LOMAX, id="htinf-order-lomax"),
]


def z_score(found, expected):
    error = np.hypot(found.gradient_stderr, expected.gradient_stderr.item())
    return float((found.gradient - expected.gradient.item()) / error)


@pytest.mark.long
@pytest.mark.parametrize(("policy", "parameter", "environment"), TRIPLES)
def test_it_agrees_with_coupled_differences_and_the_plain_one_does_not(policy, parameter, environment):
    # Within 4 standard errors: a false alarm in 16,000 for each triple.
    difference = sensitivity.local(
        policy, environment, [parameter], horizon=100, num_seeds=30_000, seed=1, check_seeds=0
    )
    scored = {
        plain: sensitivity.score(policy, environment, parameter, horizon=100, num_seeds=16_384, plain=plain)
        for plain in (False, True)
    }
    assert abs(z_score(scored[False], difference)) < 4
    assert abs(z_score(scored[True], difference)) > 4
    if parameter == "initial_scale" and environment is PARETO:
        # The derivative is -1.75 and the plain estimate +7.4, wrong in sign; z = 5, a false alarm in 1.7 million.
        for plain, expected in ((False, -1.75), (True, 7.4)):
            assert abs(scored[plain].gradient - expected) < 5 * scored[plain].gradient_stderr


@pytest.mark.slow
def test_it_ends_near_a_hundred_rounds():
    spread = [
        float(sensitivity.score(UNIINF, PARETO, "initial_scale", horizon=T, num_seeds=2048).gradient_std)
        for T in (100, 300)
    ]
    assert spread[0] < 100
    assert spread[1] > 10 * spread[0]


@pytest.mark.slow
def test_its_games_are_those_of_simulate():
    ds = sensitivity.score(UNIINF, PARETO, "initial_scale", horizon=100, num_seeds=2048)
    played = jb.simulate(UNIINF, PARETO, horizon=100, num_seeds=2048, record=[100], dtype="float64")
    assert float(ds.regret) == pytest.approx(float(played.regret.mean()), rel=1e-12)


@pytest.mark.parametrize("name", ["pareto", "lomax", "exponential", "gaussian"])
def test_survival_is_that_of_the_law(name, x64):
    for example in LAWS[name]:
        for arm, law in enumerate(example.laws):
            z = law.isf(np.array([0.999, 0.9, 0.5, 0.1, 1e-3, 1e-6]))
            found = [float(example.environment.survival(jnp.asarray(one), jnp.int32(arm))) for one in z]
            np.testing.assert_allclose(found, law.sf(z), rtol=1e-9)
    assert float(example.environment.survival(jnp.asarray(-1e9), jnp.int32(0))) == 1


@pytest.mark.parametrize("threshold", [0.2, 1.0])
def test_a_conditioned_loss_keeps_its_law_as_the_threshold_moves(threshold, x64):
    # For a smooth g, d/dC E[g(l) 1(|l| < C)] = g(C) f(C) + g(-C) f(-C): what the score and the moving loss must
    # give together, by an average over the quantiles of a normal law.
    environment = jb.Gaussian(means=[0.3], scale=1.0)
    levels = (np.arange(4_000) + 0.5) / 4_000
    losses = jnp.asarray(0.3 + np.sqrt(2) * np.asarray(jax.scipy.special.erfinv(2 * levels - 1)))

    def survival(z):
        return environment.survival(z, jnp.int32(0))

    def one(loss):
        def kept(C):
            moved, log_p = _conditioned(loss, C, survival)
            return jnp.where(jnp.abs(loss) < threshold, jnp.exp(moved), 0), log_p

        (value, _), (slope, score) = jax.jvp(kept, (jnp.asarray(threshold),), (jnp.asarray(1.0),))
        return value * score + slope

    found = float(jax.jit(lambda losses: jax.vmap(one)(losses).mean())(losses))
    density = [np.exp(-((z - 0.3) ** 2) / 2) / np.sqrt(2 * np.pi) for z in (threshold, -threshold)]
    assert found == pytest.approx(density[0] * np.exp(threshold) + density[1] * np.exp(-threshold), rel=3e-3)


@pytest.mark.parametrize(
    ("policy", "environment", "parameter", "message"),
    [
        (jb.UCB1(), PARETO, "exploration", r"UCB1 has no keeps_below.*uniINF and HTINF; use local\(\) for any"),
        (UNIINF, jb.Bernoulli(means=[0.2, 0.5]), "initial_scale", r"Bernoulli has no survival.*use local\(\) for any"),
        (UNIINF, PARETO, "tail_index", "UniINF has no parameter 'tail_index'"),
        (jb.UniINFVariant(horizon=100), PARETO, "damped", "static"),
    ],
)
def test_what_it_cannot_do_it_refuses(policy, environment, parameter, message):
    with pytest.raises(ValueError, match=message):
        sensitivity.score(policy, environment, parameter, horizon=10, num_seeds=4)

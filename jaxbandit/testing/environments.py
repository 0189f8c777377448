"""Checks of environments: shapes, purity, data, and means and moments by sampling.

A sample mean of heavy-tailed losses says little, so draws are truncated. If ``E|l|^alpha <= sigma^alpha``, then losses
beyond M contribute at most ``sigma^alpha M^(1 - alpha)`` to a mean, and the others obey a Bernstein bound. The
tolerance is the least sum of both over some alpha and M. Fewer than one in a million right environments fail.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.game import as_arrays, game_key, is_stationary, means_of, play_round
from jaxbandit.policies import Uniform
from jaxbandit.simulation import simulate
from jaxbandit.testing.fields import counted, edges, refuses
from jaxbandit.testing.games import HORIZON, CheckError, close, quick_jit, require, same
from jaxbandit.types import forms

DRAWS = 1 << 19  # of each arm
ORDERS = (2.0, 4.0, 8.0)  # of moments, besides the declared one
FALSE_ALARM = 1e-8  # of one comparison
MOST_ARMS = 8  # whose losses are sampled
LEVELS = np.geomspace(1, 1e6, 25)  # of truncation, in units of sigma


def returns_the_right_forms(environment: Any) -> str:
    """``num_arms`` is a whole number, ``means`` returns one number per arm, and ``loss`` one number."""
    count = environment.num_arms
    require(
        isinstance(count, int | np.integer) and count >= 1,
        f"num_arms must be a whole number >= 1, got {count!r}; it is no array, because shapes depend on it",
    )
    for x64 in (False, True):
        with jax.enable_x64(x64):
            arrays = as_arrays(environment)
            means_of(arrays, jnp.int32(1))
            policy, t = as_arrays(Uniform()), jnp.int32(1)
            play_round(policy, arrays, policy.init(count), t, random.round_streams(game_key(0, 0), t))
    return f"{count} arms"


def is_pure(environment: Any) -> str:
    """The same round, arm and key have the same loss, by hand and compiled, for a stream and for a JAX key."""
    arrays, t = as_arrays(environment), jnp.int32(3)
    for arm in {0, environment.num_arms - 1}:
        streams = random.round_streams(game_key(0, 0), t)
        once, again = (arrays.loss(t, jnp.int32(arm), streams.loss) for _ in range(2))
        require(same(once, again), "the same round has two losses; draw from the key alone, with jaxbandit.random")
        compiled = quick_jit(
            lambda arm, t: forms.called(arrays, "loss", t, arm, random.round_streams(game_key(0, 0), t).loss)
        )
        require(close(compiled(jnp.int32(arm), t), once, 1e-4), "jit changes the loss by more than rounding")
        arrays.loss(t, jnp.int32(arm), jax.random.key(0))
    once, again = (arrays.means(t) for _ in range(2))
    require(same(once, again), "means(t) changes from call to call; it may depend on t and on fields alone")
    return "the same round has the same loss"


def fields_are_data(environment: Any) -> str:
    """Values of the fields are traced: a sweep over them is one program."""
    leaves, structure = jax.tree.flatten(as_arrays(environment))

    def one_round(leaves, t, arm, words):
        inside = jax.tree.unflatten(structure, leaves)
        stream = random.word_streams(words, jnp.int32(t)).loss
        return forms.called(inside, "loss", t, arm, stream), forms.called(inside, "means", t)

    try:
        jax.eval_shape(one_round, leaves, jnp.int32(1), jnp.int32(0), jnp.zeros(2, jnp.uint32))
    except TypeError as error:
        raise CheckError(str(error)) from error
    return f"{len(leaves)} traced fields"


def bounds_are_honest(environment: Any) -> str:
    """Values outside of declared bounds are refused."""
    found = edges(environment)
    for name, attribute, outside, _ in found:
        value = getattr(environment, attribute)
        refuses(environment, name, attribute, np.full(np.shape(value), outside)[()])
    return counted(found)


def plays_in_simulate(environment: Any) -> str:
    """A short run has finite losses, and its regret is that of the declared means."""
    ds = simulate(Uniform(), environment, horizon=_rounds(environment), num_seeds=16, record=8)
    require((ds.failed == 0).all(), "games of uniform play fail: a loss is not a number")
    require(np.isfinite(ds.loss).all(), "a suffered loss is not finite")
    if is_stationary(environment):
        means = np.asarray(environment.means(jnp.int32(1)), np.float64)
        regret = (ds.pulls * (means - means.min())).sum("arm")
        require(np.allclose(regret, ds.regret, rtol=1e-4, atol=1e-4), "regret is not that of the declared means")
    return f"{_rounds(environment)} rounds of 16 games"


def means_are_those_of_the_losses(environment: Any) -> str:
    """The mean of sampled losses is ``means(t)``, up to a tolerance that follows from the declared moment."""
    found = []
    for t in _sampled_rounds(environment):
        means = np.asarray(means_of(as_arrays(environment), jnp.int32(t)), np.float64)
        require(np.isfinite(means).all(), f"means({t}) is not finite: {means.tolist()}")
        for arm, losses in _losses(environment, t).items():
            mean, tolerance = _mean(losses, environment)
            found.append(tolerance)
            require(
                abs(mean - means[arm]) <= tolerance,
                f"arm {arm}, round {t}: {losses.size:,} losses have the mean {mean:.4g}, but means({t})[{arm}] is "
                f"{means[arm]:.4g}, which is more than {tolerance:.2g} away; mend means or loss"
                + ("" if _declared(environment) else ", or declare moment and moment_order if the tail is heavy"),
            )
    return f"{DRAWS:,} losses of an arm agree with means(t) within {max(found):.2g}"


def moments_are_at_most_the_declared(environment: Any) -> str:
    """``moment(alpha)`` bounds the alpha-th moment of sampled losses."""
    declared = _declared(environment)
    if declared is None:
        return "it declares no moment_order and moment(alpha); policies that need them cannot ask for them"
    alpha, sigma = declared
    require(0 < sigma < math.inf, f"moment({alpha:g}) must be a positive number, got {sigma}")
    for t in _sampled_rounds(environment):
        for arm, losses in _losses(environment, t).items():
            for level in LEVELS:
                cut = np.minimum(np.abs(losses) / sigma, level) ** alpha
                least = cut.mean() - _deviation(cut, level**alpha)
                if least > 1 + 1e-5:
                    raise CheckError(
                        f"arm {arm}, round {t}: E|l|^{alpha:g} is at least {least * sigma**alpha:.4g}, so "
                        f"moment({alpha:g}) must be at least {least ** (1 / alpha) * sigma:.4g}, but it is {sigma:.4g}"
                    )
    return f"moment({alpha:g}) = {sigma:.4g} holds for {DRAWS:,} losses of an arm"


def _declared(environment: Any) -> tuple[float, float] | None:
    """Returns alpha and sigma, if the environment declares them."""
    order, moment = getattr(environment, "moment_order", None), getattr(environment, "moment", None)
    return None if order is None or moment is None else (float(order), float(moment(float(order))))


def _moments(environment: Any) -> list[tuple[float, float]]:
    """Returns the declared alpha and sigma, and those of larger orders that exist."""
    declared = _declared(environment)
    found = [] if declared is None else [declared]
    for order in ORDERS if found else ():
        try:
            found += [(order, float(environment.moment(order)))] if order > found[0][0] else []
        except ValueError:  # there is no such moment
            break
    return [(order, sigma) for order, sigma in found if order > 1 and 0 < sigma < math.inf]


def _mean(losses: np.ndarray, environment: Any) -> tuple[float, float]:
    """Returns a truncated mean and its tolerance; without a declared moment, the mean and 6 standard errors."""
    moments = _moments(environment)
    if not moments:
        error = losses.std(ddof=1) / math.sqrt(losses.size)
        return float(losses.mean()), 6 * float(error) + 1e-5 * float(np.abs(losses).mean())
    best = (0.0, math.inf)
    for alpha, sigma in moments:
        for level in LEVELS:
            cut = np.where(np.abs(losses) <= level * sigma, losses, 0.0)
            beyond, variance = sigma * level ** (1 - alpha), sigma**2 * level ** max(0.0, 2 - alpha)
            rounding = 1e-5 * float(np.abs(cut).mean())
            tolerance = beyond + rounding + _deviation(cut, level * sigma, variance)
            best = min(best, (float(cut.mean()), tolerance), key=lambda pair: pair[1])
    return best


def _deviation(values: np.ndarray, size: float, variance: float = math.inf) -> float:
    """Returns a bound on the error of a mean of values in [-size, size], whose variance is at most ``variance``.

    It is the lesser of Bernstein's bound and the empirical one (Maurer and Pontil 2009).
    """
    count, log = values.size, math.log(8 * len(ORDERS) * LEVELS.size / FALSE_ALARM)
    empirical = math.sqrt(2 * float(values.var(ddof=1)) * log / count) + 14 * size * log / (3 * (count - 1))
    return min(empirical, math.sqrt(2 * variance * log / count) + 2 * size * log / (3 * count))


def _losses(environment: Any, t: int) -> dict[int, np.ndarray]:
    """Returns losses of the first arms in round ``t``, of many games."""
    arrays, words = as_arrays(environment), random.game_words(random.seed_words(0), np.arange(DRAWS)).T
    draw = jax.jit(
        jax.vmap(
            lambda words, arm: arrays.loss(jnp.int32(t), arm, random.word_streams(words, jnp.int32(t)).loss), (0, None)
        )
    )
    listed = range(min(environment.num_arms, MOST_ARMS))
    losses = {arm: np.asarray(draw(words, jnp.int32(arm)), np.float64) for arm in listed}
    for arm, drawn in losses.items():
        require(np.isfinite(drawn).all(), f"arm {arm}, round {t}: a loss is not finite; is a logarithm or power at 0?")
    return losses


def _rounds(environment: Any) -> int:
    """Returns the rounds of a short run; a table may have fewer."""
    return min(HORIZON, getattr(environment, "num_rows", HORIZON))


def _sampled_rounds(environment: Any) -> tuple[int, ...]:
    return (1,) if is_stationary(environment) else (1, _rounds(environment))


ENVIRONMENT_CHECKS: dict[str, Callable[[Any], str]] = {
    check.__name__: check
    for check in (
        returns_the_right_forms,
        is_pure,
        fields_are_data,
        bounds_are_honest,
        plays_in_simulate,
        means_are_those_of_the_losses,
        moments_are_at_most_the_declared,
    )
}

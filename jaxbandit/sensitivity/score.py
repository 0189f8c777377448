r"""The score estimator of a derivative: an independent check of ``local``, for short games.

For a policy that draws its arms from :math:`x_t(\theta)`,

.. math:: \frac{d}{d\theta} E[R] = E\Big[\sum_t \Delta_{i_t} \sum_{s \le t} \nabla \log p_s\Big]

where :math:`p_s` is the probability of the events of round :math:`s`, differentiated along the game by forward mode
through the scan. Two traps, both measured here on uniINF's :math:`S_1` (K = 2, T = 100, Pareto losses of index 1.3
with means 1 and 2):

1. The skip :math:`1[|\ell| < C]` jumps in :math:`\theta`. With the arms scored alone (``plain=True``) the estimate is
   +7.4 where the derivative is -1.75: wrong in sign. Whether a loss is kept is an event of a probability that depends
   on :math:`\theta` too: it must be scored as the arms are, and the loss, given that event, must follow its
   conditional law as :math:`C` moves.
2. An importance-weighted update multiplies tangents by about :math:`1 + \ell/S` at each pull. The standard deviation
   of one game's estimate is about 10 at T = 100, 1e4 at 300 and 1e13 at 1000 (4096 games each, with the baseline
   used here): the method ends near T = 100. ``local`` has no such limit.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import lax

from jaxbandit import arms, random
from jaxbandit.checks import check_whole
from jaxbandit.game import as_arrays, game_key, updated
from jaxbandit.parameters import full_name
from jaxbandit.types import Array, public_fields

BLOCK = 2048  # games at once; the baseline of a game is the mean of the others in its block
FAR = 1e30  # replaces a threshold that no loss reaches


def score(
    policy: Any,
    environment: Any,
    parameter: str,
    *,
    horizon: int,
    num_seeds: int,
    seed: int = 0,
    plain: bool = False,
) -> xr.Dataset:
    """Estimates the derivative of expected regret in a parameter of the policy by the score method, for T near 100.

    Args:
      policy: A policy whose probabilities are smooth in the parameter and whose update jumps at most where the size of
        the loss passes ``policy.keeps_below(state, t, x, arm)``: uniINF, HTINF.
      environment: An environment whose ``survival(z, arm)`` is known: Pareto, Lomax, exponential and Gaussian losses.
      parameter: The name of the parameter.
      horizon: Rounds to play.
      num_seeds: Games, the same as in ``simulate(..., dtype="float64")``.
      seed: The seed of the games.
      plain: Whether to score the arms alone, which is wrong if losses are skipped; it demonstrates the first trap.

    Returns:
      ``gradient``, ``gradient_stderr``, ``gradient_std`` (of one game) and mean ``regret``.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit import sensitivity
      >>> environment = jb.Exponential(means=[0.5, 1.0])
      >>> ds = sensitivity.score(  # doctest: +SKIP
      ...     jb.UniINF(horizon=100), environment, "initial_scale", horizon=100, num_seeds=4096
      ... )
    """
    check_whole("horizon", horizon, 2)
    check_whole("num_seeds", num_seeds, 2, "a standard error needs two")
    check_whole("seed", seed, 0)
    for obj, method, which in (
        (policy, "keeps_below", "uniINF and HTINF"),
        (environment, "survival", "Pareto, Lomax, exponential and Gaussian losses"),
    ):
        if not hasattr(obj, method):
            raise ValueError(
                f"{type(obj).__name__} has no {method}(), which the score estimator needs. It supports {which}; "
                "use local() for any policy and environment"
            )
    name = full_name(policy, parameter)
    attribute = public_fields(type(policy))[name].name
    blocks = np.array_split(np.arange(num_seeds), max(1, num_seeds // BLOCK))
    with jax.enable_x64(True):
        policy, environment = as_arrays(policy), as_arrays(environment)
        direction = jax.tree.map(jnp.zeros_like, policy)
        object.__setattr__(direction, attribute, jnp.ones(()))
        play = functools.partial(_play, policy, direction, environment, jnp.asarray(plain), jnp.asarray(seed))
        parts = [play(jnp.asarray(block, jnp.uint32), horizon) for block in blocks]
        means = jax.vmap(environment.means)(jnp.arange(1, horizon + 1, dtype=jnp.int32))  # [rounds, K]
        best = float(means.sum(axis=0).min())
    samples, losses = (np.concatenate([np.asarray(part[n], np.float64) for part in parts]) for n in range(2))
    found = {
        "gradient": samples.mean(),
        "gradient_stderr": samples.std(ddof=1) / np.sqrt(num_seeds),
        "gradient_std": samples.std(ddof=1),
        "regret": losses.mean() - best,
    }
    about = {"kind": "score estimator", "parameter": name, "plain": int(plain), "horizon": horizon, "seed": seed}
    return xr.Dataset(found, attrs=about | {"num_seeds": num_seeds})


@functools.partial(jax.jit, static_argnames="horizon")
def _play(policy, direction, environment, plain, seed, numbers, horizon: int) -> tuple[Array, Array]:
    """Returns estimates of the derivative along ``direction`` [games], and the sums of the arms' means."""

    def game(policy, number):
        costs, log_p = _one_game(policy, environment, plain, game_key(seed, number), horizon)
        return log_p, costs

    def differentiated(number):
        _, scores, costs = jax.jvp(lambda policy: game(policy, number), (policy,), (direction,), has_aux=True)
        return scores, costs

    scores, costs = jax.vmap(differentiated)(numbers)  # [games, rounds]
    # The baseline of a game does not depend on that game.
    others = (costs.sum(axis=0, keepdims=True) - costs) / max(costs.shape[0] - 1, 1)
    return ((costs - others) * scores).sum(axis=1), costs.sum(axis=1)


def _one_game(policy, environment, plain, key, horizon: int) -> tuple[Array, Array]:
    """Returns the mean of the arm played in each round and the log-probability of all events up to it."""

    def play_round(carry, t):
        state, log_p = carry
        streams = random.round_streams(key, t)
        x = policy.probabilities(state, t, streams.policy)
        arm = arms.draw(lax.stop_gradient(x), streams.arm)
        loss = environment.loss(t, arm, streams.loss)
        log_p = log_p + jnp.log(arms.pick(x, arm))
        seen = arms.pick(environment.means(t), arm), log_p
        threshold = policy.keeps_below(state, t, x, arm)
        moved, log_event = _conditioned(loss, threshold, functools.partial(environment.survival, arm=arm))
        log_p = log_p + jnp.where(plain, 0, log_event)
        after = updated(policy, state, t, x, arm, jnp.where(plain, loss, moved), streams.update)
        return (after, log_p), seen

    start = policy.init(environment.num_arms), jnp.zeros(())
    return lax.scan(play_round, start, jnp.arange(1, horizon + 1, dtype=jnp.int32))[1]


def _conditioned(loss: Array, threshold: Array, survival: Any) -> tuple[Array, Array]:
    """Returns the same loss as a function of the threshold, and the log-probability of its event.

    The events are: above the threshold, below its negative, kept between. Given the event, the loss is a quantile of
    its conditional law at a uniform that stays fixed: u = P(l > loss) moves with the ends of the event's interval.
    """
    threshold = jnp.where(jnp.isfinite(threshold), threshold, FAR)
    fixed = lax.stop_gradient
    u, above, not_below = survival(loss), survival(threshold), survival(-threshold)
    high, low = loss >= threshold, loss <= -threshold
    first = jnp.where(high, 0.0, jnp.where(low, not_below, above))  # the event is u in (first, last)
    last = jnp.where(high, above, jnp.where(low, 1.0, not_below))
    probability = last - first
    place = fixed((u - first) / probability)
    moved = first + place * probability
    slope = jax.grad(survival)(fixed(loss))
    return loss + (moved - fixed(moved)) / slope, jnp.log(probability)

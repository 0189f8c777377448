"""Single-step bounds, given the past: the expected Div and Shift of the next round at states of real games.

Given the past, a round is its arm, drawn from x, and its loss. So at a state (x, S) that a game has reached, the
expectation is a sum over arms of x_i times a mean over losses of that arm, which are drawn here in their hundreds.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import special

from jaxbandit.certify.expectations import DIV, LEVEL
from jaxbandit.engine import Engine
from jaxbandit.game import Environment
from jaxbandit.policies.uniinf import UniINF, UniINFState
from jaxbandit.simulation import simulate
from jaxbandit.types import Array

SEEDS, ROUNDS, DRAWS = 4, 12, 1024


class Conditional(NamedTuple):
    """A bound of a measure in the next round, in units of S_t^(1-alpha) sigma^alpha (1 - x) of the likeliest arm."""

    statement: str
    measure: str
    printed: bool = False

    def constant(self, alpha: float) -> float:
        """Returns the constant of the bound."""
        if self.printed:
            return {"div": 4096.0, "shift": 1.0}[self.measure]
        return {"div": 2 * DIV, "shift": 1.0}[self.measure] * 4 ** (alpha - 2)


# The printed bounds speak of the best arm; they hold for every arm, and the likeliest leaves the least room.
CONDITIONALS: dict[str, Conditional] = {
    "div": Conditional("E[Div_t | past] <= 2.066 4^(alpha-2) S_t^(1-alpha) sigma^alpha (1 - max x)", "div"),
    "div_printed": Conditional("E[Div_t | past] <= 4096 S_t^(1-alpha) sigma^alpha (1 - max x)", "div", printed=True),
    "shift": Conditional("E[Shift_t | past] <= 4^(alpha-2) S_t^(1-alpha) sigma^alpha (1 - max x)", "shift"),
    "shift_printed": Conditional("E[Shift_t | past] <= S_t^(1-alpha) sigma^alpha (1 - max x)", "shift", printed=True),
}


def conditional(
    policy: UniINF,
    environment: Environment,
    horizon: int,
    *,
    seed: int = 0,
    num_seeds: int = SEEDS,
    num_rounds: int = ROUNDS,
    draws: int = DRAWS,
) -> xr.Dataset:
    """Returns, for each bound, the state at which left/right is largest, with the interval of that ratio.

    Args:
      policy: The policy, which is uniINF or a variant of it.
      environment: The environment; it declares a moment.
      horizon: Rounds of the games that lead to the states.
      seed: The study seed.
      num_seeds: Games.
      num_rounds: States of each game, at logarithmically spaced rounds.
      draws: Losses drawn for each arm at each state.

    Returns:
      The variables ``step_ratio``, ``step_low`` and ``step_high`` (for all states at once) and ``step_round``, by
      ``conditional``. They are NaN if the environment declares no moment.
    """
    moment, alpha = getattr(environment, "moment", None), getattr(environment, "moment_order", None)
    if moment is None or alpha is None:
        return no_conditional()
    states = _states(policy, environment, horizon, seed, num_seeds, num_rounds)
    found = {name: [] for name in ("ratio", "low", "high", "round")}
    with jax.enable_x64(True):
        means, errors = _expected(policy, environment, *states, seed, draws)
    x, S, t = states
    unit = S ** (1 - alpha) * float(moment(alpha)) ** alpha * np.maximum(1 - x.max(axis=-1), _rest(x))
    quantile = special.ndtri(1 - (1 - LEVEL) / (2 * t.size))
    for fact in CONDITIONALS.values():
        bound = unit * fact.constant(alpha)
        ratio, half = means[fact.measure] / bound, quantile * errors[fact.measure] / bound
        worst = int(np.argmax(ratio - half)) if (ratio - half > 1).any() else int(np.argmax(ratio))
        for name, values in (("ratio", ratio), ("low", ratio - half), ("high", ratio + half), ("round", t)):
            found[name].append(float(values[worst]))
    return _dataset({name: np.asarray(values) for name, values in found.items()})


def no_conditional() -> xr.Dataset:
    """Returns what ``conditional`` returns if there is nothing to check."""
    return _dataset({name: np.full(len(CONDITIONALS), np.nan) for name in ("ratio", "low", "high", "round")})


def _dataset(found: dict[str, np.ndarray]) -> xr.Dataset:
    names = {f"step_{name}": ("conditional", values) for name, values in found.items()}
    return xr.Dataset(names, coords={"conditional": list(CONDITIONALS)})


def _rest(x: np.ndarray) -> np.ndarray:
    """Returns 1 - max x as the sum of the others, which is exact where x is near 1."""
    return np.sort(x, axis=-1)[:, :-1].sum(axis=-1)


def _states(policy, environment, horizon: int, seed: int, num_seeds: int, num_rounds: int):
    """Returns x, S and t before some rounds of some games, one row for each state."""
    last = np.unique(np.geomspace(1, horizon - 1, num_rounds).astype(int))
    options: dict[str, Any] = {"measures": ("scale",), "trace": num_seeds, "dtype": "float64", "engine": Engine()}
    ds = simulate(
        policy,
        environment,
        horizon=horizon,
        num_seeds=num_seeds,
        seed=seed,
        record=[*last.tolist(), horizon],
        **options,
    )
    x = ds.trace_x.sel(t=last + 1).values.reshape(-1, environment.num_arms)
    scale = ds.scale.sel(round=last).values.reshape(-1)
    return x, scale, np.tile(last + 1, num_seeds)


def _expected(policy: UniINF, environment: Environment, x, S, t, seed: int, draws: int):
    """Returns the expected Div and Shift at every state, and the standard errors of both."""
    arms = jnp.arange(environment.num_arms, dtype=jnp.int32)
    keys = jax.random.split(jax.random.key(seed), draws)

    def one(x: Array, S: Array, t: Array, arm: Array, key) -> dict[str, Array]:
        zeros = jnp.zeros_like(x)
        state = UniINFState(S / x - jnp.min(S / x), S, zeros, jnp.zeros_like(S))
        loss = environment.loss(t, arm, key)
        after = policy.update(state, t, x, arm, loss)
        measured = policy.measure(state, t, x, arm, loss, after)
        return {name: measured[name] for name in ("div", "shift")}

    @jax.jit
    def at(x: Array, S: Array, t: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        by_arm = jax.vmap(lambda arm: jax.vmap(lambda key: one(x, S, t, arm, key))(keys))(arms)  # [K, draws]
        # All arms of a draw share its key, as they do in a round: the error is that of the sum over arms.
        sums = {name: jnp.sum(x[:, None] * values, axis=0) for name, values in by_arm.items()}
        return (
            {name: jnp.mean(values) for name, values in sums.items()},
            {name: jnp.std(values, ddof=1) / math.sqrt(draws) for name, values in sums.items()},
        )

    found = [at(*map(jnp.asarray, state)) for state in zip(x, S, t.astype(np.int32), strict=True)]
    return tuple(
        {name: np.array([float(part[k][name]) for part in found]) for name in ("div", "shift")} for k in range(2)
    )

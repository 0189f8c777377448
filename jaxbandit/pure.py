"""A whole study as one pure function of arrays."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandit import engine, lanes
from jaxbandit.game import Environment, Policy, as_arrays, compensated_add, is_stationary
from jaxbandit.types import Array


def play(policy: Policy, environment: Environment, keys: Array, record: Array) -> dict[str, Array]:
    """Plays a whole study as one pure function of arrays, for use under ``jit``, ``vmap``, ``shard_map``.

    ``simulate`` does the same block by block and adds up in float64.

    Args:
      policy: One policy. For a sweep, ``vmap`` over one with stacked fields.
      environment: One world.
      keys: JAX keys of the games [N], e.g. ``jax.vmap(game_key, (None, 0))(seed, jnp.arange(N))``.
      record: Increasing rounds [R] at which to look.

    Returns:
      ``regret`` and ``loss`` [N, R], ``pulls`` [N, R, K], ``failed`` [N].

    Example:
      >>> import jax, jax.numpy as jnp, jaxbandit as jb
      >>> keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(64))
      >>> play = jax.jit(jb.play)
      >>> out = play(jb.UniINF(horizon=1_000), jb.Bernoulli(means=[0.2, 0.8]), keys, jnp.array([10, 1_000]))
      >>> out["pulls"].sum(axis=-1)[0].tolist()
      [10, 1000]
    """
    policy, environment = as_arrays(policy), as_arrays(environment)
    shared = functools.partial(jax.tree.map, lanes.Shared)
    words = jax.random.key_data(keys).T
    num_lanes = words.shape[-1]
    program = engine.Program(stationary=is_stationary(environment))
    carry = engine.start_block(shared(policy), environment.num_arms, num_lanes, program)
    record = jnp.asarray(record, jnp.int32)
    _, tally = engine.play_block(program, shared(policy), shared(environment), words, carry, record[-1], record)

    pulls = jnp.cumsum(tally.pulls, axis=0)  # [R, K, N]
    sums = {name: jnp.cumsum(total, axis=0) + jnp.cumsum(lost, axis=0) for name, (total, lost) in tally.sums.items()}
    if program.stationary:
        means = environment.means(jnp.int32(1))
        regret = jnp.einsum("rkn,k->rn", pulls.astype(means.dtype), means - jnp.min(means))
    else:
        regret = sums["gap"] + _best_fixed_gap(environment, record)[:, None]
    return {
        "regret": regret.T,
        "loss": sums["loss"].T,
        "pulls": jnp.moveaxis(pulls, -1, 0),
        "failed": tally.failed[-1],
    }


def _best_fixed_gap(environment: Environment, record: Array) -> Array:
    """sum_{t<=n} min_i means(t)[i] - min_i sum_{t<=n} means(t)[i] at each recorded n, [R]."""

    def add(t, sums):
        (arm, arm_lost), (best, best_lost) = sums
        means = environment.means(t)
        return compensated_add(arm, arm_lost, means), compensated_add(best, best_lost, jnp.min(means))

    def segment(carry, stop):
        t, sums = carry
        sums = lax.fori_loop(t + 1, stop + 1, add, sums)
        (arm, arm_lost), (best, best_lost) = sums
        fixed = jnp.argmin(arm)
        return (stop, sums), (best - arm[fixed]) + (best_lost - arm_lost[fixed])

    zero, zeros = jnp.zeros(()), jnp.zeros(environment.num_arms)
    return lax.scan(segment, (jnp.int32(0), ((zeros, zeros), (zero, zero))), record)[1]

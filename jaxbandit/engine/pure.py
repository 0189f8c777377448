"""A whole study as one pure function of arrays."""

import functools
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxbandit.checks import MAX_ROUNDS, recorded_rounds
from jaxbandit.engine import blocks, machine, runner, scan, segments, ways, workers
from jaxbandit.engine.round import Carry, Plan, Tally
from jaxbandit.engine.shape import Shape
from jaxbandit.game import Environment, Policy, compensated_add, is_stationary, means_of, paired
from jaxbandit.types import Array


def play(
    policy: Policy, environment: Environment, keys: Array, record: Array, *, way: str | None = None
) -> dict[str, Array]:
    """Plays a whole study as one pure function of arrays, for use under ``jit``, ``vmap``, ``shard_map``.

    ``jax.shard_map`` needs ``check_vma=False``, because a game starts from a state that is the same on all devices.
    On a CPU it calls machine code. Under differentiation, on accelerators, and if ``way`` is "scan", it is plain JAX,
    which takes some 50 to 200 times as long on a CPU. ``simulate`` plays the same games block by block. Ctrl-C stops
    the machine code within a call of about a fifth of a second; inside of a user's ``jit``, JAX turns the
    ``KeyboardInterrupt`` into an error of its own that names it.

    Args:
      policy: One policy. For a sweep, ``vmap`` over one with stacked fields.
      environment: One environment.
      keys: JAX keys of the games [N], e.g. ``jax.vmap(game_key, (None, 0))(seed, jnp.arange(N))``.
      record: Increasing rounds [R] at which results are recorded. If they do not increase, ``play`` raises
        ``ValueError``. Inside of ``jit`` it cannot raise: regret and loss are NaN, and every game has failed in round
        1. For reverse-mode differentiation (``jax.grad``) pass a list or a NumPy array, because the number of rounds
        must be known while JAX traces. Derivatives are those of the path: the drawn arms do not change with the
        parameters.
      way: "native" or "scan"; by default the choice described above.

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
    if way is not None and way not in ways.WAYS:
        raise ValueError(f"way must be 'native' or 'scan', got {way!r}")
    keys = jnp.stack(keys) if isinstance(keys, list | tuple) and keys else keys
    typed = jnp.issubdtype(jnp.result_type(keys), jax.dtypes.prng_key)
    if jnp.ndim(keys) != (1 if typed else 2):
        kind = "JAX keys of shape [N]" if typed else "JAX keys of shape [N], or their words [N, 2]"
        raise ValueError(f"keys must be {kind}, got shape {jnp.shape(keys)}; pass one key as key[None]")
    words = jax.random.key_data(keys) if typed else jnp.asarray(keys)
    if words.shape[1:] != (2,) or words.dtype != jnp.uint32:
        got = f"{words.dtype}{list(words.shape)}"
        raise ValueError(f"keys must have two words of uint32 each, got {got}; make them with jb.game_key(seed, n)")
    if not jnp.shape(keys)[0]:
        raise ValueError("keys holds no key; pass at least one, such as jb.game_key(0, 0)[None]")
    given = record if isinstance(record, Tracer) else np.asarray(record)
    if given.ndim != 1:
        raise ValueError(f"record must be rounds of shape [R], got shape {given.shape}; pass one round T as [T]")
    if not isinstance(given, Tracer):
        given = recorded_rounds(MAX_ROUNDS, given.tolist())  # raises if they are not increasing
    policy, environment = paired(policy, environment)
    shape = Shape.of(policy, environment, Plan(stationary=is_stationary(environment)))
    leaves = jax.tree.leaves((policy, environment))
    record = jnp.asarray(given, jnp.int32)
    given = record if isinstance(given, Tracer) else given
    games = None if way == "scan" else ways.chosen(shape, way)
    if games is None:
        return _results(shape, leaves, given, _totals_by_scan(shape, leaves, words, given))

    if jax.default_backend() == "cpu" and _are_concrete(leaves, words, record):
        return _results(shape, leaves, given, _on_host(shape, games, leaves, words, record))

    by_scan = functools.partial(_totals_by_scan, shape)

    @jax.custom_jvp
    def totals(leaves: list[Array], words: Array, record: Array) -> dict[str, Array]:
        like = jax.eval_shape(by_scan, leaves, words, record)
        by_call = functools.partial(_totals_by_call, shape, games, like)
        return lax.platform_dependent(leaves, words, record, cpu=by_call, default=by_scan)

    @totals.defjvp
    def _totals_jvp(primals: Any, tangents: Any) -> Any:
        leaves, words, record = primals
        rounds = given if isinstance(given, np.ndarray) else record
        return jax.jvp(lambda leaves: by_scan(leaves, words, rounds), (leaves,), (tangents[0],))

    return _results(shape, leaves, given, totals(leaves, words, record))


def _results(shape: Shape, leaves, record: Any, totals: dict[str, Array]) -> dict[str, Array]:
    """Returns the results of ``play``, made from sums over rounds [R, ..., N]."""
    environment, pulls = shape.pair(leaves)[1], totals["pulls"]
    if shape.plan.stationary:
        means = means_of(environment, jnp.int32(1))
        regret = jnp.einsum("rkn,k->rn", pulls.astype(means.dtype), means - jnp.min(means))
        rounds = jnp.asarray(record, jnp.int32)[:, None]
        regret = jnp.where(jnp.sum(pulls, axis=1, dtype=jnp.int32) == rounds, regret, jnp.nan)
    else:
        regret = totals["gap"] + _best_fixed_gap(environment, record)[:, None]
    loss, pulls, failed = totals["loss"].T, jnp.moveaxis(pulls, -1, 0), totals["failed"]
    results = {"regret": regret.T, "loss": loss, "pulls": pulls, "failed": failed}
    if not isinstance(record, Tracer):
        return results
    wrong = {"regret": jnp.nan, "loss": jnp.nan, "pulls": 0, "failed": 1}
    increasing = jnp.all(jnp.diff(record, prepend=0) > 0)
    return {name: jnp.where(increasing, values, wrong[name]) for name, values in results.items()}


def _are_concrete(*arrays: Any) -> bool:
    """Returns whether the numbers of arrays are known now, outside of ``jit`` and other transformations."""
    now = lax.neg(jnp.int32(0))  # while JAX traces a function, even the result of known numbers is traced
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((now, arrays)))


def _totals_by_call(shape: Shape, games: Any, like: dict, leaves, words: Array, record: Array) -> dict[str, Array]:
    """Returns sums over rounds, computed by machine code that a JAX program calls."""

    def host(leaves, words, record) -> dict[str, np.ndarray]:
        leaves, words, record = [np.asarray(leaf) for leaf in leaves], np.asarray(words), np.asarray(record)
        ranks = [*map(len, shape.leaves), 2, 1]
        arguments = [*leaves, words, record]
        leads = [array.shape[: array.ndim - rank] for array, rank in zip(arguments, ranks, strict=True)]
        lead = np.broadcast_shapes(*leads)
        spread = [
            np.broadcast_to(array, (*lead, *array.shape[array.ndim - rank :]))
            for array, rank in zip(arguments, ranks, strict=True)
        ]
        found = [_play(shape, games, *(array[point] for array in spread)) for point in np.ndindex(*lead)]
        return {
            name: np.stack([one[name] for one in found]).reshape(*lead, *shown.shape).astype(shown.dtype)
            for name, shown in like.items()
        }

    return jax.pure_callback(host, like, leaves, words, record, vmap_method="broadcast_all")


def _on_host(shape: Shape, games: Any, leaves, words: Array, record: Array) -> dict[str, Array]:
    """Returns sums over rounds, computed by machine code that Python calls; Python receives Ctrl-C meanwhile."""
    totals = _play(shape, games, *map(np.asarray, (*leaves, words, record)))
    return {name: jnp.asarray(values) for name, values in totals.items()}


def _play(shape: Shape, games: Any, *arguments: np.ndarray) -> dict[str, np.ndarray]:
    """Plays all games of a pair on every core; uses NumPy alone, because JAX waits for this call to return."""
    *leaves, words, record = arguments
    if (np.diff(record, prepend=0) <= 0).any():  # a traced record; the results are replaced by NaN
        record = np.arange(1, record.size + 1)
    threads, parts, pace = machine.usable_cores(), [], blocks.Pace()
    lanes = runner.Engine().lanes(games, threads, words.shape[0])

    def play_block(first: int, halt: threading.Event) -> dict[str, np.ndarray]:
        keys = np.ascontiguousarray(words[first : first + lanes].T)
        block, numbers = games.block(_spread(shape, leaves, keys.shape[1], np), keys), np.arange(keys.shape[1])
        return blocks.play(block, shape, record, numbers, lambda _: None, pace, None, halt)

    workers.in_order(play_block, range(0, words.shape[0], lanes), threads, parts.append)
    return {name: np.moveaxis(np.concatenate([part[name] for part in parts]), 0, -1) for name in parts[0]}


def _spread(shape: Shape, leaves, num_lanes: int, numpy: Any) -> list:
    """Returns the parameters, repeated for every game."""
    return [
        leaf if shared else numpy.broadcast_to(leaf[..., None], (*leaf.shape, num_lanes))
        for leaf, shared in zip(leaves, shape.shared, strict=True)
    ]


def _totals_by_scan(shape: Shape, leaves, words: Array, record: Any) -> dict[str, Array]:
    """Returns sums over rounds in plain JAX: [R, ..., N] each, and ``failed`` [N]."""
    keys, num_lanes = words.T, words.shape[0]
    spread = _spread(shape, leaves, num_lanes, jnp)

    def play(carry: Carry, t: Array) -> Carry:
        return scan.play_one(shape, spread, carry, keys, t)

    def hand_out(carry: Carry, t: Array) -> tuple[Carry, Tally]:
        return scan.record(shape, carry, t)

    carry, tally = segments.fold(play, hand_out, scan.begin(shape, spread, num_lanes), record)
    sums = {name: jnp.cumsum(total, axis=0) + jnp.cumsum(lost, axis=0) for name, (total, lost) in tally.sums.items()}
    return sums | {"pulls": jnp.cumsum(tally.pulls, axis=0), "failed": carry.failed}


def _best_fixed_gap(environment: Environment, record: Any) -> Array:
    """Returns sum_{t<=n} min_i means(t)[i] - min_i sum_{t<=n} means(t)[i] at each recorded n, [R]."""

    def add(sums, t):
        (arm, arm_lost), (best, best_lost) = sums
        means = means_of(environment, t)
        return compensated_add(arm, arm_lost, means), compensated_add(best, best_lost, jnp.min(means))

    def gap(sums, t):
        (arm, arm_lost), (best, best_lost) = sums
        fixed = jnp.argmin(arm)
        return sums, (best - arm[fixed]) + (best_lost - arm_lost[fixed])

    zero, zeros = jnp.zeros(()), jnp.zeros(environment.num_arms)
    return segments.fold(add, gap, ((zeros, zeros), (zero, zero)), record)[1]

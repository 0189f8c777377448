"""The compiled program: a block of games played through a list of recorded rounds.

One game is written (``game.play_round``); here it is batched over lanes and looped over rounds.
The bits of ``chunk`` rounds are drawn in one sweep, then the rounds are played one by one. Sums
over rounds are unevaluated pairs (sum, what rounding lost) that are handed out and cleared at each
recorded round, so that the host can add them in float64. The form is argued in docs/engine.md.
"""

import dataclasses
import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from jaxbandit import arms, draws, kernels, lanes, random
from jaxbandit.game import Environment, Outcome, Policy, as_arrays, compensated_add, first_failure, play_round
from jaxbandit.rows import Rows
from jaxbandit.types import Array

LANES = "lanes"  # the mesh axis
CHUNK = 16


@dataclasses.dataclass(frozen=True)
class Program:
    """What is compiled in besides shapes: everything else is traced."""

    stationary: bool  # the means do not change, so pulls tell the regret
    chunk: int = CHUNK  # rounds whose bits are drawn at once
    measures: tuple[str, ...] = ()  # increments of policy.measure to be summed
    fields: tuple[str, ...] = ()  # fields of the policy's state to be read at each stop
    trace: bool = False  # hand out every round of (at most) one chunk
    mesh: Mesh | None = None  # devices over which the lanes are split


class Carry(NamedTuple):
    """A block between two calls; arrays end in the lane axis."""

    state: Any  # the policies'
    t: Array  # []  rounds played
    pulls: Array  # [K, lanes]  since the last stop, int32
    sums: dict[str, tuple[Array, Array]]  # each a pair of [lanes], since the last stop
    failed: Array  # [lanes]


class Tally(NamedTuple):
    """What a block hands out; leading axis: stops."""

    pulls: Array  # [stops, K, lanes]
    sums: dict[str, tuple[Array, Array]]  # pairs of [stops, lanes]
    fields: dict[str, Array]  # [stops, ..., lanes]
    failed: Array  # [stops, lanes]
    rounds: Outcome | None  # with Program.trace: x, arm, loss of [chunk, ...]


def place(tree: Any, mesh: Mesh) -> Any:
    """Splits a tree of arrays that end in the lane axis over the devices; what lanes share goes to all of them."""
    return jax.tree.map(
        lambda leaf: jax.device_put(leaf, NamedSharding(mesh, _lanes_last(leaf))), tree, is_leaf=lanes.is_shared
    )


def is_stationary(environment: Environment) -> bool:
    """Whether ``means(t)`` ignores ``t``, read off its jaxpr."""
    jaxpr = jax.make_jaxpr(lambda environment, t: environment.means(t))(as_arrays(environment), jnp.int32(1)).jaxpr
    used = [atom for eqn in jaxpr.eqns for atom in eqn.invars] + list(jaxpr.outvars)
    return not any(atom is jaxpr.invars[-1] for atom in used)


@functools.partial(jax.jit, static_argnames=("num_arms", "program"))
def begin(policy: Policy, keys: Array, num_arms: int, program: Program) -> Carry:
    """A block before round 1; leaves of ``policy`` and ``keys`` end in the lane axis."""
    return _begin(policy, num_arms, keys.shape[-1], program)


@functools.partial(jax.jit, static_argnames=("program",), donate_argnames=("carry",))
def advance(
    policy: Policy, environment: Environment, keys: Array, carry: Carry, until: Array, stops: Array, program: Program
) -> tuple[Carry, Tally]:
    """Plays a block to round ``until`` or the last of ``stops``, whichever comes first.

    Args:
      policy: Leaves end in the lane axis or are ``lanes.Shared``.
      environment: Likewise.
      keys: Key words of the games, uint32 [2, lanes].
      carry: The block so far; consumed.
      until: [] int32.
      stops: [stops] int32, not decreasing: the rounds at which tallies are handed out.
      program: What is compiled in.

    Returns:
      The block, and its tally at each stop (meaningless for stops beyond ``until``).
    """
    local = functools.partial(_advance, program)
    if program.mesh is None:
        return local(policy, environment, keys, carry, until, stops)
    carry_spec = jax.tree.map(_lanes_last, carry)
    arguments = jax.tree.map(_lanes_last, (policy, environment, keys), is_leaf=lanes.is_shared)
    # Lanes never talk to each other, so there is nothing for the replication check to find.
    split = jax.shard_map(
        local,
        mesh=program.mesh,
        in_specs=(*arguments, carry_spec, Spec(), Spec()),
        out_specs=(carry_spec, _tally_spec(carry, program)),
        check_vma=False,
    )
    return split(policy, environment, keys, carry, until, stops)


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
    program = Program(stationary=is_stationary(environment))
    carry = _begin(shared(policy), environment.num_arms, num_lanes, program)
    record = jnp.asarray(record, jnp.int32)
    _, tally = _advance(program, shared(policy), shared(environment), words, carry, record[-1], record)

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


def _lanes_last(leaf: Any) -> Spec:
    if lanes.is_shared(leaf):
        return Spec()
    return Spec(*[None] * (leaf.ndim - 1), LANES) if leaf.ndim else Spec()


def _tally_spec(carry: Carry, program: Program) -> Tally:
    """Where the lanes are in a tally: as in the carry, behind the axis of stops."""
    behind = functools.partial(jax.tree.map, lambda leaf: Spec(*[None] * leaf.ndim, LANES))
    fields = {name: getattr(carry.state, name) for name in program.fields}
    rows: Any = Spec(None, LANES)
    x: Any = Spec(None, None, LANES)
    rounds = Outcome(x=x, arm=rows, loss=rows) if program.trace else None
    return Tally(behind(carry.pulls), behind(carry.sums), behind(fields), behind(carry.failed), rounds)


def _begin(policy: Any, num_arms: int, num_lanes: int, program: Program) -> Carry:
    state = lanes.over_lanes(lambda policy: policy.init(num_arms), num_lanes)(policy)
    names = ("loss", *(() if program.stationary else ("gap",)), *program.measures)
    return Carry(
        state=state,
        t=jnp.int32(0),
        pulls=jnp.zeros((num_arms, num_lanes), jnp.int32),
        sums={name: (jnp.zeros(num_lanes), jnp.zeros(num_lanes)) for name in names},
        failed=jnp.zeros(num_lanes, jnp.int32),
    )


def _advance(program: Program, policy, environment, keys, carry: Carry, until, stops) -> tuple[Carry, Tally]:
    """``advance`` on the lanes of one device."""
    num_arms, num_lanes = carry.pulls.shape
    needed = draws.needed(policy, environment, carry.state)
    one_game = functools.partial(_play_one, needed, program)
    play_one = lanes.over_lanes(one_game, num_lanes)
    kernel = kernels.choose(one_game, needed, (policy, environment), carry, program.mesh)

    def play_chunk(carry: Carry, limit: Array):
        count = jnp.minimum(program.chunk, limit - carry.t)
        words = [draws.words_of_chunk(keys, carry.t + 1, program.chunk, *draw) for draw in needed]
        seen = _empty_rounds(program, num_arms, num_lanes)

        def words_of(i):
            return [[lax.dynamic_index_in_dim(word, i, keepdims=False) for word in pair] for pair in words]

        def body(i, loop):
            packed, seen = loop
            in_play, now = rows.unpack(packed)
            in_play, outcome = play_one(policy, environment, *in_play, lanes.Shared(carry.t + 1 + i), now)
            seen = jax.tree.map(lambda all_, one: lax.dynamic_update_index_in_dim(all_, one, i, 0), seen, outcome)
            return rows.pack((in_play, words_of(i + 1))), seen

        # The words are fetched a round ahead: an address that depends on i keeps LLVM from vectorising large rounds.
        loop = ((carry.state, carry.sums, carry.failed), words_of(0))
        rows = Rows(loop)
        packed, seen = lax.fori_loop(0, count, body, (rows.pack(loop), seen))
        (state, sums, failed), _ = rows.unpack(packed)
        pulls = carry.pulls + _count_pulls(seen["arm"], num_arms)
        return Carry(state, carry.t + count, pulls, sums, failed), seen

    def play_to(carry: Carry, stop: Array):
        limit = jnp.minimum(stop, until)
        if kernel is not None:
            return _hand_out(kernel(keys, carry, limit), stop, program)
        carry = lax.while_loop(lambda carry: carry.t < limit, lambda carry: play_chunk(carry, limit)[0], carry)
        return _hand_out(carry, stop, program)

    if not program.trace:
        return lax.scan(play_to, carry, stops)
    carry, seen = play_chunk(carry, until)
    carry, tally = lax.scan(lambda carry, stop: _hand_out(carry, stop, program), carry, stops)
    return carry, tally._replace(rounds=Outcome(**seen))


def _play_one(needed: list, program: Program, policy, environment, state, sums, failed, t, words):
    """One round of one game, with the sums that a recorded result needs."""
    streams = random.streams(lambda *draw: tuple(words[needed.index(draw)]))
    after, outcome = play_round(policy, environment, state, t, streams)
    terms = {"loss": outcome.loss}
    if not program.stationary:
        means = environment.means(t)
        terms["gap"] = arms.pick(means, outcome.arm) - jnp.min(means)
    if program.measures:
        measured = policy.measure(state, t, *outcome, after)
        terms |= {name: measured[name] for name in program.measures}
    sums = {name: compensated_add(*pair, terms[name]) for name, pair in sums.items()}
    seen = outcome._asdict() if program.trace else {"arm": outcome.arm}
    return (after, sums, first_failure(failed, t, after)), seen


def _count_pulls(arms_seen: Array, num_arms: int) -> Array:
    """How often each arm is among the rounds [chunk, lanes]: [K, lanes]. Once a chunk is cheaper than every round."""
    arm = jnp.arange(num_arms, dtype=jnp.int32)[:, None]
    return functools.reduce(operator.add, ((row[None] == arm).astype(jnp.int32) for row in arms_seen))


def _hand_out(carry: Carry, stop: Array, program: Program) -> tuple[Carry, Tally]:
    """The tally since the last stop; cleared if this one has been reached."""
    broken = (carry.t == stop) & (carry.failed == 0) & _tables_are_broken(carry)
    carry = carry._replace(failed=jnp.where(broken, stop, carry.failed))
    tally = Tally(
        pulls=carry.pulls,
        sums=carry.sums,
        fields={name: getattr(carry.state, name) for name in program.fields},
        failed=carry.failed,
        rounds=None,
    )
    pulls, sums = jax.tree.map(lambda leaf: jnp.where(carry.t == stop, 0, leaf), (carry.pulls, carry.sums))
    return carry._replace(pulls=pulls, sums=sums), tally


def _tables_are_broken(carry: Carry) -> Array:
    """Whether a table of the state, which ``first_failure`` leaves out, holds a NaN or an infinity: [lanes]."""
    leaves = jax.tree.leaves(carry.state)
    tables = [leaf for leaf in leaves if leaf.ndim > 2 and jnp.issubdtype(leaf.dtype, jnp.floating)]
    broken = (jnp.any(~jnp.isfinite(table), axis=tuple(range(table.ndim - 1))) for table in tables)
    return functools.reduce(operator.or_, broken, jnp.zeros(carry.failed.shape, bool))


def _empty_rounds(program: Program, num_arms: int, num_lanes: int) -> dict[str, Array]:
    arm = jnp.full((program.chunk, num_lanes), -1, jnp.int32)  # a round not played counts for no arm
    if not program.trace:
        return {"arm": arm}
    x = jnp.zeros((program.chunk, num_arms, num_lanes))
    return {"x": x, "arm": arm, "loss": x[:, 0]}

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

from jaxbandit import arms, draws, fusion, kernels, lanes, random, xla
from jaxbandit.game import (
    Environment,
    Outcome,
    Policy,
    compensated_add,
    first_failure,
    play_round,
)
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


class _Loop(NamedTuple):
    """A block inside the loop over chunks of rounds."""

    packed: list[Array]  # state, sums, failures and the words of the next round: ``Rows``
    t: Array  # without a sign: XLA would look after negative places in every round
    pulls: Array
    seen: dict[str, Array]  # of the last chunk, [chunk, ..., lanes]


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


@functools.partial(jax.jit, static_argnames=("num_arms", "program"))
def begin(policy: Policy, keys: Array, num_arms: int, program: Program) -> Carry:
    """A block before round 1; leaves of ``policy`` and ``keys`` end in the lane axis."""
    return start_block(policy, num_arms, keys.shape[-1], program)


@functools.partial(
    jax.jit, static_argnames=("program",), donate_argnames=("carry",), compiler_options=xla.compiler_options()
)
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
    local = functools.partial(play_block, program)
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


def start_block(policy: Any, num_arms: int, num_lanes: int, program: Program) -> Carry:
    """``begin`` without the compilation."""
    state = lanes.over_lanes(lambda policy: policy.init(num_arms), num_lanes)(policy)
    shapes = {"loss": ()} | ({} if program.stationary else {"gap": ()})
    if program.measures:
        measured = measure_shapes(jax.tree.map(lanes.example, policy, is_leaf=lanes.is_shared), num_arms)
        shapes |= {name: measured[name] for name in program.measures}
    zeros = {name: jnp.zeros((*shape, num_lanes)) for name, shape in shapes.items()}
    return Carry(
        state=state,
        t=jnp.int32(0),
        pulls=jnp.zeros((num_arms, num_lanes), jnp.int32),
        sums={name: (zero, zero) for name, zero in zeros.items()},
        failed=jnp.zeros(num_lanes, jnp.int32),
    )


def measure_shapes(policy: Any, num_arms: int) -> dict[str, tuple[int, ...]]:
    """The shape of everything that ``policy.measure`` returns, a number or a number per arm."""

    def one_round(policy):
        state, x = policy.init(num_arms), jnp.full(num_arms, 1 / num_arms)
        return policy.measure(state, jnp.int32(1), x, jnp.int32(0), jnp.zeros(()), state)

    return {name: found.shape for name, found in jax.eval_shape(one_round, policy).items()}


def play_block(program: Program, policy, environment, keys, carry: Carry, until, stops) -> tuple[Carry, Tally]:
    """``advance`` on the lanes of one device."""
    num_arms, num_lanes = carry.pulls.shape
    needed = draws.needed(policy, environment, carry.state)
    words = jax.ShapeDtypeStruct((sum(count for _, _, count in needed), num_lanes), jnp.uint32)
    rows = Rows(((carry.state, carry.sums, carry.failed), [words, words]))
    one_game: Any = functools.partial(_play_one, needed, program)
    kernel = kernels.choose(one_game, needed, (policy, environment), carry, program.mesh)

    def play_one(policy, environment, dressed, t):
        in_play, now = rows.undressed(dressed)
        in_play, outcome = one_game(policy, environment, *in_play, t, draws.by_draw(now, needed))
        return rows.dressed((in_play, now))[0], outcome

    def play_chunk(limit: Array, loop: _Loop) -> _Loop:
        count = jnp.minimum(jnp.uint32(program.chunk), limit - loop.t)
        words = draws.words_of_rounds(keys, loop.t + 1, program.chunk, needed)

        def body(i, inner):
            packed, seen = inner
            t = lanes.Shared((loop.t + 1 + i).astype(jnp.int32))
            in_play, outcome = lanes.over_lanes(play_one, num_lanes)(policy, environment, rows.unpack(packed), t)
            seen = jax.tree.map(lambda all_, one: lax.dynamic_update_index_in_dim(all_, one, i, 0), seen, outcome)
            # Fetched a round ahead: an address that depends on i keeps LLVM from vectorising large rounds.
            following = [lax.dynamic_index_in_dim(half, i, keepdims=False) for half in words]
            return rows.pack(rows.dressed((in_play, following))), seen

        packed, seen = lax.fori_loop(jnp.uint32(0), count, body, (loop.packed, loop.seen))
        pulls = loop.pulls + _count_pulls(seen["arm"], count, num_arms)
        return _Loop(packed, loop.t + count, pulls, seen)

    def enter_loop(carry: Carry) -> _Loop:
        first = [half[0] for half in draws.words_of_rounds(keys, carry.t, 1, needed)]
        packed = rows.pack(rows.dressed(((carry.state, carry.sums, carry.failed), first)))
        return _Loop(packed, carry.t.astype(jnp.uint32), carry.pulls, _rounds(program, num_arms, num_lanes))

    def leave_loop(loop: _Loop) -> Carry:
        (state, sums, failed), _ = rows.undressed(rows.unpack(loop.packed))
        return Carry(state, loop.t.astype(jnp.int32), loop.pulls, sums, failed)

    def play_to(carry: Carry, stop: Array):
        limit = jnp.minimum(stop, until)
        if kernel is not None:
            return _hand_out(kernel(keys, carry, limit), stop, program)
        limit = limit.astype(jnp.uint32)
        loop = lax.while_loop(lambda loop: loop.t < limit, functools.partial(play_chunk, limit), enter_loop(carry))
        return _hand_out(leave_loop(loop), stop, program)

    if not program.trace:
        return lax.scan(play_to, carry, stops)
    loop = play_chunk(until.astype(jnp.uint32), enter_loop(carry))
    carry, tally = lax.scan(lambda carry, stop: _hand_out(carry, stop, program), leave_loop(loop), stops)
    return carry, tally._replace(rounds=Outcome(**loop.seen))


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


def _count_pulls(arms_seen: Array, count: Array, num_arms: int) -> Array:
    """How often each arm is among the first ``count`` of [chunk, lanes]: [K, lanes]. Cheaper than round by round.

    Arms share words, each with as many bits of one as a chunk may need: a round adds once to a word, not to every arm.
    """
    chunk, num_lanes = arms_seen.shape
    bits = chunk.bit_length()
    each = 32 // bits  # arms of a word
    first = jnp.arange(0, num_arms, each, dtype=jnp.int32)[:, None]
    words = jnp.zeros((first.size, num_lanes), jnp.uint32)
    for i, row in enumerate(arms_seen):
        place = (row[None] - first).astype(jnp.uint32)  # beyond the word for arms of another one
        words = words + jnp.where(place < each, (i < count).astype(jnp.uint32) << (place * bits), 0)
    shifts = bits * jnp.arange(each, dtype=jnp.uint32)[None, :, None]
    counts = (fusion.once(words)[:, None] >> shifts) & jnp.uint32((1 << bits) - 1)
    return counts.reshape(-1, num_lanes)[:num_arms].astype(jnp.int32)


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


def _rounds(program: Program, num_arms: int, num_lanes: int) -> dict[str, Array]:
    """Room for what is seen of the rounds of a chunk."""
    arm = jnp.zeros((program.chunk, num_lanes), jnp.int32)
    if not program.trace:
        return {"arm": arm}
    x = jnp.zeros((program.chunk, num_arms, num_lanes))
    return {"x": x, "arm": arm, "loss": x[:, 0]}

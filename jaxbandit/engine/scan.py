"""The way "scan": a ``vmap`` of the round over lanes, which are the last axis, inside a loop of JAX.

It runs wherever JAX runs, can be differentiated, and is the definition that machine code is tested against. On a CPU
it takes some 50 to 200 times as long as machine code.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbandit.engine import round as rounds
from jaxbandit.engine.shape import Shape
from jaxbandit.types import Array

TRACED = 64  # rounds that one call hands out with a trace
LANES = "lanes"  # name of the axis of devices


def begin(shape: Shape, leaves: Sequence[Array], num_lanes: int) -> rounds.Carry:
    """Returns games before round 1. All results, and all leaves that games do not share, end in the lane axis."""
    one = jax.vmap(shape.begin, in_axes=_axes(shape), out_axes=-1, axis_size=num_lanes)
    return one(*leaves)


def play_to(
    shape: Shape, leaves: Sequence[Array], carry: rounds.Carry, keys: Array, t: Array, until: Array
) -> rounds.Carry:
    """Plays rounds t + 1 to ``until``."""

    def body(i: Array, carry: rounds.Carry) -> rounds.Carry:
        return play_one(shape, leaves, carry, keys, i)

    return lax.fori_loop(t + 1, until + 1, body, carry)


def record(shape: Shape, carry: rounds.Carry, t: Array) -> tuple[rounds.Carry, rounds.Tally]:
    """Hands out the tallies of all games."""
    return jax.vmap(lambda one: rounds.record(shape.plan, one, t), in_axes=-1, out_axes=-1)(carry)


def _axes(shape: Shape) -> tuple[int | None, ...]:
    return tuple(None if shared else -1 for shared in shape.shared)


def play_one(shape: Shape, leaves: Sequence[Array], carry: rounds.Carry, keys: Array, t: Array) -> rounds.Carry:
    """Plays round t."""
    return _round(shape, leaves, carry, keys, t)[0]


def _round(shape: Shape, leaves: Sequence[Array], carry: rounds.Carry, keys: Array, t: Array) -> tuple[Any, Any]:
    play = jax.vmap(shape.play, in_axes=(list(_axes(shape)), -1, -1, None), out_axes=-1)
    return play(list(leaves), carry, keys, t)


@functools.partial(jax.jit, static_argnames=("shape", "num_lanes"))
def _begin(shape: Shape, leaves: Sequence[Array], num_lanes: int) -> rounds.Carry:
    return begin(shape, leaves, num_lanes)


@functools.partial(jax.jit, static_argnames=("shape",), donate_argnames=("carry",))
def _advance(shape: Shape, leaves, carry: rounds.Carry, keys: Array, t: Array, until: Array, recorded: Array) -> tuple:
    """Plays to ``until`` and hands out a tally for each recorded round; tallies beyond ``until`` are meaningless."""

    def segment(now: tuple[rounds.Carry, Array], last: Array):
        carry, t = now
        limit = jnp.minimum(last, until)
        carry = play_to(shape, leaves, carry, keys, t, limit)
        after, tally = record(shape, carry, limit)
        reached = last <= until
        carry = jax.tree.map(lambda a, b: jnp.where(reached, a, b), after, carry)
        return (carry, limit), tally

    (carry, t), tallies = lax.scan(segment, (carry, t), recorded)
    return play_to(shape, leaves, carry, keys, t, until), tallies


@functools.partial(jax.jit, static_argnames=("shape",), donate_argnames=("carry",))
def _advance_traced(shape: Shape, leaves, carry: rounds.Carry, keys: Array, t: Array, until: Array) -> tuple:
    """Plays up to ``TRACED`` rounds and hands out each of them."""

    def body(carry: rounds.Carry, i: Array):
        after, outcome = _round(shape, leaves, carry, keys, t + 1 + i)
        return jax.tree.map(lambda a, b: jnp.where(t + 1 + i <= until, a, b), after, carry), outcome

    return lax.scan(body, carry, jnp.arange(TRACED, dtype=jnp.int32))


@functools.partial(jax.jit, static_argnames=("shape",))
def _record(shape: Shape, carry: rounds.Carry, t: Array) -> tuple[rounds.Carry, rounds.Tally]:
    return record(shape, carry, t)


class Games:
    """The games of one shape, which XLA compiles when they are first played.

    Args:
      shape: Shape of the games.
      devices: The devices over which the lanes of a block are split.
    """

    def __init__(self, shape: Shape, devices: Sequence[Any]):
        shape.check()
        self.shape = shape
        self.mesh = Mesh(np.asarray(devices), (LANES,))

    @property
    def platform(self) -> str:
        """The kind of the devices, such as "cpu" or "tpu"."""
        return self.mesh.devices.flat[0].platform

    @property
    def lane_bytes(self) -> int:
        """The memory of one game."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.shape.carry))

    def block(self, parameters: Sequence[np.ndarray], keys: np.ndarray) -> "Block":
        """Returns a block of games, as ``native.Games.block`` does."""
        return Block(self, parameters, keys)


class Block:
    """A block of games, which all devices play together."""

    def __init__(self, games: Games, parameters: Sequence[np.ndarray], keys: np.ndarray):
        self.games, self.num_lanes = games, keys.shape[-1]
        self._padded = -(-self.num_lanes // games.mesh.size) * games.mesh.size
        dtype = np.dtype(games.shape.dtype)
        self._parameters = [
            jax.device_put(np.asarray(p, dtype), NamedSharding(games.mesh, PartitionSpec()))
            if shared
            else self._placed(np.asarray(p, dtype))
            for p, shared in zip(parameters, games.shape.shared, strict=True)
        ]
        self._keys = self._placed(keys)
        self._carry: Any = None

    def _placed(self, array: np.ndarray) -> jax.Array:
        extra = self._padded - array.shape[-1]
        array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, extra)], mode="edge")
        spec = PartitionSpec(*[None] * (array.ndim - 1), LANES)
        return jax.device_put(array, NamedSharding(self.games.mesh, spec))

    def start(self, carry: Sequence[np.ndarray] | None = None) -> None:
        """Sets the games to round 0, or to a carry; the leaves of a carry end in the lane axis."""
        if carry is None:
            self._carry = _begin(self.games.shape, self._parameters, self._padded)
        else:
            structure = jax.tree.structure(self.games.shape.carry)
            self._carry = jax.tree.unflatten(structure, [self._placed(leaf) for leaf in carry])

    def close(self) -> None:
        """Does nothing: the memory is freed with the block."""

    def carry(self) -> list[np.ndarray]:
        """Returns copies of the carry's leaves, lanes last."""
        return [np.array(leaf)[..., : self.num_lanes] for leaf in jax.tree.leaves(self._carry)]

    def advance(self, t: int, until: int, record: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Plays rounds t + 1 to ``until``, as ``native.Block.advance`` does."""
        shape, count = self.games.shape, len(record)
        if shape.plan.trace:
            return self._advance_traced(t, until, record)
        room = 1 << max(count - 1, 0).bit_length() if count else 1  # a power of two, so that XLA compiles few programs
        padded = np.full(room, np.iinfo(np.int32).max, np.int32)
        padded[:count] = record
        self._carry, tallies = _advance(
            shape, self._parameters, self._carry, self._keys, np.int32(t), np.int32(until), padded
        )
        return [np.asarray(leaf)[:count, ..., : self.num_lanes] for leaf in jax.tree.leaves(tallies)], []

    def _advance_traced(self, t: int, until: int, record: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        shape, traced, tallies = self.games.shape, [], []
        ends = sorted({*record.tolist(), until})
        while t < until:
            end = min(t + TRACED, next(n for n in ends if n > t))
            self._carry, outcome = _advance_traced(
                shape, self._parameters, self._carry, self._keys, np.int32(t), np.int32(end)
            )
            traced.append([np.asarray(leaf)[: end - t, ..., : self.num_lanes] for leaf in outcome])
            t = end
            if t in record:
                self._carry, tally = _record(shape, self._carry, np.int32(t))
                tallies.append([np.asarray(leaf)[..., : self.num_lanes] for leaf in jax.tree.leaves(tally)])
        shapes = [(*leaf.shape, self.num_lanes) for leaf in jax.tree.leaves(shape.tally)]
        dtypes = [leaf.dtype for leaf in jax.tree.leaves(shape.tally)]
        handed_out = [
            np.stack([tally[n] for tally in tallies]) if tallies else np.empty((0, *s), d)
            for n, (s, d) in enumerate(zip(shapes, dtypes, strict=True))
        ]
        return handed_out, [np.concatenate([part[n] for part in traced]) for n in range(3)]

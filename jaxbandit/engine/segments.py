"""The loop of plain JAX over rounds and recorded rounds; JAX can differentiate it."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxbandit.types import Array

Carry = TypeVar("Carry")


def fold(
    play: Callable[[Carry, Array], Carry],
    hand_out: Callable[[Carry, Array], tuple[Carry, Any]],
    start: Carry,
    record: np.ndarray | Array,
) -> tuple[Carry, Any]:
    """Plays rounds 1 to ``record[-1]`` and hands out a tally at each recorded round.

    If the recorded rounds are known while JAX traces, the loop has a fixed length and JAX can differentiate it in both
    directions. Reverse mode stores the carry of about the square root of T rounds and plays the rounds between them
    twice. If the recorded rounds are traced, JAX can differentiate the loop forward only.

    Args:
      play: Plays round t: (carry, t) -> carry.
      hand_out: Hands out a tally after round t: (carry, t) -> (carry, tally).
      start: The carry before round 1.
      record: [R] increasing rounds.

    Returns:
      The carry after the last round, and the tallies, stacked.
    """
    if isinstance(record, Tracer):
        return _traced(play, hand_out, start, record)
    length = max(1, math.isqrt(int(record[-1])))
    spans = [
        (first, min(first + length, stop), first + length >= stop)
        for before, stop in zip([0, *record[:-1].tolist()], record.tolist(), strict=True)
        for first in range(before, stop, length)
    ]
    firsts, lasts, recorded = (np.asarray(column) for column in zip(*spans, strict=True))

    def span(carry: Carry, limits: tuple[Array, Array, Array]) -> tuple[Carry, Any]:
        first, last, recorded = limits

        def turn(carry: Carry, t: Array) -> tuple[Carry, None]:
            return lax.cond(t <= last, lambda carry: play(carry, t), lambda carry: carry, carry), None

        carry, _ = lax.scan(turn, carry, first + jnp.arange(1, length + 1, dtype=jnp.int32))
        after, tally = hand_out(carry, last)
        return jax.tree.map(lambda a, b: jnp.where(recorded, a, b), after, carry), tally

    limits = jnp.asarray(firsts, jnp.int32), jnp.asarray(lasts, jnp.int32), jnp.asarray(recorded)
    carry, tallies = lax.scan(jax.checkpoint(span), start, limits)
    return carry, jax.tree.map(lambda leaf: leaf[np.flatnonzero(recorded)], tallies)


def _traced(play: Callable, hand_out: Callable, start: Any, record: Array) -> tuple[Any, Any]:
    def segment(now: tuple[Any, Array], stop: Array):
        carry, t = now
        carry = lax.fori_loop(t + 1, stop + 1, lambda i, carry: play(carry, i), carry)
        carry, tally = hand_out(carry, stop)
        return (carry, stop), tally

    (carry, _), tallies = lax.scan(segment, (start, jnp.int32(0)), record)
    return jax.tree.map(_forward_only, (carry, tallies))


@jax.custom_jvp
def _forward_only(value: Array) -> Array:
    """Returns the value; reverse-mode differentiation through it raises ``ValueError``."""
    return value


@_forward_only.defjvp
def _forward_only_jvp(primals: Any, tangents: Any) -> tuple[Array, Any]:
    (value,), (tangent,) = primals, tangents
    return value, tangent if tangent.dtype == jax.dtypes.float0 else _not_transposed.bind(tangent)


def _refuse(cotangent: Any, value: Any) -> Any:
    raise ValueError(
        "play cannot be differentiated in reverse with a traced record, because the number of rounds is not known; "
        "pass record as a list or a NumPy array, such as record=[10, 100], or use jax.jvp or jax.jacfwd"
    )


_not_transposed = Primitive("not_transposed")
_not_transposed.def_impl(lambda value: value)
_not_transposed.def_abstract_eval(lambda aval: aval)
ad.deflinear2(_not_transposed, _refuse)
batching.primitive_batchers[_not_transposed] = lambda args, dims: (_not_transposed.bind(*args), dims[0])
mlir.register_lowering(_not_transposed, lambda context, value: [value])

"""Many results from one loop over the lanes.

XLA on a CPU fuses what leads to *one* result: what several results share is written out and read back,
a kernel at a time. A round of a game has dozens of results that share nearly everything. Here they
get one common end. Every input gets a second axis of length two, (zeros, the values); between, all is
elementwise; a reduction of that axis that keeps the last entry ends it. The whole becomes one kernel,
and once LLVM has unrolled the two (see ``xla``) the half that nobody keeps is gone and the rest is
vectorised. docs/engine.md has the measurements.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit import xla
from jaxbandit.types import Array


def pays() -> bool:
    """Whether to go this way: without our XLA options the loop would not be vectorised."""
    return xla.tuned()


def enter(values: Array, number: int = 0) -> Array:
    """``values`` as an input of a loop.

    What enters several loops gets a ``number`` of its own in each, in place of the zeros: else XLA would
    write the padded values out for all of them.
    """
    return lax.pad(values[None], np.asarray(number, values.dtype), [(1, 0, 0), *[(0, 0, 0)] * values.ndim])


def leave(results: Sequence[Array]) -> Sequence[Array]:
    """``results``, all of one shape, out of the loop; of each float dtype in a kernel of its own, as XLA demands.

    One result leaves as two, both of them used: a reduction with one XLA takes along into what reads it.
    """
    if len(results) == 1:
        return [jnp.maximum(*_leave([*results, *results]))]
    floats = {result.dtype for result in results if jnp.issubdtype(result.dtype, jnp.floating)}
    if len(floats) < 2:
        return _leave(results)
    left: dict[int, Array] = {}
    for dtype in {result.dtype for result in results}:
        places = [n for n, result in enumerate(results) if result.dtype == dtype]
        left |= zip(places, _leave([results[n] for n in places]), strict=True)
    return [left[n] for n in range(len(results))]


@jax.custom_jvp
def _leave(results: Sequence[Array]) -> Sequence[Array]:
    return lax.reduce(tuple(results), tuple(np.zeros((), result.dtype) for result in results), _last, (0,))


def once(value: Array) -> Array:
    """``value`` from a kernel of its own: XLA would take what makes it into what reads it, and repeat it there."""
    return leave([enter(value)])[0] if pays() else value


@_leave.defjvp
def _leave_jvp(primals, tangents):
    return _leave(*primals), tuple(tangent[1] for tangent in tangents[0])


# Neither commutative nor with zero as its identity, which XLA asks of a reducer; on a CPU it reduces in order, and
# tests/test_lanes.py would see the zeros if it did not.
def _last(_: Sequence[Array], entry: Sequence[Array]) -> Sequence[Array]:
    return tuple(entry)

"""The random words a round needs: which they are, and those of many rounds drawn in one sweep."""

import jax
import jax.numpy as jnp

from jaxbandit import fusion, lanes, random
from jaxbandit.game import play_round
from jaxbandit.types import Array


def words_of_chunk(keys: Array, first_round: Array, chunk: int, consumer: int, first: int, count: int):
    """The words of one draw for ``chunk`` rounds in one sweep: a pair of [chunk, count, lanes]."""
    rounds = (first_round.astype(jnp.uint32) + jnp.arange(chunk, dtype=jnp.uint32))[:, None, None]
    rounds = jnp.broadcast_to(rounds, (chunk, count, keys.shape[-1]))
    pairs = random.pair_counters(consumer, first, count)[None, :, None]
    k0, k1 = keys[:, None, None]
    if not fusion.pays():
        return random.threefry2x32((k0, k1), (rounds, pairs))
    k0, k1, rounds, pairs = map(fusion.enter, (k0, k1, rounds, pairs))
    return fusion.leave(random.threefry2x32((k0, k1), (rounds, pairs)))


def needed(policy, environment, state) -> list[tuple[int, int, int]]:
    """The (consumer, first pair, count) of every draw of a round, found by tracing one."""
    seen = set()

    def draw(consumer: int, first: int, count: int) -> tuple[Array, Array]:
        seen.add((consumer, first, count))
        return jnp.zeros(count, jnp.uint32), jnp.zeros(count, jnp.uint32)

    examples = jax.tree.map(lanes.example, (policy, environment, state), is_leaf=lanes.is_shared)
    t = jax.ShapeDtypeStruct((), jnp.int32)
    jax.eval_shape(lambda p, e, s, t: play_round(p, e, s, t, random.streams(draw)), *examples, t)
    return sorted(seen)

"""The random words a round needs: which they are, and those of many rounds drawn in one sweep."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import fusion, lanes, random
from jaxbandit.game import play_round
from jaxbandit.types import Array

Draw = tuple[int, int, int]  # consumer, first pair, count


def words_of_rounds(keys: Array, after: Array, num_rounds: int, needed: Sequence[Draw]) -> Sequence[Array]:
    """The words of all draws needed in the rounds that follow, in one sweep: a pair of [rounds, pairs, lanes]."""
    counters = [random.pair_counters(*draw) for draw in needed]
    pairs = jnp.concatenate([jnp.zeros(0, jnp.uint32), *counters])[None, :, None]
    rounds = (after.astype(jnp.uint32) + jnp.arange(1, num_rounds + 1, dtype=jnp.uint32))[:, None, None]
    rounds = jnp.broadcast_to(rounds, (num_rounds, pairs.shape[1], keys.shape[-1]))
    k0, k1 = keys[:, None, None]
    if not fusion.pays() or not needed:
        return random.threefry2x32((k0, k1), (rounds, pairs))
    k0, k1, rounds, pairs = map(fusion.enter, (k0, k1, rounds, pairs))
    return fusion.leave(random.threefry2x32((k0, k1), (rounds, pairs)))


def by_draw(words: Sequence[Array], needed: Sequence[Draw]) -> list[tuple[Array, Array]]:
    """A round's pair of words [pairs] as a pair of [count] for each draw."""
    ends = np.cumsum([count for _, _, count in needed]).tolist()
    first, second = words
    return [(first[end - draw[2] : end], second[end - draw[2] : end]) for draw, end in zip(needed, ends, strict=True)]


def needed(policy, environment, state) -> list[Draw]:
    """The (consumer, first pair, count) of every draw of a round, found by tracing one."""
    seen = set()

    def draw(consumer: int, first: int, count: int) -> tuple[Array, Array]:
        seen.add((consumer, first, count))
        return jnp.zeros(count, jnp.uint32), jnp.zeros(count, jnp.uint32)

    examples = jax.tree.map(lanes.example, (policy, environment, state), is_leaf=lanes.is_shared)
    t = jax.ShapeDtypeStruct((), jnp.int32)
    jax.eval_shape(lambda p, e, s, t: play_round(p, e, s, t, random.streams(draw)), *examples, t)
    return sorted(seen)

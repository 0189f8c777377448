"""The whole time loop of a block of games as one GPU kernel.

On a GPU every operation of a scan is a kernel of its own, some microseconds each, whatever the number of
games. Here the loop over rounds is inside one Pallas kernel: a lane is a thread, every scalar of its game a register,
and the random bits of a round are computed in place from (key, round, consumer), the same bits as the scan's. No round
reads or writes memory. The game is still ``game.play_round``: its jaxpr is evaluated by the rules of ``unrolled``,
each scalar a vector over the lanes of a program. docs/gpu.md says what to expect of it; nothing there is measured.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend import core
from jax.sharding import Mesh

from jaxbandit import lanes, random
from jaxbandit.batched import NotUnrolledError, Shared, Unrolled, apply
from jaxbandit.programs import Program, inlined
from jaxbandit.types import Array
from jaxbandit.unrolled import object_array

THREADS = 128  # lanes of one program: four warps of 32
SCALARS = 160  # of a game, its parameters and its sums: a thread has 255 registers, and a round needs some for itself
PAIRS = 32  # of words in a round: each is the cipher written out
LANES = 1 << 16  # of one device: 512 programs, some four for each multiprocessor of a large GPU
NUMBERS = 1 << 26  # in the states of these lanes, where games are large: a quarter of a gigabyte in float32

COMPILED, INTERPRETED = "compiled", "interpreted"  # for a GPU; by XLA on any device, for tests

# Elementwise operations that Triton has no code for.
_WITHOUT_CODE = frozenset((
    "bessel_i0e", "bessel_i1e", "digamma", "erf", "erfc", "igamma", "igammac", "lgamma", "reduce_precision",
    "regularized_incomplete_beta", "round",
))  # fmt: skip

Draw = tuple[int, int, int]  # consumer, first pair, count
# One round of one game: (*parameters, *in play, t, a pair of words [count] for each draw) -> (in play, {"arm": []}).
PlayOne = Callable[..., tuple[Any, dict[str, Array]]]


def mode(mesh: Mesh | None) -> str | None:
    """How kernels run on these devices, or None where they do not."""
    return COMPILED if mesh is not None and mesh.devices.flat[0].platform in ("gpu", "cuda", "rocm") else None


def width(mesh: Mesh, state_size: int) -> int | None:
    """Lanes per GPU that keep it busy; None for a CPU."""
    return None if mode(mesh) is None else min(LANES, NUMBERS // max(state_size, 1))


def choose(
    play_one: PlayOne, draws: Sequence[Draw], parameters: tuple, carry: Any, mesh: Mesh | None
) -> Callable[[Array, Any, Array], Any] | None:
    """The way to play these games in a kernel, or None: leave them to the scan.

    Args:
      play_one: One round of one game.
      draws: The draws of a round.
      parameters: Policy and world; leaves end in the lane axis or are ``lanes.Shared``.
      carry: The engine's: ``state``, ``sums``, ``failed``, ``pulls`` with the lanes last, and the round ``t``.
      mesh: The devices.

    Returns:
      ``(keys, carry, limit) -> carry`` at round ``limit``, on GPUs and for a game that fits.
    """
    how = mode(mesh)
    if how is None or not fits(play_one, draws, parameters, _in_play(carry)):
        return None

    def play_to(keys: Array, carry: Any, limit: Array) -> Any:
        rounds = carry.t, jnp.maximum(carry.t, limit)
        in_play, pulls = play(play_one, draws, parameters, _in_play(carry), carry.pulls, keys, rounds, how)
        state, sums, failed = in_play
        return carry._replace(state=state, t=rounds[1], pulls=pulls, sums=sums, failed=failed)

    return play_to


def _in_play(carry: Any) -> tuple:
    """What a round hands to the next."""
    return carry.state, carry.sums, carry.failed


def fits(play_one: PlayOne, draws: Sequence[Draw], parameters: tuple, in_play: tuple) -> bool:
    """Whether a game is small enough for registers, and its rounds are made of what a kernel can do."""
    leaves = jax.tree.leaves((parameters, in_play), is_leaf=lanes.is_shared)
    if any(map(lanes.is_shared, leaves)) or any(leaf.dtype == jnp.bool_ or leaf.size == 0 for leaf in leaves):
        return False
    scalars, pairs = sum(math.prod(leaf.shape[:-1]) for leaf in leaves), sum(count for _, _, count in draws)
    if scalars > SCALARS or pairs > PAIRS:
        return False
    try:
        closed = round_jaxpr(play_one, draws, parameters, in_play)
    except NotUnrolledError:
        return False
    return _WITHOUT_CODE.isdisjoint(_primitives(closed.jaxpr))


def round_jaxpr(play_one: PlayOne, draws: Sequence[Draw], parameters: tuple, in_play: tuple) -> core.ClosedJaxpr:
    """What a thread computes in a round; raises ``NotUnrolledError`` where that cannot be written on scalars."""
    vector = (1, THREADS)
    game = _Round(play_one, draws, parameters, in_play, vector)
    leaves = jax.tree.leaves((parameters, in_play))
    vectors = [[jax.ShapeDtypeStruct(vector, leaf.dtype)] * math.prod(leaf.shape[:-1]) for leaf in leaves]
    words = [jax.ShapeDtypeStruct(vector, jnp.uint32)] * 2
    return jax.make_jaxpr(lambda *args: game(*args))(vectors, words, jax.ShapeDtypeStruct((), jnp.int32))


def play(
    play_one: PlayOne,
    draws: Sequence[Draw],
    parameters: tuple,
    in_play: tuple,
    pulls: Array,
    keys: Array,
    rounds: tuple[Array, Array],
    how: str = COMPILED,
) -> tuple[Any, Array]:
    """Plays rounds ``rounds[0] + 1, ..., rounds[1]`` of every lane.

    Args:
      play_one: One round of one game, as for ``choose``.
      draws: The draws of a round.
      parameters: Policy and world; leaves end in the lane axis.
      in_play: What a round hands to the next; leaves end in the lane axis.
      pulls: [K, lanes] int32.
      keys: Key words of the games, uint32 [2, lanes].
      rounds: Rounds behind, and the last round to play.
      how: ``COMPILED`` or ``INTERPRETED``.

    Returns:
      ``in_play`` and ``pulls`` after the last round.
    """
    # Not needed on a CPU, and half a second to import.
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    num_lanes = pulls.shape[-1]
    threads = math.gcd(num_lanes, THREADS)
    game = _Round(play_one, draws, parameters, in_play, (1, threads))
    fixed = [keys, *map(_table, jax.tree.leaves(parameters))]
    moving = [pulls, *map(_table, jax.tree.leaves(in_play))]

    def kernel(span, *refs):
        loaded = [[ref[row : row + 1, :] for row in range(ref.shape[0])] for ref in refs[: len(fixed) + len(moving)]]
        words, *constant = loaded[: len(fixed)]

        def body(t, state):
            pulled, *playing = state
            playing, arm = game([*constant, *playing], words, t)
            return [[count + (arm == i).astype(jnp.int32) for i, count in enumerate(pulled)], *playing]

        played = lax.fori_loop(span[0] + 1, span[1] + 1, body, loaded[len(fixed) :])
        for ref, rows in zip(refs[len(loaded) :], played, strict=True):
            for row, value in enumerate(rows):
                ref[row : row + 1, :] = value

    def block(table: Array) -> pl.BlockSpec:
        return pl.BlockSpec((table.shape[0], threads), lambda program: (0, program))

    interpreted = how == INTERPRETED
    out = pl.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct(table.shape, table.dtype) for table in moving],
        grid=(num_lanes // threads,),
        in_specs=[pl.BlockSpec((2,), lambda program: (0,)), *map(block, (*fixed, *moving))],
        out_specs=[block(table) for table in moving],
        interpret=interpreted,
        compiler_params=None if interpreted else triton.CompilerParams(num_warps=max(1, threads // 32), num_stages=1),
        name="games",
    )(jnp.stack(rounds), *fixed, *moving)
    leaves, structure = jax.tree.flatten(in_play)
    after = [table.reshape(leaf.shape) for table, leaf in zip(out[1:], leaves, strict=True)]
    return jax.tree.unflatten(structure, after), out[0]


class _Round:
    """One round of one game as a program on vectors over lanes, one for each scalar."""

    def __init__(self, play_one: PlayOne, draws: Sequence[Draw], parameters: tuple, in_play: tuple, vector: tuple):
        self._draws, self._vector = draws, vector
        examples = jax.tree.map(lanes.example, (parameters, in_play))
        words = [[jax.ShapeDtypeStruct((count,), jnp.uint32)] * 2 for _, _, count in draws]
        closed, out = jax.make_jaxpr(lambda p, s, t, w: play_one(*p, *s, t, w), return_shape=True)(
            *examples, jax.ShapeDtypeStruct((), jnp.int32), words
        )
        self._shapes = [leaf.shape for leaf in jax.tree.leaves(examples)]
        self._program, self._results = inlined(closed), jax.tree.structure(out)

    def __call__(self, games: list[list[Array]], keys: list[Array], t: Array) -> tuple[list[list[Array]], Array]:
        """Round ``t``: what is in play after it, and the arm, from the scalars of parameters and play."""
        values = [object_array(shape, rows) for shape, rows in zip(self._shapes, games, strict=True)]
        t = jnp.full(self._vector, t)
        values += [object_array((), [t]), *self._words(keys, t.astype(jnp.uint32))]
        in_play, seen = jax.tree.unflatten(self._results, _evaluate(self._program, values, self._vector))
        return [list(leaf.flat) for leaf in jax.tree.leaves(in_play)], seen["arm"][()]

    def _words(self, keys: list[Array], t: Array) -> Iterator[np.ndarray]:
        for consumer, first, count in self._draws:
            counters = [jnp.full_like(t, consumer * random.DRAWS + first + pair) for pair in range(count)]
            pairs = [random.threefry2x32((keys[0], keys[1]), (t, counter)) for counter in counters]
            yield from (object_array((count,), words) for words in zip(*pairs, strict=True))


def _evaluate(program: Program, values: Sequence[np.ndarray], vector: tuple) -> list[np.ndarray]:
    """The results of a program, each an array of vectors; what no lane has a say in is computed while tracing."""
    env: dict[Any, Any] = {var: _known(const) for var, const in program.consts.items()}  # Unrolled, or known
    env.update(zip(program.invars, map(Unrolled, values), strict=True))

    def read(atom: Any) -> np.ndarray | Unrolled:
        if not isinstance(atom, core.Literal):
            return env[atom]
        return np.asarray(atom.val, atom.aval.dtype)  # pyright: ignore[reportAttributeAccessIssue]

    def unrolled(value: np.ndarray | Unrolled) -> Unrolled:
        if isinstance(value, Unrolled):
            return value
        return Unrolled(object_array(value.shape, (jnp.full(vector, entry) for entry in value.flat)))

    for equation in program.eqns:
        operands = [read(atom) for atom in equation.operands]
        if any(isinstance(operand, Unrolled) for operand in operands):
            applied = apply(equation.eqn, [unrolled(operand) for operand in operands], vector)
            out: Sequence = [_known(value.array) if isinstance(value, Shared) else value for value in applied]
        else:
            primitive = equation.eqn.primitive
            with jax.ensure_compile_time_eval():
                out = primitive.bind(*map(jnp.asarray, operands), **equation.eqn.params)
                out = [_known(value) for value in (out if primitive.multiple_results else [out])]
        env.update(zip(equation.results, out, strict=True))
    return [unrolled(read(atom)).entries for atom in program.outvars]


def _known(const: Any) -> np.ndarray:
    """A constant on the host."""
    if isinstance(const, Tracer):
        raise NotUnrolledError("a constant that is traced")
    return np.asarray(const)


def _table(leaf: Array) -> Array:
    """[scalars, lanes]."""
    return leaf.reshape(-1, leaf.shape[-1])


def _primitives(jaxpr: core.Jaxpr) -> set[str]:
    """The names of all operations, those of inner calls too."""
    names = set()
    for eqn in jaxpr.eqns:
        names.add(eqn.primitive.name)
        for value in eqn.params.values():
            if isinstance(value, core.ClosedJaxpr):
                names |= _primitives(value.jaxpr)
    return names

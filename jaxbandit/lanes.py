"""Many games at once: a batching transform that keeps the lane axis last and takes the arms apart.

``jax.vmap`` would put the games first and reduce over the short arm axis, which XLA on a CPU turns
into many small kernels. This transform reads the jaxpr of one game and evaluates it with every
scalar of the game held as a vector ``[lanes]``. A small array over arms is *unrolled* into such
vectors, so that a sum over arms is ``r[0] + r[1] + ...``; when every value is of this form, the whole
function is one loop over the lanes (``fusion``). A larger vector is played in *groups* of arms, a table stays
*stacked*, ``[K, levels, lanes]``: then loops take turns with operations on what is large. A primitive
without a rule falls back on ``vmap`` with the lanes last. Policies and worlds never see any of this.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

from jaxbandit import fusion, grouped, loops
from jaxbandit.batched import Shared, Stacked, Value, apply, example, is_shared, is_small, spread
from jaxbandit.loops import GroupLoop, Loop, falls_into, read
from jaxbandit.programs import Equation, Program, inlined
from jaxbandit.types import Array

__all__ = ["Shared", "example", "is_shared", "is_small", "over_lanes"]

RESULTS = 120  # of one loop: APE2's 164 were no longer vectorised
LARGEST = 64  # entries of an array that one loop takes apart: 534 blocks of a median of means compiled for minutes


def over_lanes(fn: Callable, num_lanes: int) -> Callable:
    """Batches ``fn(*trees) -> tree``, written for one game, over a trailing axis of lanes.

    Args:
      fn: A pure function of pytrees of arrays.
      num_lanes: Length of the lane axis.

    Returns:
      A function of the same trees with every leaf ``shape + [lanes]``, or wrapped in ``Shared`` if it is
      the same in all lanes; its results all end in the lane axis.
    """

    def batched(*trees):
        leaves, structure = jax.tree.flatten(trees, is_leaf=is_shared)
        values = [leaf if is_shared(leaf) else Stacked(leaf) for leaf in leaves]
        closed, out_shape = jax.make_jaxpr(lambda *flat: fn(*jax.tree.unflatten(structure, flat)), return_shape=True)(
            *map(example, leaves)
        )
        out = _evaluate(inlined(closed), values, num_lanes)
        return jax.tree.unflatten(jax.tree.structure(out_shape), [spread(value, (num_lanes,)) for value in out])

    return batched


def _evaluate(program: Program, values: Sequence[Value], num_lanes: int) -> list[Value]:
    """Evaluates a program on lane values: in one loop if it fits, else in turns."""
    env: dict[Any, Value] = {var: Shared(const) for var, const in program.consts.items()}
    env.update(zip(program.invars, values, strict=True))
    left = []
    for equation in program.eqns:
        if all(is_shared(env.get(name)) for name in equation.names()):
            _evaluate_outside(equation, env, num_lanes)
        else:
            left.append(equation)
    wanted = {atom for atom in program.outvars if not isinstance(atom, core.Literal)}
    if not _in_one_loop(left, env, wanted, num_lanes):
        _in_turns(left, env, wanted, num_lanes)
    return [read(atom, env) for atom in program.outvars]


def _in_one_loop(equations: list[Equation], env: dict[Any, Value], wanted: set, num_lanes: int) -> bool:
    """Evaluates all in one kernel, if that can be done and pays."""
    num_results = sum(math.prod(var.aval.shape) for equation in equations for var in equation.made(wanted))
    size = sum(equation.size() for equation in equations)
    apart = [size for equation in equations for size in equation.sizes(lambda name: not is_shared(env.get(name)))]
    largest = max(apart, default=0)
    if not fusion.pays() or num_results > RESULTS or size > loops.ONE_LOOP or largest > LARGEST:
        return False
    loop = Loop(env, num_lanes)
    if not all(loop.takes(equation) for equation in equations):
        return False
    loop.close(wanted)
    return True


def _in_turns(left: list[Equation], env: dict[Any, Value], wanted: set, num_lanes: int) -> None:
    """Evaluates what is small and ready in one loop, then what is large and ready, and so on."""
    small = {equation for equation in left if fusion.pays() and equation.is_small()}
    families = grouped.families([shape for equation in left for shape in equation.shapes()]) if fusion.pays() else ()
    refused: set[Equation] = set()  # by loops over groups

    def is_for_groups(equation: Equation) -> bool:
        return equation not in refused and any(falls_into(equation, groups, env.get) for groups in families)

    for turn in itertools.count():
        if not left:
            return
        loop = Loop(env, num_lanes, turn)
        left = loop.take(left, wanted, {equation for equation in small if not is_for_groups(equation)})
        small -= loop.refused
        for groups in families:
            loop = GroupLoop(env, num_lanes, turn, groups)
            left = loop.take(left, wanted, set(left) - refused)
            refused |= loop.refused
        waiting = []
        for equation in left:
            ready = all(name in env for name in equation.names())
            if equation in small or is_for_groups(equation) or not ready:
                waiting.append(equation)
            else:
                _evaluate_outside(equation, env, num_lanes)
        left = waiting


def _evaluate_outside(equation: Equation, env: dict[Any, Value], num_lanes: int) -> None:
    """Evaluates one equation outside of loops."""
    operands = [read(atom, env) for atom in equation.operands]
    name, shared = equation.eqn.primitive.name, all(map(is_shared, operands))
    if name == "cond" and not shared:
        out = _choose(equation.eqn, operands, num_lanes)
    elif name == "scan" and not shared and _only_carries(equation.eqn):
        out = _repeat(equation.eqn, operands, num_lanes)
    else:
        out = apply(equation.eqn, operands, (num_lanes,))
    env.update(zip(equation.results, out, strict=True))


def _choose(eqn, operands: list[Value], num_lanes: int) -> list[Value]:
    """``lax.cond`` and ``lax.switch``: a branch that no lane takes is not played.

    A branch is a loop of one turn or none, which XLA plays in place: a conditional would copy what it hands on. What
    the usual branch hands on as it came, a table say, the others read from what the loop carries.
    """
    index, *arguments = operands
    usual, *others = eqn.params["branches"]

    def play(closed, arguments: Sequence[Value]) -> list[Array]:
        return [spread(out, (num_lanes,)) for out in _evaluate(inlined(closed), arguments, num_lanes)]

    if isinstance(index, Shared):
        branches = [functools.partial(play, closed, arguments) for closed in eqn.params["branches"]]
        return [Stacked(out) for out in lax.switch(index.array, branches)]
    which = spread(index, (num_lanes,)).astype(jnp.int32)
    handed_on = {
        usual.jaxpr.invars.index(var): place
        for place, var in enumerate(usual.jaxpr.outvars)
        if var in usual.jaxpr.invars and not is_shared(arguments[usual.jaxpr.invars.index(var)])
    }
    out = play(usual, arguments)
    for number, other in enumerate(others, start=1):
        here = which == number

        def turn(carry, other=other, here=here):
            _, out = carry
            current = [
                Stacked(out[handed_on[n]]) if n in handed_on else argument for n, argument in enumerate(arguments)
            ]
            new = play(other, current)
            return jnp.bool_(False), [jnp.where(here, *pair) for pair in zip(new, out, strict=True)]

        _, out = lax.while_loop(lambda carry: carry[0], turn, (jnp.any(here), out))
    return [Stacked(array) for array in out]


def _only_carries(eqn) -> bool:
    """Whether a scan is ``fori_loop``: nothing but constants and a carry."""
    carried = eqn.params["num_carry"]
    return len(eqn.invars) == eqn.params["num_consts"] + carried and len(eqn.outvars) == carried


def _repeat(eqn, operands: list[Value], num_lanes: int) -> list[Value]:
    """``lax.fori_loop`` with a fixed number of turns."""
    consts, carry = operands[: eqn.params["num_consts"]], operands[eqn.params["num_consts"] :]
    body = inlined(eqn.params["jaxpr"])
    shared: list[bool] = [is_shared(value) for value in carry]

    def play(arrays: list[Array]) -> list[Value]:
        values = [Shared(array) if same else Stacked(array) for array, same in zip(arrays, shared, strict=True)]
        return _evaluate(body, [*consts, *values], num_lanes)

    def whole(values: Sequence[Value]) -> list[Array]:
        pairs = zip(values, shared, strict=True)
        return [
            value.array if same and isinstance(value, Shared) else spread(value, (num_lanes,)) for value, same in pairs
        ]

    def keep_shared(arrays: list[Array]) -> None:
        shared[:] = [same and is_shared(value) for same, value in zip(shared, play(arrays), strict=True)]

    for _ in carry:  # what is the same in every lane may cease to be so, one value after another
        before = list(shared)
        jax.eval_shape(keep_shared, whole(carry))
        if shared == before:
            break
    out = lax.fori_loop(0, eqn.params["length"], lambda _, arrays: whole(play(arrays)), whole(carry))
    return [Shared(array) if same else Stacked(array) for array, same in zip(out, shared, strict=True)]

"""Many games at once: a batching transform that keeps the lane axis last and takes the arms apart.

``jax.vmap`` would put the games first and reduce over the short arm axis, which XLA on a CPU turns
into many small kernels. This transform reads the jaxpr of one game and evaluates it with every
scalar of the game held as a vector ``[lanes]``. A small array over arms is *unrolled* into such
vectors, so that a sum over arms is ``r[0] + r[1] + ...``; when every value is of this form, the whole
function is one loop over the lanes (``fusion``). A larger array stays *stacked*, ``[K, lanes]``: then
loops take turns with operations on what is large. A primitive without a rule falls back on ``vmap`` with
the lanes last. Policies and worlds never see any of this.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from jaxbandit import fusion, grouped
from jaxbandit.batched import (
    NotUnrolledError,
    Shared,
    Stacked,
    Unrolled,
    Value,
    apply,
    entries,
    example,
    is_shared,
    is_small,
    spread,
    written_out,
)
from jaxbandit.grouped import Grouped, Partial
from jaxbandit.types import Array
from jaxbandit.unrolled import MOVES, REDUCTIONS, map_entries, object_array

__all__ = ["Shared", "example", "is_shared", "is_small", "over_lanes"]

# One loop computes up to this many vectors (uniINF takes 1900 for 10 arms, 5900 for 32): LLVM needs 2 s for the
# former, 5 s for the latter, and does not vectorise much beyond.
ONE_LOOP = 6500
RESULTS = 120  # of one loop: APE2's 164 were no longer vectorised

# Primitives that hold a jaxpr to be evaluated in place.
_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


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
        out = _evaluate(_inlined(closed), values, num_lanes)
        return jax.tree.unflatten(jax.tree.structure(out_shape), [spread(value, (num_lanes,)) for value in out])

    return batched


@dataclasses.dataclass(frozen=True, eq=False)
class Equation:
    """One step of a program; atoms are names or literals."""

    eqn: Any
    operands: list
    results: list

    def names(self) -> list:
        """The operands that are not literals."""
        return [atom for atom in self.operands if not isinstance(atom, core.Literal)]

    def made(self, wanted: set) -> list:
        """The variables of those results that are wanted."""
        return [var for var, name in zip(self.eqn.outvars, self.results, strict=True) if name in wanted]

    def size(self) -> int:
        """How many vectors it takes and makes when unrolled."""
        if self.eqn.primitive.name in MOVES:
            return 0
        return sum(map(math.prod, self.shapes()))

    def shapes(self) -> list[tuple[int, ...]]:
        """Of all it takes and makes."""
        return [var.aval.shape for var in (*self.eqn.invars, *self.eqn.outvars)]

    def is_small(self) -> bool:
        """Whether all it takes and makes is taken apart wherever it occurs."""
        return all(map(is_small, self.shapes()))


@dataclasses.dataclass
class Program:
    """A jaxpr with the calls in it replaced by what they hold."""

    eqns: list[Equation]
    consts: dict
    invars: list
    outvars: list


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
    return [_read(atom, env) for atom in program.outvars]


def _in_one_loop(equations: list[Equation], env: dict[Any, Value], wanted: set, num_lanes: int) -> bool:
    """Evaluates all in one kernel, if that can be done and pays."""
    num_results = sum(math.prod(var.aval.shape) for equation in equations for var in equation.made(wanted))
    size = sum(equation.size() for equation in equations)
    if not fusion.pays() or num_results > RESULTS or size > ONE_LOOP:
        return False
    loop = _Loop(env, num_lanes)
    if not all(loop.takes(equation) for equation in equations):
        return False
    loop.close(wanted)
    return True


def _in_turns(left: list[Equation], env: dict[Any, Value], wanted: set, num_lanes: int) -> None:
    """Evaluates what is small and ready in one loop, then what is large and ready, and so on."""
    small = {equation for equation in left if fusion.pays() and equation.is_small()}
    families = grouped.families([shape for equation in left for shape in equation.shapes()]) if fusion.pays() else ()
    refused: set[Equation] = set()  # by loops over groups
    for turn in itertools.count():
        if not left:
            return
        loop = _Loop(env, num_lanes, turn)
        left = loop.take([*left], wanted, small)
        small -= loop.refused
        for groups in families:
            loop = _GroupLoop(env, num_lanes, turn, groups)
            left = loop.take(left, wanted, set(left) - refused)
            refused |= loop.refused
        waiting = []
        for equation in left:
            ready = all(name in env for name in equation.names())
            for_groups = equation not in refused and any(_falls_into(equation, groups, env.get) for groups in families)
            if equation in small or for_groups or not ready:
                waiting.append(equation)
            else:
                _evaluate_outside(equation, env, num_lanes)
        left = waiting


def _falls_into(equation: Equation, groups: int, value: Callable[[Any], Any]) -> bool:
    """Whether an equation is for a loop over so many groups: it has to do with a large vector."""
    reduces = equation.eqn.primitive.name in REDUCTIONS
    variables = equation.eqn.invars if reduces else (*equation.eqn.invars, *equation.eqn.outvars)
    arrays = [var.aval.shape for var in variables if var.aval.shape]
    if not arrays or any(grouped.entries_shape(shape, groups) is None for shape in arrays):
        return False
    operands = map(value, equation.names())
    made = any(isinstance(operand, Grouped) and operand.num_groups == groups for operand in operands)
    return made or groups in grouped.families(arrays)


class _Loop:
    """Equations evaluated as one kernel; see ``fusion``."""

    def __init__(self, env: dict[Any, Value], num_lanes: int, number: int = 0):
        self._env, self._num_lanes = env, num_lanes
        self._enter = functools.partial(fusion.enter, number=number)
        self._inside: dict[Any, Any] = {}  # entered, or made here
        self._made: dict[Any, Any] = {}
        self._size = 0
        self.refused: set[Equation] = set()  # what cannot be unrolled

    def take(self, equations: list[Equation], wanted: set, allowed: set[Equation]) -> list[Equation]:
        """Evaluates what it can of those allowed; returns the others, for which it leaves what they need."""
        left = [equation for equation in equations if not (equation in allowed and self.takes(equation))]
        self.close(wanted.union(*(equation.names() for equation in left)))
        return left

    def takes(self, equation: Equation) -> bool:
        """Evaluates an equation in this loop, if its operands are there and it can be unrolled."""
        size = self._size_of(equation)
        if not self._is_ready(equation) or (self._size and self._size + size > ONE_LOOP):
            return False
        try:
            if size > ONE_LOOP:
                raise NotUnrolledError
            out = self._apply(equation.eqn, [self._read(atom) for atom in equation.operands])
        except NotUnrolledError:
            self.refused.add(equation)
            return False
        self._size += size
        made = dict(zip(equation.results, out, strict=True))
        self._made |= made
        self._inside |= made
        return True

    def close(self, wanted: set) -> None:
        """Ends the loop; what is wanted of its results is there for others."""
        kept = {name: value for name, value in self._made.items() if name in wanted}
        inside = [vector for value in kept.values() if not is_shared(value) for vector in value.entries.flat]
        vectors = iter(fusion.leave(inside) if inside else ())
        for name, value in kept.items():
            shared = is_shared(value)
            self._env[name] = (
                value if shared else self._left(value, map_entries(lambda _: next(vectors), value.entries))
            )

    def _is_ready(self, equation: Equation) -> bool:
        return all(name in self._made or name in self._env for name in equation.names())

    def _size_of(self, equation: Equation) -> int:
        return equation.size()

    def _apply(self, eqn, operands: list[Value]) -> list:
        return apply(eqn, operands, (2, self._num_lanes))

    def _read(self, atom: Any) -> Any:
        if isinstance(atom, core.Literal):
            return _read(atom, self._env)
        if atom not in self._inside:
            self._inside[atom] = self._entered(self._env[atom])
        return self._inside[atom]

    def _entered(self, value: Value) -> Value:
        if is_shared(value):
            return value
        if isinstance(value, Stacked) and jnp.issubdtype(value.array.dtype, jax.dtypes.extended):
            raise NotUnrolledError  # keys
        return Unrolled(map_entries(self._enter, entries(value, ())))

    def _left(self, value: Any, vectors: np.ndarray) -> Value:
        return Unrolled(vectors)


class _GroupLoop(_Loop):
    """Equations on large vectors evaluated as one kernel over groups and lanes; see ``grouped``."""

    def __init__(self, env: dict[Any, Value], num_lanes: int, number: int, groups: int):
        super().__init__(env, num_lanes, number)
        self._groups = groups

    def _is_ready(self, equation: Equation) -> bool:
        partial = any(isinstance(self._made.get(name), Partial) for name in equation.names())
        if partial or not super()._is_ready(equation):
            return False
        return _falls_into(equation, self._groups, lambda name: self._made.get(name) or self._env[name])

    def _size_of(self, equation: Equation) -> int:
        return equation.size() // self._groups

    def _apply(self, eqn, operands: list[Any]) -> list:
        inside = [self._spread(operand) if is_shared(operand) else operand.entries for operand in operands]
        out = grouped.apply_grouped(eqn, inside, self._groups)
        if out is None:
            raise NotUnrolledError(eqn.primitive.name)
        return [out]

    def _spread(self, value: Shared) -> np.ndarray:
        array = jnp.asarray(value.array)
        vector = (2, self._groups, self._num_lanes)
        if not array.shape:
            return map_entries(lambda one: jnp.broadcast_to(one, vector), object_array((), [array]))
        parts = grouped.split(array[..., None], array.shape, self._groups)
        return map_entries(lambda one: jnp.broadcast_to(one, vector), parts)

    def _entered(self, value: Value) -> Any:
        if is_shared(value):
            return value
        if isinstance(value, Grouped) and value.num_groups == self._groups:
            return Grouped(map_entries(self._enter, value.entries), value.shape)
        array = spread(value, (self._num_lanes,))
        shape = array.shape[:-1]
        if shape:
            return Grouped(map_entries(self._enter, grouped.split(array, shape, self._groups)), shape)
        vector = (2, self._groups, self._num_lanes)
        return Unrolled(object_array((), [lax.broadcast_in_dim(self._enter(array), vector, (0, 2))]))

    def _left(self, value: Any, vectors: np.ndarray) -> Value:
        return Unrolled(value.over_groups(vectors)) if isinstance(value, Partial) else Grouped(vectors, value.shape)


def _evaluate_outside(equation: Equation, env: dict[Any, Value], num_lanes: int) -> None:
    """Evaluates one equation outside of loops."""
    operands = [_read(atom, env) for atom in equation.operands]
    name, shared = equation.eqn.primitive.name, all(map(is_shared, operands))
    if name == "cond" and not shared:
        out = _choose(equation.eqn, operands, num_lanes)
    elif name == "scan" and not shared and _only_carries(equation.eqn):
        out = _repeat(equation.eqn, operands, num_lanes)
    else:
        out = apply(equation.eqn, operands, (num_lanes,))
    env.update(zip(equation.results, out, strict=True))


def _choose(eqn, operands: list[Value], num_lanes: int) -> list[Value]:
    """``lax.cond`` and ``lax.switch``: a branch that no lane takes is not played."""
    index, *arguments = operands

    def branch(closed) -> Callable[[], list]:
        return lambda: [spread(out, (num_lanes,)) for out in _evaluate(_inlined(closed), arguments, num_lanes)]

    usual, *others = map(branch, eqn.params["branches"])
    if isinstance(index, Shared):
        return [Stacked(out) for out in lax.switch(index.array, [usual, *others])]
    which = spread(index, (num_lanes,)).astype(jnp.int32)
    out = usual()
    for number, other in enumerate(others, start=1):
        here = which == number

        def taken(other=other, here=here, out=tuple(out)):
            return [jnp.where(here, new, old) for new, old in zip(other(), out, strict=True)]

        out = lax.cond(jnp.any(here), taken, lambda out=tuple(out): list(out))
    return [Stacked(array) for array in out]


def _only_carries(eqn) -> bool:
    """Whether a scan is ``fori_loop``: nothing but constants and a carry."""
    carried = eqn.params["num_carry"]
    return len(eqn.invars) == eqn.params["num_consts"] + carried and len(eqn.outvars) == carried


def _repeat(eqn, operands: list[Value], num_lanes: int) -> list[Value]:
    """``lax.fori_loop`` with a fixed number of turns."""
    consts, carry = operands[: eqn.params["num_consts"]], operands[eqn.params["num_consts"] :]
    body = _inlined(eqn.params["jaxpr"])
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


def _read(atom: Any, env: dict[Any, Value]) -> Value:
    return Shared(jnp.asarray(atom.val)) if isinstance(atom, core.Literal) else env[atom]


def _inlined(closed: core.ClosedJaxpr) -> Program:
    eqns: list[Equation] = []
    consts: dict = {}

    def walk(closed: core.ClosedJaxpr, arguments: Sequence | None) -> list:
        names: dict = {}
        for var, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            names[var] = object()
            consts[names[var]] = const
        for var, argument in zip(closed.jaxpr.invars, arguments or closed.jaxpr.invars, strict=True):
            names[var] = argument

        def rename(atom):
            return atom if isinstance(atom, core.Literal) else names[atom]

        for eqn in closed.jaxpr.eqns:
            operands = [rename(atom) for atom in eqn.invars]
            inner = written_out(eqn)
            if eqn.primitive.name in _CALLS:
                inner = eqn.params["call_jaxpr" if "call_jaxpr" in eqn.params else "jaxpr"]
            if inner is not None:
                names.update(zip(eqn.outvars, walk(inner, operands), strict=True))
            else:
                results = [object() for _ in eqn.outvars]
                names.update(zip(eqn.outvars, results, strict=True))
                eqns.append(Equation(eqn, operands, results))
        return [rename(atom) for atom in closed.jaxpr.outvars]

    invars = [object() for _ in closed.jaxpr.invars]
    return Program(eqns, consts, invars, walk(closed, invars))

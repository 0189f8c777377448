"""Equations evaluated together, as one kernel: over lanes what is small, over groups and lanes what is large."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from jaxbandit import fusion, grouped
from jaxbandit.batched import NotUnrolledError, Shared, Stacked, Unrolled, Value, apply, entries, is_shared, spread
from jaxbandit.grouped import Grouped, Partial
from jaxbandit.programs import Equation
from jaxbandit.unrolled import REDUCTIONS, map_entries, object_array

# One loop computes up to this many vectors (uniINF takes 1900 for 10 arms, 5900 for 32): LLVM needs 2 s for the
# former, 5 s for the latter, and does not vectorise much beyond.
ONE_LOOP = 6500


def read(atom: Any, env: dict[Any, Value]) -> Value:
    """The value of a name or literal."""
    return Shared(jnp.asarray(atom.val)) if isinstance(atom, core.Literal) else env[atom]


def falls_into(equation: Equation, groups: int, value: Callable[[Any], Any]) -> bool:
    """Whether an equation is for a loop over so many groups: it has to do with a large vector."""
    reduces = equation.eqn.primitive.name in REDUCTIONS
    variables = equation.eqn.invars if reduces else (*equation.eqn.invars, *equation.eqn.outvars)
    arrays = [var.aval.shape for var in variables if var.aval.shape]
    if not arrays or any(grouped.entries_shape(shape, groups) is None for shape in arrays):
        return False
    operands = map(value, equation.names())
    made = any(isinstance(operand, Grouped) and operand.num_groups == groups for operand in operands)
    return made or groups in grouped.families(arrays)


class Loop:
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
            return read(atom, self._env)
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


class GroupLoop(Loop):
    """Equations on large vectors evaluated as one kernel over groups and lanes; see ``grouped``."""

    def __init__(self, env: dict[Any, Value], num_lanes: int, number: int, groups: int):
        super().__init__(env, num_lanes, number)
        self._groups = groups

    def _is_ready(self, equation: Equation) -> bool:
        partial = any(isinstance(self._made.get(name), Partial) for name in equation.names())
        if partial or not super()._is_ready(equation):
            return False
        return falls_into(equation, self._groups, lambda name: self._made.get(name) or self._env[name])

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

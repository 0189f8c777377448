"""A jaxpr as one list of equations: the calls in it replaced by what they hold."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from jax.extend import core

from jaxbandit.batched import is_small, written_out
from jaxbandit.unrolled import MOVES

# Primitives that hold a jaxpr to be evaluated in place.
_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


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

    def sizes(self, counts: Callable[[Any], bool]) -> list[int]:
        """Entries of each array it makes, and of those it takes by a name that ``counts``."""
        taken = zip(self.eqn.invars, self.operands, strict=True)
        arrays = [var for var, atom in taken if not isinstance(atom, core.Literal) and counts(atom)]
        return [math.prod(var.aval.shape) for var in (*arrays, *self.eqn.outvars)]

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


def inlined(closed: core.ClosedJaxpr) -> Program:
    """The program of a jaxpr."""
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
            if eqn.primitive.name == "optimization_barrier":  # ``arms.add_at``; loops keep scatters apart themselves
                names.update(zip(eqn.outvars, operands, strict=True))
            elif inner is not None:
                names.update(zip(eqn.outvars, walk(inner, operands), strict=True))
            else:
                results = [object() for _ in eqn.outvars]
                names.update(zip(eqn.outvars, results, strict=True))
                eqns.append(Equation(eqn, operands, results))
        return [rename(atom) for atom in closed.jaxpr.outvars]

    invars = [object() for _ in closed.jaxpr.invars]
    return Program(eqns, consts, invars, walk(closed, invars))

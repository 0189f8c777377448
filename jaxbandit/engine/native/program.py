"""Programs: a jaxpr as one list of equations, with its calls written out and unused equations left out."""

import dataclasses
import types
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Primitives that hold a jaxpr which is evaluated in place.
CALLS = {
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "remat",
    "remat2",
    "checkpoint",
    "custom_lin",
}


class Name:
    """A variable of a program: an array that one equation makes.

    Attributes:
      aval: Shape and dtype of the array as it is stored; an array of JAX keys has a last axis of two words.
      keys: The dtype of JAX keys if the array holds keys, else None.
    """

    def __init__(self, aval: Any):
        dtype = getattr(aval, "dtype", np.dtype(bool))  # a token has none
        self.keys = dtype if jnp.issubdtype(dtype, jax.dtypes.prng_key) else None
        self.aval = aval if self.keys is None else jax.ShapeDtypeStruct((*aval.shape, 2), np.uint32)


class Literal:
    """A number written into a program, as JAX's own literals are."""

    def __init__(self, val: Any, aval: Any):
        self.val, self.aval = val, aval


def is_literal(atom: Any) -> bool:
    """Returns whether an operand is a literal, JAX's or ours; a variable has no value."""
    return hasattr(atom, "val")


def opened(jaxpr: Any) -> tuple[Any, Any]:
    """Returns a jaxpr, closed or not, and its constants."""
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") else (jaxpr, ())


@dataclasses.dataclass(frozen=True, eq=False)
class Equation:
    """One step of a program; ``invars`` are names or literals."""

    primitive: Any
    params: dict[str, Any]
    invars: list[Any]
    outvars: list[Name]
    sources: tuple  # the source lines, innermost call first
    effects: bool = False  # it has a side effect, such as printing or a callback


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A list of equations with its arguments, results and constants."""

    equations: list[Equation]
    constants: dict[Name, Any]
    arguments: list[Name]
    results: list[Any]  # names or literals

    def without_unused(self) -> "Program":
        """Returns the program with only those equations that a result depends on."""
        wanted = {result for result in self.results if isinstance(result, Name)}
        kept = []
        for equation in reversed(self.equations):
            if equation.effects or any(name in wanted for name in equation.outvars):
                kept.append(equation)
                wanted |= {atom for atom in equation.invars if isinstance(atom, Name)}
        constants = {name: value for name, value in self.constants.items() if name in wanted}
        return Program(kept[::-1], constants, self.arguments, self.results)


@dataclasses.dataclass(frozen=True)
class Programs:
    """A game as programs of arrays.

    Attributes:
      begin: parameters -> carry.
      play: parameters, carry, the two words of the key, t -> carry, traced.
      record: carry, t -> carry, handed out.
      parameters: Shapes of the leaves of policy and environment.
      shared: For each of these leaves, whether all lanes share it.
      carry: Shapes of the carry's leaves.
      handed_out: Shapes of the arrays handed out at a recorded round.
      traced: Shapes of the arrays handed out in every round.
    """

    begin: Program
    play: Program
    record: Program
    parameters: list[Any]
    shared: list[bool]
    carry: list[Any]
    handed_out: list[Any]
    traced: list[Any]


def divided(program: Program, fixed: Sequence[Name]) -> tuple[Program, Program]:
    """Splits off the equations that depend on ``fixed`` arguments alone.

    Returns:
      A program of the fixed arguments, and one of all arguments followed by the results of the first.
    """
    known, before, after = {*fixed, *program.constants}, [], []
    for equation in program.equations:
        if all(not isinstance(atom, Name) or atom in known for atom in equation.invars):
            before.append(equation)
            known |= set(equation.outvars)
        else:
            after.append(equation)
    made = {name for equation in before for name in equation.outvars}
    wanted = [atom for equation in after for atom in equation.invars] + program.results
    handed_on = list(dict.fromkeys(atom for atom in wanted if isinstance(atom, Name) and atom in made))
    first = Program(before, program.constants, list(fixed), handed_on)
    second = Program(after, program.constants, [*program.arguments, *handed_on], program.results)
    return first.without_unused(), second.without_unused()


def _signature(eqn: Any, operands: Sequence[Any]) -> Any:
    """Returns a key such that equations with equal keys have equal results; None if there is no such key."""
    read = [(str(a.aval), np.asarray(a.val).tobytes()) if is_literal(a) else a for a in operands]
    signature = (eqn.primitive, *sorted(eqn.params.items()), *read)
    try:
        hash(signature)
    except TypeError:
        return None
    return signature


LOG2 = types.SimpleNamespace(name="log2")


def flattened(closed: Any) -> Program:
    """Returns the program of a closed jaxpr.

    ``log(x) / log(2)`` becomes ``log2(x)``: before jax 0.11 that is how ``jnp.log2`` is written.
    """
    equations: list[Equation] = []
    constants: dict[Name, Any] = {}
    logs: dict[Name, Any] = {}  # the operands of natural logarithms, by result
    known: dict[Any, list[Name]] = {}  # equations computed before, so that a loop over a large array is written once

    def walk(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], calls: tuple = ()) -> list[Any]:
        names: dict[Any, Any] = dict(zip(jaxpr.invars, arguments, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            names[var] = Name(var.aval)
            constants[names[var]] = value

        def renamed(atom: Any) -> Any:
            return atom if is_literal(atom) else names[atom]

        for eqn in jaxpr.eqns:
            operands = [renamed(atom) for atom in eqn.invars]
            if eqn.primitive.name in CALLS:
                inner = eqn.params["call_jaxpr"] if "call_jaxpr" in eqn.params else eqn.params["jaxpr"]
                results = walk(*opened(inner), operands, (eqn.source_info, *calls))
            elif eqn.primitive.name == "optimization_barrier":
                results = operands
            else:
                signature = None if eqn.effects else _signature(eqn, operands)
                results = known.get(signature) if signature else None
                if results is None:
                    results = [Name(var.aval) for var in eqn.outvars]
                    sources, effects = (eqn.source_info, *calls), bool(eqn.effects)
                    primitive = eqn.primitive
                    if primitive.name == "log":
                        logs[results[0]] = operands[0]
                    if primitive.name == "div" and all(isinstance(atom, Name) and atom in logs for atom in operands):
                        x, base = (logs[atom] for atom in operands)
                        if is_literal(base) and base.val == 2:
                            primitive, operands = LOG2, [x]
                    equations.append(Equation(primitive, eqn.params, operands, results, sources, effects))
                    if signature:
                        known[signature] = results
            names.update(zip(eqn.outvars, results, strict=True))
        return [renamed(atom) for atom in jaxpr.outvars]

    jaxpr, consts = opened(closed)
    arguments = [Name(var.aval) for var in jaxpr.invars]
    results = walk(jaxpr, consts, arguments)
    return Program(equations, constants, arguments, results).without_unused()


def traced(function: Any, *examples: Any) -> tuple[Program, Any]:
    """Returns the program of a function of arrays, and the structure of its result."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*examples)
    return flattened(closed), shape

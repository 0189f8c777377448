"""The order of a program's equations: each comes as late as its results allow.

In the order of the source, the steps of the solver wait for one another while the cipher waits for its turn. If every
equation comes just in time, independent chains alternate, and the processor works on one while it waits for another.
"""

import dataclasses
import math

import jax.numpy as jnp

from jaxbandit.engine.native.arrays import SMALL
from jaxbandit.engine.native.program import Equation, Name, Program

# Rough numbers of cycles until a result is ready; other floating-point operations take 4, integer ones 1.
CYCLES = {"div": 24, "sqrt": 24, "log": 60, "exp": 60, "log1p": 60, "exp2": 60, "cos": 60, "sin": 60, "pow": 150}
FREE = {"broadcast_in_dim", "reshape", "squeeze", "slice", "concatenate", "stack", "unstack", "split", "transpose"}


def just_in_time(program: Program) -> Program:
    """Returns the program in an order by the latest time at which each equation may begin.

    Programs with large arrays keep their order: it decides which of them are written in place.
    """
    equations = program.equations
    if any(name.aval.size > SMALL for equation in equations for name in equation.outvars):
        return program
    needed: dict[Name, int] = {}  # in cycles before the end
    begins = []
    for number, equation in reversed(list(enumerate(equations))):
        end = max((needed.get(name, 0) for name in equation.outvars), default=0)
        start = end + cycles(equation)
        begins.append((-start, number))
        for atom in equation.invars:
            if isinstance(atom, Name):
                needed[atom] = max(needed.get(atom, 0), start)
    return dataclasses.replace(program, equations=[equations[number] for _, number in sorted(begins)])


def cycles(equation: Equation) -> int:
    """Returns the rough number of cycles that an equation takes."""
    name = equation.primitive.name
    if name in FREE or not equation.invars:
        return 0
    if name.startswith(("reduce_", "arg")):
        return 4 * math.ceil(math.log2(max(2, *(atom.aval.size for atom in equation.invars))))
    is_float = any(
        jnp.issubdtype(atom.aval.dtype, jnp.floating) for atom in equation.invars
    )  # a key has no NumPy dtype
    return CYCLES.get(name, 4 if is_float else 1)

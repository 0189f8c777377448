"""What a GPU could do, on paper: ``python -m benchmarks.roofline``. Nothing here is measured.

Counts the operations of one round of uniINF in the program that the engine makes machine code of, and divides by what
the pipes of a card issue at its boost clock. A bound from below on the time: it assumes that every pipe is kept busy
and that registers suffice. Writes the table of docs/gpu.md.
"""

import pathlib

import jax.numpy as jnp

import jaxbandit as jb
from benchmarks import records
from jaxbandit.engine import Job
from jaxbandit.engine.native.games import programs_of

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "gpu.md"

# Multiprocessors, boost clock in GHz, and instructions per clock and multiprocessor of each pipe, from the makers'
# data sheets and the throughput table of the CUDA C++ programming guide.
CARDS = {
    "A100": {"units": 108, "clock": 1.41, "float": 64, "integer": 64, "special": 16},
    "H100 SXM": {"units": 132, "clock": 1.83, "float": 128, "integer": 64, "special": 16},
    "RTX 4090": {"units": 128, "clock": 2.52, "float": 128, "integer": 64, "special": 16},
}

ISSUED = 128  # instructions of threads per clock and multiprocessor, over all pipes: four warps of 32

# Instructions of what is not one: an IEEE division is a reciprocal and corrections, and so on. Rough.
DEAR = {
    "div": {"special": 1, "float": 8},
    "sqrt": {"special": 1, "float": 8},
    "rsqrt": {"special": 1, "float": 2},
    "exp": {"special": 1, "float": 6},
    "log": {"float": 20, "integer": 4},
    "log1p": {"float": 30, "integer": 4},
    "pow": {"special": 1, "float": 35, "integer": 6},
}
# What moves numbers between registers, or is known when the program is compiled.
FREE = {"broadcast_in_dim", "concatenate", "copy", "iota", "reshape", "slice", "squeeze", "stop_gradient"}


def instructions(num_arms: int) -> dict[str, int]:
    """Of one round of uniINF on Pareto losses, float32, by pipe; the pulls are counted in it too."""
    environment = jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
    shape = Job.of([(jb.UniINF(horizon=1000), environment)], 1, [1]).shape()
    count = {"float": 0, "integer": 0, "special": 0}
    for equation in programs_of(shape).play.equations:
        name, operand, result = equation.primitive.name, equation.invars[-1:], equation.outvars[0]
        if any(hasattr(value, "jaxpr") for value in equation.params.values()):
            raise NotImplementedError(f"a round with {name}: its body runs a number of times that is not known here")
        # A sum of n numbers is n - 1 operations.
        size = operand[0].aval.size - result.aval.size if name.startswith("reduce_") else result.aval.size
        if name in DEAR:
            for pipe, number in DEAR[name].items():
                count[pipe] += number * size
        elif name not in FREE:
            count["float" if jnp.issubdtype(operand[0].aval.dtype, jnp.floating) else "integer"] += size
    return count


def nanoseconds(count: dict[str, int], card: dict[str, float]) -> float:
    """Per seed-round, if the pipes overlap and one of them, or the issue of instructions, is busy all the time."""
    clocks = max(sum(count.values()) / ISSUED, *(number / card[pipe] for pipe, number in count.items()))
    return clocks / (card["units"] * card["clock"])


def table() -> str:
    arms = (2, 10, 30)
    counts = {num_arms: instructions(num_arms) for num_arms in arms}
    lines = [
        "| K | float | integer | special | " + " | ".join(f"{card}, ns" for card in CARDS) + " |",
        "|---:|---:|---:|---:|" + "---:|" * len(CARDS),
    ]
    for num_arms, count in counts.items():
        bounds = " | ".join(f"{nanoseconds(count, card):.3f}" for card in CARDS.values())
        lines.append(f"| {num_arms} | {count['float']} | {count['integer']} | {count['special']} | {bounds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    text = table()
    print(text)
    records.publish("roofline", text, PAGE)

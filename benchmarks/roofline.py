"""What a GPU could do, on paper: ``python -m benchmarks.roofline``. Nothing here is measured.

Counts the operations of one round of uniINF as the kernel of ``jaxbandit.kernels`` computes it, and divides by what
the pipes of a card issue at its boost clock. A bound from below on the time: it assumes that every pipe is kept busy
and that registers suffice. Writes the table of docs/gpu.md.
"""

import functools
import pathlib

import jax
import jax.numpy as jnp

import jaxbandit as jb
from benchmarks import records
from jaxbandit import draws, engine, kernels
from jaxbandit.game import as_arrays

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
FREE = {"broadcast_in_dim", "copy", "jit", "reshape", "squeeze", "stop_gradient"}


def instructions(num_arms: int) -> dict[str, int]:
    """Of one round of uniINF on Pareto losses, float32, by pipe."""
    policy = jb.UniINF(horizon=1000)
    world = jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
    spread = functools.partial(jax.tree.map, lambda leaf: jnp.broadcast_to(leaf[..., None], (*leaf.shape, 64)))
    parameters, program = (spread(as_arrays(policy)), spread(as_arrays(world))), engine.Program(stationary=True)
    carry = engine.begin(parameters[0], jnp.zeros((2, 64), jnp.uint32), num_arms, program)
    needed = draws.needed(*parameters, carry.state)
    play_one = functools.partial(engine._play_one, needed, program)
    count = {"float": 0, "integer": num_arms, "special": 0}  # pulls are counted beside the round
    jaxpr = kernels.round_jaxpr(play_one, needed, parameters, (carry.state, carry.sums, carry.failed))
    _count(jaxpr.jaxpr, count)
    return count


def _count(jaxpr, count: dict[str, int]) -> None:
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        for value in eqn.params.values():
            if hasattr(value, "jaxpr"):
                _count(value.jaxpr, count)
        if name in DEAR:
            for pipe, number in DEAR[name].items():
                count[pipe] += number
        elif name not in FREE:
            count["float" if jnp.issubdtype(eqn.invars[-1].aval.dtype, jnp.floating) else "integer"] += 1


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

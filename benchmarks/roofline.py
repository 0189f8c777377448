"""The speed that a GPU could reach, on paper: ``python -m benchmarks.roofline``. Nothing here is measured.

Counts the instructions of one round of uniINF in the machine code of three cards, and divides by what the pipes of a
card issue at its boost clock. It is a bound from below on the time: no warp waits for memory or for the result of a
division. Writes the table of docs/gpu.md; it needs ptxas and nvdisasm (``benchmarks.sass``).
"""

import dataclasses
import pathlib

import jaxbandit as jb
from benchmarks import records, sass
from jaxbandit.engine import Job
from jaxbandit.engine.gpu import Assembly
from jaxbandit.engine.native.processor import THREADS

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "gpu.md"
ARMS = (2, 10, 20, 30, 50)
WARP, SCHEDULERS = 32, 4  # threads of a warp; schedulers of a multiprocessor, each of which issues for its own warps
REGISTERS = 65_536  # of a multiprocessor; a warp gets a multiple of 256


@dataclasses.dataclass(frozen=True)
class Card:
    """A card, from the makers' data sheets and the throughput table of the CUDA C++ programming guide.

    Attributes:
      architecture: The name by which ptxas knows it.
      units: Number of multiprocessors.
      clock: Boost clock in GHz.
      warps: Most warps of a multiprocessor.
      rates: Instructions of threads per clock and multiprocessor, by pipe.
    """

    architecture: str
    units: int
    clock: float
    warps: int
    rates: dict[str, int]

    def games(self, registers: int) -> int:
        """Returns the games in flight, a thread each, if a thread has so many registers."""
        size = THREADS // WARP  # warps of a thread block
        fitting = REGISTERS // (-(-registers // 8) * 8 * WARP)
        return min(fitting // size, self.warps // size) * THREADS * self.units

    def nanoseconds(self, cost: sass.Cost) -> float:
        """Returns the bound per seed-round: of a pipe, of the issue of instructions, or of the warps' own stalls."""
        warps = self.games(cost.registers) // (self.units * SCHEDULERS * WARP)  # of a scheduler
        issued = warps * len(cost.round)
        piped = [warps * cost.pipes[pipe] * WARP * SCHEDULERS / rate for pipe, rate in self.rates.items()]
        clocks = max(issued, cost.stall, *piped)
        return clocks / (self.clock * self.games(cost.registers))


CARDS = {
    "T4": Card("sm_75", 40, 1.59, 32, {"float": 64, "integer": 64, "special": 16}),
    "A100": Card("sm_80", 108, 1.41, 64, {"float": 64, "integer": 64, "special": 16}),
    "H100 SXM": Card("sm_90", 132, 1.83, 64, {"float": 128, "integer": 64, "special": 16}),
}


def ptx(num_arms: int) -> str:
    """Returns the PTX of uniINF on Pareto losses, float32."""
    environment = jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
    return Assembly(Job.of([(jb.UniINF(horizon=1000), environment)], 1, [1]).shape()).ptx


def table() -> str:
    head = "| K | registers | spilled bytes | instructions | float | integer | special | stalls |"
    lines = [
        head + "".join(f" {name}: games | {name}: ns |" for name in CARDS),
        "|" + "---:|" * (head.count("|") - 1 + 2 * len(CARDS)),
    ]
    for num_arms in ARMS:
        text = ptx(num_arms)
        costs = {name: sass.cost(text, card.architecture) for name, card in CARDS.items()}
        shown = costs["A100"]
        counts = [shown.registers, shown.spilled, len(shown.round)]
        counts += [*(shown.pipes[pipe] for pipe in CARDS["A100"].rates), shown.stall]
        cells = [str(num_arms), *(f"{number:,}" for number in counts)]
        for name, card in CARDS.items():
            cells += [f"{card.games(costs[name].registers):,}", f"{card.nanoseconds(costs[name]):.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if reason := sass.missing():
        raise SystemExit(reason)
    text = table()
    print(text)
    records.publish("roofline", text, PAGE)

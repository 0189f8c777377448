"""A short check that no factor of two was lost: ``python -m benchmarks.guard``.

The check plays uniINF, K = 10, and the plain ``jit(vmap(scan))`` of ``competitors`` in turns. The ratio of their
processor times is compared with the usual one of this kind of machine in ``results.jsonl``. If nothing is kept there,
it is compared with a ratio that every machine should reach. If the measured ratio is less than half of that, the
command prints the remedy and its exit status is 1. It takes processor time, and the least of several repeats, because
load on a shared machine stretches the wall times of the two by different factors. That machine code plays on all cores
is checked separately. ``--keep`` adds a line to ``results.jsonl``.
"""

import argparse
import sys
import time

import jaxbandit as jb
from benchmarks import competitors, records, speed
from jaxbandit.engine import usable_cores

EXPECTED = 6.0  # plain vmap(scan) keeps one core busy, we keep two: half of the bar of benchmarks.speed
MARGIN = 2.0  # a factor of this is noticed; less is noise on a shared machine
HORIZON = 1000
OURS, PLAIN = "jaxbandit", "plain vmap(scan)"

Contestants = dict[str, tuple[speed.Run, int]]  # what to time, and how many seed-rounds it plays


def contestants() -> Contestants:
    """Returns both contestants, compiled."""
    plain = competitors.plain_vmap_scan(speed.MEANS, speed.TAIL_INDEX, HORIZON, 512, "float32", usable_cores())
    return {OURS: (speed.jaxbandit_run(HORIZON, 4096, "float32"), 4096 * HORIZON), PLAIN: (plain, 512 * HORIZON)}


def ratio(made: Contestants, repeats: int) -> float:
    """Returns the factor by which the package takes less processor time."""
    least = dict.fromkeys(made, float("inf"))
    for _ in range(repeats):
        for name, (run, seed_rounds) in made.items():
            began = time.process_time()
            run()
            least[name] = min(least[name], (time.process_time() - began) / seed_rounds)
    return least[PLAIN] / least[OURS]


def played_by() -> str:
    """Returns the way and the cores that play, from the provenance of a dataset."""
    environment = jb.Pareto(means=speed.MEANS, tail_index=speed.TAIL_INDEX)
    return jb.simulate(jb.UniINF(horizon=2), environment, horizon=2, num_seeds=1).attrs["device"]


def verdict(measured: float, usual: float | None, device: str, cores: int) -> str | None:
    """Returns the problem as a sentence; None if there is none."""
    if not device.startswith("native: "):
        return f"the games are not played by machine code but by the {device}; `jaxbandit doctor` says why"
    if not device.startswith(f"native: {cores} x "):
        return f"the games are played by {device} of {cores}, so cores are idle; see jaxbandit/engine/runner.py"
    expected = EXPECTED if usual is None else usual
    if measured * MARGIN >= expected:
        return None
    known = "the least expected" if usual is None else "usual on this kind of machine"
    return (
        f"jaxbandit takes 1/{measured:.1f} of the processor time of plain vmap(scan), 1/{expected:.1f} is {known}: "
        f"a factor of {expected / measured:.1f} was lost. `python -m benchmarks.speed` has the whole table, "
        "docs/engine.md says how a round becomes machine code; if the loss is meant, record the new ratio with --keep"
    )


def main(arguments: list[str] | None = None, made: Contestants | None = None) -> int:
    """Runs the check and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="add a line to results.jsonl")
    args = parser.parse_args(arguments)
    measured = ratio(contestants() if made is None else made, args.repeats)
    wrong = verdict(measured, records.usual("guard", "ratio"), played_by(), usable_cores())
    if args.keep:
        records.keep("guard", {"ratio": round(measured, 2)})
    print(wrong or f"jaxbandit takes 1/{measured:.1f} of the processor time of plain vmap(scan)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

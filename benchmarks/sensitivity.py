"""The cost of a sensitivity analysis: ``python -m benchmarks.sensitivity``.

Plays uniINF, K = 10, Pareto losses of index 1.6. First the local gradient of two parameters beside the plain
simulation of as many seeds, interleaved, as a ratio of medians: four coupled lanes per seed make it 4 and a little
(``--limit 4.5``); the check of the step's bias on one seed in sixteen is included. Then Sobol' indices of two
parameters from 1024 evaluations of 64 seeds, compilation included. Exit code 1 if a limit is broken.
"""

import argparse
import statistics
import time

import jaxbandit as jb
from jaxbandit import sensitivity
from jaxbandit.engine import usable_cores

ENVIRONMENT = jb.Pareto(means=[0.5] + [1.0] * 9, tail_index=1.6)
PARAMETERS = ["initial_scale", "threshold_constant"]
BOX = {"initial_scale": [1.0, 16.0], "threshold_constant": [0.0625, 1.0]}
NUM_POINTS = 256  # times (two parameters + 2): 1024 evaluations


def seconds(run) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def local_ratio(horizon: int, num_seeds: int, repeats: int) -> tuple[float, float]:
    """Returns the median seconds of the plain simulation, and those of the gradient as a multiple of them."""
    policy = jb.UniINF(horizon=horizon)
    common = {"horizon": horizon, "num_seeds": num_seeds}
    contestants = {
        "plain": lambda: jb.simulate(policy, ENVIRONMENT, record=[horizon], **common),
        "gradient": lambda: sensitivity.local(policy, ENVIRONMENT, PARAMETERS, **common),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()  # compiles
    for _ in range(repeats):
        for name, run in contestants.items():
            times[name].append(seconds(run))
    plain = statistics.median(times["plain"])
    return plain, statistics.median(times["gradient"]) / plain


def sobol_seconds(horizon: int, num_seeds: int) -> float:
    policy = jb.UniINF(horizon=horizon)
    return seconds(
        lambda: sensitivity.sobol(policy, ENVIRONMENT, BOX, horizon=horizon, num_seeds=num_seeds, num_points=NUM_POINTS)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=4096, help="of the local gradient")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sobol-seeds", type=int, default=64)
    parser.add_argument("--limit", type=float, default=4.5, help="of the ratio")
    parser.add_argument("--sobol-limit", type=float, default=60.0, help="seconds")
    args = parser.parse_args()
    print(f"{usable_cores()} cores, K = {ENVIRONMENT.num_arms}, T = {args.horizon:,}\n")
    plain, ratio = local_ratio(args.horizon, args.seeds, args.repeats)
    print(
        f"local gradient of two parameters, {args.seeds:,} seeds: {ratio:.2f} times the plain simulation "
        f"({plain:.2f} s), median of {args.repeats}, interleaved; limit {args.limit}"
    )
    took = sobol_seconds(args.horizon, args.sobol_seeds)
    count = NUM_POINTS * (len(BOX) + 2)
    print(f"Sobol' indices, {count} evaluations x {args.sobol_seeds} seeds: {took:.1f} s; limit {args.sobol_limit:g} s")
    raise SystemExit(0 if ratio <= args.limit and took <= args.sobol_limit else 1)


if __name__ == "__main__":
    main()

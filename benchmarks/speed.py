"""Time per seed-round beside the same game written other ways, in one interleaved run.

``python -m benchmarks.speed`` plays uniINF, K = 10, Pareto losses of index 1.6, and prints nanoseconds
per seed-round, the ratio to jaxbandit in float32, and the mean regret, so that a fast wrong
kernel is seen. Compilation is not timed. Ratios are of medians: this kind of machine is noisy.
"""

import argparse
import statistics
import time

import numpy as np

import jaxbandit as jb
from benchmarks import competitors
from jaxbandit.xla import usable_cores

MEANS, TAIL_INDEX = [0.5] + [1.0] * 9, 1.6


def jaxbandit_run(horizon: int, num_seeds: int, dtype: str):
    def run() -> np.ndarray:
        policy, world = jb.UniINF(horizon=horizon), jb.Pareto(means=MEANS, tail_index=TAIL_INDEX)
        ds = jb.simulate(policy, world, horizon=horizon, num_seeds=num_seeds, record=16, dtype=dtype)
        return ds.regret.values[:, -1]

    run()
    return run


def contestants(horizon: int, num_seeds: int, slow_share: int) -> dict:
    """Name -> (function to time, its seed-rounds); the slow ones play fewer seeds."""
    cores, few = usable_cores(), max(num_seeds // slow_share, 64)
    made = {
        "jaxbandit float32": (jaxbandit_run(horizon, num_seeds, "float32"), num_seeds),
        "jaxbandit float64": (jaxbandit_run(horizon, num_seeds, "float64"), num_seeds),
    }
    for name, make, dtype, seeds in (
        ("C++ float32", competitors.cpp, "float32", num_seeds),
        ("C++ float64", competitors.cpp, "float64", num_seeds),
        ("Numba prange", competitors.numba_prange, "float64", few),
        ("NumPy over seeds", competitors.numpy_seeds, "float32", few),
        ("plain vmap(scan)", competitors.plain_vmap_scan, "float32", few),
    ):
        try:
            made[name] = (make(MEANS, TAIL_INDEX, horizon, seeds, dtype, cores), seeds)
        except (ImportError, RuntimeError) as missing:
            print(f"{name}: left out, {missing}")
    return {name: (run, seeds * horizon) for name, (run, seeds) in made.items()}


def measure(horizon: int, num_seeds: int, repeats: int, slow_share: int) -> dict[str, tuple[float, float]]:
    """Median nanoseconds per seed-round and mean regret of every contestant."""
    made = contestants(horizon, num_seeds, slow_share)
    times: dict[str, list[float]] = {name: [] for name in made}
    regret = {}
    for _ in range(repeats):
        for name, (run, seed_rounds) in made.items():
            began = time.perf_counter()
            regret[name] = run().mean()
            times[name].append((time.perf_counter() - began) / seed_rounds * 1e9)
    return {name: (statistics.median(times[name]), float(regret[name])) for name in made}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slow-share", type=int, default=8, help="the slow contestants play seeds / this")
    args = parser.parse_args()
    measured = measure(args.horizon, args.seeds, args.repeats, args.slow_share)
    base = measured["jaxbandit float32"][0]
    print(f"{usable_cores()} cores, T = {args.horizon:,}, N = {args.seeds:,}, median of {args.repeats}, interleaved\n")
    print("| | ns per seed-round | ratio to jaxbandit float32 | mean regret |\n|---|---:|---:|---:|")
    for name, (nanoseconds, regret) in measured.items():
        print(f"| {name} | {nanoseconds:.1f} | {nanoseconds / base:.2f} | {regret:.1f} |")


if __name__ == "__main__":
    main()

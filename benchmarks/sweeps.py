"""What a sweep costs over one point with as many games: ``python -m benchmarks.sweeps``.

Both are studies in a directory of their own, files and all. Programs are compiled before, and rounds alternate.
"""

import argparse
import statistics
import tempfile
import time

import numpy as np

import jaxbandit as jb
from jaxbandit.campaign import Report

POINTS, SEEDS = 100, 64
LIMIT = 1.25  # what a sweep may cost over one point


def study(points: int, seeds: int, horizon: int) -> jb.Study:
    return jb.Study(
        horizon=horizon,
        num_seeds=seeds,
        policies=[{"name": "uniinf", "initial_scale": np.geomspace(1, 64, points).tolist() if points > 1 else 4.0}],
        environments=[{"name": "pareto", "means": [0.5] + [1.0] * 9, "tail_index": 1.6}],
    )


def timed(plan: jb.Study) -> tuple[float, Report]:
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        jb.run(plan, directory, report=report)
        return time.perf_counter() - began, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    plans = {
        f"{POINTS} points x {SEEDS} seeds": study(POINTS, SEEDS, options.horizon),
        f"1 point x {POINTS * SEEDS} seeds": study(1, POINTS * SEEDS, options.horizon),
    }
    for plan in plans.values():
        timed(plan.changed(horizon=100))
    seconds: dict[str, list[float]] = {name: [] for name in plans}
    for _ in range(options.repeats):
        for name, plan in plans.items():
            taken, report = timed(plan)
            seconds[name].append(taken)
            print(f"{name:>24}  {taken:7.2f} s  (played {report.timing.run_seconds:.2f} s, {report.played} cells)")
    sweep, point = (statistics.median(values) for values in seconds.values())
    print(f"ratio of the medians: {sweep / point:.3f} (limit {LIMIT})")


if __name__ == "__main__":
    main()

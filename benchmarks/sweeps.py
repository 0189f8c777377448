"""The cost of a sweep over one point with as many games: ``python -m benchmarks.sweeps``.

Both are studies in a directory of their own, files and all. Programs are compiled before, and rounds alternate.
``--all`` does it for every policy, each with a horizon that takes some seconds: 100 values of the first field it has
that can be swept, or, if it has none, of the environment's tail index. ``--keep`` adds a line to ``results.jsonl`` and,
with ``--all``, puts the table into docs/speed.md.
"""

import argparse
import math
import statistics
import tempfile
import time
import warnings
from typing import Any

import numpy as np

import jaxbandit as jb
from benchmarks import records
from jaxbandit.runs.campaign import Report
from jaxbandit.types import is_static, public_fields

POINTS, SEEDS = 100, 64
LIMIT = 1.25  # the most that a sweep may cost over one point
MEANS, TAIL_INDEX = [0.5] + [1.0] * 9, 1.6
SECONDS = 3.0  # of one study with --all, about


def study(policy: dict[str, Any], environment: dict[str, Any], seeds: int, horizon: int) -> jb.Study:
    return jb.Study(
        horizon=horizon,
        num_seeds=seeds,
        policies=[policy],
        environments=[{"name": "pareto", "means": MEANS, "tail_index": TAIL_INDEX} | environment],
    )


def plans(
    policy: dict[str, Any], swept: str, values: list[float], horizon: int, seeds: int = SEEDS
) -> dict[str, jb.Study]:
    """Returns the sweep, and one point of it with as many games."""
    where = "environment" if swept not in public_fields(jb.POLICIES[policy["name"]]) else "policy"

    def made(value: Any, seeds: int) -> jb.Study:
        sides = {"policy": {}, "environment": {}}
        sides[where] = {swept: value}
        return study(policy | sides["policy"], sides["environment"], seeds, horizon)

    return {
        f"{len(values)} points x {seeds} seeds": made(values, seeds),
        f"1 point x {len(values) * seeds} seeds": made(values[len(values) // 2], len(values) * seeds),
    }


def examples() -> dict[str, tuple[dict[str, Any], str, list[float]]]:
    """Returns every policy as an entry of a study, with the field to sweep and its values."""
    environment = jb.Pareto(means=MEANS, tail_index=TAIL_INDEX)
    known = {
        "moment_order": environment.moment_order,
        "moment_bound": environment.moment(environment.moment_order),
        "mean_bound": 1.0,
        "delay": 10,
        "policy": {"name": "uniinf"},
    }
    made = {}
    for name, cls in jb.POLICIES.items():
        fields = public_fields(cls)
        given = {field: value for field, value in known.items() if field in fields}
        estimators = fields["estimator"].metadata["choices"] if "estimator" in fields else [None]
        for estimator in estimators:
            entry = {"name": name, **given} | ({} if estimator is None else {"estimator": estimator})
            if estimator == "catoni":
                entry["moment_order"] = 2.0
            swept, values = _swept(fields, entry)
            made[name if estimator is None else f"{name}, {estimator}"] = (entry, swept, values)
    return made


def _swept(fields: dict[str, Any], given: dict[str, Any]) -> tuple[str, list[float]]:
    for name, spec in fields.items():
        value = given.get(name, spec.default)
        sweepable = isinstance(value, float) and 0 < value < math.inf and not is_static(spec)
        if sweepable and not spec.metadata["whole"] and name != "moment_order":
            return name, np.linspace(0.8 * value, value, POINTS).tolist()
    if "horizon" in fields:
        return "horizon", np.linspace(1e4, 1e5, POINTS).tolist()
    return "tail_index", np.linspace(1.3, 1.9, POINTS).tolist()


def timed(plan: jb.Study) -> tuple[float, Report]:
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        jb.run(plan, directory, report=report)
        return time.perf_counter() - began, report


def ratio(made: dict[str, jb.Study], repeats: int) -> float:
    """Returns the ratio of the medians, the sweep's over the point's."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(repeats):
        for name, plan in made.items():
            taken, report = timed(plan)
            seconds[name].append(taken)
            print(f"{name:>24}  {taken:7.2f} s  (played {report.timing.run_seconds:.2f} s, {report.played} cells)")
    sweep, point = (statistics.median(values) for values in seconds.values())
    return sweep / point


def warmed(made: dict[str, jb.Study]) -> float:
    """Compiles both and returns the seconds that a round of the point takes, without the cost of a call."""
    for plan in made.values():
        timed(plan.changed(horizon=100))
    short, long = (timed(list(made.values())[-1].changed(horizon=n))[1].timing.run_seconds for n in (100, 600))
    return max(long - short, 0.1 * long) / 500


def every_policy(names: list[str], repeats: int) -> dict[str, tuple[str, float]]:
    """Measures every policy; returns the swept field and the ratio by name."""
    found, known = {}, examples()
    unknown = set(names) - set(known)
    if unknown:
        raise SystemExit(f"no policy {sorted(unknown)[0]!r}; there are {', '.join(map(repr, known))}")
    for name in names or known:
        policy, swept, values = known[name]
        each = warmed(plans(policy, swept, values, 100))
        horizon = int(np.clip(SECONDS / each, 200, 100_000))
        found[name] = swept, ratio(plans(policy, swept, values, horizon), repeats)
        print(f"{name}: {found[name][1]:.3f} (limit {LIMIT})", flush=True)
    return found


def table(found: dict[str, tuple[str, float]]) -> str:
    lines = ["| policy | swept | 100 points over one | |", "|---|---|---:|---|"]
    for name, (swept, times) in found.items():
        verdict = "reached" if times <= LIMIT else "missed"
        lines.append(f"| {name} | `{swept}` | {times:.2f} | <= {LIMIT}: {verdict} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=10_000, help="without --all")
    parser.add_argument("--points", type=int, default=POINTS, help="without --all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of a point, without --all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all", nargs="*", metavar="POLICY", help="every policy, or those that are named")
    parser.add_argument(
        "--keep", action="store_true", help="add to results.jsonl and docs/speed.md; with --all, of every policy"
    )
    args = parser.parse_args()
    if args.all is None:
        values = np.geomspace(1, 64, args.points).tolist()
        made = plans({"name": "uniinf"}, "initial_scale", values, args.horizon, args.seeds)
        warmed(made)
        times = ratio(made, args.repeats)
        print(f"ratio of the medians: {times:.3f} (limit {LIMIT})")
        if args.keep:
            records.keep("sweep", {"policy": "uniinf", "points": args.points, "seeds": args.seeds, "ratio": times})
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Catoni is given an order this environment does not have
        found = every_policy(args.all, args.repeats)
    text = f"{records.heading(f'{SEEDS} seeds a point, median of {args.repeats}, alternating.')}\n{table(found)}"
    print(text)
    if args.keep and not args.all:
        records.keep("sweeps", {"ratios": {name: times for name, (_, times) in found.items()}})
        records.publish("sweeps", text)


if __name__ == "__main__":
    main()

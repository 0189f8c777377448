"""Time per seed-round beside the same game written other ways, in one interleaved run.

``python -m benchmarks.speed`` plays uniINF, K = 10, Pareto losses of index 1.6, and prints nanoseconds
per seed-round, the ratio to jaxbandit in float32, and the mean regret, so that a fast wrong
kernel is seen; then the ratios beside their bars. C++ is run against jaxbandit for 10^5 rounds, and the slower others
against jaxbandit for a tenth of them. Compilation is not timed. Ratios are of medians: this kind of
machine is noisy. ``--keep`` adds a line to ``results.jsonl`` and puts the tables into docs/speed.md.
"""

import argparse
import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import jaxbandit as jb
from benchmarks import competitors, records
from jaxbandit.engine import usable_cores

MEANS, TAIL_INDEX = [0.5] + [1.0] * 9, 1.6
OURS = "jaxbandit float32"
SCAN = "jaxbandit float32, way scan"
REGRETS_DIFFER = 5.0  # standard errors: a false alarm in 1.7 million

# Numerator, denominator, bar (none: C++ with another solver, shown beside), whether the ratio must stay below it.
BARS = (
    (OURS, "C++ float32, Halley", 1.2, True),
    ("jaxbandit float64", "C++ float64, Halley", 1.25, True),
    (OURS, "C++ float32", None, True),
    ("jaxbandit float64", "C++ float64", None, True),
    ("Numba prange", OURS, 4.0, False),
    ("NumPy over seeds", OURS, 8.0, False),
    ("plain vmap(scan)", OURS, 12.0, False),
)

Run = Callable[[], np.ndarray]  # plays once; the regret of every seed [N]


class Figure(NamedTuple):
    """The times and the regret of one contestant."""

    nanoseconds: float  # per seed-round, the median
    spread: float  # (largest - smallest) / median of the repeats
    regret: float  # the mean over seeds
    stderr: float  # of that mean


def jaxbandit_run(horizon: int, num_seeds: int, dtype: str, way: str | None = None) -> Run:
    def run() -> np.ndarray:
        policy, environment = jb.UniINF(horizon=horizon), jb.Pareto(means=MEANS, tail_index=TAIL_INDEX)
        options = {"horizon": horizon, "num_seeds": num_seeds, "record": 16, "dtype": dtype}
        ds = jb.simulate(policy, environment, **options, engine=jb.Engine(way=way))
        return ds.regret.values[:, -1]

    run()
    return run


def limits(horizon: int, num_seeds: int) -> dict[str, Run]:
    """Returns the functions to time, by name: jaxbandit, and C++ written by hand, which shows the hardware's limit."""
    ours = {f"jaxbandit {dtype}": jaxbandit_run(horizon, num_seeds, dtype) for dtype in ("float32", "float64")}
    halley = functools.partial(competitors.cpp, halley=True)
    makers = {
        "C++ float32": (competitors.cpp, "float32"),
        "C++ float64": (competitors.cpp, "float64"),
        "C++ float32, Halley": (halley, "float32"),
        "C++ float64, Halley": (halley, "float64"),
    }
    return ours | _made(makers, horizon, num_seeds)


def others(horizon: int, num_seeds: int) -> dict[str, Run]:
    """Returns the functions to time, by name: jaxbandit, and the usual ways to write the game in Python."""
    makers = {
        "Numba prange": (competitors.numba_prange, "float32"),
        "NumPy over seeds": (competitors.numpy_seeds, "float32"),
        "plain vmap(scan)": (competitors.plain_vmap_scan, "float32"),
    }
    return by_way(horizon, num_seeds) | _made(makers, horizon, num_seeds)


def by_way(horizon: int, num_seeds: int) -> dict[str, Run]:
    """Returns the functions to time, by name: jaxbandit's native way and its scan."""
    return {name: jaxbandit_run(horizon, num_seeds, "float32", way) for name, way in ((OURS, None), (SCAN, "scan"))}


def _made(makers: dict[str, tuple[Callable[..., Run], str]], horizon: int, num_seeds: int) -> dict[str, Run]:
    made = {}
    for name, (make, dtype) in makers.items():
        try:
            made[name] = make(MEANS, TAIL_INDEX, horizon, num_seeds, dtype, usable_cores())
        except (ImportError, RuntimeError) as missing:
            print(f"{name}: left out, {missing}")
    return made


def interleaved(made: dict[str, Run], seed_rounds: int, repeats: int) -> dict[str, Figure]:
    """Times every contestant in turn, ``repeats`` times over."""
    times: dict[str, list[float]] = {name: [] for name in made}
    regrets: dict[str, np.ndarray] = {}
    for _ in range(repeats):
        for name, run in made.items():
            began = time.perf_counter()
            regrets[name] = run()
            times[name].append((time.perf_counter() - began) / seed_rounds * 1e9)
    return {
        name: Figure(
            nanoseconds=statistics.median(times[name]),
            spread=(max(times[name]) - min(times[name])) / statistics.median(times[name]),
            regret=float(regret.mean()),
            stderr=float(regret.std(ddof=1) / math.sqrt(regret.size)) if regret.size > 1 else math.inf,
        )
        for name, regret in regrets.items()
    }


def ratios(measured: dict[str, Figure]) -> dict[str, float]:
    """Returns the ratios of ``BARS`` for the contestants that took part."""
    return {
        f"{above} / {below}": measured[above].nanoseconds / measured[below].nanoseconds
        for above, below, _, _ in BARS
        if above in measured and below in measured
    }


def table(measured: dict[str, Figure]) -> str:
    """Returns the table of times, ratios and regrets; a regret that differs from jaxbandit's is marked."""
    base = measured[OURS]
    lines = [
        "| | ns per seed-round | spread | ratio to jaxbandit float32 | mean regret |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, figure in measured.items():
        apart = abs(figure.regret - base.regret) > REGRETS_DIFFER * math.hypot(figure.stderr, base.stderr)
        regret = f"{figure.regret:.1f} ± {figure.stderr:.1f}" + (" **differs**" if apart else "")
        ratio = figure.nanoseconds / base.nanoseconds
        lines.append(f"| {name} | {figure.nanoseconds:.1f} | {figure.spread:.0%} | {ratio:.2f} | {regret} |")
    return "\n".join(lines)


def bars(found: dict[str, float]) -> str:
    """Returns the table of the ratios beside the values that they must reach."""
    lines = ["| ratio | measured | must reach | |", "|---|---:|---:|---|"]
    for above, below, bar, is_limit in BARS:
        name = f"{above} / {below}"
        if name not in found:
            lines.append(f"| {name} | not measured | | |")
            continue
        if bar is None:
            lines.append(f"| {name} | {found[name]:.2f} | another solver, no bar | |")
            continue
        reached = found[name] <= bar if is_limit else found[name] >= bar
        sign = "<=" if is_limit else ">="
        lines.append(f"| {name} | {found[name]:.2f} | {sign} {bar:g} | {'reached' if reached else 'missed'} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=100_000, help="rounds against C++; a tenth against the others")
    parser.add_argument("--seeds", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="add to results.jsonl and docs/speed.md")
    parser.add_argument(
        "--scan", action="store_true", help="only jaxbandit's scan beside machine code; nothing is kept"
    )
    args = parser.parse_args()
    texts, found, figures = [], {}, {}
    if args.scan:
        horizon = max(args.horizon // 10, 1)
        measured = interleaved(by_way(horizon, args.seeds), args.seeds * horizon, args.repeats)
        print(records.heading(f"T = {horizon:,}, N = {args.seeds:,}, median of {args.repeats}, interleaved."))
        print(table(measured))
        return
    for field, horizon in ((limits, args.horizon), (others, max(args.horizon // 10, 1))):
        measured = interleaved(field(horizon, args.seeds), args.seeds * horizon, args.repeats)
        game = f"T = {horizon:,}, N = {args.seeds:,}, median of {args.repeats}, interleaved."
        texts += [records.heading(game), table(measured), ""]
        found |= ratios(measured)
        figures[field.__name__] = {name: figure._asdict() for name, figure in measured.items()}
    text = "\n".join([*texts, bars(found)])
    print(text)
    if args.keep:
        records.keep("speed", {"horizon": args.horizon, "num_seeds": args.seeds, "ratios": found, "figures": figures})
        records.publish("speed", text)


if __name__ == "__main__":
    main()

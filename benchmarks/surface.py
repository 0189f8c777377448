"""Speed away from the one game of ``speed``: ``python -m benchmarks.surface [arms] [growth] [first]``.

``arms`` times uniINF for K from 2 to 1000, per seed-round and arm. ``growth`` fits time = a + b N T over rounds and
seeds, measures peak memory, and draws both (docs/img/growth.png). ``first`` measures how soon the first result is
there: from the shell to the first round, compiling one policy, importing. Without arguments all three.
``--keep`` adds lines to ``results.jsonl``, puts the tables into docs/speed.md and draws the picture; ``--quick``
shortens everything to see that it works.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

import jaxbandit as jb
from benchmarks import records
from benchmarks.accuracy import peak_memory
from jaxbandit.engine import Job

ARMS = (2, 10, 32, 100, 1000)
JUMP = 1.4  # the factor by which a seed-round and arm may cost more at the next larger K
SECONDS = 1.0  # of one run, about

ROUNDS, SEEDS = (1_000, 10_000, 100_000, 1_000_000), (1_000, 4_000, 16_000, 100_000)
FLAT, FIXED_MS, MEMORY = 1.2, 15.0, 1.05  # largest over smallest b; a; largest over smallest peak

# Seconds beyond `import jax`, in all, of the processor; times that of jax; times simulate; seconds.
FIRST_ROUND, QUICKSTART, COMPILE, IMPORT, PLAY, SMALL = 0.5, 12.0, 1.5, 1.5, 1.3, 3.0


def environment(num_arms: int) -> jb.Pareto:
    return jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)


def seconds(num_arms: int, horizon: int, num_seeds: int, record: int = 16) -> float:
    """Returns the seconds of one run from the call to the dataset; its program was compiled before."""
    began = time.perf_counter()
    jb.simulate(jb.UniINF(horizon=horizon), environment(num_arms), horizon=horizon, num_seeds=num_seeds, record=record)
    return time.perf_counter() - began


def seats(policy: Any, environment: Any, most: int = 1024) -> int:
    """Returns the number of seeds that fills one block of every core, at most ``most`` on each."""
    engine = jb.Engine()
    games, threads = engine.games(Job.of([(policy, environment)], 1, [1]).shape())
    return threads * min(most, engine.lanes(games, threads, most * threads))


def seeds(num_arms: int) -> int:
    """Returns the number of seeds with which uniINF is timed."""
    return seats(jb.UniINF(horizon=2), environment(num_arms))


def judged(reached: bool) -> str:
    return "reached" if reached else "missed"


def arms(repeats: int, quick: bool) -> tuple[str, dict]:
    """Measures nanoseconds per seed-round and arm, and their change from one K to the next."""
    rounds = {}
    for num_arms in ARMS:
        seconds(num_arms, 64, seeds(num_arms))  # compiles
        taken = seconds(num_arms, 256, seeds(num_arms))
        rounds[num_arms] = 256 if quick else max(256, int(256 * SECONDS / taken))
    times: dict[int, list[float]] = {num_arms: [] for num_arms in ARMS}
    for _ in range(repeats):
        for num_arms, horizon in rounds.items():
            games = seeds(num_arms)
            times[num_arms].append(seconds(num_arms, horizon, games, record=1) / (games * horizon * num_arms) * 1e9)
    each = {num_arms: statistics.median(taken) for num_arms, taken in times.items()}
    lines = [
        "| K | ns per seed-round | per arm | over the K before | |",
        "|---:|---:|---:|---:|---|",
    ]
    before = None
    for num_arms, cost in each.items():
        ratio = "" if before is None else f"{cost / before:.2f}"
        verdict = "" if before is None else f"<= {JUMP:g}: {judged(cost / before <= JUMP)}"
        lines.append(f"| {num_arms} | {cost * num_arms:.1f} | {cost:.2f} | {ratio} | {verdict} |")
        before = cost
    return "\n".join(lines), {"ns_per_arm": each}


def fit(work: np.ndarray, taken: np.ndarray) -> tuple[float, float]:
    """Fits taken = a + b work with a >= 0, by least squares of relative errors, because the sizes span decades."""
    design = np.stack([1 / taken, work / taken], axis=1)
    (a, b), *_ = np.linalg.lstsq(design, np.ones_like(taken), rcond=None)
    if a < 0:
        share = work / taken
        a, b = 0.0, share.sum() / (share @ share)
    return float(a), float(b)


def growth(repeats: int, quick: bool) -> tuple[str, dict]:
    """Measures time over rounds and over seeds, with the fit, and peak memory over rounds."""
    rounds, counts = (ROUNDS[:2], SEEDS[:2]) if quick else (ROUNDS, SEEDS)
    sizes = {"T": [(horizon, seeds(10)) for horizon in rounds], "N": [(1_000, count) for count in counts]}
    seconds(10, 64, 64)
    runs: dict[str, list[list[float]]] = {name: [[] for _ in points] for name, points in sizes.items()}
    for repeat in range(repeats):  # every size in turn: a machine has its better and its worse minutes
        for name, points in sizes.items():
            for point, taken in zip(points, runs[name], strict=True):
                if repeat == 0 or point[0] * point[1] < 1e9:  # the longest runs average by themselves
                    taken.append(seconds(10, *point))
    times = {name: [statistics.median(taken) for taken in all_] for name, all_ in runs.items()}
    work = {name: np.array([horizon * count for horizon, count in points], float) for name, points in sizes.items()}
    peaks = {horizon: peak_memory(horizon) for horizon in (rounds[0], rounds[-1])}
    lines = [
        "| over | a, ms | b, ns per seed-round | largest b over smallest | |",
        "|---|---:|---:|---:|---|",
    ]
    values: dict = {"peak_mib": peaks, "sizes": sizes, "seconds": times}
    for name, taken in times.items():
        a, b = fit(work[name], np.asarray(taken))
        local = (np.asarray(taken) - a) / work[name]
        flat = float(local.max() / local.min())
        verdict = f"a < {FIXED_MS:g}: {judged(a * 1e3 < FIXED_MS)}, b within {FLAT - 1:.0%}: {judged(flat <= FLAT)}"
        points = sizes[name]
        span = f"{name} = {points[0][name == 'N']:,} to {points[-1][name == 'N']:,}"
        lines.append(f"| {span} | {a * 1e3:.1f} | {b * 1e9:.1f} | {flat:.2f} | {verdict} |")
        values[name] = {"a": a, "b": b, "flat": flat}
    low, high = peaks.values()
    lines += [
        "",
        f"Peak memory: {low:.0f} MiB at T = {rounds[0]:,}, {high:.0f} MiB at T = {rounds[-1]:,}: "
        f"{high / low:.3f} times (<= {MEMORY:g}: {judged(high / low <= MEMORY)}).",
    ]
    return "\n".join(lines), values


def draw(values: dict) -> None:
    """Draws time over rounds and over seeds with the fitted lines, and peak memory."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(9, 2.8), constrained_layout=True)
    for axis, name, label in zip(axes[:2], ("T", "N"), ("rounds T", "seeds N"), strict=True):
        points = values["sizes"][name]
        across = [point[name == "N"] for point in points]
        work = np.array([horizon * count for horizon, count in points], float)
        axis.loglog(across, values["seconds"][name], "o", color="#0072b2")
        axis.loglog(across, values[name]["a"] + values[name]["b"] * work, "-", color="#d55e00")
        axis.set(xlabel=label, ylabel="seconds", title=f"a + b N T, b = {values[name]['b'] * 1e9:.1f} ns")
    peaks = values["peak_mib"]
    axes[2].semilogx(list(peaks), list(peaks.values()), "o-", color="#0072b2")
    axes[2].set(xlabel="rounds T", ylabel="peak MiB", ylim=(0, 1.2 * max(peaks.values())), title="peak memory")
    figure.savefig(records.IMAGES / "growth.png", dpi=80)


# Runs the command line in this process and says when the first call that plays is back.
_FIRST = """
import os, sys, time
from jaxbandit.engine.native import games
advance = games.Block.advance
def first(*args):
    advance(*args)
    os.write(2, f"FIRST {time.time()}\\n".encode())  # at once: there are as many threads as cores
    os._exit(0)
games.Block.advance = first
from jaxbandit.cli import main
sys.argv = ["jaxbandit", "run", sys.argv[1], "--out", sys.argv[2]]
main()
"""
# The processor time of compiling every policy, the slowest last.
_COMPILE = """
import time, warnings, numpy as np
warnings.simplefilter("ignore")
from benchmarks import policies
from jaxbandit.engine import native
from jaxbandit.engine import Job
taken = {}
for name, policy in policies.examples().items():
    began = time.process_time()
    native.compiled(Job.of([(policy, policies.arena())], 1, [1]).shape())
    taken[name] = time.process_time() - began
name = max(taken, key=taken.get)
print(taken[name], name)
"""
# A policy of a user's own with a cond and a sort: one game, four games, 200 arms; the longest time to a result.
_SMALL = """
import time, jax, jax.numpy as jnp
import jaxbandit as jb
from jaxbandit.types import pytree
@pytree
class Sorted:
    def init(self, num_arms): return jnp.zeros(num_arms)
    def probabilities(self, state, t, key):
        worst = jnp.sort(state)[-1]
        softly = lambda: jax.nn.softmax(-state / (1 + worst))
        return jax.lax.cond(t % 2 == 0, softly, lambda: jnp.ones_like(state) / state.size)
    def update(self, state, t, x, arm, loss): return state.at[arm].add(loss / x[arm])
longest = 0.0
for num_arms, games in ((2, 1), (2, 4), (200, 4)):
    arms = jb.Bernoulli(means=[0.1] + [0.5] * (num_arms - 1))
    keys = jax.vmap(lambda n: jb.game_key(0, n))(jnp.arange(games))
    began = time.perf_counter()
    jax.block_until_ready(jax.jit(lambda keys: jb.play(Sorted(), arms, keys, record=[1000]))(keys))
    longest = max(longest, time.perf_counter() - began)
print(longest)
"""
# The time of jb.play over that of simulate, in turns.
_PLAY = """
import statistics, time, jax, jax.numpy as jnp
import jaxbandit as jb
arms, T, N = jb.Pareto(means=[0.5] + [1.0] * 9, tail_index=1.6), 10_000, 4096
policy = jb.UniINF(horizon=T)
keys = jax.vmap(lambda n: jb.game_key(0, n))(jnp.arange(N))
played = jax.jit(lambda keys: jb.play(policy, arms, keys, record=[T]))
def play(): jax.block_until_ready(played(keys))
def simulate(): jb.simulate(policy, arms, horizon=T, num_seeds=N, record=[T])
def seconds(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
play(), simulate()
print(statistics.median(seconds(play) / seconds(simulate) for _ in range(5)))
"""
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs code in a process of its own, with bytecode kept as Python keeps it for a user."""
    command = [sys.executable, "-c", code, *arguments]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | environment
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=records.ROOT)
    if done.returncode:
        raise RuntimeError(f"{command[:2]} failed:\n{done.stderr}")
    return done


def first_round() -> float:
    """Returns the seconds from the start of the command to the end of the first call that plays."""
    study = str(records.ROOT / "experiments" / "quickstart.toml")
    with tempfile.TemporaryDirectory() as directory:
        began = time.time()
        done = python(_FIRST, study, directory)
    return float(done.stderr.split("FIRST")[1].split()[0]) - began


def quickstart() -> float:
    """Returns the seconds that a whole study takes if no compiled code is stored."""
    study = str(records.ROOT / "experiments" / "quickstart.toml")
    command = "import sys; from jaxbandit.cli import main; sys.argv[0] = 'jaxbandit'; main()"
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        python(command, "run", study, "--out", directory, JAXBANDIT_CACHE=cache)
        return time.perf_counter() - began


def first(repeats: int, quick: bool) -> tuple[str, dict]:
    """Measures the time to the first result."""
    first_round()  # fills the compile cache
    few = 1 if quick else min(repeats, 3)
    started, alone, imports = [], [], []
    for _ in range(repeats):
        began = time.perf_counter()
        by_jax = float(python(_IMPORT.format("jax")).stdout)
        alone.append(time.perf_counter() - began)
        started.append(first_round())
        imports.append(float(python(_IMPORT.format("jaxbandit")).stdout) / by_jax)
    slowest = [python(_COMPILE, JAXBANDIT_CACHE="off").stdout.split(maxsplit=1) for _ in range(few)]
    compiled, policy = sorted((float(seconds), name.strip()) for seconds, name in slowest)[few // 2]
    beyond = statistics.median(started) - statistics.median(alone)
    measured = {
        "`jaxbandit run experiments/quickstart.toml` to its first rounds, compiled code cached, beyond `import jax` "
        f"({statistics.median(alone):.2f} s)": (beyond, FIRST_ROUND, " s"),
        "the whole of it, nothing cached": (statistics.median(quickstart() for _ in range(few)), QUICKSTART, " s"),
        f"compiling the slowest policy, {policy}, K = 10, processor time": (compiled, COMPILE, " s"),
        "`import jaxbandit` over `import jax`": (statistics.median(imports), IMPORT, ""),
        "`jit(jb.play)` over `simulate`, K = 10, N = 4,096, T = 10,000": (
            statistics.median(float(python(_PLAY).stdout) for _ in range(few)),
            PLAY,
            "",
        ),
        "`jit(jb.play)` with a policy of one's own, 1 or 4 games, up to 200 arms, nothing cached": (
            statistics.median(float(python(_SMALL, JAXBANDIT_CACHE="off").stdout) for _ in range(few)),
            SMALL,
            " s",
        ),
    }
    lines = ["| | measured | must reach | |", "|---|---:|---:|---|"]
    for name, (value, bar, unit) in measured.items():
        lines.append(f"| {name} | {value:.2f}{unit} | <= {bar:g}{unit} | {judged(value <= bar)} |")
    return "\n".join(lines), {name: value for name, (value, _, _) in measured.items()}


PARTS = {"arms": arms, "growth": growth, "first": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], metavar="PART", help=f"of {', '.join(PARTS)}; default all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes; never kept")
    parser.add_argument("--keep", action="store_true", help="add to results.jsonl and docs/speed.md")
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {sorted(unknown)[0]!r}; choose from {', '.join(PARTS)}")
    for name in args.parts or PARTS:
        text, values = PARTS[name](args.repeats, args.quick)
        text = f"{records.heading(f'uniINF, median of {args.repeats}.')}\n{text}"
        print(f"{name}: {text}\n", flush=True)
        if args.keep and not args.quick:
            records.keep(name, values)
            if name == "growth":
                draw(values)
                text += "\n\n![Time over rounds and seeds with the fit, and peak memory](img/growth.png)"
            records.publish(name, text)


if __name__ == "__main__":
    main()

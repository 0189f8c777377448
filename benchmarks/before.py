"""Machine code against the XLA engine that it replaced: processor time of every policy, in turns.

The old engine is at commit ce6b8b5 and needs jax 0.10. ``git worktree add ../before ce6b8b5`` brings it, and
``python -m benchmarks.before ../before`` prints the table; ``--arms 2 10 --policies uniinf htinf`` plays a part of it.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ARMS = (2, 10, 32, 100, 1000)
TURNS = 2
# Plays a policy for a second or so after a first, short run that compiles; prints ns of processor time per seed-round.
WORKER = """
import sys, time, warnings
warnings.simplefilter("ignore")
import jaxbandit as jb
name, K, T, seeds = sys.argv[1], *map(int, sys.argv[2:])
environment = jb.Pareto(means=[0.5] + [1.0] * (K - 1), tail_index=1.6)
values = {"horizon": T, "moment_order": environment.moment_order, "max_rounds": T}
values["moment_bound"] = environment.moment(environment.moment_order)
fields = jb.POLICIES[name].__dataclass_fields__
policy = jb.POLICIES[name](**{key: value for key, value in values.items() if key in fields})
def play(seed):
    began = time.process_time(), time.perf_counter()
    jb.simulate(policy, environment, horizon=T, num_seeds=seeds, seed=seed, record=[T])
    return time.process_time() - began[0], time.perf_counter() - began[1]
play(0)
times, begun = [], time.perf_counter()
while len(times) < 2 or time.perf_counter() - begun < 1:
    times.append(play(len(times) + 1)[0])
print(min(times) / T / seeds * 1e9)
"""


def size(num_arms: int) -> tuple[int, int]:
    """Returns the rounds and the seeds that are played: less of more arms."""
    return max(200, 20_000 // num_arms), max(64, 1024 // max(1, num_arms // 16))


def run(checkout: pathlib.Path, code: str, *arguments: object) -> list[str]:
    """Runs code with the package of a checkout, and returns the words that it prints."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout.split()


def names(checkout: pathlib.Path) -> list[str]:
    """Returns the policies of a checkout."""
    return run(checkout, "import jaxbandit; print(*jaxbandit.POLICIES)")


def nanoseconds(checkout: pathlib.Path, policy: str, num_arms: int) -> float:
    """Returns the processor time of a seed-round in the engine of a checkout."""
    return float(run(checkout, WORKER, policy, num_arms, *size(num_arms))[-1])


def main() -> None:
    """Prints the table, a line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=pathlib.Path, help="checkout of the old engine")
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS)
    parser.add_argument("--policies", nargs="+")
    given = parser.parse_args()
    new, old = pathlib.Path(__file__).parents[1], given.old.resolve()
    print("| policy |" + "".join(f" K = {num_arms} |" for num_arms in given.arms))
    print("|---|" + "---:|" * len(given.arms))
    for policy in given.policies or names(old):
        entries = []
        for num_arms in given.arms:
            try:
                pairs = [[nanoseconds(side, policy, num_arms) for side in (new, old)] for _ in range(TURNS)]
                now, then = (min(times) for times in zip(*pairs, strict=True))
                entries.append(f"{now / then:.2f} ({now:.0f} ns)")
            except RuntimeError as error:
                entries.append(str(error)[:60])
        print(f"| `{policy}` | " + " | ".join(entries) + " |", flush=True)


if __name__ == "__main__":
    main()

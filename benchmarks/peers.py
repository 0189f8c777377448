"""Policy steps per second beside other bandit packages: ``python -m benchmarks.peers``.

UCB1, Exp3 and Tsallis-INF on one game, Bernoulli losses, K = 10, for those peers that have them, in turns, with the
mean regret beside every figure. Each peer lives in a virtual environment of its own, made on demand in the user's
cache; one that cannot be installed is left out and said so. ``--keep`` adds a line to ``results.jsonl`` and puts the
table into docs/speed.md.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import jaxbandit as jb
from benchmarks import records

MEANS = [0.3] + [0.5] * 9
OURS = "jaxbandit"
NAMES = {"pymab": "PyMAB", "smpybandits": "SMPyBandits", "mabwiser": "MABWiser"}
REQUIREMENTS = {
    "pymab": ["PyMAB"],
    "smpybandits": ["SMPyBandits==0.9.7", "numpy<2", "scipy<1.12", "matplotlib<3.9", "scikit-learn<1.5"],
    "mabwiser": ["mabwiser"],
}
POLICIES = {"ucb1": jb.UCB1(), "exp3": jb.Exp3(), "tsallis_inf": jb.TsallisINF()}
BARS = {("ucb1", "smpybandits"): 1000.0, ("ucb1", "pymab"): 300.0}  # steps per second, ours over theirs


class Figure(NamedTuple):
    """The speed and the regret of one policy of one package."""

    steps: float  # per second, the median
    regret: float
    stderr: float


class MissingPeerError(Exception):
    """A peer that cannot be installed or started."""


class Peer:
    """A peer's process."""

    def __init__(self, name: str, python: pathlib.Path):
        self.name = name
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  (a pipe that nobody reads would fill up)
        self._process = subprocess.Popen(
            [str(python), str(pathlib.Path(__file__).with_name("peer_worker.py")), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        )
        self.policies: list[str] = self._answer()["policies"]

    def play(self, policy: str, horizon: int, budget: float, seed: int) -> dict[str, Any]:
        """Plays whole games for about ``budget`` seconds."""
        request = {"policy": policy, "means": MEANS, "horizon": horizon, "budget": budget, "seed": seed}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.communicate()
            self._errors.seek(0)
            said = _last_line(self._errors.read())
            self.close()
            raise MissingPeerError(said or "its process ended")
        return json.loads(line)


def environment(name: str) -> pathlib.Path:
    """Returns the Python of a peer's own environment, which is made if it is missing."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stamp = hashlib.sha256("\n".join([version, *REQUIREMENTS[name]]).encode()).hexdigest()[:12]
    place = cache_directory() / f"{name}-{stamp}"
    python = place / "bin" / "python"
    if (place / "complete").exists():
        return python
    print(f"{NAMES[name]}: installing into {place}", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    try:
        venv.create(place, with_pip=True, symlinks=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]]
        done = subprocess.run(install, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingPeerError(str(error)) from error
    if done.returncode:
        raise MissingPeerError(f"pip could not install {' '.join(REQUIREMENTS[name])}: {_last_line(done.stderr)}")
    (place / "complete").touch()
    return python


def cache_directory() -> pathlib.Path:
    """Returns the directory of the peers' environments."""
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return root / "jaxbandit" / "peers"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))]
    return lines[-1].strip() if lines else ""


@contextlib.contextmanager
def started(names: list[str]) -> Iterator[list[Peer]]:
    """Returns the peers that could be installed and started."""
    peers = []
    for name in names:
        try:
            peers.append(Peer(name, environment(name)))
        except MissingPeerError as missing:
            print(f"{NAMES[name]}: left out, {missing}", flush=True)
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


def ours(policy: str, horizon: int, num_seeds: int, seed: int) -> dict[str, Any]:
    """Returns the answer of a peer for jaxbandit."""
    began = time.perf_counter()
    environment = jb.Bernoulli(means=MEANS)
    ds = jb.simulate(POLICIES[policy], environment, horizon=horizon, num_seeds=num_seeds, record=16, seed=seed)
    regrets = ds.regret.values[:, -1]
    return {"games": num_seeds, "seconds": time.perf_counter() - began, "regrets": regrets.tolist()}


def measure(peers: list[Peer], horizon: int, num_seeds: int, budget: float, repeats: int) -> dict:
    """Measures every package in turn; returns a Figure for each (policy, package)."""
    answers: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for policy in POLICIES:
        ours(policy, horizon, num_seeds, 0)  # compiles
        for repeat in range(repeats):
            mine = ours(policy, horizon, num_seeds, repeat)
            answers.setdefault((policy, OURS), []).append(mine)
            for peer in peers:
                if policy in peer.policies:
                    played = peer.play(policy, horizon, budget, 1000 * repeat)
                    answers.setdefault((policy, peer.name), []).append(played)
    return {of: figure(given, horizon) for of, given in answers.items()}


def figure(answers: list[dict[str, Any]], horizon: int) -> Figure:
    """Returns the median speed of the repeats and the regret over all their games."""
    steps = statistics.median(given["games"] * horizon / given["seconds"] for given in answers)
    regrets = np.concatenate([given["regrets"] for given in answers])
    stderr = float(regrets.std(ddof=1) / math.sqrt(regrets.size)) if regrets.size > 1 else math.inf
    return Figure(steps, float(regrets.mean()), stderr)


def table(measured: dict[tuple[str, str], Figure]) -> str:
    """Returns the table: steps per second, the multiple that jaxbandit plays, and the regret."""
    lines = [
        "| policy | package | policy steps per second | jaxbandit plays | must reach | mean regret |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for (policy, package), found in measured.items():
        times = measured[policy, OURS].steps / found.steps
        bar = BARS.get((policy, package))
        judged = "" if bar is None else f">= {bar:g}: {'reached' if times >= bar else 'missed'}"
        name = NAMES.get(package, package)
        lines.append(
            f"| `{policy}` | {name} | {found.steps:,.0f} | {times:,.0f} times | {judged} | "
            f"{found.regret:.1f} ± {found.stderr:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=16_384, help="of jaxbandit; the peers play for --budget seconds")
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--keep", action="store_true", help="add to results.jsonl and docs/speed.md")
    args = parser.parse_args()
    with started(args.peers) as peers:
        measured = measure(peers, args.horizon, args.seeds, args.budget, args.repeats)
    game = f"Bernoulli losses, K = {len(MEANS)}, T = {args.horizon:,}, median of {args.repeats}, interleaved."
    text = "\n".join([records.heading(game), table(measured)])
    print(text)
    if args.keep:
        figures = {f"{policy} {package}": found._asdict() for (policy, package), found in measured.items()}
        records.keep("peers", {"horizon": args.horizon, "figures": figures})
        records.publish("peers", text)


if __name__ == "__main__":
    main()

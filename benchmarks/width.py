"""Lanes of a vector, measured: ``python -m benchmarks.width``.

Plays uniINF natively with vectors of 4 to 32 games, for several numbers of arms, in turn, and prints nanoseconds of
processor time per seed-round (the least of several); the width that ``jaxbandit.engine.native`` takes here is marked.
"""

import argparse
import time

import numpy as np

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine import Job
from jaxbandit.engine.native.games import Games, lanes_of

ARMS, WIDTHS = (2, 5, 10, 20, 32, 100), (4, 8, 16, 32)
NUM_LANES = 512


def nanoseconds(games: Games, parameters: list[np.ndarray], horizon: int) -> float:
    block = games.block(parameters, random.game_words(random.seed_words(0), np.arange(NUM_LANES)))
    block.start()
    began = time.process_time()
    block.advance(0, horizon, np.zeros(0, np.int64))
    return (time.process_time() - began) / NUM_LANES / horizon * 1e9


def table(repeats: int, seed_rounds: float) -> str:
    lines = ["| K | " + " | ".join(f"{width} lanes" for width in WIDTHS) + " |", "|---:|" + "---:|" * len(WIDTHS)]
    for num_arms in ARMS:
        policy, environment = jb.UniINF(horizon=1000), jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
        shape = Job.of([(policy, environment)], 1, [1]).shape()
        leaves = [1000.0, 4.0, environment.arm_means, 1.6]
        parameters = [np.repeat(np.asarray(leaf, np.float32)[..., None], NUM_LANES, axis=-1) for leaf in leaves]
        games = {width: Games(shape, width) for width in WIDTHS}
        taken: dict[int, list[float]] = {width: [] for width in WIDTHS}
        for _ in range(repeats):
            for width in WIDTHS:
                taken[width].append(
                    nanoseconds(games[width], parameters, max(20, int(seed_rounds / NUM_LANES / num_arms)))
                )
        ours = lanes_of(shape)
        cells = [f"**{min(t):.1f}**" if width == ours else f"{min(t):.1f}" for width, t in taken.items()]
        lines.append(f"| {num_arms} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed-rounds", type=float, default=1e7, help="of one run, times the number of arms")
    print(table(**vars(parser.parse_args())))

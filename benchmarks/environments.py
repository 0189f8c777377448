"""The tables and pictures of docs/environments.md.

``python -m benchmarks.environments`` writes the table of environments and their pictures. With ``--time`` it also
measures the cost of a draw: the time of a uniINF round in an environment minus that in one whose losses cost nothing,
K = 10, in pairs of runs.
"""

import argparse
import itertools
import pathlib
import statistics

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from benchmarks.records import replaced
from jaxbandit import random
from jaxbandit.arms import pick
from jaxbandit.cli.cards import default_text
from jaxbandit.engine import usable_cores
from jaxbandit.environments.laws import Law
from jaxbandit.plots.looks import COLOURS
from jaxbandit.types import Array, field, public_fields, pytree

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "environments.md"
IMAGES = PAGE.parent / "img"
ROUNDS = 1000  # of the pictures
TIMED_ROUNDS = 4000


def examples(means: list[float], rounds: int = ROUNDS) -> dict[str, object]:
    """Returns an environment of every kind with these means, or with as many arms."""
    law, wide = jb.Pareto(means=means, tail_index=1.6), 0.6 * min(means)
    table = np.asarray(means) * np.where(np.arange(rounds)[:, None] % 400 < 200, 1.0, 2.0)
    return {
        "bernoulli": jb.Bernoulli(means=means),
        "exponential": jb.Exponential(means=means),
        "frechet": jb.Frechet(means=means, tail_index=1.6),
        "gaussian": jb.Gaussian(means=means),
        "hard_pair": jb.HardPair(num_arms=len(means), gap=0.1, moment_order=1.5),
        "jackpot": jb.Jackpot(means=means, probability=0.01, gain=[100.0] + [10.0] * (len(means) - 1)),
        "lognormal": jb.LogNormal(means=means, log_std=1.5),
        "lomax": jb.Lomax(means=means, tail_index=1.6),
        "outlier_mixture": jb.OutlierMixture(means=means),
        "pareto": law,
        "reflected": jb.Reflected(law, shift=1.0),
        "stable": jb.Stable(means=means, tail_index=1.6),
        "student_t": jb.StudentT(means=means, tail_index=1.6),
        "tail_reversed": jb.TailReversed(means=means, tail_index=1.2),
        "weibull": jb.Weibull(means=means, shape=0.4),
        "huber": jb.Huber(jb.Gaussian(means=means, scale=0.1), jb.Gaussian(means=[100.0], scale=10.0), epsilon=0.01),
        "switching": jb.Switching(law),
        "shifting": jb.Shifting(law, shift=wide),
        "swap": jb.Swap(law, horizon=rounds),
        "drifting": jb.Drifting(law, "random_walk", amplitude=wide, step=0.1 * wide, seed=1),
        "corrupted": jb.Corrupted(law, budget=rounds // 20, horizon=rounds),
        "minimax_hard": jb.MinimaxHard(num_arms=len(means), moment_order=1.5, horizon=rounds, gap_factor=4.0),
        "scheduled": jb.Scheduled(law, means=table),
    }


def table() -> str:
    """Returns the table of environments: fields, the moments that exist, and when the paper's assumption holds."""
    lines = [
        "| environment | key | fields | moments that exist | best arm truncated non-negative | |",
        "|---|---|---|---|---|---|",
    ]
    for name, cls in jb.ENVIRONMENTS.items():
        picture = f"![{name}](img/{name}.svg)" if (IMAGES / f"{name}.svg").exists() else ""
        about = (cls.__doc__ or "").strip().splitlines()[0].rstrip(".")
        moments, nonnegative = getattr(cls, "moments", ""), getattr(cls, "nonnegative", "")
        row = (f"**{cls.__name__}**: {about}", f"`{name}`", fields(cls), moments, nonnegative, picture)
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def fields(cls: type) -> str:
    """Returns the fields with their defaults; a field that takes a number per arm is marked."""
    return ", ".join(
        f"`{name}{default_text(spec.default)}`" + ("\\*" if spec.metadata.get("per_arm") else "")
        for name, spec in public_fields(cls).items()
    )


def picture(environment) -> str:
    """Draws a law or a schedule as SVG.

    A law has P(l > z) of the best and the worst arm on logarithmic axes, and P(-l > z) dashed. A schedule has its means
    over the rounds.
    """
    if isinstance(environment, Law | jb.Huber | jb.MinimaxHard):
        frame = (-2.0, 4.0), (-5.0, 0.0)
        curves = {}
        for arm, colour in zip((0, environment.num_arms - 1), COLOURS, strict=False):
            drawn = _drawn(environment, arm)
            curves |= {(colour, False): _tail(drawn), (colour, True): _tail(-drawn)}
    else:
        means = np.asarray(jax.vmap(environment.means)(jnp.arange(1, ROUNDS + 1, dtype=jnp.int32)))
        frame = (0.0, float(ROUNDS)), (0.0, 1.1 * float(means.max()))
        curves = {(COLOURS[arm], False): _steps(means[:, arm]) for arm in range(environment.num_arms)}
    return _svg(curves, *frame)


def _drawn(environment, arm: int) -> np.ndarray:
    """Returns 2^18 losses of an arm."""

    def loss(t):
        return environment.loss(t, jnp.int32(arm), random.round_streams(jb.game_key(0, 0), t)[random.LOSS])

    return np.asarray(jax.jit(jax.vmap(loss))(jnp.arange(1, 2**18 + 1, dtype=jnp.int32)))


def _tail(drawn: np.ndarray) -> np.ndarray:
    """Returns log10 of the positive numbers and of the share beyond them, at ranks over five decades, with corners."""
    drawn = np.sort(drawn)[::-1]
    ranks = np.unique(np.geomspace(3, drawn.size, 40).astype(int))
    ranks = ranks[drawn[ranks - 1] > 0]
    points = np.stack([np.log10(drawn[ranks - 1]), np.log10(ranks / drawn.size)], axis=1)
    corners = []
    for point, after in itertools.pairwise(points):
        far = abs(point[0] - after[0]) > 0.3  # a level stretch, as between two values of a discrete law
        corners += [point, (after[0], point[1])] if far else [point]
    ends = [points[-1], (-9.0, points[-1][1])] if len(points) else []
    return np.asarray(corners + ends).reshape(-1, 2)


def _steps(values: np.ndarray) -> np.ndarray:
    """Returns the corners of a step function; slow changes are thinned out."""
    rounds = np.arange(1, values.size + 1)
    change = np.flatnonzero(np.abs(np.diff(values)) > 0.1 * np.ptp(values))
    keep = np.unique(np.concatenate([np.arange(0, values.size, 8), change, change + 1, [values.size - 1]]))
    return np.stack([rounds[keep], values[keep]], axis=1)


def _svg(curves: dict[tuple[str, bool], np.ndarray], x: tuple[float, float], y: tuple[float, float]) -> str:
    """Returns a picture of curves, which have a colour each and may be dashed."""
    width, height, lines = 160, 80, []
    for (colour, dashed), curve in curves.items():
        if not len(curve):
            continue
        across = np.clip((curve[:, 0] - x[0]) / (x[1] - x[0]), 0, 1) * width
        down = (1 - np.clip((curve[:, 1] - y[0]) / (y[1] - y[0]), 0, 1)) * height
        points = " ".join(f"{a:.0f},{d:.1f}" for a, d in zip(across, down, strict=True))
        dash = ' stroke-dasharray="4 2"' if dashed else ""
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>')
    frame = f'<rect width="{width}" height="{height}" fill="#fff" stroke="#999"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
    return "\n".join([head, frame, *lines, "</svg>\n"])


@pytree
class Free:
    """An environment whose losses are its means: they cost nothing."""

    arm_means: Array = field(alias="means", vector=True)

    @property
    def num_arms(self) -> int:
        """K."""
        return self.arm_means.shape[0]

    def means(self, t: Array) -> Array:
        """Returns the same means in every round: [K]."""
        return jnp.asarray(self.arm_means)

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the mean of the arm."""
        return pick(self.means(t), arm)


def timings(num_seeds: int, repeats: int) -> str:
    """Returns nanoseconds per draw and their share of a uniINF round, as medians over pairs of runs."""
    policy, means = jb.UniINF(horizon=TIMED_ROUNDS), [0.5] + [1.0] * 9
    free = Free(means=means)

    def nanoseconds(environment: object) -> float:
        ds = jb.simulate(policy, environment, horizon=TIMED_ROUNDS, num_seeds=num_seeds, record=2)
        return ds.run_seconds / (num_seeds * TIMED_ROUNDS) * 1e9

    nanoseconds(free)  # compiles
    rest, rows = [], []
    for name, environment in examples(means, TIMED_ROUNDS).items():
        nanoseconds(environment)
        pairs = [(nanoseconds(free), nanoseconds(environment)) for _ in range(repeats)]
        rest += [without for without, _ in pairs]
        draw = statistics.median(played - without for without, played in pairs)
        over = statistics.median(played / without for without, played in pairs) - 1
        rows.append(f"| `{name}` | {draw:.1f} | {over:.0%} | {over / (1 + over):.0%} |")
    head = (
        f"A uniINF round at K = 10 in an environment whose losses cost nothing: {statistics.median(rest):.1f} ns "
        f"({usable_cores()} cores, {num_seeds} seeds, {TIMED_ROUNDS} rounds, median of {repeats} pairs of runs).\n"
    )
    return "\n".join(
        [
            head,
            "| environment | ns per draw | over the rest of the round | of the whole round |",
            "|---|---:|---:|---:|",
            *rows,
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", action="store_true", help="measure the cost of a draw too")
    parser.add_argument("--seeds", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    for name, environment in examples([0.2, 0.5, 1.0]).items():
        (IMAGES / f"{name}.svg").write_text(picture(environment), encoding="utf-8")
    page = replaced(PAGE.read_text(encoding="utf-8"), "table", table())
    if args.time:
        measured = timings(args.seeds, args.repeats)
        print(measured)
        page = replaced(page, "timings", measured)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

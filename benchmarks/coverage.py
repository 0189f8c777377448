"""Coverage of intervals and error rates of claims, on samples of known mean and on the tool's own games.

``python -m benchmarks.coverage`` plays 65,536 games of each policy, takes them for the whole population, and draws
studies of a few seeds from it, so the true mean is known. ``--few`` draws studies of 2 to 64 seeds from a normal and a
lognormal law instead. ``--keep`` writes the tables to docs/statistics.md.
"""

import argparse
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

import jaxbandit as jb
from benchmarks import records
from jaxbandit.analysis import ranks, risk, statistics

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "statistics.md"
SEEDS, LEVEL, RESAMPLES = (16, 64, 512), 0.95, 1_000
FEW_SEEDS = (2, 3, 4, 8, 16, 64)
HORIZON, GAMES = 10_000, 65_536
ENVIRONMENT = jb.Pareto(means=[0.5, 1.0, 1.0, 1.0], tail_index=1.6)
POLICIES = {
    "uniINF": jb.UniINF(horizon=HORIZON),
    "OptHTINF": jb.OptHTINF(),
    "Tsallis-INF": jb.TsallisINF(),
    "UCB1": jb.UCB1(),
}


class Row(NamedTuple):
    """The shares of studies whose interval misses the mean, and of studies whose mean is called fragile."""

    sample: str
    seeds: int
    normal: float
    bootstrap: float
    fragile: float
    sound: float  # misses of the bootstrap among the studies that are not called fragile; NaN if there are few


class Claims(NamedTuple):
    """The shares of studies that call the first or the second policy better in the mean."""

    pair: str
    truth: str
    seeds: int
    test: tuple[float, float]  # by the skewness-corrected test of the mean at 5 %
    claimed: tuple[float, float]  # by ``jb.claims``


def own_games(games: int = GAMES) -> dict[str, np.ndarray]:
    """Returns final regrets of the tool's own games by policy; game n of every policy has the same random numbers."""
    ds = jb.simulate(POLICIES, ENVIRONMENT, horizon=HORIZON, num_seeds=games, record=[HORIZON])
    return {str(name): ds.regret.sel(policy=name).values.reshape(-1).astype(np.float64) for name in ds.policy.values}


def made_samples(rng: np.random.Generator, count: int = GAMES) -> dict[str, np.ndarray]:
    """Returns samples made by hand; the brittle policy wins by 140 in the usual game and loses all in 0.4 %."""
    lost = rng.random(count) < 0.004
    return {
        "normal": rng.standard_normal(count),
        "lognormal": rng.lognormal(size=count),
        "brittle": np.where(lost, HORIZON / 2, 560 + 30 * rng.standard_normal(count)),
        "calm": 570 + 30 * rng.standard_normal(count),
    }


def coverage(samples: Mapping[str, np.ndarray], studies: int, rng: np.random.Generator) -> list[Row]:
    """Draws studies from each sample and counts the intervals that miss the mean of the whole sample."""
    rows = []
    for name, population in samples.items():
        for seeds in SEEDS:
            table = population[rng.integers(population.size, size=(studies, seeds))]
            weak = risk.fragile(table)
            normal = _misses(statistics.normal_interval(table, LEVEL), population.mean())
            bootstrap = _misses(statistics.bootstrap_interval(table, LEVEL, RESAMPLES), population.mean())
            sound = float(bootstrap[~weak].mean()) if (~weak).sum() >= studies / 4 else float("nan")
            rows.append(Row(name, seeds, float(normal.mean()), float(bootstrap.mean()), float(weak.mean()), sound))
    return rows


def claims(first: str, second: str, samples: Mapping[str, np.ndarray], studies: int, rng: np.random.Generator):
    """Counts which of two policies is called better in the mean, by the test and by ``jb.claims``."""
    means = samples[first].mean(), samples[second].mean()
    for seeds in SEEDS[1:]:
        counts = np.zeros((2, 2))
        for _ in range(studies):
            drawn = rng.integers(samples[first].size, size=seeds)
            final = np.stack([samples[first][drawn], samples[second][drawn]])
            difference = final[0] - final[1]
            sure = ranks.skewness_corrected_p(difference) < 1 - LEVEL
            counts[0] += sure * np.array([difference.mean() < 0, difference.mean() > 0])
            ds = xr.Dataset(
                {"regret": (("policy", "environment", "seed", "round"), final[:, None, :, None])},
                coords={"policy": [first, second], "environment": ["e"], "round": [HORIZON]},
            )
            better = risk.claims(ds, {"e": ENVIRONMENT}).better.isel(environment=0).values
            counts[1] += [better[0, 1], better[1, 0]]
        test, claimed = (tuple(map(float, row / studies)) for row in counts)
        yield Claims(f"{first}, {second}", first if means[0] < means[1] else second, seeds, test, claimed)


def few_seeds(studies: int, rng: np.random.Generator) -> str:
    """Returns a table in Markdown: coverage of intervals and error rates of the test in studies of few seeds.

    The test errs rarely, so it has ten times as many studies as the intervals.
    """
    out = [
        f"Coverage of 95 % intervals in {studies:,} studies and error rates of the test in {10 * studies:,} "
        f"(`python -m benchmarks.coverage --few --studies {studies}`, jaxbandit {jb.__version__}).",
        "",
        "| seeds | normal law: normal interval | bootstrap | test at 5 % | at 0.1 % "
        "| lognormal law: normal interval | bootstrap | test at 5 % | at 0.1 % |",
        "|---:" * 9 + "|",
    ]
    for seeds in FEW_SEEDS:
        shares = []
        for draw, mean in ((rng.standard_normal, 0.0), (lambda size: rng.lognormal(size=size), np.exp(0.5))):
            table, many = draw((studies, seeds)), draw((10 * studies, seeds))
            shares.append(1 - _misses(statistics.normal_interval(table, LEVEL), mean).mean())
            shares.append(1 - _misses(statistics.bootstrap_interval(table, LEVEL, RESAMPLES), mean).mean())
            p = ranks.skewness_corrected_p(many - mean)
            shares += [(p < 0.05).mean(), (p < 0.001).mean()]
        out.append(f"| {seeds} | {' | '.join(map(_percent, shares))} |")
    return "\n".join(out)


def _misses(interval: statistics.Interval, mean: float) -> np.ndarray:
    return (interval.low > mean) | (interval.high < mean)


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f} %"


def as_text(rows: list[Row], decided: list[Claims], studies: int) -> str:
    """Returns both tables in Markdown."""
    out = [
        f"Misses of 95 % intervals in {studies:,} studies, drawn from {GAMES:,} games each "
        f"(`python -m benchmarks.coverage`, commit {records.commit()}). The last four samples are games of the "
        f"tool: Pareto losses of tail index 1.6, K = 4, T = {HORIZON:,}.",
        "",
        "| sample | seeds | normal interval | bootstrap | called fragile | bootstrap, where not fragile |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    out += [f"| {row.sample} | {row.seeds} | {' | '.join(map(_percent, row[2:]))} |" for row in rows]
    out += [
        "",
        "Shares of the studies that call the first or the second policy better in the mean:",
        "",
        "| policies | truly better | seeds | test of the mean: first | second | `jb.claims`: first | second |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for one in decided:
        shares = " | ".join(map(_percent, (*one.test, *one.claimed)))
        out.append(f"| {one.pair} | {one.truth} | {one.seeds} | {shares} |")
    return "\n".join(out)


def main() -> None:
    """Prints the tables, or writes them to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--keep", action="store_true", help="write the tables to docs/statistics.md")
    parser.add_argument("--few", action="store_true", help="studies of 2 to 64 seeds, on laws of known mean")
    options = parser.parse_args()
    rng = np.random.default_rng(22)
    if options.few:
        text = few_seeds(options.studies, rng)
        print(text)
        if options.keep:
            records.publish("few", text, PAGE)
        return
    made, own = made_samples(rng), own_games()
    rows = coverage({name: made[name] for name in ("normal", "lognormal", "brittle")} | own, options.studies, rng)
    decided = [
        *claims("brittle", "calm", made, options.studies // 4, rng),
        *claims("Tsallis-INF", "uniINF", own, options.studies // 4, rng),
        *claims("UCB1", "uniINF", own, options.studies // 4, rng),
    ]
    text = as_text(rows, decided, options.studies)
    print(text)
    if options.keep:
        records.publish("coverage", text, PAGE)


if __name__ == "__main__":
    main()

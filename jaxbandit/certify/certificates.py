"""Certificates: games of uniINF in float64 that are checked against its analysis, round by round.

``facts.Certified`` checks the facts inside the compiled game. This module runs the games, tests the facts that
hold in expectation over the seeds, and describes the outcome.
"""

import functools
import pathlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr

from jaxbandit.certify.conditional import conditional, no_conditional
from jaxbandit.certify.expectations import EXPECTATIONS, LEVEL, compared, games_of
from jaxbandit.certify.facts import FACTS, SUMS, Certified, tolerance
from jaxbandit.certify.outcome import tables as tables
from jaxbandit.certify.parts import part_name, seed_ranges
from jaxbandit.engine import Engine, Job, Timing, best_fixed_arms, run_job
from jaxbandit.environments import Bernoulli, Gaussian, Pareto, StudentT, Switching
from jaxbandit.game import Environment, at_horizon
from jaxbandit.policies import UniINF, UniINFVariant
from jaxbandit.progress import Progress, bar
from jaxbandit.store.parts import Arrays, Parts
from jaxbandit.studies import entries, study

HORIZON, NUM_SEEDS = 10_000, 1_280  # times eight environments: 1e8 seed-rounds
QUICK_HORIZON, QUICK_SEEDS = 1_000, 64
RECORDED = ("violations", "worst", "at", "sums", "last_growth")

# Variants of uniINF with a mistake; the certificate must detect each of them.
CONTROLS: dict[str, dict[str, Any]] = {
    "threshold doubled": {"threshold_constant": 0.5},
    "no clip": {"scale_loss": "raw"},
    "1 - x dropped": {"damped": False},
    "skipped in the scale too": {"scale_loss": "skip"},
}

# Games in which a mistake shows in the facts that are about it: an arm that is played nearly always, losses that are
# all skipped at first.
SHARPER: dict[str, Callable[[], tuple[Environment, int]]] = {
    "1 - x dropped": lambda: (Gaussian([0.9, 1.8], 0.1), 20_000),  # pyright: ignore[reportArgumentType]
    "skipped in the scale too": lambda: (Gaussian([0.0, 100.0], 1e-3), 100_000),  # pyright: ignore[reportArgumentType]
}


def default_environments(arms: Sequence[int] = (2, 10)) -> dict[str, Environment]:
    """Returns the default environments: heavy tails of one and two signs, a changing one and a bounded one."""
    environments: dict[str, Environment] = {}
    for num_arms in arms:
        means = [0.5] + [1.0] * (num_arms - 1)
        environments |= {
            f"Pareto 1.3, K = {num_arms}": Pareto(means, 1.3),  # pyright: ignore[reportArgumentType]
            f"Student-t 1.5, K = {num_arms}": StudentT(means, 1.5),  # pyright: ignore[reportArgumentType]
            f"switching Pareto 1.3, K = {num_arms}": Switching(Pareto(means, 1.3)),  # pyright: ignore[reportArgumentType]
            f"Bernoulli, K = {num_arms}": Bernoulli([0.3] + [0.6] * (num_arms - 1)),  # pyright: ignore[reportArgumentType]
        }
    return environments


def read_environments(text: str) -> dict[str, Environment]:
    """Returns the environments of a study file, or that of an inline table such as ``{name = "pareto", ...}``."""
    if text.endswith(".toml"):
        listed = study.Study.load(text).resolved.environments
    else:
        try:
            entry = (
                tomllib.loads(f"environment = {text}")["environment"]
                if text.lstrip().startswith("{")
                else {"name": text}
            )
        except tomllib.TOMLDecodeError as error:
            raise ValueError(
                f'--environment {text!r} is not an inline table: {error}; write \'{{name = "pareto", '
                "means = [0.5, 1.0], tail_index = 1.3}' or the path of a study file"
            ) from None
        listed = [entries.read_entry(entry, "environments", pathlib.Path(), {})]
    return {repr(point): point for entry in listed for point in entry.grid().points}


def certify(
    environments: Mapping[str, Environment],
    *,
    horizon: int = HORIZON,
    num_seeds: int = NUM_SEEDS,
    seed: int = 0,
    engine: Engine | None = None,
    directory: pathlib.Path | None = None,
    steps: bool = True,
    **fields: Any,
) -> xr.Dataset:
    """Plays uniINF in float64 in every environment and checks the facts at every round of every seed.

    Args:
      environments: Environments by the label they are reported under.
      horizon: Rounds to play, also the policy's T; at least as many as arms.
      num_seeds: Games per environment.
      seed: The study seed.
      engine: The settings of the engine; they do not change the numbers.
      directory: A directory that keeps finished games; a certificate that was stopped continues from them.
      steps: Whether the single-step bounds are checked too, at some states of some games.
      **fields: Fields of ``UniINFVariant``; any of them makes the games a negative control.

    Returns:
      A dataset. It has by ``environment`` and ``fact`` the ``violations``, ``worst`` (the largest left/right of an
      inequality, the largest relative error of an equality), ``seed`` and ``round`` in which it occurred
      (round 0 means none). By ``environment`` and ``expectation``: ``ratio`` of the two sides, and
      ``excess`` of the left over the right with its ``low`` and ``high``; NaN if the environment
      declares no moment, or changes and the fact needs that it does not. By ``environment`` and ``conditional``: what
      ``conditional`` returns. By ``environment``: ``tolerance`` and the number of ``failed`` games.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit.certify import certify
      >>> environment = {"Pareto": jb.Pareto(means=[0.5, 1.0], tail_index=1.3)}
      >>> int(certify(environment, horizon=200, num_seeds=64).violations.sum())
      0
    """
    for name, value, least in (("horizon", horizon, 2), ("num_seeds", num_seeds, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    if not environments:
        raise ValueError("environments is empty; pass at least one, for example default_environments()")
    for label, environment in environments.items():
        if not 2 <= environment.num_arms <= horizon:
            raise ValueError(
                f"the facts need 2 <= K <= T, got K = {environment.num_arms}, T = {horizon} in {label}; "
                "use at least two arms and a longer horizon"
            )
    config, games, parts = engine or Engine(), horizon * num_seeds, []
    kept = None if directory is None else Parts(directory)
    with bar(config.progress) as progress:
        for environment in environments.values():
            before = len(parts) * games
            report = functools.partial(_report, progress, before, len(environments) * games)
            played = at_horizon(environment, horizon)
            part, policy = _certify_one(played, horizon, num_seeds, seed, config, report, kept, fields)
            single = conditional(policy, played, horizon, seed=seed) if steps else no_conditional()
            parts.append(part.merge(single))
    ds = xr.concat(parts, dim=xr.Variable("environment", list(environments)))
    return ds.assign_attrs(
        horizon=horizon,
        num_seeds=num_seeds,
        seed=seed,
        seed_rounds=len(environments) * horizon * num_seeds,
        interval=f"normal, {100 * LEVEL:g} %",
        run_seconds=round(sum(part.attrs["run_seconds"] for part in parts), 1),
    )


def holds(ds: xr.Dataset) -> bool:
    """Returns whether no fact was violated, no game failed, and no expectation is surely above its bound."""
    return not (ds.violations.any() or ds.failed.any() or (ds.low > 0).any() or (ds.step_low > 1).any())


def broken(ds: xr.Dataset) -> list[str]:
    """Returns the names of the violated facts, expectations and single-step bounds."""
    found = {
        "fact": (ds.violations > 0, ""),
        "expectation": (ds.low > 0, "E: "),
        "conditional": (ds.step_low > 1, "step: "),
    }
    return [
        f"{prefix}{name}"
        for kind, (violated, prefix) in found.items()
        for name in ds[kind].values[violated.any("environment").values]
    ]


def run_controls(horizon: int = QUICK_HORIZON, num_seeds: int = QUICK_SEEDS, seed: int = 0) -> dict[str, list[str]]:
    """Returns what each broken uniINF violates, by control; an empty list means an undetected mistake."""
    label, usual = next(iter(default_environments().items()))
    found = {}
    for name, fields in CONTROLS.items():
        sizes = {"horizon": horizon, "num_seeds": num_seeds, "seed": seed}
        found[name] = broken(certify({label: usual}, **sizes, **fields))
        if name in SHARPER:
            environment, rounds = SHARPER[name]()
            more = certify({name: environment}, horizon=rounds, num_seeds=8, seed=seed, **fields)
            found[name] += [fact for fact in broken(more) if fact not in found[name]]
    return found


def _report(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)


def _certify_one(
    environment: Environment,
    horizon: int,
    num_seeds: int,
    seed: int,
    config: Engine,
    report: Progress,
    kept: Parts | None,
    fields: dict,
) -> tuple[xr.Dataset, UniINF]:
    ranges = [(0, num_seeds)] if kept is None else list(seed_ranges(horizon, num_seeds))
    arrays, seconds = [], 0.0
    with jax.enable_x64(True):
        policy = (UniINFVariant if fields else UniINF)(horizon=float(horizon), **fields)
        best_arm = int(best_fixed_arms(environment, np.array([horizon]))[0])
        pair = Certified(policy, best_arm=best_arm), environment
        for first, last in ranges:
            done = functools.partial(_report, report, first * horizon, 0)
            rest = {"best_arm": best_arm, "horizon": horizon, "seed": seed, "seeds": [first, last], "way": config.way}
            name = part_name(policy, environment, **rest) if kept else ""
            there = kept.read(name) if kept else None
            part, took = there or _play(pair, horizon, (first, last), seed, config, done)
            if kept and there is None:
                kept.write(name, part, took)
            done((last - first) * horizon, 0)
            arrays.append(part)
            seconds += took
    found = {name: np.concatenate([part[name] for part in arrays]) for name in arrays[0]}

    worst_seed = np.argmax(found["worst"], axis=0)
    by_fact = {
        "violations": found["violations"].sum(axis=0).astype(np.int64),
        "worst": found["worst"].max(axis=0),
        "seed": worst_seed,
        "round": np.take_along_axis(found["at"], worst_seed[None], axis=0)[0].astype(np.int64),
    }
    sums = dict(zip(SUMS, np.moveaxis(found["sums"], -1, 0), strict=True))
    sums |= {key: found[key] for key in ("regret", "last_growth")}
    off_best = horizon - found["pulls"][:, best_arm]
    by_expectation = compared(games_of(environment, float(policy.initial_scale), horizon, sums, off_best))
    ds = xr.Dataset(
        {name: ("fact", values) for name, values in by_fact.items()}
        | {name: ("expectation", values) for name, values in by_expectation.items()}
        | {"failed": int((found["failed"] > 0).sum()), "tolerance": tolerance(environment.num_arms)},
        coords={"fact": list(FACTS), "expectation": list(EXPECTATIONS)},
        attrs={"run_seconds": seconds},
    )
    return ds, policy


def _play(
    pair: tuple[Certified, Environment],
    horizon: int,
    seeds: tuple[int, int],
    seed: int,
    config: Engine,
    report: Progress,
) -> tuple[Arrays, float]:
    """Plays the games of some seeds; returns their final records and the seconds that they took."""
    timing = Timing()
    blocks: list[Arrays] = []
    first, last = seeds
    job = Job.of([pair], last - first, [horizon], first_seed=first, seed=seed, measures=RECORDED)
    run_job(job, config, lambda _, block: blocks.append(block), report, timing)
    found = {name: np.concatenate([block[name] for block in blocks])[:, -1] for name in (*RECORDED, "regret", "pulls")}
    return found | {"failed": np.concatenate([block["failed"] for block in blocks])}, timing.run_seconds

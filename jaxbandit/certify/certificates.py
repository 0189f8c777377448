"""Certificates: games of uniINF in float64 that are checked against its analysis, round by round.

``facts.Certified`` checks the facts inside the compiled game. This module runs the games, tests the facts that
hold in expectation over the seeds, and describes the outcome.
"""

import functools
import math
import pathlib
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy import special

from jaxbandit.certify.facts import FACTS, SUMS, Certified, tolerance
from jaxbandit.engine import Engine, Job, Timing, best_fixed_arms, run_job
from jaxbandit.environments import Bernoulli, Pareto, StudentT, Switching
from jaxbandit.game import Environment, at_horizon
from jaxbandit.policies import UniINF, UniINFVariant
from jaxbandit.progress import Progress, bar
from jaxbandit.studies import entries, study

HORIZON, NUM_SEEDS = 10_000, 1_280  # times eight environments: 1e8 seed-rounds
QUICK_HORIZON, QUICK_SEEDS = 1_000, 64
LEVEL = 0.9999  # coverage of the intervals over seeds

# Variants of uniINF with a mistake; the certificate must detect each of them.
CONTROLS: dict[str, dict[str, Any]] = {
    "threshold doubled": {"threshold": 0.5},
    "no clip": {"scale_loss": "raw"},
    "1 - x dropped": {"damped": False},
}

EXPECTATIONS = {
    "scale": "E[S_(T+1)] <= sqrt(2) S_1 + 2^(2 - 3/alpha) sigma (T/(K log T))^(1/alpha)",
    "regret": "regret <= E[sum Div + sum Shift + sum |SkipErr| off the best arm] + 2 sigma (K - 1)",
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
    **fields: Any,
) -> xr.Dataset:
    """Plays uniINF in float64 in every environment and checks the facts at every round of every seed.

    Args:
      environments: Environments by the label they are reported under.
      horizon: Rounds to play, also the policy's T; at least as many as arms.
      num_seeds: Games per environment.
      seed: The study seed.
      engine: The settings of the engine; they do not change the numbers.
      **fields: Fields of ``UniINFVariant``; any of them makes the games a negative control.

    Returns:
      A dataset. It has by ``environment`` and ``fact`` the ``violations``, ``worst`` (the largest left/right of an
      inequality, the largest relative error of an equality), ``seed`` and ``round`` in which it occurred
      (round 0 means none). By ``environment`` and ``expectation``: ``ratio`` of the two sides, and
      ``excess`` of the left over the right with its ``low`` and ``high``; NaN if the environment
      declares no moment. By ``environment``: ``tolerance`` and the number of ``failed`` games.

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
    with bar(config.progress) as progress:
        for environment in environments.values():
            before = len(parts) * games
            report = functools.partial(_report, progress, before, len(environments) * games)
            played = at_horizon(environment, horizon)
            parts.append(_certify_one(played, horizon, num_seeds, seed, config, report, fields))
    ds = xr.concat(parts, dim=xr.Variable("environment", list(environments)))
    return ds.assign_attrs(
        horizon=horizon,
        num_seeds=num_seeds,
        seed=seed,
        seed_rounds=len(environments) * horizon * num_seeds,
        interval=f"normal, {LEVEL:.2%}",
        run_seconds=round(sum(part.attrs["run_seconds"] for part in parts), 1),
    )


def holds(ds: xr.Dataset) -> bool:
    """Returns whether no fact was violated, no game failed, and no expectation is surely above its bound."""
    return not (ds.violations.any() or ds.failed.any() or (ds.low > 0).any())


def broken(ds: xr.Dataset) -> list[str]:
    """Returns the names of the violated facts."""
    return [str(name) for name in ds.fact.values[(ds.violations > 0).any("environment").values]]


def run_controls(horizon: int = QUICK_HORIZON, num_seeds: int = QUICK_SEEDS, seed: int = 0) -> dict[str, list[str]]:
    """Returns the facts that each broken uniINF violates, by control; an empty list means an undetected mistake."""
    label, environment = next(iter(default_environments().items()))
    sizes = {"horizon": horizon, "num_seeds": num_seeds, "seed": seed}
    return {name: broken(certify({label: environment}, **sizes, **fields)) for name, fields in CONTROLS.items()}


def _report(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)


def _certify_one(
    environment: Environment, horizon: int, num_seeds: int, seed: int, config: Engine, report: Progress, fields: dict
) -> xr.Dataset:
    timing = Timing()
    names = ("violations", "worst", "at", "sums", "last_growth")
    blocks: list[dict[str, np.ndarray]] = []
    with jax.enable_x64(True):
        policy = (UniINFVariant if fields else UniINF)(horizon=float(horizon), **fields)
        best_arm = int(best_fixed_arms(environment, np.array([horizon]))[0])
        pair = Certified(policy, best_arm=best_arm), environment
        job = Job.of([pair], num_seeds, [horizon], seed=seed, measures=names)
        run_job(job, config, lambda _, block: blocks.append(block), report, timing)
    found = {name: np.concatenate([block[name] for block in blocks])[:, -1] for name in (*names, "regret")}
    failed = np.concatenate([block["failed"] for block in blocks])

    worst_seed = np.argmax(found["worst"], axis=0)
    by_fact = {
        "violations": found["violations"].sum(axis=0).astype(np.int64),
        "worst": found["worst"].max(axis=0),
        "seed": worst_seed,
        "round": np.take_along_axis(found["at"], worst_seed[None], axis=0)[0].astype(np.int64),
    }
    sums = dict(zip(SUMS, np.moveaxis(found["sums"], -1, 0), strict=True))
    by_expectation = _expectations(
        policy, environment, horizon, sums | {key: found[key] for key in ("regret", "last_growth")}
    )
    return xr.Dataset(
        {name: ("fact", values) for name, values in by_fact.items()}
        | {name: ("expectation", values) for name, values in by_expectation.items()}
        | {"failed": int((failed > 0).sum()), "tolerance": tolerance(environment.num_arms)},
        coords={"fact": list(FACTS), "expectation": list(EXPECTATIONS)},
        attrs={"run_seconds": timing.run_seconds},
    )


def _expectations(policy: UniINF, environment: Environment, horizon: int, sums: Mapping[str, np.ndarray]) -> dict:
    """Estimates both sides of the facts in expectation by means over seeds, with an interval of the difference."""
    K, T, S_1 = environment.num_arms, horizon, policy.initial_scale
    log_T = math.log(T)
    moment, alpha = getattr(environment, "moment", None), getattr(environment, "moment_order", None)
    if moment is None or alpha is None:
        nothing = np.full(len(EXPECTATIONS), np.nan)
        return {"ratio": nothing, "excess": nothing, "low": nothing, "high": nothing}
    sigma = moment(alpha)
    scale = S_1 + sums["growth"]
    scale_bound = math.sqrt(2) * S_1 + 2 ** (2 - 3 / alpha) * sigma * (T / (K * log_T)) ** (1 / alpha)
    log_y = math.log1p(-(K - 1) / T) - (K - 1) * log_T
    shift = sums["log_barrier"] - (scale - sums["last_growth"]) * log_y
    regret_bound = sums["div"] + shift + sums["skip_error"] + 2 * sigma * (K - 1)
    sides = [(scale, np.full_like(scale, scale_bound)), (sums["regret"], regret_bound)]

    excess = np.stack([left - right for left, right in sides])
    stderr = excess.std(axis=1, ddof=1) / math.sqrt(excess.shape[1]) if excess.shape[1] > 1 else np.full(2, np.inf)
    half = special.stdtrit(max(1, excess.shape[1] - 1), 0.5 + LEVEL / 2) * stderr
    return {
        "ratio": np.array([left.mean() / right.mean() for left, right in sides]),
        "excess": excess.mean(axis=1),
        "low": excess.mean(axis=1) - half,
        "high": excess.mean(axis=1) + half,
    }


def tables(ds: xr.Dataset) -> Sequence[Any]:
    """Returns the outcome as rich tables: the facts over all environments, then the expectations in each."""
    from rich.table import Table
    from rich.text import Text

    title = f"{ds.seed_rounds:,} seed-rounds in {ds.sizes['environment']} environments, {ds.horizon:,} rounds each"
    facts = Table("fact", "violations", "tightest", "where", title=title, title_justify="left")
    for name, fact in FACTS.items():
        at = ds.sel(fact=name)
        there = at.isel(environment=int(np.argmax(at.worst.values)))
        where = f"{there.environment.item()}, seed {int(there.seed)}, round {int(there['round'])}"
        shown = f"{float(there.worst):.1e} (error)" if fact.equal else f"{float(there.worst):.6g}"
        statement = fact.statement + (" (printed)" if fact.printed else "")
        facts.add_row(Text(statement), str(int(at.violations.sum())), shown, where if int(there["round"]) else "")

    title = f"in expectation: left/right, and left - right with its interval ({ds.interval})"
    expected = Table("environment", title=title, title_justify="left")
    for statement in EXPECTATIONS.values():
        expected.add_column(Text(statement))  # as Text, so that rich does not read brackets as markup
    for label in ds.environment.values:
        cells = []
        for name in EXPECTATIONS:
            at = ds.sel(environment=label, expectation=name)
            numbers = [float(at[key]) for key in ("ratio", "excess", "low", "high")]
            ratio, excess, low, high = numbers
            verdict = "holds" if high <= 0 else "VIOLATED" if low > 0 else "undecided"
            no_moment = "no moment declared"
            cells.append(
                no_moment if math.isnan(excess) else f"{ratio:.3g}; {excess:.4g} [{low:.4g}, {high:.4g}] {verdict}"
            )
        expected.add_row(Text(str(label)), *cells)
    return facts, expected

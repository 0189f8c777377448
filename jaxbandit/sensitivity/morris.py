"""Morris screening: a test at few points of which parameters of a box matter at all."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis.statistics import check_level
from jaxbandit.checks import check_whole
from jaxbandit.engine import Engine
from jaxbandit.parameters import as_box
from jaxbandit.sensitivity.design import centred_interval, evaluate, range_coordinates, sampler, without_noise
from jaxbandit.sensitivity.kept import Kept
from jaxbandit.sensitivity.points import pairs_of

NUM_LEVELS = 4
NUM_RESAMPLES = 500

LONG_NAMES = {
    "mu": "mean change of E[R] as the parameter crosses its range",
    "mu_star": "mean absolute change",
    "size": "root mean square change, free of noise",
    "sigma": "standard deviation of the change over the box, free of noise: interaction or curvature",
    "noise": "the mu_star that noise alone would give",
    "failed": "games whose state was not finite at some round",
}
_MEASURES = ("mu", "mu_star", "size", "sigma")
for _name in _MEASURES:
    LONG_NAMES |= {f"{_name}_{end}": f"{end} end of the interval of {_name}" for end in ("low", "high")}


def morris(
    policy: Any,
    environment: Any,
    box: Mapping[str, Sequence[float]],
    *,
    horizon: int,
    num_seeds: int,
    num_trajectories: int = 16,
    seed: int = 0,
    scale: str | Mapping[str, str] = "log",
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    dtype: str = "float32",
    engine: Engine | None = None,
    kept: Kept | None = None,
) -> xr.Dataset:
    """Estimates Morris's elementary effects of expected regret over a box, at ``num_trajectories * (D + 1)`` points.

    An effect is the change of expected regret in a step of one parameter, per length of its range. All points use
    common random numbers. ``mu_star`` includes the noise of means over seeds, and ``noise`` is its size. ``size`` and
    ``sigma`` are free of it. Intervals are by bootstrap over trajectories and seeds.

    Args:
      policy: A policy, a ``grid``, or a list; each is screened on its own.
      environment: An environment, a ``grid``, or a list; None if ``policy`` is a ``Study``, which has
        environments of its own and gives its policies what they need of them.
      box: Ranges ``[low, high]`` by parameter. A pair of a list is moved in those it has.
      horizon: Rounds to play.
      num_seeds: Games of each point.
      num_trajectories: Steps of each parameter.
      seed: The seed of the games and of the design.
      scale: ``"log"`` or ``"linear"``, for all ranges or by name.
      level: The coverage of the intervals.
      num_resamples: Bootstrap samples.
      dtype: ``"float32"`` or ``"float64"``.
      engine: The settings of the engine; they do not change the numbers.
      kept: The finished points of an earlier call, which ``run`` finds in a directory.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit import sensitivity
      >>> environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
      >>> box = {"initial_scale": [1.0, 16.0], "gap": [0.1, 1.0]}
      >>> ds = sensitivity.morris(jb.UniINF(horizon=100), environment, box, horizon=100, num_seeds=64)
      >>> bool(ds.mu.sel(parameter="gap") > 0)
      True

    References:
      Morris. "Factorial sampling plans for preliminary computational experiments". Technometrics 33 (1991).
      https://doi.org/10.1080/00401706.1991.10484804
    """
    pairs = pairs_of(policy, environment)
    check_level(level)
    check_whole("num_trajectories", num_trajectories, 2, "a spread over trajectories needs at least two")
    check_whole("num_resamples", num_resamples, 2)
    ranges, sample = as_box(box, scale), sampler("morris")
    names = list(ranges)

    def design(count: int) -> np.ndarray:
        problem = {"num_vars": count, "names": [str(n) for n in range(count)], "bounds": [[0.0, 1.0]] * count}
        return sample(problem, num_trajectories, num_levels=NUM_LEVELS, seed=np.random.default_rng(seed))

    played = evaluate(
        pairs, ranges, design, horizon=horizon, num_seeds=num_seeds, seed=seed, dtype=dtype, engine=engine, kept=kept
    )
    shape = (len(pairs.pairs), len(names))
    variables = {name: np.full(shape[:1] if name == "failed" else shape, np.nan) for name in LONG_NAMES}
    for one in played:
        effects = elementary_effects(one.units, one.regret, num_trajectories)
        where = [names.index(name) for name in one.names]
        found = screening(effects, level=level, num_resamples=num_resamples, seed=seed)
        for name, values in found.items():
            variables[name][one.pair, where] = values
        variables["failed"][one.pair] = one.failed
    behind: dict[str, Any] = {"parameter": names}
    ds = pairs.dataset(variables, behind, LONG_NAMES)
    return ds.assign_coords(range_coordinates(ranges)).assign_attrs(
        kind="Morris screening",
        horizon=horizon,
        num_seeds=num_seeds,
        num_trajectories=num_trajectories,
        seed=seed,
        dtype=dtype,
        band=f"bootstrap over trajectories and seeds ({num_resamples} resamples), {100 * level:g} %",
    )


def elementary_effects(units: np.ndarray, regret: np.ndarray, num_trajectories: int) -> np.ndarray:
    """Returns effects [seeds, trajectories, parameters] of points [trajectories * (D + 1), ...] in walking order."""
    count = units.shape[1]
    walk = units.reshape(num_trajectories, count + 1, count)
    values = regret.reshape(num_trajectories, count + 1, -1)
    steps = np.diff(walk, axis=1)  # [trajectories, steps, parameters]: one entry of a step is not 0
    which = np.abs(steps).argmax(axis=2)
    lengths = np.take_along_axis(steps, which[..., None], axis=2)
    effects = np.diff(values, axis=1) / lengths  # [trajectories, steps, seeds]
    order = np.argsort(which, axis=1)  # each parameter is stepped once
    return np.moveaxis(np.take_along_axis(effects, order[..., None], axis=1), -1, 0)


def screening(effects: np.ndarray, *, level: float, num_resamples: int, seed: int) -> dict[str, np.ndarray]:
    """Returns Morris's measures of effects [seeds, trajectories, parameters]."""
    num_seeds, num_trajectories, _ = effects.shape
    measures, noise = _measures(effects)
    rng = np.random.default_rng([seed, 2])
    samples = []
    for _ in range(num_resamples):
        rows = rng.integers(num_trajectories, size=num_trajectories)
        seeds = np.bincount(rng.integers(num_seeds, size=num_seeds), minlength=num_seeds).astype(float)
        samples.append(_measures(effects[:, rows], seeds)[0])
    low, high = centred_interval(np.asarray(samples), measures, level)
    low[1:] = np.maximum(low[1:], 0)  # all but the mean are sizes
    found = {"noise": noise}
    for n, name in enumerate(_MEASURES):
        found |= {name: measures[n], f"{name}_low": low[n], f"{name}_high": high[n]}
    return found


def _measures(effects: np.ndarray, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns mu, mu_star, size and sigma, [4, parameters], and the mu_star that noise alone would give."""
    num_seeds = effects.shape[0]
    weights = np.full(num_seeds, 1 / num_seeds) if counts is None else counts / num_seeds
    mean = np.tensordot(weights, effects, axes=1)
    square, noise = without_noise(lambda e: (e * e).mean(axis=-2), effects, counts)
    variance, _ = without_noise(lambda e: e.var(axis=-2, ddof=1), effects, counts)
    roots = [np.sqrt(np.maximum(form, 0)) for form in (square, variance)]
    # The mean size of a normal variable is sqrt(2 / pi) standard deviations.
    return np.stack([mean.mean(axis=0), np.abs(mean).mean(axis=0), *roots]), np.sqrt(2 / np.pi * noise)

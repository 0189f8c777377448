"""The function ``simulate``: plays policies x environments x seeds x rounds, returns one labelled dataset."""

import itertools
import platform
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr

from jaxbandit.checks import check_choice, check_history, check_seed, check_whole, recorded_rounds
from jaxbandit.dataset import labels, results
from jaxbandit.dataset.pairs import checked_pair
from jaxbandit.engine import Engine, Job, Sink, Timing, by_program, measure_names, run_job
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import Grid, as_grid, for_run, registry_name, suggest
from jaxbandit.policies import POLICIES
from jaxbandit.progress import bar
from jaxbandit.random import PRNG
from jaxbandit.theory import assumptions
from jaxbandit.types import check_kind, check_single, validate
from jaxbandit.version import __version__, commit


def simulate(
    policy: Any,
    environment: Any,
    *,
    horizon: int,
    num_seeds: int,
    seed: int = 0,
    record: int | Sequence[int] = 64,
    dtype: str = "float32",
    keep: str = "seeds",
    measures: Sequence[str] = (),
    trace: int = 0,
    engine: Engine | None = None,
) -> xr.Dataset:
    """Plays every policy in every environment, for every seed, and records regret along the way.

    Args:
      policy: A policy, a ``grid`` of one class, or a list of those; in a dictionary the keys are their labels.
      environment: An environment, a ``grid``, a list, or a dictionary.
      horizon: Rounds of a game. Those after the last recorded round are not played, because nobody would see them.
      num_seeds: Independent games per pair of policy and environment. Games of one seed share their random bits
        across policies (common random numbers).
      seed: The study seed.
      record: A number of log-spaced rounds, or the increasing rounds to record at.
      dtype: ``"float32"`` or ``"float64"``, the type in which games are played. Results are added in float64.
      keep: ``"seeds"`` for every game, ``"summary"`` for mean, standard error and quantiles.
      measures: Names of the policy's ``measure`` (summed over rounds) or of fields of its state.
      trace: Number of seeds whose arm, x and loss are kept in every round; memory then grows with T.
      engine: Settings of the run (block, chunk, devices, progress, way). Only ``way`` changes the numbers, but not
        their law.

    Returns:
      ``regret``, ``loss`` (seed, round), ``pulls`` (seed, round, arm), ``failed`` (seed) behind one
      dimension per swept field, or behind ``policy`` and ``environment`` if either is a list or a dictionary.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
      >>> sweep = jb.grid(jb.UniINF, horizon=1_000, initial_scale=[1.0, 4.0])
      >>> jb.simulate(sweep, environment, horizon=1_000, num_seeds=32, record=[10, 1_000]).regret.dims
      ('initial_scale', 'seed', 'round')
    """
    if engine is not None and not isinstance(engine, Engine):
        raise ValueError(f"engine must be a jb.Engine, got {engine!r}; pass for example jb.Engine(block=256)")
    config = engine or Engine()
    measures = (measures,) if isinstance(measures, str) else tuple(measures)
    rounds = recorded_rounds(horizon, record)
    check_whole("num_seeds", num_seeds, 1)
    check_seed(seed)
    check_whole("trace", trace, 0)
    check_choice("dtype", dtype, ("float32", "float64"))
    check_choice("keep", keep, ("seeds", "summary"))
    named_policies = _listed(policy, "policy", POLICIES)
    named_environments = _listed(environment, "environment", ENVIRONMENTS)
    policies = [grid for _, grid in named_policies]
    environments = [for_run(grid, int(horizon)) for _, grid in named_environments]

    check_history([point for grid in policies for point in grid.points], int(rounds[-1]))

    timing = Timing()
    with jax.enable_x64(dtype == "float64"), bar(config.progress) as progress:
        study = _Study(policies, environments, rounds, num_seeds, seed, keep, measures, min(trace, num_seeds))
        variables = study.run(config, progress, timing)
        attrs = _provenance(dtype, seed, num_seeds, horizon, timing)

    if isinstance(policy, list | tuple | Mapping) or isinstance(environment, list | tuple | Mapping):
        played = [(name, grid) for (name, _), grid in zip(named_environments, environments, strict=True)]
        ds = results.labelled_dataset(named_policies, played, variables, study.coords())
    else:
        ds = results.product_dataset(policies[0], environments[0], variables, study.coords())
    attrs["policy"] = "; ".join(repr(point) for grid in policies for point in grid.points[:1])
    attrs["environment"] = "; ".join(repr(point) for grid in environments for point in grid.points[:1])
    pairs = [
        checked_pair(policy, environment)
        for policy, environment in itertools.product(study.policies, study.environments)
    ]
    violated = assumptions.sentences(pairs)
    assumptions.warn(violated, study.environments, stacklevel=2)
    broken = study.broken()
    for sentence in broken:
        warnings.warn(sentence, stacklevel=2)
    attrs["warnings"] = "\n".join([*violated, *broken])
    named = itertools.product(labels.labels(named_policies), labels.labels(named_environments))
    outside = [names for names, pair in zip(named, pairs, strict=True) if assumptions.is_outside(pair)]
    attrs["outside"] = assumptions.as_attribute(outside)
    attrs["infinite_losses"] = int(np.isinf(variables["loss"][..., -1]).sum())
    return ds.assign_attrs(attrs)


class _Study:
    """The points of a call, grouped by what compiles once, with the arrays of their results."""

    def __init__(self, policies, environments, rounds, num_seeds, seed, keep, measures, trace):
        self.policies = [point for grid in policies for point in grid.points]
        self.environments = [point for grid in environments for point in grid.points]
        self.rounds, self.num_seeds, self.seed, self.keep = rounds, num_seeds, seed, keep
        self.measures, self.trace = measures, trace
        self.num_arms = max(point.num_arms for point in self.environments)
        self.variables: dict[str, np.ndarray] = {}
        for name in measures:
            self._check_measure(name)

    def run(self, config: Engine, progress, timing: Timing) -> dict[str, np.ndarray]:
        """Plays every group of points and returns the variables as [P, E, seed, round, ...]."""
        total = len(self.policies) * len(self.environments) * self.num_seeds * int(self.rounds[-1])
        done = 0
        pairs = list(itertools.product(self.policies, self.environments))
        options = {"seed": self.seed, "measures": self.measures, "trace": self.trace}
        for group in by_program(pairs):
            job = Job.of([pairs[pair] for pair in group], self.num_seeds, self.rounds, **options)
            places = [divmod(pair, len(self.environments)) for pair in group]
            run_job(job, config, self._sink(places), lambda now, _, done=done: progress(done + now, total), timing)
            done += job.seed_rounds
        return self.variables

    def coords(self) -> dict[str, Any]:
        """Returns the coordinates that follow the swept ones."""
        coords: dict[str, Any] = {"round": self.rounds, "arm": np.arange(self.num_arms)}
        if self.keep == "seeds":
            coords["seed"] = np.arange(self.num_seeds)
        else:
            coords["quantile"] = np.asarray(labels.QUANTILES)
        if self.trace:
            coords |= {"traced_seed": np.arange(self.trace), "t": np.arange(1, self.rounds[-1] + 1)}
        return coords

    def broken(self) -> list[str]:
        """Returns a sentence for every class of policies with games whose ``failed`` is not 0."""
        found, total = [], len(self.environments) * self.num_seeds
        for cls in dict.fromkeys(map(type, self.policies)):
            mine = [n for n, policy in enumerate(self.policies) if type(policy) is cls]
            failed = self.variables["failed"][mine]
            since = failed[failed > 0]
            if since.size:
                each = self.keep == "seeds"  # a summary has only the number of such games
                count, first = (since.size, f", the first in round {since.min()}") if each else (int(since.sum()), "")
                found.append(
                    f"{count} of {len(mine) * total} games of {cls.__name__} are broken{first}: its probabilities are "
                    "negative, not finite or do not sum to 1, or its state is not finite; call jb.check(policy), which "
                    "shows the first such round, and return for example jax.nn.softmax(scores)"
                )
        return found

    def _sink(self, places: Sequence[tuple[int, int]]) -> Sink:
        """Returns a function that stores blocks, which come in lane order; a summary needs all seeds of a pair.

        ``places`` has the policy's and the environment's number of each pair.
        """
        pending: list[dict[str, np.ndarray]] = []

        def sink(lanes: np.ndarray, block: dict[str, np.ndarray]) -> None:
            traced = {name: block.pop(name) for name in list(block) if name.startswith("trace_")}
            pairs, firsts = np.unique(lanes // self.num_seeds, return_index=True)
            for pair, first, last in zip(pairs, firsts, [*firsts[1:], lanes.size], strict=True):
                place = places[pair]
                part = {name: values[first:last] for name, values in block.items()}
                seed = int(lanes[first]) % self.num_seeds
                count = min(max(self.trace - seed, 0), last - first)
                self._put(place, {name: values[:count] for name, values in traced.items()}, seed, self.trace)
                traced = {name: values[count:] for name, values in traced.items()}
                if self.keep == "seeds":
                    self._put(place, part, seed, self.num_seeds)
                    continue
                pending.append(part)
                if seed + last - first == self.num_seeds:
                    joined = {name: np.concatenate([part[name] for part in pending]) for name in part}
                    # The seeds have one order, whatever the blocks: the rounding of a sum depends on the order.
                    whole = {name: np.ascontiguousarray(values) for name, values in joined.items()}
                    pending.clear()
                    self._put(place, results.reduce_cell(whole))

        return sink

    def _put(self, place: tuple[int, int], part: dict[str, np.ndarray], seed: int | None = None, seeds: int = 0):
        """Stores the variables of a pair in those of the study; with ``seed``, those of its seeds from ``seed`` on."""
        for name, values in part.items():
            shape, where = list(values.shape), [slice(length) for length in values.shape]
            if seed is not None:
                shape[0], where[0] = seeds, slice(seed, seed + values.shape[0])
            if name not in self.variables:
                dims = labels.variable_dims(name, values.ndim, seed is not None)
                if "arm" in dims:  # environments with fewer arms than the largest leave the others at 0
                    shape[dims.index("arm")] = self.num_arms
                shape = (len(self.policies), len(self.environments), *shape)
                self.variables[name] = np.zeros(shape, values.dtype)
            self.variables[name][(*place, *where)] = values

    def _check_measure(self, name: str) -> None:
        for policy in self.policies:
            known = measure_names(policy, self.num_arms)
            if name not in known:
                raise ValueError(f"{type(policy).__name__} has no measure {name!r}; {suggest(str(name), known)}")


def _listed(given: Any, kind: str, registry: Mapping[str, type]) -> list[tuple[str, Grid]]:
    """Returns each entry as a grid with the first word of its labels: a key of a dictionary, or the class's name."""
    labels = list(given) if isinstance(given, Mapping) else []
    for label in labels:
        if not isinstance(label, str) or not label:
            raise ValueError(f"a dictionary of {kind} objects needs texts as keys, which are the labels, got {label!r}")
    given = list(given.values()) if isinstance(given, Mapping) else given
    entries = list(given) if isinstance(given, list | tuple) else [given]
    if not entries:
        raise ValueError(f"{kind} is an empty list; give at least one {kind}")
    for entry in entries:
        for point in entry.points if isinstance(entry, Grid) else [entry]:
            check_kind(kind, point)
            validate(point)
            check_single(point)
    grids = [as_grid(entry) for entry in entries]
    return list(zip(labels or [registry_name(grid.cls, registry) for grid in grids], grids, strict=True))


def _provenance(dtype: str, seed: int, num_seeds: int, horizon: int, timing: Timing) -> dict:
    return {
        "jaxbandit": __version__,
        "commit": commit(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": "; ".join(sorted(timing.devices)),
        "dtype": dtype,
        "seed": seed,
        "num_seeds": num_seeds,
        "horizon": int(horizon),
        "prng": PRNG,
        "compile_seconds": round(timing.compile_seconds, 3),
        "run_seconds": round(timing.run_seconds, 3),
    }

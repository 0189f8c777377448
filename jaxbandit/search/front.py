"""The two searches: tuning for a distribution of environments, and the worst environment for a policy."""

import dataclasses
import os
import pathlib
import threading
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from jaxbandit.checks import check_choice, check_whole
from jaxbandit.engine import Engine
from jaxbandit.progress import bar
from jaxbandit.search.arena import Arena, Maker, as_maker
from jaxbandit.search.families import Environments, Family
from jaxbandit.studies.keywords import TuneKeywords, WorstKeywords
from jaxbandit.types import public_fields


def tune(
    policy: Any,
    environments: Any,
    *,
    horizon: int,
    held_out: Any = None,
    unseen: Any = None,
    seed: int = 0,
    dtype: str = "float32",
    engine: Engine | None = None,
    path: str | os.PathLike | None = None,
    stop: threading.Event | None = None,
    **settings: Unpack[TuneKeywords],
) -> xr.Dataset:
    """Minimises final regret over a distribution of environments, in the logarithms of a policy's parameters.

    Every step plays fresh games on both sides of its place, on common random numbers, and passes the gradient to optax.
    The value that is best on held-out environments is compared with the policy as it was given, game by game, on
    environments and seeds that the search did not use.

    Args:
      policy: A policy, which is the default to be improved on; or a function of (environment, horizon) that makes it,
        for policies that are given something about the environment.
      environments: An environment, a grid, a ``jb.Family`` to draw from, or a list of those.
      horizon: Rounds of a game.
      held_out: Environments to choose the step by; default others drawn from the families, or the same fixed ones.
      unseen: Environments for the final comparison; likewise.
      seed: The seed of the search.
      dtype: ``"float32"`` or ``"float64"``.
      engine: The settings of the engine; ``progress=True`` shows a bar.
      path: A netCDF file that stores the trace; a later call continues from it.
      stop: Set it from another thread to save and raise ``KeyboardInterrupt``.
      **settings: The keys of ``jaxbandit.studies.sections.Tune``: ``parameters`` (required), ``objective``,
        ``gradient``, ``optimiser``, ``steps``, ``num_seeds``, ...

    Returns:
      The trace by ``step`` and ``parameter`` (``value``, ``gradient``, ``objective``, ``held_out``), ``tuned`` and
      ``default`` values, ``regret`` of both on unseen games, their paired ``difference`` with its interval, and in the
      attribute ``verdict`` its meaning in a sentence.

    Example:
      >>> import jaxbandit as jb
      >>> family = jb.Family(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), {"tail_index": (1.2, 2.0)})
      >>> found = jb.tune(
      ...     jb.UniINF(horizon=200), family, horizon=200, parameters={"initial_scale": [0.1, 40.0]},
      ...     steps=4, num_seeds=16, num_environments=4, held_out_environments=4, test_environments=8, test_seeds=16,
      ... )
      >>> found.value.dims, bool(found.difference_low <= found.difference_high)
      (('step', 'parameter'), True)
    """
    from jaxbandit.search.tuning import Tuner
    from jaxbandit.studies.sections import Tune

    _check(seed, dtype)
    check_whole("horizon", horizon, 2, "regret needs at least two rounds")
    section = Tune.read(**settings)
    looked_at, compared = (None if given is None else Environments(given) for given in (held_out, unseen))
    tuner = Tuner(as_maker(policy), Environments(environments), looked_at, compared, section, horizon, seed)
    with bar((engine or Engine()).progress, "tuning") as show:
        arena = Arena(
            horizon=horizon,
            seed=seed,
            dtype=dtype,
            engine=engine,
            stop=stop,
            show=show,
            lanes=tuner.lanes,
            total=tuner.total,
        )
        return tuner.run(arena, None if path is None else pathlib.Path(path))


def worst(
    policy: Any,
    family: Family,
    *,
    horizon: int | Sequence[int],
    seed: int = 0,
    dtype: str = "float32",
    engine: Engine | None = None,
    path: str | os.PathLike | None = None,
    stop: threading.Event | None = None,
    **settings: Unpack[WorstKeywords],
) -> xr.Dataset:
    """Searches the environment of a family in which a policy's regret is the largest, at one or several horizons.

    The instance found is played again on fresh seeds, since the largest of many noisy numbers is biased upwards.

    Args:
      policy: A policy, or a function of (environment, horizon) that makes it. With several horizons, a policy that has
        a field ``horizon`` is given each.
      family: The family of environments to search.
      horizon: Rounds of a game; several give the empirical minimax curve over T.
      seed: The seed of the search.
      dtype: ``"float32"`` or ``"float64"``.
      engine: The settings of the engine; ``progress=True`` shows a bar.
      path: A netCDF file that stores the trace; a later call continues from it. With several horizons there is a file
        for each beside it, with ``-T1000`` at the end of its name.
      stop: Set it from another thread to save and raise ``KeyboardInterrupt``.
      **settings: The keys of ``jaxbandit.studies.sections.Worst`` but ``parameters`` and ``horizons``: ``method``,
        ``steps``, ``num_seeds``, ``objective``, ...

    Returns:
      ``worst`` values by ``parameter``, ``regret`` there with its interval, ``searched`` (the estimate of the search),
      ``given_regret`` (in the family's environment as given), ``bound`` (the order of the minimax lower bound at the
      alpha and sigma of the environment found; its constant is not known). With one horizon the dataset has the trace
      by ``step``. With several it is by ``horizon``, with the exponent of growth in ``slope``.

    Example:
      >>> import jaxbandit as jb
      >>> family = jb.Family(jb.Bernoulli(means=[0.2, 0.5]), {"gap": (0.01, 0.6)})
      >>> found = jb.worst(jb.Uniform(), family, horizon=100, steps=10, num_seeds=16, test_seeds=64)
      >>> found.worst.values.round(3).tolist()  # uniform play: the largest gap
      [0.6]
    """
    from jaxbandit.search.adversary import Adversary, curve
    from jaxbandit.search.traces import write
    from jaxbandit.studies.sections import Worst

    _check(seed, dtype)
    if not isinstance(family, Family):
        raise ValueError(
            f"worst() searches a family of environments: jb.Family(environment, {{'gap': (0.01, 1.0)}}), got {family!r}"
        )
    several = not isinstance(horizon, int | np.integer)
    horizons = [int(n) for n in horizon] if several else [int(horizon)]  # pyright: ignore[reportGeneralTypeIssues]
    section = Worst.read(parameters={name: list(pair) for name, pair in family.ranges.items()}, **settings)
    section = section.but(horizons=horizons)
    make = as_maker(policy) if not several else _with_its_horizon(as_maker(policy))
    searches = [Adversary(make, family, section, n, seed) for n in horizons]
    found, before, total = [], 0, sum(search.total for search in searches)
    with bar((engine or Engine()).progress, "searching") as show:
        for search in searches:
            arena = Arena(
                horizon=search.horizon,
                seed=seed,
                dtype=dtype,
                engine=engine,
                stop=stop,
                show=lambda now, _, before=before: show(before + now, total),
                lanes=search.lanes,
                total=search.total,
            )
            place = None if path is None else pathlib.Path(path)
            if place is not None and several:
                place = place.with_name(f"{place.stem}-T{search.horizon}{place.suffix}")
            found.append(search.run(arena, place))
            before += search.total
    if not several:
        return found[0]
    ds = curve(found)
    if path is not None:
        write(ds, pathlib.Path(path))
    return ds


def _with_its_horizon(make: Maker) -> Maker:
    """Returns a maker that gives the policy the horizon of each game, if it has a field for it."""

    def at(environment: Any, horizon: int) -> Any:
        policy = make(environment, horizon)
        fields = public_fields(type(policy))
        return dataclasses.replace(policy, horizon=float(horizon)) if "horizon" in fields else policy

    return at


def _check(seed: int, dtype: str) -> None:
    check_whole("seed", seed, 0)
    check_choice("dtype", dtype, ("float32", "float64"))

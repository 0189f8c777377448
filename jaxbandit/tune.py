"""Tuning a policy for a distribution of worlds, and looking for the world that is worst for a policy."""

import os
import pathlib
import threading
from typing import Any

import xarray as xr

from jaxbandit.arena import Arena, as_told
from jaxbandit.checks import check_choice, check_whole
from jaxbandit.families import Worlds
from jaxbandit.progress import bar
from jaxbandit.runner import Engine


def tune(
    policy: Any,
    worlds: Any,
    *,
    horizon: int,
    held_out: Any = None,
    unseen: Any = None,
    seed: int = 0,
    dtype: str = "float32",
    engine: Engine | None = None,
    path: str | os.PathLike | None = None,
    stop: threading.Event | None = None,
    **settings: Any,
) -> xr.Dataset:
    """Minimises final regret over a distribution of worlds, in the logarithms of a policy's parameters.

    Every step plays fresh games on both sides of where it stands, side by side under the same luck, and hands the
    gradient to optax. What is best on held-out worlds is compared with the policy as it was given, game by game, on
    worlds and seeds that nothing was chosen by.

    Args:
      policy: A policy, which is the default to be improved on; or a function of (world, horizon) that makes it, for
        policies that are told something about the world.
      worlds: A world, a grid, a ``jb.Family`` to draw from, or a list of those.
      horizon: Rounds of a game.
      held_out: Worlds to choose the step by; default others drawn from the families, or the same fixed ones.
      unseen: Worlds for the final comparison; likewise.
      seed: Seeds the search.
      dtype: ``"float32"`` or ``"float64"``.
      engine: How to run; ``progress=True`` shows a bar.
      path: A netCDF file that the trace is kept in, and gone on from.
      stop: Set it from another thread to save and raise ``KeyboardInterrupt``.
      **settings: The keys of ``jaxbandit.sections.Tune``: ``parameters`` (required), ``objective``, ``gradient``,
        ``optimiser``, ``steps``, ``num_seeds``, ...

    Returns:
      The trace by ``step`` and ``parameter`` (``value``, ``gradient``, ``objective``, ``held_out``), ``tuned`` and
      ``default`` values, ``regret`` of both on unseen games, their paired ``difference`` with its interval, and in the
      attribute ``verdict`` what that means.

    Example:
      >>> import jaxbandit as jb
      >>> family = jb.Family(jb.Pareto(means=[0.5, 1.0], tail_index=1.6), {"tail_index": (1.2, 2.0)})
      >>> found = jb.tune(
      ...     jb.UniINF(horizon=200), family, horizon=200, parameters={"initial_scale": [0.1, 40.0]},
      ...     steps=4, num_seeds=16, num_worlds=4, held_out_worlds=4, test_worlds=8, test_seeds=16,
      ... )
      >>> found.value.dims, bool(found.difference_low <= found.difference_high)
      (('step', 'parameter'), True)
    """
    from jaxbandit.sections import Tune
    from jaxbandit.tuning import Tuner

    _check(seed, dtype)
    check_whole("horizon", horizon, 2, "regret needs at least two rounds")
    sets = [None if given is None else Worlds(given) for given in (held_out, unseen)]
    section = Tune.read(**settings)
    if section.worlds:
        raise ValueError(
            "ranges of worlds are a jb.Family(world, ranges) here; `worlds` in settings is for study files"
        )
    tuner = Tuner(as_told(policy), Worlds(worlds), *sets, section, horizon, seed)
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


def _check(seed: int, dtype: str) -> None:
    check_whole("seed", seed, 0)
    check_choice("dtype", dtype, ("float32", "float64"))

"""The games of a search: pairs of policy and environment on common random numbers, with progress and one compile.

A search has several kinds of luck, which must not overlap: that of its steps, that of the held-out set it looks at on
the way, that of the choice among finalists, and that of the numbers it reports.
"""

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine import Engine, Timing
from jaxbandit.progress import Progress
from jaxbandit.runs import coupled

# Kinds of luck.
STEPS, HELD_OUT, FINALISTS, TEST = range(4)

Told = Callable[[Any, int], Any]  # (environment, horizon) -> the policy, told what it asks of them


def derived_seed(seed: int, *purpose: int) -> int:
    """A study seed for one purpose: others have other luck."""
    return int(np.random.SeedSequence([seed, *purpose]).generate_state(1)[0] >> 1)


def as_told(policy: Any) -> Told:
    """A policy, or a function of (environment, horizon) that makes one, as the latter."""
    if isinstance(policy, type):
        raise ValueError(f"the policy is the class {policy.__name__}; make one: jb.{policy.__name__}(...)")
    if all(hasattr(policy, method) for method in ("init", "probabilities", "update")):
        return lambda environment, horizon: policy
    if callable(policy):
        return policy
    raise ValueError(
        f"{policy!r} is no policy; give one such as jb.UniINF(horizon=...), or a function (environment, horizon)"
    )


def at_horizon(environment: Any, horizon: int) -> Any:
    """The environment in a game of so many rounds."""
    return environment.at_horizon(horizon) if hasattr(environment, "at_horizon") else environment


class Arena:
    """Plays for a search.

    Args:
      horizon: Rounds of a game.
      seed: Seeds the search.
      dtype: What is played in.
      engine: How to run.
      stop: Set it to end with ``KeyboardInterrupt``.
      show: Gets (seed-rounds done, in all).
      lanes: Of a step: blocks are made for it, so that all that is played compiles once.
      total: Seed-rounds that are expected in all.
    """

    def __init__(
        self,
        *,
        horizon: int,
        seed: int,
        dtype: str,
        engine: Engine | None,
        stop: threading.Event | None,
        show: Progress,
        lanes: int,
        total: int,
    ):
        self.horizon, self.failed, self.timing = horizon, 0, Timing()
        self._seed, self._dtype, self._stop, self._show = seed, dtype, stop, show
        self._engine, self._lanes = engine or Engine(), lanes
        self._done, self._total = 0, total

    def play(
        self, policies: Sequence[Any], environments: Sequence[Any], num_seeds: int, *, luck: int, first_seed: int = 0
    ) -> np.ndarray:
        """Final regret of the n-th policy in the n-th environment: [points, seeds]."""
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        games = coupled.play_pairs(
            policies,
            environments,
            record=[self.horizon],
            num_seeds=num_seeds,
            seed=derived_seed(self._seed, luck),
            first_seed=first_seed,
            dtype=self._dtype,
            engine=dataclasses.replace(self._engine, progress=self._progress),
            timing=self.timing,
        )
        self._done += games.failed.size * self.horizon
        self.failed += int((games.failed > 0).sum())
        return games.regret[..., -1]

    def _progress(self, now: int, in_all: int) -> None:
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        self._show(min(self._done + now, self._total), self._total)

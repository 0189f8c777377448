"""The games of a search: pairs of policy and environment on common random numbers, with progress and one compile.

A search has several sets of random numbers, which must not overlap: for its steps, for the held-out environments, for
the choice among finalists, and for the numbers it reports.
"""

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandit.engine import Engine, Timing
from jaxbandit.progress import Progress
from jaxbandit.runs import coupled
from jaxbandit.types import lacking, written

# The sets of random numbers.
STEPS, HELD_OUT, FINALISTS, TEST = range(4)

Maker = Callable[[Any, int], Any]  # (environment, horizon) -> the policy, given what it needs of them


def derived_seed(seed: int, *purpose: int) -> int:
    """Returns a study seed for one purpose; other purposes have other random numbers."""
    return int(np.random.SeedSequence([seed, *purpose]).generate_state(1)[0] >> 1)


def as_maker(policy: Any) -> Maker:
    """Returns a function of (environment, horizon) that makes a policy, from such a function or a policy."""
    if isinstance(policy, type):
        raise ValueError(f"the policy is the class {policy.__name__}; pass an instance: {written(policy)}(...)")
    if not lacking("policy", policy):
        return lambda environment, horizon: policy
    if callable(policy):
        return policy
    raise ValueError(
        f"{policy!r} is not a policy; pass one such as jb.UniINF(horizon=...), or a function (environment, horizon)"
    )


class Arena:
    """The player of a search's games.

    Args:
      horizon: Rounds of a game.
      seed: The seed of the search.
      dtype: The floating-point type of the games.
      engine: The settings of the engine.
      stop: Set it to end with ``KeyboardInterrupt``.
      show: Called with (seed-rounds done, seed-rounds in all).
      lanes: The lanes of a step. Blocks have this size, so that all games compile once.
      total: The expected number of seed-rounds in all.
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
        self, policies: Sequence[Any], environments: Sequence[Any], num_seeds: int, *, purpose: int, first_seed: int = 0
    ) -> np.ndarray:
        """Plays the n-th policy in the n-th environment and returns final regrets: [points, seeds]."""
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        games = coupled.play_pairs(
            policies,
            environments,
            record=[self.horizon],
            num_seeds=num_seeds,
            seed=derived_seed(self._seed, purpose),
            first_seed=first_seed,
            dtype=self._dtype,
            engine=dataclasses.replace(self._engine, progress=self._progress),
            timing=self.timing,
        )
        self._done += games.failed.size * self.horizon
        self.failed += int((games.failed > 0).sum())
        return games.regret[..., -1]

    def attributes(self) -> dict[str, Any]:
        """Returns the attributes of a result that tell how its games were played."""
        devices = sorted(self.timing.devices)
        native = bool(devices) and all(device.startswith("native") for device in devices)
        return {
            "failed": self.failed,
            "compile_seconds": round(self.timing.compile_seconds, 3),
            "run_seconds": round(self.timing.run_seconds, 3),
            "device": "; ".join(devices),
            **({"way": "native"} if native else {}),
        }

    def _progress(self, now: int, in_all: int) -> None:
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        self._show(min(self._done + now, self._total), self._total)

"""The job: games that one compiled program plays, and the grouping of pairs by program."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit.engine import round
from jaxbandit.engine.shape import Shape
from jaxbandit.game import Environment, Policy, is_stationary
from jaxbandit.types import fingerprint, shared_leaves

Pair = tuple[Policy, Environment]


@dataclasses.dataclass(frozen=True)
class Job:
    """Games that one compiled program plays: lane n is seed ``seed_of[n]`` of the pair ``pairs[pair_of[n]]``.

    Attributes:
      pairs: The pairs (policy, environment), one group of ``by_program``.
      pair_of: The pair of each lane.
      seed_of: The seed of each lane.
      record: The increasing rounds to record at, [R]; the last is the horizon.
      seed: The study seed.
      measures: Names of measures and of fields of the state to record.
      trace: Number of seeds of which every round is kept.
      start: Rounds that the keeper's lanes have already played.
    """

    pairs: Sequence[Pair]
    pair_of: np.ndarray
    seed_of: np.ndarray
    record: np.ndarray
    seed: int = 0
    measures: tuple[str, ...] = ()
    trace: int = 0
    start: int = 0

    @classmethod
    def of(cls, pairs: Sequence[Pair], num_seeds: Any, record: Any, first_seed: int = 0, **rest) -> "Job":
        """Returns the job of all pairs in order; ``num_seeds`` is one number of seeds for all, or one for each."""
        counts = np.broadcast_to(num_seeds, len(pairs))
        seed_of = np.concatenate([np.arange(first_seed, first_seed + count) for count in counts])
        return cls(pairs, np.repeat(np.arange(len(pairs)), counts), seed_of, np.asarray(record), **rest)

    @property
    def num_lanes(self) -> int:
        """The number of games."""
        return self.pair_of.size

    @property
    def seed_rounds(self) -> int:
        """The number of rounds that are left to play, over all lanes."""
        return self.num_lanes * (int(self.record[-1]) - self.start)

    def shape(self, trace: bool = False) -> Shape:
        """Returns the shape of the job's games."""
        policy, environment = self.pairs[0]
        fields = getattr(_initial_state(policy, environment.num_arms), "_fields", ()) if self.measures else ()
        plan = round.Plan(
            stationary=is_stationary(environment),
            measures=tuple(name for name in self.measures if name not in fields),
            fields=tuple(name for name in self.measures if name in fields),
            trace=trace,
        )
        return Shape.of(policy, environment, plan)


def by_program(pairs: Sequence[Pair]) -> list[list[int]]:
    """Groups the indices of pairs that are played together: one compiled program, equal shared fields."""
    groups: dict[Any, list[int]] = {}
    known: dict[int, tuple] = {}  # by object, so that a table is hashed once, not once for each pair
    for index, pair in enumerate(pairs):
        for side in pair:
            if id(side) not in known:
                known[id(side)] = structure(side), _shared_values(side)
        groups.setdefault(tuple(known[id(side)] for side in pair), []).append(index)
    return list(groups.values())


def structure(side: Policy | Environment) -> tuple:
    """Returns the compiled-in part of a policy or an environment: class, static fields and shapes."""
    return jax.tree.structure(side), tuple(np.shape(leaf) for leaf in jax.tree.leaves(side))


def _shared_values(side: Policy | Environment) -> tuple[str, ...]:
    """Returns fingerprints of the values of a policy or environment that all lanes of a job share."""
    leaves = zip(jax.tree.leaves(side), shared_leaves(side), strict=True)
    return tuple(fingerprint(leaf) for leaf, shared in leaves if shared)


def measure_names(policy: Policy, num_arms: int) -> list[str]:
    """Returns the names that ``measures`` may hold: fields of the state and results of ``policy.measure``."""
    fields = getattr(_initial_state(policy, num_arms), "_fields", ())
    return [*fields, *(round.measure_shapes(policy, num_arms) if hasattr(policy, "measure") else ())]


def state_size(policy: Policy, num_arms: int) -> int:
    """Returns the count of numbers in the state of one game."""
    return sum(leaf.size for leaf in jax.tree.leaves(_initial_state(policy, num_arms)))


def _initial_state(policy: Policy, num_arms: int) -> Any:
    """Returns the shapes and dtypes of a state."""
    return jax.eval_shape(lambda: policy.init(num_arms))

"""Sums, regret and traces of a block, which the host adds up from its tallies in float64."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxbandit.engine import native
from jaxbandit.game import Environment, as_arrays, is_stationary, means_of

_APART = 16  # unused numbers between the lanes of one row and the next
_LANES = 64  # lanes whose regret is added up at once
_ROUNDS = 8192  # rounds of a changing environment whose means are computed at once


class Totals:
    """The float64 sums of a block's tallies.

    Args:
      to_come: Number of recorded rounds that will be added.
      running: The sums up to the last recorded round so far, if there was one.
      recorded: The rows recorded so far, if there are some.
    """

    def __init__(
        self,
        to_come: int,
        running: dict[str, np.ndarray] | None = None,
        recorded: dict[str, np.ndarray] | None = None,
    ):
        self._running = dict(running or {})
        self._rows: dict[str, np.ndarray] = {}
        self._count = max(map(len, (recorded or {}).values()), default=0)
        self._most = self._count + to_come
        for name, rows in (recorded or {}).items():
            self._room(name, rows)[: self._count] = rows

    @property
    def running(self) -> dict[str, np.ndarray]:
        """The sums up to the last recorded round."""
        return dict(self._running)

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """The rows recorded so far, [rows, ..., lanes]."""
        return {name: rows[: self._count] for name, rows in self._rows.items()}

    def add(self, tally: Any, count: int) -> None:
        """Adds a ``Tally`` of NumPy arrays, each leaf [count, ..., lanes]: those of ``count`` recorded rounds."""
        increments: dict[str, np.ndarray] = {"pulls": tally.pulls}  # at most as many as rounds, so int32 holds them
        for name, (total, lost) in tally.sums.items():
            increments[name] = total.astype(np.float64) + lost
        for name, values in increments.items():
            rows = self._room(name, values)[self._count : self._count + count]
            rows[:] = values
            for row in rows:
                if name in self._running:
                    row += self._running[name]
                self._running[name] = row
        for name, values in tally.fields.items():
            self._room(name, values.astype(np.float64))[self._count : self._count + count] = values
        self._count += count

    def variables(self, failed: np.ndarray) -> dict[str, np.ndarray]:
        """Returns every variable with the lanes first, then the recorded rounds."""
        variables = {name: np.moveaxis(values, -1, 0) for name, values in self.recorded.items()}
        variables["failed"] = failed
        return variables

    def _room(self, name: str, like: np.ndarray) -> np.ndarray:
        """Returns the array of all rows of a variable, with unused room after the lanes of each row.

        If rows were a power of two apart, all values of a lane would map to the same few cache sets, and the
        transposition that puts lanes first would take twice as long.
        """
        if name not in self._rows:
            *shape, num_lanes = like.shape[1:]
            room = np.empty((self._most, *shape, num_lanes + _APART), like.dtype)
            self._rows[name] = room[..., :num_lanes]
        return self._rows[name]


def traced(rounds: list) -> dict[str, np.ndarray]:
    """Returns the variables of rounds handed out one by one, lanes first."""
    if not rounds:
        return {}
    joined = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), -1, 0), *rounds)
    return {"trace_x": joined.x, "trace_arm": joined.arm, "trace_loss": joined.loss}


def regret(
    variables: dict[str, np.ndarray], gaps: list["Gaps"], environment_of: np.ndarray, record: np.ndarray
) -> np.ndarray:
    """Returns pseudo-regret, Eq. (1) of the paper, at the recorded rounds, the last ones of the gaps': [lanes, R].

    If no arm was drawn in some round, the regret is NaN from that round on.
    """
    if "gap" not in variables:
        of_arm = np.stack([gap.of_arm for gap in gaps])[environment_of]  # [lanes, K]
        # Some lanes at a time: all products at once are far larger than their sums and do not fit into the cache.
        parts = (slice(first, first + _LANES) for first in range(0, len(of_arm), _LANES))
        pulls = variables["pulls"]
        sums = np.concatenate([(pulls[part] * of_arm[part, None]).sum(axis=-1) for part in parts])
        return np.where(pulls.sum(axis=-1) == record[-pulls.shape[1] :], sums, np.nan)
    fixed = np.stack([gap.best_fixed for gap in gaps])[environment_of]  # [lanes, R]
    return variables["gap"] + fixed[:, -variables["gap"].shape[1] :]


class Gaps:
    """The gaps of an environment's arms and of its best fixed arm, in float64."""

    def __init__(self, environment: Environment, record: np.ndarray, stationary: bool):
        if stationary:
            with jax.enable_x64(True):
                means = np.asarray(_means(as_arrays(environment), np.ones(1, np.int32))[0], np.float64)
            self.of_arm = means - means.min()
            return
        self.best_fixed = np.asarray([best - arms.min() for arms, best in _expected(environment, record)])


def best_fixed_arms(environment: Environment, record: np.ndarray) -> np.ndarray:
    """Returns the best fixed arm at each recorded round, [R]: it has the least expected loss up to that round."""
    if is_stationary(environment):
        return np.full(len(record), np.argmin(Gaps(environment, record, stationary=True).of_arm))
    return np.asarray([arms.argmin() for arms, _ in _expected(environment, record)])


def _expected(environment: Environment, record: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Yields at each recorded round the expected loss so far of every arm, [K], and of the best arm of each round."""
    environment = as_arrays(environment)
    arms, best = np.zeros(environment.num_arms), 0.0
    for first, last in zip([0, *record[:-1]], record, strict=True):
        for start in range(int(first), int(last), _ROUNDS):
            rounds = np.arange(start + 1, start + _ROUNDS + 1, dtype=np.int32)
            means = np.asarray(_means(environment, rounds), np.float64)[: int(last) - start]
            arms, best = arms + means.sum(axis=0), best + means.min(axis=1).sum()
        yield arms, best


def _means(environment: Environment, rounds: np.ndarray) -> np.ndarray:
    """Computes the means of many rounds [rounds, K] by machine code, because XLA's bits depend on the processor."""
    leaves, structure = jax.tree.flatten(environment)
    if native.unavailable():
        return np.asarray(jax.jit(jax.vmap(functools.partial(means_of, environment)))(rounds))
    key = structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
    if key not in _mapped:
        shared = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        scalar = jax.ShapeDtypeStruct((), np.int32)
        try:
            with native.failures():
                _mapped[key] = native.Mapped(
                    lambda *a: means_of(jax.tree.unflatten(structure, a[:-1]), a[-1]), shared, [scalar]
                )
        except native.UnsupportedError:
            _mapped[key] = None
    if _mapped[key] is None:
        return np.asarray(jax.jit(jax.vmap(functools.partial(means_of, environment)))(rounds))
    return _mapped[key]([np.asarray(leaf) for leaf in leaves], [rounds])[0].T


_mapped: dict[Any, Any] = {}

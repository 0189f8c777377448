"""Snapshots of games between two rounds: arrays that can be cut, joined, and written to a checksummed file."""

import dataclasses
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from jaxbandit.engine.shape import Shape

MAGIC = b"jaxbandit checkpoint 1\n"


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The states of lanes after round ``t``; every array ends in the lane axis.

    Attributes:
      t: Rounds played.
      reached: Number of the job's recorded rounds that have been played.
      carry: Arrays that the engine carries from round to round.
      running: Sums over all rounds up to the last recorded one, float64.
      recorded: Rows recorded since the job's start, each [rows, ..., lanes].
    """

    t: int
    reached: int
    carry: list[np.ndarray]
    running: dict[str, np.ndarray]
    recorded: dict[str, np.ndarray]

    def take(self, index: Any) -> "Snapshot":
        """Returns the lanes at ``index``."""
        return self._map(lambda array: array[..., index])

    def fitting(self, shape: Shape) -> list[np.ndarray]:
        """Returns the carry; raises ``ValueError`` if it does not fit games of this shape."""
        wanted = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(shape.carry)]
        if wanted != [(leaf.shape[:-1], leaf.dtype) for leaf in self.carry]:
            raise ValueError(
                "a saved state does not fit its policy: another version of the policy wrote it; run the study in a new "
                "directory (--out)"
            )
        return self.carry

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name."""
        named = {f"carry.{n}": array for n, array in enumerate(self.carry)}
        named |= {f"running.{name}": array for name, array in self.running.items()}
        return named | {f"recorded.{name}": array for name, array in self.recorded.items()}

    @classmethod
    def from_arrays(cls, t: int, reached: int, named: dict[str, np.ndarray]) -> "Snapshot":
        """Makes a snapshot from the result of ``arrays``."""
        parts: dict[str, dict[str, np.ndarray]] = {"carry": {}, "running": {}, "recorded": {}}
        for name, array in named.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = array
        carry = [parts["carry"][str(n)] for n in range(len(parts["carry"]))]
        return cls(t=t, reached=reached, carry=carry, running=parts["running"], recorded=parts["recorded"])

    def _map(self, function: Callable[[np.ndarray], np.ndarray]) -> "Snapshot":
        named = {name: function(array) for name, array in self.arrays().items()}
        return Snapshot.from_arrays(self.t, self.reached, named)


def join(snapshots: Sequence[Snapshot]) -> Snapshot:
    """Joins snapshots after the same round into one."""
    first, named = snapshots[0], [snapshot.arrays() for snapshot in snapshots]
    joined = {name: np.concatenate([arrays[name] for arrays in named], axis=-1) for name in named[0]}
    return Snapshot.from_arrays(first.t, first.reached, joined)


class Keeper(Protocol):
    """A receiver of the runner's blocks, which saves them so that an interrupted run can continue."""

    def start(self, lanes: np.ndarray) -> Snapshot | None:
        """Returns the saved state of these lanes; None if they start at round 1."""
        ...

    def between(self, lanes: np.ndarray, take: Callable[[], Snapshot]) -> None:
        """Sees a block between two calls of the engine; ``take`` copies it into a snapshot."""
        ...

    def finish(self, lanes: np.ndarray, snapshot: Snapshot) -> None:
        """Receives the state of these lanes after the last round."""
        ...


def pack(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> bytes:
    """Packs arrays and their description into bytes with a checksum."""
    body = io.BytesIO()
    header = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(body, **{"header": header, **arrays})  # pyright: ignore[reportArgumentType]
    content = body.getvalue()
    return MAGIC + hashlib.sha256(content).digest() + content


def unpack(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns the arrays and description of ``pack``; raises ``ValueError`` if the bytes are damaged."""
    digest, content = data[len(MAGIC) : len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    if not data.startswith(MAGIC) or hashlib.sha256(content).digest() != digest:
        raise ValueError("the checkpoint is incomplete or damaged")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("it is compressed, and could be of any size")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # the libraries raise errors of many kinds for content that ``pack`` did not write
        raise ValueError(f"the checkpoint cannot be used ({type(error).__name__}: {error})") from None
    if not isinstance(about, dict):
        raise ValueError("the checkpoint cannot be used (its description is no table)")
    return arrays, about

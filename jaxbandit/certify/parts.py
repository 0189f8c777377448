"""Parts of a certificate, games of some seeds in one environment: their seeds and their names."""

import functools
import hashlib
import pathlib
from collections.abc import Iterator
from typing import Any

from jaxbandit.random import PRNG
from jaxbandit.store.cells import NUMERICS, describe, digest
from jaxbandit.version import __version__

ROUNDS = 2_000_000  # seed-rounds of a part, some seconds of play
LANES = 64  # the seeds of a part are a multiple of this


def seed_ranges(horizon: int, num_seeds: int) -> Iterator[tuple[int, int]]:
    """Yields the first and the last seed, exclusive, of every part; they do not depend on the number of seeds.

    Example:
      >>> list(seed_ranges(10_000, 400))
      [(0, 192), (192, 384), (384, 400)]
    """
    each = max(LANES, ROUNDS // horizon // LANES * LANES)
    return ((first, min(first + each, num_seeds)) for first in range(0, num_seeds, each))


def part_name(policy: Any, environment: Any, **rest: Any) -> str:
    """Returns the name of a part: a digest of the pair, the checks, and the rest that determines its numbers."""
    about = {"policy": describe(policy), "environment": describe(environment), "checks": _checks(), **rest}
    return digest(about | {"numerics": NUMERICS, "prng": PRNG, "version": __version__})


@functools.cache
def _checks() -> str:
    """Returns a digest of the code of the checks: an edited check is another check."""
    files = [pathlib.Path(__file__).with_name(name).read_bytes() for name in ("facts.py", "statements.py")]
    return hashlib.sha256(b"".join(files)).hexdigest()

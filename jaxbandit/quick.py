"""Quick studies: the same policies, worlds and figures, cut down to what compiles and plays in seconds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ROUNDS, SEEDS = 2_000, 64
OPTIONS = ("zip", "arms")  # lists in an entry that are no sweep


def thinned(table: Mapping[str, Any], sweeps: Sequence[str]) -> dict[str, Any]:
    """An entry with its sweeps cut to their two ends, or to the first value where each would compile anew.

    Args:
      table: An entry of a study file.
      sweeps: The keys that are swept.

    Example:
      >>> thinned({"name": "pareto", "tail_index": [1.2, 1.4, 1.6], "means": [[0.5, 1], [0.5, 1, 1]]},
      ...         ["tail_index", "means"])
      {'name': 'pareto', 'tail_index': [1.2, 1.6], 'means': [[0.5, 1]]}
    """
    out = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            value = thinned(value, sweeps_of(value))
        elif key in sweeps and len(value) > 1:
            value = _ends(value)
        out[key] = value
    return out


def sweeps_of(table: Mapping[str, Any]) -> list[str]:
    """Keys of a world inside a world that are swept: lists, of lists for what has one value per arm."""
    listed = [key for key, value in table.items() if isinstance(value, list) and key not in OPTIONS]
    return [key for key in listed if key not in ("means", "lengths") or isinstance(table[key][0], list)]


def _ends(values: Sequence[Any]) -> list[Any]:
    if all(isinstance(value, Mapping) for value in values):
        return [thinned(value, sweeps_of(value)) for value in (values[0], values[-1])]
    if len({np.shape(value) for value in values}) > 1:  # another number of arms is another program
        return [values[0]]
    return [values[0], values[-1]]

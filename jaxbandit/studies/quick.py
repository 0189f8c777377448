"""Quick studies: the same policies, environments and figures, cut down to compile and play in seconds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

ROUNDS, SEEDS = 2_000, 64
OPTIONS = ("zip", "arms")  # keys of lists in an entry that are not swept
COUNTS = ("budget",)  # fields that count rounds of the horizon


def check_given(content: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
    """Raises if a study's content is changed to more rounds or seeds than a quick run has, which would be cut again."""
    for name, most in (("horizon", ROUNDS), ("num_seeds", SEEDS)):
        value = changed.get(name)
        if value != content.get(name) and isinstance(value, int) and value > most:
            problem = f"a quick run has {name} = {most:,} at most, but it is set to {value:,}"
            raise ValueError(f"{problem}; lower it, or leave out --quick")


def entries(tables: Iterable[tuple[dict[str, Any], Any]], share: float) -> list[dict[str, Any]]:
    """Cuts entries down: their sweeps by ``thinned``, and the rounds at which single policies stop."""
    found = []
    for table, entry in tables:
        thin = thinned(table, list(entry.axes), share)
        if "stop_at" in thin and "stop_at" in entry.options:
            thin["stop_at"] = min(thin["stop_at"], ROUNDS)
        found.append(thin)
    return found


def thinned(table: Mapping[str, Any], sweeps: Sequence[str], share: float = 1.0) -> dict[str, Any]:
    """Cuts an entry's sweeps to their two ends, or to the first value if each value needs its own program.

    Args:
      table: An entry of a study file.
      sweeps: The keys that are swept.
      share: Fraction of the rounds that is played; fields that count rounds shrink with it.

    Example:
      >>> thinned({"name": "pareto", "tail_index": [1.2, 1.4, 1.6], "means": [[0.5, 1], [0.5, 1, 1]]},
      ...         ["tail_index", "means"])
      {'name': 'pareto', 'tail_index': [1.2, 1.6], 'means': [[0.5, 1]]}
    """
    out = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            value = thinned(value, sweeps_of(value), share)
        elif key in sweeps and len(value) > 1:
            value = _ends(value, share)
        if key in COUNTS:
            value = [_count(n, share) for n in value] if isinstance(value, list) else _count(value, share)
        out[key] = value
    zipped = table.get("zip") or []
    for group in zipped if all(isinstance(keys, list) for keys in zipped) else [zipped]:
        fewest = min((len(out[key]) for key in group), default=0)
        out |= {key: out[key][:fewest] for key in group}  # they advance together
    return out


def sweeps_of(table: Mapping[str, Any]) -> list[str]:
    """Returns the swept keys of a nested environment: lists, or lists of lists for fields with one value per arm."""
    listed = [key for key, value in table.items() if isinstance(value, list) and key not in OPTIONS]
    return [key for key in listed if key not in ("means", "lengths") or isinstance(table[key][0], list)]


def _count(value: Any, share: float) -> Any:
    return max(1, round(value * share)) if isinstance(value, int | float) else value


def _ends(values: Sequence[Any], share: float) -> list[Any]:
    if all(isinstance(value, Mapping) for value in values):
        values = [thinned(value, sweeps_of(value), share) for value in values]
        shapes = [np.shape(value.get("means", ())) for value in values]
        return [values[0], values[-1]] if shapes[0] == shapes[-1] else [values[0]]
    if len({np.shape(value) for value in values}) > 1:  # another number of arms is another program
        return [values[0]]
    return [values[0], values[-1]]


def figures(listed: Sequence[Any], labels: Sequence[str]) -> list[Any]:
    """Returns the figures of a study cut down, which has fewer environments than they may name.

    In place of an environment that is missing stands the last one with the same first word.

    Args:
      listed: The figures of the whole study.
      labels: Labels of the environments that are left.

    Example:
      >>> figures(["heat", {"name": "gains", "environments": ["pareto[K=4]", "pareto[K=6]"]}], ["pareto[K=2]"])
      ['heat', {'name': 'gains', 'environments': ['pareto[K=2]']}]
    """
    return [_with_labels(figure, labels) if isinstance(figure, Mapping) else figure for figure in listed]


def _with_labels(figure: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    def nearest(label: str) -> str:
        alike = [one for one in labels if one.split("[")[0] == label.split("[")[0]]
        return label if label in labels or "[" not in label or not alike else alike[-1]

    cut = dict(figure)
    cut |= {name: nearest(cut[name]) for name in ("left", "middle", "right") if name in cut}
    if cut.get("environments"):
        cut["environments"] = list(dict.fromkeys(map(nearest, cut["environments"])))
    return cut

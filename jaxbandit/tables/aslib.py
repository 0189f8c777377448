"""Reader of scenarios of the algorithm selection library: solvers run on instances, and some runs do not end.

References:
  Bischl et al., ASlib: a benchmark library for algorithm selection, Artificial Intelligence 237, 2016;
  arXiv 1506.02465.
"""

import pathlib
import re
from typing import NamedTuple

import numpy as np

from jaxbandit.tables.npz import check_bytes

PENALTY = 10  # PAR10: a run that did not end with status ok counts as ten times the cutoff

_CELL = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?:[^,'"\s][^,]*)?)\s*(,|$)""")
_NEEDED = ("instance_id", "algorithm", "runstatus")


class Runs(NamedTuple):
    """Performance per instance and algorithm."""

    values: np.ndarray  # [instances, algorithms], NaN where there is no run
    algorithms: list[str]
    maximise: bool


def read_scenario(folder: pathlib.Path) -> Runs:
    """Returns the runs of a scenario, in the order in which instances and algorithms appear.

    If the performance is a running time, a run that did not end with status ``ok``, or not within the
    ``algorithm_cutoff_time`` of ``description.txt``, counts as ten times that cutoff (PAR10). Repetitions are
    averaged after that. Other measures are read unchanged. If there are several measures, the first is read.
    """
    path = folder / "algorithm_runs.arff"
    if not path.is_file():
        raise ValueError(f"{folder} has no algorithm_runs.arff; pass the folder of an ASlib scenario, which has one")
    about = _description(folder / "description.txt")
    names, rows = _arff(path)
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise ValueError(f"{path} lacks the attribute {missing[0]}; it has {', '.join(names)}")
    measure = _measure(path, names, about)
    is_time = about.get("performance_type", ["runtime"])[0].lower() == "runtime"
    cutoff = _cutoff(folder, about) if is_time else None

    instances, algorithms = {}, {}
    scores: dict[tuple[int, int], list[float]] = {}
    for line, row in rows:
        run = dict(zip(names, row, strict=True))
        place = (
            instances.setdefault(run["instance_id"], len(instances)),
            algorithms.setdefault(run["algorithm"], len(algorithms)),
        )
        score = _score(f"{path}, line {line}", run[measure], run["runstatus"].lower() == "ok", is_time, cutoff)
        scores.setdefault(place, []).append(score)
    check_bytes(path, len(instances) * len(algorithms) * 8, f"a table of {len(instances):,} x {len(algorithms):,} runs")
    values = np.full((len(instances), len(algorithms)), np.nan)
    for place, repeated in scores.items():
        values[place] = np.mean(repeated)
    return Runs(values, list(algorithms), about.get("maximize", ["false"])[0].lower() == "true")


def _score(where: str, cell: str, is_ok: bool, is_time: bool, cutoff: float | None) -> float:
    try:
        value = np.nan if cell == "?" else float(cell)
    except ValueError:
        raise ValueError(f"{where}: {cell[:40]!r} is not a number") from None
    if not is_time or (is_ok and (cutoff is None or value <= cutoff or np.isnan(value))):
        return value
    if cutoff is None:
        raise ValueError(
            f"{where}: the run did not end, and description.txt has no algorithm_cutoff_time to count it by; add one"
        )
    return PENALTY * cutoff


def _measure(path: pathlib.Path, names: list[str], about: dict[str, list[str]]) -> str:
    known = [name for name in names if name not in (*_NEEDED, "repetition")]
    if not known:
        raise ValueError(f"{path} has no performance attribute; its attributes are {', '.join(names)}")
    named = about.get("performance_measures", known)[0].lower()
    if named not in known:
        raise ValueError(f"description.txt names the measure {named!r}, but {path} has {', '.join(known)}")
    return named


def _cutoff(folder: pathlib.Path, about: dict[str, list[str]]) -> float | None:
    given = about.get("algorithm_cutoff_time", ["?"])[0]
    if given == "?":
        return None
    try:
        cutoff = float(given)
    except ValueError:
        raise ValueError(f"{folder / 'description.txt'}: algorithm_cutoff_time is {given!r}, not a number") from None
    if not 0 < cutoff < np.inf:
        raise ValueError(f"{folder / 'description.txt'}: algorithm_cutoff_time is {given!r}; it must be above 0")
    return cutoff


def _description(path: pathlib.Path) -> dict[str, list[str]]:
    """Returns the plain values and lists at the top level of a YAML file; empty if there is no file."""
    if not path.is_file():
        return {}
    about: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        item = re.match(r"\s*-\s+(.*)", line)
        if item and name:
            about[name].append(_bare(item[1]))
        elif entry := re.match(r"(\w+)\s*:\s*(.*)", line):
            name, value = entry.groups()
            about[name] = [_bare(part) for part in value.strip("[]").split(",")] if value else []
        elif line:
            name = ""  # inside a nested table
    return {name: values for name, values in about.items() if values}


def _arff(path: pathlib.Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Returns the names of the attributes in lower case, and the data with line numbers."""
    names: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    in_data = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        if not in_data:
            in_data = line.lower() == "@data"
            if attribute := re.match(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", line, re.IGNORECASE):
                names.append(_bare(attribute[1]).lower())
            continue
        cells = _cells(line)
        if cells is None or len(cells) != len(names):
            count = "entries with wrong quotes" if cells is None else f"{len(cells)} entries"
            raise ValueError(f"{path}, line {number}: {count}, but there are {len(names)} attributes")
        rows.append((number, cells))
    if not rows:
        raise ValueError(f"{path} holds no runs; put them after a line @DATA")
    return names, rows


def _cells(line: str) -> list[str] | None:
    cells, at = [], 0
    while True:
        cell = _CELL.match(line, at)
        if cell is None:
            return None
        cells.append(_bare(cell[1]))
        if not cell[2]:
            return cells
        at = cell.end()


def _bare(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text

"""The size of a study, estimated before anything is built: studies that no machine can play are refused in words."""

import contextlib
import dataclasses
import math
import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

from jaxbandit.checks import recorded_rounds
from jaxbandit.checks import total_memory as total_memory
from jaxbandit.studies.entries import Entry

PAIR_BYTES = 4096  # of a pair in memory, with its description
CELL_BYTES = 1024  # of a cell's name and place in memory
CELL_SEEDS = 65_536  # most seeds of a cell
BLOCK_SEEDS = 64  # least seeds whose results are in memory at once
COPIES = 5  # of these results, on their way to a file
RATE = 1e8  # rounds times arms that a core plays in a second, roughly
YEARS = 10 * 365 * 86_400.0  # a longer run is refused
# What is large, for the advice: the value that exceeds its entry most is the one to change.
LARGE = {"num_seeds": 1e5, "horizon": 1e8, "record": 1e4, "policies": 1e3, "environments": 1e3, "arms": 1e3}


@dataclasses.dataclass(frozen=True)
class Need:
    """What a study needs, at the least.

    Attributes:
      games: Number of games.
      memory_bytes: Memory.
      disk_bytes: Disk space.
      seconds: Time, from a rough speed of this many cores.
    """

    games: int
    memory_bytes: int
    disk_bytes: int
    seconds: float


def need(sizes: dict[str, int], summary: bool) -> Need:
    """Estimates what a study needs; ``sizes`` has the keys of ``LARGE``."""
    pairs = sizes["policies"] * sizes["environments"]
    games, rounds = pairs * sizes["num_seeds"], min(sizes["record"], sizes["horizon"])
    cells = pairs * -(-sizes["num_seeds"] // CELL_SEEDS)
    row = rounds * 8 * (2 + sizes["arms"])
    memory = pairs * PAIR_BYTES + cells * CELL_BYTES + COPIES * row * min(sizes["num_seeds"], BLOCK_SEEDS)
    disk = file_bytes(sizes["arms"], games, rounds, cells, summary)
    seconds = games * sizes["horizon"] * sizes["arms"] / RATE / (os.cpu_count() or 1)
    return Need(games, memory + 24 * sizes["record"], disk, seconds)


def file_bytes(arms: int, games: int, rounds: int, cells: int, summary: bool) -> int:
    """Returns the least size of the files that hold these recorded rounds of these games."""
    return cells * rounds * 8 * (2 + arms) + 8 * games if summary else games * rounds * (16 + 4 * arms)


def check_is_study(given: Any, function: str) -> None:
    """Raises ``ValueError`` unless ``given`` is a study."""
    if not hasattr(given, "check_size"):
        raise ValueError(f"{function}() takes a study, got {given!r}; pass jb.Study(...) or jb.Study.load(path)")


def check(
    study: Any, policies: Sequence[Entry], environments: int, arms: int = 1, directory: pathlib.Path | None = None
) -> Need:
    """Returns what a study needs; raises ``ValueError`` with the value to change if that cannot be played here.

    Args:
      study: The study.
      policies: The entries of its policies.
      environments: The number of its environments, as far as it is known by then.
      arms: Their number of arms, as far as it is known by then.
      directory: The results directory; its files and its free disk space count. None leaves the disk out.
    """
    record = study.record
    if isinstance(record, int) and record <= LARGE["record"]:
        record = recorded_rounds(study.horizon, record)  # fewer, if early ones coincide
    sizes = {
        "num_seeds": max((entry.options.get("num_seeds", study.num_seeds) for entry in policies), default=1),
        "horizon": study.horizon,
        "record": record if isinstance(record, int) else len(record),
        "policies": sum(entry.count for entry in policies),
        "environments": environments,
        "arms": arms,
    }
    seeds = "num_seeds"
    most = max((_most_seeds(study, entry) for entry in policies), default=0)
    least = need(sizes, study.keep == "summary")
    if most > max(sizes[seeds], LARGE[seeds]):
        seeds, sizes["num_seeds"] = "max_seeds", most
    needs, memory = need(sizes, study.keep == "summary"), total_memory()
    free = None if directory is None else free_disk(directory)
    fits = free is None or needs.disk_bytes <= free or needs.disk_bytes <= free + _stored(directory)
    if needs.memory_bytes <= memory and needs.seconds <= YEARS and fits:
        return least
    key = max(LARGE, key=lambda name: sizes[name] / LARGE[name])
    named = seeds if key == "num_seeds" else key
    advice = f"lower {'the number of ' * (key in ('policies', 'environments', 'arms'))}{named} (now {sizes[key]:,})"
    if needs.memory_bytes <= memory and needs.seconds <= YEARS and sizes[key] <= LARGE[key]:  # an ordinary study
        advice = f"make room in {directory}, or give a directory on another disk with --out"
    there = f"{size(memory)} of memory" + ("" if free is None else f" and {size(free)} of free disk space")
    raise ValueError(
        f"this study is too large: {needs.games:,} games need at least {size(needs.memory_bytes)} of memory, "
        f"{size(needs.disk_bytes)} of disk space and {duration(needs.seconds)}, but here are {there}; {advice}"
    )


def _most_seeds(study: Any, entry: Entry) -> int:
    """Returns the largest number of seeds that a precision may ask for; 0 without a precision."""
    precise = entry.options.get("precision", study.precision) is not None
    return entry.options.get("max_seeds", study.max_seeds) if precise else 0


def free_disk(directory: pathlib.Path) -> float:
    """Returns the free space where a directory is or would be, in bytes; infinite if it is not known."""
    for place in (directory.absolute(), *directory.absolute().parents):
        if place.exists():
            try:
                return shutil.disk_usage(place).free
            except OSError:
                break
    return math.inf


def _stored(directory: pathlib.Path | None) -> int:
    """Returns the size of the files in a results directory."""
    found = 0
    for path in directory.glob("*/*") if directory else ():
        with contextlib.suppress(OSError):  # a file that has just been renamed
            found += path.stat().st_size
    return found


def duration(seconds: float) -> str:
    """Returns a duration as text: ``1.5 s``, ``12 min``, ``3.4 h``."""
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.2g} {name}" if seconds / unit < 10 else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:,.1f} days"


def size(count: float) -> str:
    """Returns a number of bytes as text: ``24 kB``, ``1.3 GB``."""
    for name in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {name}"
        count /= 1000
    return f"{count:,.3g} TB"


def power(value: float) -> str:
    """Formats a large count to two digits with a power of ten.

    Example:
      >>> power(819_200_000.0), power(512_000.0)
      ('8.2 × 10⁸', '512,000')
    """
    if value < 1e6:
        return f"{value:,.0f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"

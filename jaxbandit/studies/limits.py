"""The size of a study, estimated before anything is built: studies that no machine can play are refused in words."""

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


def need(sizes: dict[str, int], games: int, mean_arms: float, summary: bool) -> Need:
    """Estimates what a study needs; ``sizes`` has the keys of ``LARGE``, and the largest number of seeds and arms."""
    pairs = sizes["policies"] * sizes["environments"]
    rounds = min(sizes["record"], sizes["horizon"])
    cells = pairs * -(-sizes["num_seeds"] // CELL_SEEDS)
    row = rounds * 8 * (2 + sizes["arms"])
    memory = pairs * PAIR_BYTES + cells * CELL_BYTES + COPIES * row * min(sizes["num_seeds"], BLOCK_SEEDS)
    disk = file_bytes(mean_arms, games, rounds, pairs, summary)
    seconds = games * sizes["horizon"] * mean_arms / RATE / (os.cpu_count() or 1)
    return Need(games, memory + 24 * sizes["record"], disk, seconds)


def file_bytes(arms: float, games: int, rounds: int, cells: int, summary: bool) -> int:
    """Returns the least size of the files that hold these recorded rounds of these games."""
    return int(cells * rounds * 8 * (2 + arms) + 8 * games if summary else games * rounds * (16 + 4 * arms))


def check_is_study(given: Any, function: str) -> None:
    """Raises ``ValueError`` unless ``given`` is a study."""
    if not hasattr(given, "check_size"):
        raise ValueError(f"{function}() takes a study, got {given!r}; pass jb.Study(...) or jb.Study.load(path)")


def check(
    study: Any,
    policies: Sequence[Entry],
    environments: int,
    arms: int = 1,
    all_arms: int = 0,
    directory: pathlib.Path | None = None,
) -> Need:
    """Returns what a study needs; raises ``ValueError`` with the value to change if that cannot be played here.

    Whether the missing cells fit into the free disk space is known only when they are listed. Here a study is refused
    if its results are larger than the whole disk.

    Args:
      study: The study.
      policies: The entries of its policies.
      environments: The number of its environments, as far as it is known by then.
      arms: Their largest number of arms, as far as it is known by then.
      all_arms: The sum of their numbers of arms; 0 if it is not known by then.
      directory: The results directory, whose disk counts; None leaves the disk out.
    """
    record, summary = study.record, study.keep == "summary"
    if isinstance(record, int) and record <= LARGE["record"]:
        record = recorded_rounds(study.horizon, record)  # fewer, if early ones coincide
    least = [entry.options.get("num_seeds", study.num_seeds) for entry in policies]
    most = [_most_seeds(study, entry) for entry in policies]
    sizes = {
        "num_seeds": max(least, default=1),
        "horizon": study.horizon,
        "record": record if isinstance(record, int) else len(record),
        "policies": sum(entry.count for entry in policies),
        "environments": environments,
        "arms": arms,
    }

    def need_of(seeds: Sequence[int]) -> Need:
        games = environments * sum(entry.count * count for entry, count in zip(policies, seeds, strict=True))
        return need(sizes, games, max(all_arms / environments, 1) if environments else 1, summary)

    needs = at_least = need_of(least)
    seeds = "num_seeds"
    if max(most, default=0) > max(sizes[seeds], LARGE[seeds]):
        seeds, sizes["num_seeds"] = "max_seeds", max(most)
        needs = need_of([max(both) for both in zip(least, most, strict=True)])
    memory, disk = total_memory(), None if directory is None else whole_disk(directory)
    if needs.memory_bytes <= memory and needs.seconds <= YEARS and (disk is None or needs.disk_bytes <= disk):
        return at_least
    key = max(LARGE, key=lambda name: sizes[name] / LARGE[name])
    named = seeds if key == "num_seeds" else key
    there = f"{size(memory)} of memory" + ("" if disk is None else f" and a disk of {size(disk)}")
    raise ValueError(
        f"this study is too large: {needs.games:,} games need at least {size(needs.memory_bytes)} of memory, "
        f"{size(needs.disk_bytes)} of disk space and {duration(needs.seconds)}, but here are {there}; "
        f"lower {'the number of ' * (key in ('policies', 'environments', 'arms'))}{named} (now {sizes[key]:,})"
    )


def _most_seeds(study: Any, entry: Entry) -> int:
    """Returns the largest number of seeds that a precision may ask for; 0 without a precision."""
    precise = entry.options.get("precision", study.precision) is not None
    return entry.options.get("max_seeds", study.max_seeds) if precise else 0


def free_disk(directory: pathlib.Path) -> float:
    """Returns the free space where a directory is or would be, in bytes; infinite if it is not known."""
    usage = _disk(directory)
    return math.inf if usage is None else usage.free


def whole_disk(directory: pathlib.Path) -> float:
    """Returns the size of the disk where a directory is or would be, in bytes; infinite if it is not known."""
    usage = _disk(directory)
    return math.inf if usage is None else usage.total


def _disk(directory: pathlib.Path) -> Any:
    for place in (directory.absolute(), *directory.absolute().parents):
        if place.exists():
            try:
                return shutil.disk_usage(place)
            except OSError:
                break
    return None


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

"""Checks of arguments: whole numbers, choices, unknown names, the rounds to record at, names of files."""

import difflib
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MAX_ROUNDS = 2**31 - 1
MAX_SHOWN = 1_000  # letters of a title or label; figures of much longer ones would take minutes
CONTROL = {chr(n) for n in (*range(32), *range(127, 160))} - {"\n", "\t"}
MAX_NAME = 120  # bytes of a label in a file name, of which file systems allow 255


def recorded_rounds(horizon: int, record: int | Sequence[int]) -> np.ndarray:
    """Returns the checked rounds to record at; if ``record`` is a number, that many log-spaced rounds."""
    check_horizon(horizon)
    check_record(record)
    if isinstance(record, int | np.integer):
        spaced = np.geomspace(1, horizon, int(record)) if record > 1 else np.array([horizon])
        return np.unique(np.rint(spaced).astype(np.int64))
    rounds = np.asarray(record)
    if (np.diff(rounds) <= 0).any():
        raise ValueError(f"record must be strictly increasing, got {rounds.tolist()}; sort it and drop repeats")
    if rounds[0] < 1 or rounds[-1] > horizon:
        raise ValueError(
            f"record must lie between 1 and the horizon {horizon}, got {rounds[0]} to {rounds[-1]}; "
            "raise horizon or drop the rounds outside"
        )
    return rounds.astype(np.int64)


def check_record(record: Any) -> None:
    """Raises unless ``record`` is a number of rounds or a list of rounds, in whatever order."""
    rounds = np.atleast_1d(np.asarray(record, object))
    whole = all(isinstance(number, int | np.integer) and not isinstance(number, bool) for number in rounds.flat)
    if rounds.ndim > 1 or not rounds.size or not whole:
        raise ValueError(f"record must be a number of rounds or a list of whole rounds, got {record!r}")
    if np.ndim(record) == 0:
        check_whole("record", record, 1)


def check_whole(name: str, value: Any, least: int, why: str = "") -> None:
    """Raises unless ``value`` is a whole number of at least ``least``."""
    if isinstance(value, float) and value.is_integer() and value >= least:
        raise ValueError(f"{name} must be a whole number, got {value!r}; write {int(value)}")
    if isinstance(value, str) and value.strip().isdecimal() and int(value) >= least:
        raise ValueError(f"{name} must be a whole number, got the text {value!r}; write {int(value)}, without quotes")
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}" + (f"; {why}" if why else ""))


def check_seed(seed: Any) -> None:
    """Raises unless ``seed`` is a whole number of at most 64 bits."""
    check_whole("seed", seed, 0)
    if seed >= 2**64:
        raise ValueError(f"seed must be below 2^64, got {seed}; a key has 64 bits")


def check_precision(name: str, value: Any) -> None:
    """Raises unless ``value`` is a positive finite number, the relative half-width of a band."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a number above 0, such as 0.05 for 5 %, got {value!r}")


def check_number(name: str, value: Any) -> None:
    """Checks one of the numbers of a study, by its name: in Python and in files, of a study and of an entry."""
    last = name.rpartition(".")[2]
    if last == "seed":
        check_seed(value)
    elif last == "horizon":
        check_horizon(value)
    elif last == "precision":
        if value is not None:
            check_precision(name, value)
    elif last == "record":
        check_record(value)
    else:
        check_whole(name, value, 1)


def check_horizon(horizon: Any) -> None:
    """Raises unless ``horizon`` is a number of rounds that can be counted."""
    check_whole("horizon", horizon, 2, "regret needs at least two rounds")
    if horizon > MAX_ROUNDS:
        raise ValueError(f"horizon must be at most {MAX_ROUNDS}, got {horizon}; rounds are counted in 32 bits")


def check_history(policies: Sequence[Any], rounds: int) -> None:
    """Raises if a policy that stores every reward has room for fewer than ``rounds``, or its losses come too late."""
    for policy in policies:
        if hasattr(policy, "policy"):
            check_history([policy.policy], rounds)
        delay = getattr(policy, "delay", 0)
        if delay >= rounds:
            raise ValueError(
                f"{type(policy).__name__}.delay must be below the horizon {rounds}, got {delay}: no loss would arrive; "
                "shorten the delay or play more rounds"
            )
        room = getattr(policy, "max_rounds", rounds)
        if getattr(policy, "form", "") == "exact" and room < rounds:
            raise ValueError(
                f"{type(policy).__name__} in its exact form stores max_rounds = {room} rewards, but plays {rounds} "
                f"rounds; pass max_rounds = {rounds}"
            )


def suggest(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    """Returns a suggestion for an unknown name, with the known names."""
    known = list(known)
    near, listing = nearest(name, known), ", ".join(known) if known else "none"
    return f"did you mean {near!r}? Known: {listing}" if near else f"known: {listing}"


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Returns the known name that is spelt like an unknown one, if there is one."""
    lower = {entry.lower(): entry for entry in reversed(known)}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return lower[near[0]] if near else None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raises unless ``value`` is one of ``choices``."""
    if value not in choices:
        near = nearest(str(value), choices)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}{hint}")


def check_shown(name: str, text: str) -> None:
    """Raises unless a title or label can be shown: it is short, and has no characters that control a terminal."""
    if len(text) > MAX_SHOWN:
        raise ValueError(f"{name} must have at most {MAX_SHOWN:,} letters, got {len(text):,}; shorten it")
    if any(char in CONTROL for char in text):
        raise ValueError(f"{name} must not have control characters, got {text[:100]!r}; remove them")


def safe_name(label: str) -> str:
    """Returns a label as part of a file name: no separators of directories, and at most ``MAX_NAME`` bytes."""
    name = "".join(letter if letter.isalnum() or letter in "-_.=" else "_" for letter in label)
    if len(name.encode()) <= MAX_NAME:
        return name
    return f"{name.encode()[: MAX_NAME - 20].decode(errors='ignore')}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"


def total_memory() -> float:
    """Returns the memory of this machine in bytes; infinite if it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return math.inf

"""Checks of what a caller asks for: study files, whole numbers, choices, the rounds to record at."""

import pathlib
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MAX_ROUNDS = 2**31 - 1
# What newcomers call keys of a study file, and what to write where one is missing.
SYNONYMS = dict.fromkeys(("world", "worlds", "env", "envs", "environment"), "environments") | {"policy": "policies"}
EXAMPLES = {
    "horizon": "e.g. horizon = 10_000",
    "num_seeds": "e.g. num_seeds = 256",
    "policies": 'at least one: [[policies]] and below it name = "uniinf"',
    "environments": 'at least one: [[environments]] and below it name = "pareto", means = [0.5, 1.0], tail_index = 1.6',
}


def read_file(path: pathlib.Path) -> tuple[str, dict[str, Any]]:
    """The text of a study file and what it says, or an error that names the file."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except FileNotFoundError:
        raise ValueError(
            f"{path} does not exist; give the path of a study file such as experiments/quickstart.toml"
        ) from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None


def recorded_rounds(horizon: int, record: int | Sequence[int]) -> np.ndarray:
    """The rounds to record at, checked: log-spaced if a number is given."""
    check_whole("horizon", horizon, 2, "regret needs at least two rounds")
    if horizon > MAX_ROUNDS:
        raise ValueError(f"horizon must be at most {MAX_ROUNDS}, got {horizon}; rounds are counted in 32 bits")
    if isinstance(record, int | np.integer) and not isinstance(record, bool):
        check_whole("record", record, 1)
        spaced = np.geomspace(1, horizon, int(record)) if record > 1 else np.array([horizon])
        return np.unique(np.rint(spaced).astype(np.int64))
    rounds = np.asarray(record)
    if rounds.ndim != 1 or rounds.size == 0 or not np.issubdtype(rounds.dtype, np.integer):
        raise ValueError(f"record must be a number of rounds or a list of whole rounds, got {record!r}")
    if (np.diff(rounds) <= 0).any():
        raise ValueError(f"record must be strictly increasing, got {rounds.tolist()}; sort it and drop repeats")
    if rounds[0] < 1 or rounds[-1] > horizon:
        raise ValueError(
            f"record must lie between 1 and the horizon {horizon}, got {rounds[0]} to {rounds[-1]}; "
            "raise horizon or drop the rounds outside"
        )
    return rounds.astype(np.int64)


def check_whole(name: str, value: Any, least: int, why: str = "") -> None:
    """Raises unless ``value`` is a whole number of at least ``least``."""
    if isinstance(value, float) and value.is_integer() and value >= least:
        raise ValueError(f"{name} must be a whole number, got {value!r}; write {int(value)}")
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}" + (f"; {why}" if why else ""))


def check_seed(seed: Any) -> None:
    """Raises unless ``seed`` is a whole number of at most 64 bits."""
    check_whole("seed", seed, 0)
    if seed >= 2**64:
        raise ValueError(f"seed must be below 2^64, got {seed}; a key has 64 bits")


def check_history(policies: Sequence[Any], rounds: int) -> None:
    """Raises if a policy that keeps every reward has room for fewer than ``rounds``: it would forget the rest."""
    for policy in policies:
        room = getattr(policy, "max_rounds", rounds)
        if getattr(policy, "form", "") == "exact" and room < rounds:
            raise ValueError(
                f"{type(policy).__name__} in its exact form keeps max_rounds = {room} rewards, but {rounds} rounds are "
                f"played; pass max_rounds = {rounds}"
            )


def problems(errors: Sequence[Mapping[str, Any]], examples: Mapping[str, str] | None = None) -> str:
    """What pydantic found, in the words of this package: the field, what it must be, what it is.

    Args:
      errors: ``ValidationError.errors()``.
      examples: By field, what to write where it is missing.
    """
    return "; ".join(_problem(error, examples or {}) for error in errors)


def _problem(error: Mapping[str, Any], examples: Mapping[str, str]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    # Of a field that takes one type or another, pydantic names the type too.
    where = ".".join(str(part) for part in error["loc"] if part not in ("int", "float", "str", "list[int]"))
    limits = {
        "greater_than": "> {gt:g}",
        "greater_than_equal": ">= {ge:g}",
        "less_than": "< {lt:g}",
        "less_than_equal": "<= {le:g}",
    }
    if kind == "missing":
        return f"{where} is missing" + (f"; add {examples[where]}" if where in examples else "")
    if kind == "value_error":
        return ": ".join(filter(None, (where, error["msg"].removeprefix("Value error, "))))
    if kind in limits:
        wanted = limits[kind].format(**context)
    elif kind.startswith("int_"):
        wanted = "a whole number"
    elif kind.startswith("float_"):
        wanted = "a number"
    elif kind == "list_type":
        wanted = "a list"
    elif kind == "literal_error":
        wanted = context["expected"]
    else:
        return f"{where}: {error['msg']}, got {error['input']!r}"
    return f"{where} must be {wanted}, got {error['input']!r}"


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raises unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")

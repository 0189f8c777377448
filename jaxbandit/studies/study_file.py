"""The text of a study file, and the wording of its errors: the key, its allowed values, and what to write."""

import pathlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

MOST_BYTES = 2_000_000  # of a study file: a million numbers would take longer than two seconds to read
MOST = 10  # problems in a message
LONG = 200  # letters of a value in a message
# Words that newcomers use for keys of a study file, and examples of what to write if a key is missing.
SYNONYMS = dict.fromkeys(("world", "worlds", "env", "envs", "environment"), "environments") | {"policy": "policies"}
EXAMPLES = {
    "horizon": "e.g. horizon = 10_000",
    "num_seeds": "e.g. num_seeds = 256",
    "policies": 'at least one: [[policies]] and below it name = "uniinf"',
    "environments": 'at least one: [[environments]] and below it name = "pareto", means = [0.5, 1.0], tail_index = 1.6',
}


class DataNeededError(ValueError):
    """The error of a study whose tables have to be given with ``--data``."""


def read_file(path: pathlib.Path) -> tuple[str, dict[str, Any]]:
    """Reads a study file; returns its text and its content, or raises ``ValueError`` with the file's name."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(
                f"{path} has more than {MOST_BYTES:,} bytes, the most that a study file may have; write long lists to "
                'a table and name it in the entry: name = "scheduled", table = "means.npy"'
            )
        text = content.decode().replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise ValueError(
            f"{path} does not exist; give the path of a study file such as experiments/quickstart.toml"
        ) from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a directory; give the path of a study file") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; give the path of a study file") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    try:
        return text, tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{path} is not valid TOML: its lists or tables are nested too deeply") from None
    except ValueError as error:
        place = re.search(r"at line (\d+)", str(error))
        shown = f"; see line {place[1]}: {text.splitlines()[int(place[1]) - 1].strip()[:LONG]}" if place else ""
        raise ValueError(f"{path} is not valid TOML: {error}{shown}") from None


def problems(errors: Sequence[Mapping[str, Any]], examples: Mapping[str, str] | None = None) -> str:
    """Words the errors of pydantic for users: the field, its allowed values, and its value.

    Args:
      errors: The result of ``ValidationError.errors()``.
      examples: For each field, the text to write if it is missing.
    """
    found = list(dict.fromkeys(_problem(error, examples or {}) for error in errors))
    return "; ".join([*found[:MOST], *([f"and {len(found) - MOST} more problems"] if len(found) > MOST else [])])


def _problem(error: Mapping[str, Any], examples: Mapping[str, str]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    # If a field takes one type or another, pydantic adds the name of the type.
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
        said = error["msg"].removeprefix("Value error, ")
        return said if not where or said.startswith(f"{where} ") else f"{where}: {said}"
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
        return f"{where}: {error['msg']}, got {_short(error['input'])}"
    return f"{where} must be {wanted}, got {_short(error['input'])}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONG else f"{text[:LONG]} ..."

"""A study file as text, and what is wrong with one in words: which key, what it must be, what to write."""

import pathlib
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

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

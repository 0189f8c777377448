"""The check of a manifest: keys and types that the other modules rely on, whoever wrote the file."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

_MAIN = {"policy", "environment", "round", "arm"}  # coordinates that every dataset has, each along its own dimension


def problem(said: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with the content of ``store.json``; None if it can be used."""
    try:
        return next(_problems(said), None)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return f"the key {error} is missing" if isinstance(error, KeyError) else "a value has the wrong type"


def _problems(said: Mapping[str, Any]):
    rounds, games = said["rounds"], said["games"]
    if not rounds or not _are_whole(rounds, 1) or any(b <= a for a, b in itertools.pairwise(rounds)):
        yield "rounds must be increasing whole numbers"
    if said["keep"] not in ("seeds", "summary"):
        yield f"keep is {said['keep']!r}"
    if type(said["record"]) is not int and not _are_whole(said["record"], 1):
        yield "record must be a whole number or a list of them"
    if not games or not games[0] or not all(isinstance(key, str) for row in games for key in row):
        yield "games must be a table of text"
    shape = {(len(games), len(row)) for row in games}
    tables = {"seeds": said["seeds"]} | ({"stops": said["stops"]} if "stops" in said else {})
    for name, table in tables.items():
        if len(shape) > 1 or {(len(table), len(row)) for row in table} != shape:
            yield f"{name} has not the shape of games"
        if not all(_are_whole(row, 1) for row in table):
            yield f"{name} must be a table of whole numbers above 0"
    yield from _coordinates(said["coords"], {"policy": len(games), "environment": len(games[0]), "round": len(rounds)})
    if said["coords"]["round"]["values"] != rounds:
        yield "the coordinate round differs from rounds"
    if not isinstance(said["attrs"], dict) or not all(_is_plain(value) for value in said["attrs"].values()):
        yield "attrs must be a table of text and numbers"


def _coordinates(coords: Mapping[str, Any], sizes: dict[str, int]):
    if missing := _MAIN - set(coords):
        yield f"the coordinate {min(missing)} is missing"
    for name, given in coords.items():
        dims, values = given["dims"], given["values"]
        if len(dims) != 1 or not isinstance(values, list) or not all(map(_is_plain, values)):
            yield f"the coordinate {name} is no list of values"
        elif not isinstance(dims, list) or not isinstance(dims[0], str) or (name in _MAIN and dims != [name]):
            yield f"the coordinate {name} has the dimensions {dims!r}"
        elif sizes.setdefault(dims[0], len(values)) != len(values):
            yield f"the coordinate {name} has {len(values)} values instead of {sizes[dims[0]]}"


def _are_whole(values: Sequence[Any], least: int) -> bool:
    return isinstance(values, list) and all(type(value) is int and least <= value < 2**63 for value in values)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | float) or (type(value) is int and abs(value) < 2**63)

"""Values of a study that the command line changes: ``--set``, ``--horizon``, ``--num-seeds``, ``--seed``."""

import tomllib
from collections.abc import Sequence
from typing import Any


def overridden(content: dict[str, Any], changes: Sequence[str], section: str = "", **values: Any) -> dict[str, Any]:
    """Returns a study's content with other values.

    Args:
      content: The content of a study file.
      changes: Texts such as ``policies.0.initial_scale=1,4``: the keys to a value, joined by dots, and the value in
        TOML. A list may be written without brackets, and text without quotes.
      section: A section with a number of seeds or horizons of its own, which are replaced too.
      **values: Values of keys at the top; None leaves a key as it is.

    Example:
      >>> overridden({"policies": [{"name": "uniinf"}]}, ["policies.0.initial_scale=1,4"], horizon=100)
      {'policies': [{'name': 'uniinf', 'initial_scale': [1, 4]}], 'horizon': 100}
      >>> overridden({"worst": {"horizons": [10, 100]}}, [], "worst", horizon=50, num_seeds=8)
      {'worst': {'num_seeds': 8}, 'horizon': 50, 'num_seeds': 8}
    """
    content = _copied(content)
    for change in changes:
        place, equals, value = change.partition("=")
        if not equals or not place.strip():
            raise ValueError(f"--set {change!r} has no value; write KEY=VALUE, such as policies.0.initial_scale=1,4")
        _put(content, place.strip().split("."), _value(value.strip()), change)
    given = {name: value for name, value in values.items() if value is not None}
    if isinstance(table := content.get(section), dict):
        if "horizon" in given:
            table.pop("horizons", None)
        table |= {name: value for name, value in given.items() if name == "num_seeds"}
    return content | given


def _put(content: Any, keys: Sequence[str], value: Any, change: str) -> None:
    """Sets the value that the keys lead to; a table that does not exist yet is made, an entry of a list is not."""
    for n, key in enumerate(keys):
        last = n + 1 == len(keys)
        if isinstance(content, list):
            if not key.isdecimal() or int(key) >= len(content):
                where = ".".join(keys[:n])
                entries = [f"{where}.{number}{_name(entry)}" for number, entry in enumerate(content)]
                raise ValueError(
                    f"--set {change!r}: {where} has no entry {key!r}; write its number: {', '.join(entries) or 'none'}"
                )
            place: Any = int(key)
        elif isinstance(content, dict):
            place = key
        else:
            raise ValueError(f"--set {change!r}: {'.'.join(keys[:n])} is a value and holds no {key!r}; shorten the key")
        if last:
            content[place] = value
        else:
            content = content.setdefault(place, {}) if isinstance(content, dict) else content[place]


def _name(entry: Any) -> str:
    return f" ({entry['name']})" if isinstance(entry, dict) and "name" in entry else ""


def _value(text: str) -> Any:
    """Reads a value as TOML, else as a list without brackets, else as text."""
    for written in (text, f"[{text}]" if "," in text else text):
        try:
            return tomllib.loads(f"value = {written}")["value"]
        except tomllib.TOMLDecodeError:
            continue
    parts = [part.strip() for part in text.split(",")]
    return parts if len(parts) > 1 else text


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value

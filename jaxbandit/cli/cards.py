"""The registry on the terminal: a line for every policy and environment, and a card with an entry to paste."""

import dataclasses
import inspect
import pathlib
import re
from typing import Any

from rich.table import Table

from jaxbandit.cli.layout import facts_table, new_table
from jaxbandit.grid import suggest, text
from jaxbandit.studies import entries
from jaxbandit.studies.shipped import shipped
from jaxbandit.tables import readers
from jaxbandit.theory.guarantees import ASSUMPTIONS, GUARANTEES, OTHERWISE, Guarantee
from jaxbandit.types import public_fields, required_fields

LETTERS = ("horizon", "moment_order", "moment_bound", "mean_bound")  # fields that have a letter in the papers
_GIVEN = {"T": "T", "α": "alpha", "σ": "sigma", "R": "R, a bound on the means", "unit": "the unit of the losses"}
_LETTERS = {
    "alpha": "α",
    "beta": "β",
    "delta": "δ",
    "Delta": "Δ",
    "ell": "l",
    "eps": "ε",
    "epsilon": "ε",
    "eta": "η",
    "ge": ">=",
    "infty": "infinity",
    "le": "<=",
    "mu": "μ",
    "nu": "ν",
    "pm": "±",
    "sigma": "σ",
    "times": "x",
}
# Values of an entry to paste, for fields without a default.
_EXAMPLES = {
    "means": "[0.5, 1.0, 1.0, 1.0]",
    "tail_index": "1.6",
    "moment_order": '"environment"',
    "moment_bound": '"environment"',
    "mean_bound": "1.0",
    "delay": "10",
    "gap": "0.1",
    "policy": '{name = "uniinf"}',
    "law": '{name = "pareto", means = [0.5, 1.0, 1.0, 1.0], tail_index = 1.6}',
    "table": '"losses.csv"',
    "num_arms": "2",
    "probability": "0.01",
    "gain": "100.0",
    "outliers": '{name = "gaussian", means = [100.0]}',
    "epsilon": "0.05",
    "shift": "1.0",
    "kind": '"sinusoidal"\nperiod = 1_000',
    "amplitude": "0.25",
    "budget": "10",
}


def registry_table(section: str, width: int | None = None) -> Table:
    """Returns a table with one line for every entry of a section; descriptions are cut at a word to fit ``width``."""
    rows = {}
    for name in entries.names(section):
        try:
            rows[name] = _first_line(entries.find_class(name, section, pathlib.Path()))
        except ValueError as error:  # a class of another package that cannot be imported
            rows[name] = str(error)
    table = new_table("name", "what it is", title=section)
    room = None if width is None else width - max(map(len, rows), default=0) - 4  # beside the rule between columns
    for name, about in rows.items():
        table.add_row(name, about if room is None else _shortened(about, room))
    return table


def card(name: str) -> tuple[str, Table, str]:
    """Returns the title, the facts and a paste-ready entry of a policy or an environment."""
    section, name, cls = _found(name)
    facts = {"is": _first_line(cls)}
    if section == "policies" and name in GUARANTEES:
        row = GUARANTEES[name]
        others = [f"a {field}" for field in required_fields(cls) if field not in LETTERS]
        facts["must be given"] = ", ".join([*(_GIVEN[letter] for letter in row.given), *others]) or "nothing"
        facts["assumes"] = "; ".join(ASSUMPTIONS[key] for key in row.assumes) or "nothing"
        facts["proved regret"] = _promised(row) or "nothing"
        if name in OTHERWISE:
            words, other = OTHERWISE[name]
            facts[f"proved {words}"] = _promised(other)
        if row.note:
            facts["note"] = row.note
    if section == "environments":
        facts["finite moments"] = str(getattr(cls, "moments", "")) or "not declared"
        facts["truncated non-negative"] = str(getattr(cls, "nonnegative", "")) or "not declared"
    meanings = _meanings(cls)
    for key in _keys(name, cls, section):
        facts[f"  {key}"] = meanings.get(re.split(r"[=*(, ]", key)[0], "")
    if source := _references(cls):
        facts["source"] = source
    title = f"{getattr(cls, 'label', name)}, a {'policy' if section == 'policies' else 'kind of environment'}"
    return title, facts_table({key: value or "-" for key, value in facts.items()}), _entry(name, cls, section)


def _promised(row: Guarantee) -> str:
    """Returns the proved orders in words, each with its footnote."""
    notes = {where: f" ({order.note})" if order.note else "" for where, order in row.promises.items()}
    return "; ".join(f"{order.bound} {where}{notes[where]}" for where, order in row.promises.items())


def _found(name: str) -> tuple[str, str, type]:
    """Returns the section, the registered name and the class of an entry, which may be called by its class or label."""
    listed = [(section, one) for section in entries.REGISTRIES for one in entries.names(section)]
    exact = [(section, one) for section, one in listed if one == name]
    for section, one in exact or listed:
        known = entries.REGISTRIES[section].get(one)
        called = {one, getattr(known, "__name__", one), getattr(known, "label", one)}
        if name.lower() in {other.lower() for other in called}:
            return section, one, entries.find_class(one, section, pathlib.Path())
    every = [one for _, one in listed]
    if name in shipped():
        raise ValueError(f"{name!r} is a shipped study, no policy or environment; see it with: jaxbandit plan {name}")
    raise ValueError(f"there is no policy or environment {name!r}; {suggest(name, every)}")


def _entry(name: str, cls: type, section: str) -> str:
    lines = [f"[[{section}]]", f'name = "{name}"']
    examples = _EXAMPLES | ({"moment_order": "1.5"} if section == "environments" else {})
    required = [key.partition(" ")[0].rstrip("*") for key in _keys(name, cls, section) if "*" in key]
    return "\n".join([*lines, *(f"{key} = {examples.get(key, '...')}" for key in required)])


def _first_line(cls: type) -> str:
    return _without_roles((cls.__doc__ or "").strip().partition("\n")[0])


def _section(cls: type, title: str) -> str:
    doc = inspect.cleandoc(cls.__doc__ or "")
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n?|\n)+)", doc, re.MULTILINE)
    return found[1] if found else ""


def _meanings(cls: type) -> dict[str, str]:
    """Returns the descriptions of fields in a docstring."""
    parts = re.findall(r"^  (\w+): (.*(?:\n    .*)*)", _section(cls, "Attributes"), re.MULTILINE)
    return {name: _without_roles(" ".join(about.split())) for name, about in parts}


def _references(cls: type) -> str:
    return _without_roles(" ".join(_section(cls, "References").split()))


def _without_roles(about: str) -> str:
    """Returns a docstring's text without the marks of reStructuredText and LaTeX."""
    about = re.sub(r":\w+:`~?([^`]*)`", r"\1", about).replace("``", "").replace("`", "")
    about = re.sub(r"\\\w+", lambda found: _LETTERS.get(found[0][1:], found[0][1:]), about)
    return about.replace("\\,", " ").replace("\\", "")


def _shortened(about: str, room: int) -> str:
    if len(about) <= room:
        return about
    return about[: max(room - 3, 0)].rpartition(" ")[0].rstrip(",;:") + " ..."


def default_text(value: Any) -> str:
    """Returns a field's default as in a study file; empty text if there is no default or it is empty."""
    if value is dataclasses.MISSING or value is None or value == "":
        return ""
    return "=" + (str(value).lower() if isinstance(value, bool) else text(value))


def _keys(name: str, cls: type, section: str) -> list[str]:
    """Returns the keys of a study file's entry with their defaults; an asterisk marks required keys."""
    shown = []
    for field, spec in public_fields(cls).items():
        filled = section == "policies" and field == "horizon"
        needed = (spec.default is dataclasses.MISSING and not filled) or spec.metadata.get("nested")
        if field == readers.TABLE_FIELDS.get(name):
            shown.append(f"table* (or {field})")
        else:
            key = entries.CALLED if field == "name" else field
            shown.append(f"{key}*" if needed else key + default_text(spec.default))
    return [*shown, *(readers.TABLE_OPTIONS if name in readers.TABLE_FIELDS else ())]
